# SPDX-License-Identifier: Apache-2.0
"""A file on a tmpfs to another: the command against `cp`, `openssl enc`, `age` and Tink in
Python."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from common import Row, parser, report, seconds


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--mib", type=int, default=1024, help="size of the file")
    arguments.add_argument("--folder", type=Path, required=True, help="on a tmpfs")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measure(Path(folder), options.mib, options.repetitions)
    report(rows, options, size=f"{options.mib} MiB", residence="tmpfs to tmpfs")


def measure(folder: Path, mib: int, repetitions: int) -> list[Row]:
    plain = folder / "plain"
    with plain.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
    warpcipher = shutil.which("warpcipher") or sys.exit("warpcipher is not on PATH: make build")
    key, sealed, opened, copy = (folder / name for name in ("key", "sealed", "opened", "copy"))
    run([warpcipher, "keygen", key])

    options = ["--force", "--key", key, "-o"]
    encrypt = [warpcipher, "encrypt", *options, sealed, plain]
    decrypt = [warpcipher, "decrypt", *options, opened, sealed]
    rates = {
        "cp": seconds(lambda: run(["cp", plain, copy]), repetitions),
        "warpcipher encrypt": seconds(lambda: run(encrypt), repetitions),
        "warpcipher decrypt": seconds(lambda: run(decrypt), repetitions),
    }
    run(["cmp", plain, opened])
    opened.unlink()
    if shutil.which("openssl"):
        secret = ["-K", os.urandom(32).hex(), "-iv", os.urandom(16).hex()]
        enc = ["openssl", "enc", "-aes-256-ctr", *secret, "-in", plain, "-out", copy]
        rates["openssl enc -aes-256-ctr"] = seconds(lambda: run(enc), repetitions)
    try:
        rates["tink AES256-GCM-HKDF 1 MB (Python)"] = seconds(tink_encryption(plain, copy), 1)
    except ImportError:
        print("tink is not installed: left out", file=sys.stderr)
    if shutil.which("age"):
        rates |= age_seconds(warpcipher, folder, plain, repetitions)
    else:
        print("age is not installed: left out", file=sys.stderr)
    gib = mib / 1024
    return [Row(name, "GiB/s", [gib / taken for taken in times]) for name, times in rates.items()]


def age_seconds(
    warpcipher: str, folder: Path, plain: Path, repetitions: int
) -> dict[str, list[float]]:
    """Format age, by this command and by age itself, in turn: both see the same machine."""
    identity, ours, theirs, out = (folder / name for name in ("id", "ours", "theirs", "out"))
    run([warpcipher, "keygen", "--format", "age", identity])
    public = identity.read_text().split("# public key: ")[1].split()[0]
    commands: dict[str, list[object]] = {
        "warpcipher encrypt, age": [warpcipher, "encrypt", "-f", "-r", public, "-o", ours, plain],
        "age": ["age", "-r", public, "-o", theirs, plain],
        "warpcipher decrypt, age": [warpcipher, "decrypt", "-f", "-i", identity, "-o", out, theirs],
        "age -d": ["age", "-d", "-i", identity, "-o", out, ours],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repetitions):
        for name, command in commands.items():
            times[name] += seconds(functools.partial(run, command), 1)
            if command[-2] == out:
                run(["cmp", plain, out])
    return times


def run(command: list[object]) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def tink_encryption(source: Path, target: Path):  # type: ignore[no-untyped-def]
    import tink
    from tink import streaming_aead

    streaming_aead.register()
    template = streaming_aead.streaming_aead_key_templates.AES256_GCM_HKDF_1MB
    primitive = tink.new_keyset_handle(template).primitive(streaming_aead.StreamingAead)

    def encrypt() -> None:
        with (
            source.open("rb") as reader,
            target.open("wb") as file,
            primitive.new_encrypting_stream(file, b"") as writer,
        ):
            while piece := reader.read(1 << 20):
                writer.write(piece)

    return encrypt


if __name__ == "__main__":
    main()

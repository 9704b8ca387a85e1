# SPDX-License-Identifier: Apache-2.0
"""A file on a tmpfs to another: the command against `cp`, `openssl enc`, `age` and Tink in
Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from warpcipher_measure.program import Row, Times, by_turns, named, parser, rates, ratio, report


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

    options = ["--key", key, "-o"]
    encrypt = [warpcipher, "encrypt", *options, sealed, plain]
    kept = folder / "kept"
    decrypt = [warpcipher, "decrypt", *options, opened, kept]
    run([warpcipher, "encrypt", "--key", key, "-o", kept, plain])
    run(decrypt)
    run(["cmp", plain, opened])
    opened.unlink()
    taken = turns(
        {
            "cp": (["cp", plain, copy], copy),
            "warpcipher encrypt": (encrypt, sealed),
            "warpcipher decrypt": (decrypt, opened),
        },
        repetitions,
    )
    kept.unlink()
    for name in taken:
        ratio(taken, name, "cp")
    if shutil.which("openssl"):
        secret = ["-K", os.urandom(32).hex(), "-iv", os.urandom(16).hex()]
        enc = ["openssl", "enc", "-aes-256-ctr", *secret, "-in", plain, "-out", copy]
        taken |= turns({"openssl enc -aes-256-ctr": (enc, copy)}, repetitions)
    with named("tink"):
        encryption = tink_encryption(plain, copy)
        taken |= by_turns({"tink AES256-GCM-HKDF 1 MB (Python)": encryption}, 1)
    if shutil.which("age"):
        taken |= age_seconds(warpcipher, folder, plain, repetitions)
    else:
        print("age is not installed: left out", file=sys.stderr)
    return rates(taken, mib / 1024, "GiB/s")


def turns(commands: dict[str, tuple[list[object], Path]], repetitions: int) -> dict[str, Times]:
    """The file that a command makes was not there, and goes at once, as new memory may be slow."""
    actions = {name: partial(run, command) for name, (command, _) in commands.items()}
    return by_turns(actions, repetitions, after=lambda name: commands[name][1].unlink())


def age_seconds(warpcipher: str, folder: Path, plain: Path, repetitions: int) -> dict[str, Times]:
    """Format age, by this command and by age itself, in turn: both see the same machine."""
    identity, ours, theirs, out = (folder / name for name in ("id", "ours", "theirs", "out"))
    run([warpcipher, "keygen", "--format", "age", identity])
    public = identity.read_text().split("# public key: ")[1].split()[0]
    encrypt = [warpcipher, "encrypt", "-r", public, "-o", ours, plain]
    run(encrypt)
    run(["age", "-d", "-i", identity, "-o", out, ours])
    run(["cmp", plain, out])
    ours.unlink()
    out.unlink()
    kept = folder / "kept"
    run(["age", "-r", public, "-o", kept, plain])
    commands: dict[str, tuple[list[object], Path]] = {
        "warpcipher encrypt, age": (encrypt, ours),
        "age": (["age", "-r", public, "-o", theirs, plain], theirs),
        "warpcipher decrypt, age": ([warpcipher, "decrypt", "-i", identity, "-o", out, kept], out),
        "age -d": (["age", "-d", "-i", identity, "-o", out, kept], out),
    }
    taken = turns(commands, repetitions)
    ratio(taken, "warpcipher encrypt, age", "age")
    ratio(taken, "warpcipher decrypt, age", "age -d")
    return taken


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

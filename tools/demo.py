#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: the main job on real files, step by step, and rates against other tools.

Makes a tar of files that are on this machine, encrypts it, looks at it, decrypts it, lets other
implementations open it, reads from its middle, damages it. Downloads nothing, removes all it made.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import demo_rates
import warpcipher as wc
from warpcipher import formats

MB = 1_000_000
SMALLEST = 16 << 10  # smaller files take long to pack


class DemoError(Exception):
    """Something did not come out as it must."""


def say(text: str = "") -> None:
    print(text, flush=True)


def step(number: int, text: str) -> None:
    say(f"\n{number}. {text}")


def require(condition: bool, text: str) -> None:
    if not condition:
        raise DemoError(text)


def warpcipher(
    *arguments: str, folder: Path, expect: int = 0, show: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does and shows it, with its output."""
    if show:
        say(f"   $ warpcipher {shlex.join(arguments)}")
    done = subprocess.run(
        [sys.executable, "-m", "warpcipher", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if show:
        for line in (done.stdout + done.stderr).splitlines():
            say(f"     {line}")
    require(
        done.returncode == expect,
        f"exit code {done.returncode}, expected {expect}: {done.stderr.strip()}",
    )
    return done


def transfer(*arguments: str, folder: Path) -> None:
    """Runs encrypt or decrypt and shows its rate."""
    say(f"   $ warpcipher {shlex.join(arguments)}")
    start = time.perf_counter()
    done = warpcipher(*arguments, "--json", folder=folder, show=False)
    seconds = time.perf_counter() - start
    (result,) = json.loads(done.stdout)["results"]
    plain = min(result["input_bytes"], result["output_bytes"])
    say(
        f"     {plain / MB:.0f} MB in {seconds:.2f} s, start of the program included: "
        f"{plain / seconds / 1e9:.2f} GB/s"
    )


def workplace(wanted: int) -> tuple[Path, int]:
    """A folder with room for three files of the size, in memory if possible; and the size."""
    needed = 3 * wanted + 200 * MB
    shared = Path("/dev/shm")  # noqa: S108 - the folder made in it is private
    places = [shared] if os.access(shared, os.W_OK) and memory_available() > 2 * needed else []
    places.append(Path(tempfile.gettempdir()))
    for place in places:
        if shutil.disk_usage(place).free > needed:
            return place, wanted
    size = (shutil.disk_usage(places[-1]).free - 200 * MB) // 3
    require(size >= 20 * MB, f"{places[-1]} has no room for a demonstration: set TMPDIR")
    return places[-1], size


def memory_available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def material() -> Iterator[Path]:
    """Readable files of this machine that are not small, the Python installation first."""
    paths = sysconfig.get_paths()
    roots = [paths["stdlib"], paths["purelib"], paths["platlib"], "/usr/lib", "/usr/share"]
    for root in dict.fromkeys(roots):
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                if path.is_symlink() or not (path.is_file() and os.access(path, os.R_OK)):
                    continue
                if path.stat().st_size >= SMALLEST:
                    yield path


def make_tar(target: Path, wanted: int) -> int:
    """Packs files of this machine up to the wanted size; returns how many."""
    count = 0
    with tarfile.open(target, "w") as archive:
        for path in material():
            size = path.stat().st_size
            if archive.offset + size + 2048 > wanted:
                continue
            archive.add(path, arcname=str(path).lstrip("/"), recursive=False)
            count += 1
            if archive.offset > wanted * 0.97:
                break
    return count


def peer_opens(sealed: Path, plain: Path, key: bytes) -> None:
    """Decrypts with pyca/cryptography's Cobblestone and compares, a piece at a time."""
    try:
        from cryptography.cobblestone import Cobblestone256Decryptor
    except ImportError:
        say("   (not shown: cryptography 50 or later is not installed)")
        return
    say("   >>> cryptography.cobblestone.Cobblestone256Decryptor(key, context=b'').update(...)")
    decryptor = Cobblestone256Decryptor(key, b"")
    with sealed.open("rb") as source, plain.open("rb") as expected:
        while piece := source.read(8 << 20):
            opened = decryptor.update(piece)
            require(opened == expected.read(len(opened)), "pyca decrypts to something else")
        opened = decryptor.finalize() or b""
        require(opened == expected.read(), "pyca decrypts to something else")
    say("     the same plaintext, and every chunk authentic to it")


def tink_opens(folder: Path) -> None:
    """Encrypts with a Tink keyset, and lets Tink decrypt."""
    try:
        import tink
        from tink import secret_key_access, streaming_aead
    except ImportError:
        say("   (not shown: tink is not installed)")
        return
    with (folder / "input.tar").open("rb") as source:
        (folder / "part").write_bytes(source.read(20 << 20))
    warpcipher("keygen", "--format", "tink", "keyset.json", folder=folder)
    warpcipher("encrypt", "--key", "keyset.json", "part", folder=folder)
    say("   >>> tink.streaming_aead: new_decrypting_stream(...).read()")
    streaming_aead.register()
    handle = tink.json_proto_keyset_format.parse(
        (folder / "keyset.json").read_text(), secret_key_access.TOKEN
    )
    primitive = handle.primitive(streaming_aead.StreamingAead)
    with (folder / "part.tink").open("rb") as sealed:
        stream = primitive.new_decrypting_stream(sealed, b"")
        require(stream.read() == (folder / "part").read_bytes(), "Tink decrypts to something else")
        stream.close()
    say("     the same plaintext")


def random_access(folder: Path, key: bytes) -> None:
    """Reads a slice of the middle without decrypting the part before it."""
    plain, sealed = folder / "input.tar", folder / "input.tar.cobblestone"
    place = random.randrange(plain.stat().st_size // 2, plain.stat().st_size - 1000)  # noqa: S311
    say(f"   >>> file = warpcipher.formats.open({sealed.name!r}, key)")
    say(f"   >>> file.seek({place}); file.read(1000)")
    start = time.perf_counter()
    with formats.open(sealed, key) as file:
        file.seek(place)
        found = file.read(1000)
    milliseconds = 1000 * (time.perf_counter() - start)
    with plain.open("rb") as original:
        original.seek(place)
        require(found == original.read(1000), "the slice differs")
    say(f"     the right 1000 bytes, in {milliseconds:.1f} ms: only their chunks were decrypted")


def tamper(folder: Path) -> None:
    """Flips one bit in the middle: refused, and nothing written."""
    sealed = folder / "input.tar.cobblestone"
    place = sealed.stat().st_size // 2
    with sealed.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))
    before = set(folder.iterdir())
    arguments = ("decrypt", "--key", "my.key", "-o", "forged.tar", sealed.name)
    warpcipher(*arguments, folder=folder, expect=3)
    require(set(folder.iterdir()) == before, "a file was left behind")
    say(f"     exit code 3: one bit of byte {place} was changed, and no file was written")
    with sealed.open("r+b") as file:
        file.seek(place)
        file.write(bytes([byte]))


def demonstrate(folder: Path, wanted: int) -> None:
    step(1, f"Real input: a tar of files of this machine, in {folder}")
    start = time.perf_counter()
    count = make_tar(folder / "input.tar", wanted)
    size = (folder / "input.tar").stat().st_size
    say(f"   input.tar: {count} files, {size / MB:.0f} MB ({time.perf_counter() - start:.1f} s)")
    require(size >= wanted // 4, "this machine has too few files for a demonstration")

    step(2, "Make a key: 32 random bytes in a file that only its owner can read")
    warpcipher("keygen", "my.key", folder=folder)
    key = (folder / "my.key").read_bytes()
    say(f"     {len(key)} bytes, mode {(folder / 'my.key').stat().st_mode & 0o777:04o}")

    step(3, "Encrypt: AES-256-GCM in chunks of 16 KiB, format cobblestone-256 of C2SP")
    transfer("encrypt", "--key", "my.key", "input.tar", folder=folder)

    step(4, "Ask for the format of the file")
    warpcipher("info", "--key", "my.key", "input.tar.cobblestone", folder=folder)

    step(5, "Decrypt and compare with the input")
    arguments = ("decrypt", "--key", "my.key", "-o", "back.tar", "input.tar.cobblestone")
    transfer(*arguments, folder=folder)
    same = filecmp.cmp(folder / "input.tar", folder / "back.tar", shallow=False)
    require(same, "the decrypted file differs from the input")
    say("     identical to the input, byte for byte")
    (folder / "back.tar").unlink()

    step(6, "Another implementation opens it: pyca/cryptography")
    peer_opens(folder / "input.tar.cobblestone", folder / "input.tar", key)

    step(7, "And Tink opens a file that was encrypted with a Tink keyset (the first 20 MiB)")
    tink_opens(folder)

    step(8, "Random access: read from the middle")
    random_access(folder, key)

    step(9, "Tampering is detected")
    tamper(folder)

    step(10, "Rates on this machine")
    demo_rates.show_files(folder)
    demo_rates.show_memory()
    demo_rates.show_device()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=400, metavar="MB", help="of the input (400)")
    wanted = parser.parse_args().size * MB
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    say(f"warpcipher {wc.__version__}")
    for engine in wc.engines():
        state = "; ".join(engine.devices) if engine.usable else f"cannot run here: {engine.reason}"
        say(f"   engine {engine.name}: {state}")
    start = time.perf_counter()
    try:
        place, size = workplace(wanted)
        with tempfile.TemporaryDirectory(prefix="warpcipher-demo-", dir=place) as folder:
            demonstrate(Path(folder), size)
    except DemoError as error:
        say(f"\nFAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    say(f"\nAll of it worked, in {time.perf_counter() - start:.0f} s; its files are removed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

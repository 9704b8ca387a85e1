# SPDX-License-Identifier: Apache-2.0
"""Encrypted files of the C ABI and of Python: each reads what the other made. Run by CTest:

python c_files.py PROGRAM    the built examples/sealed_file.c
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from warpcipher import formats

CHUNK = 16 << 10


def main(program: str) -> None:
    for bits in (128, 256):
        key, options = os.urandom(bits // 8), formats.Options(context=b"a context")
        Path("key").write_bytes(key)
        for size in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 64 * CHUNK, 200 * CHUNK + 5):
            text = os.urandom(size)
            Path("plain").write_bytes(text)
            run(program, "seal", "plain", "by-c")
            with formats.open("by-c", key, format=f"cobblestone-{bits}", options=options) as file:
                assert file.read() == text, f"{bits} bits, {size} bytes: Python reads another text"
            formats.encrypt_file("plain", "by-python", key, options=options)
            run(program, "open", "by-python", "back")
            assert Path("back").read_bytes() == text, f"{bits} bits, {size} bytes: C reads another"
            assert Path("by-c").stat().st_size == Path("by-python").stat().st_size
            for name in ("by-c", "by-python", "back"):
                Path(name).unlink()
    print("files of C and of Python are the same")


def run(program: str, action: str, source: str, target: str) -> None:
    subprocess.run([program, action, "key", "a context", source, target], check=True)


if __name__ == "__main__":
    built = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main(built)
        os.chdir("/")

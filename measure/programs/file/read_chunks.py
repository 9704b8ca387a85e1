# SPDX-License-Identifier: Apache-2.0
"""An encrypted file into memory of a GPU or of the host, against plain reads of the same file into
page-locked memory (the time of reading only).

With --disk no cache holds the file, and plain reads go by O_DIRECT too. All take turns, as the rate
of a disk that others use changes within seconds."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import warpcipher
from warpcipher import formats
from warpcipher_measure.program import Program, by_turns

PIECE = 16 << 20
TENSOR = 32 << 20


def main() -> None:
    program = Program(__doc__)
    program.option("--mib", type=int, default=8192, help="size of the plaintext")
    program.option("--folder", type=Path, required=True, help="on a tmpfs, or on a disk")
    program.option("--host", action="store_true", help="to host memory, not to a GPU")
    program.option("--disk", action="store_true", help="past the caches")
    program.option("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    options = program.parse()
    size, key = options.mib << 20, os.urandom(32)

    def memory(length: int) -> Any:
        return bytearray(length) if options.host else warpcipher.DeviceArray(length, 0, 0)

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "file"
        with path.open("wb") as writer:
            formats.encrypt_stream(Zeros(size), writer, key)
            writer.flush()
            os.fsync(writer.fileno())
        ways = {"formats.open, readinto": read_into(path, key, memory(size))}
        for threads in options.threads:
            ways[f"plain reads, {threads} threads"] = plain_read(path, threads, 0)
            if options.disk:
                ways[f"O_DIRECT, {threads} threads"] = plain_read(path, threads, os.O_DIRECT)
        if not options.disk:
            ways["formats.open, read(1 MiB) in order"] = read_in_order(path, key)

        def forget() -> None:
            """Takes the file out of the page cache."""
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        before: Callable[[], None] = forget if options.disk else lambda: None
        program.rates(by_turns(ways, options.repetitions, before=before), size / 1e9)
        part = read_into(path, key, memory(min(size, TENSOR)), max(0, size - TENSOR) // 2)
        one = {"formats.open, 32 MiB out of the file": part}
        program.times(by_turns(one, options.repetitions, before=before))
    residence = f"{options.folder} to {'host' if options.host else 'GPU'} memory"
    program.finish(size=f"{options.mib} MiB", residence=residence)


def read_into(path: Path, key: bytes, target: Any, position: int = 0) -> Callable[[], object]:
    def read() -> None:
        with formats.open(path, key) as file:
            file.seek(position)
            file.readinto(target)

    return read


def read_in_order(path: Path, key: bytes) -> Callable[[], object]:
    def read() -> None:
        with formats.open(path, key) as file:
            while file.read(1 << 20):
                pass

    return read


class Zeros:
    """A plaintext of that many bytes, never held as a whole."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readinto(self, buffer: memoryview, /) -> int:
        count = min(len(buffer), self.left)
        self.left -= count
        return count


def plain_read(path: Path, threads: int, flags: int) -> Callable[[], object]:
    """Reads all of a file into memory that is page-locked, or aligned if flags are given."""
    slots = [
        memoryview(mmap.mmap(-1, PIECE) if flags else warpcipher.pinned(PIECE))
        for _ in range(threads)
    ]

    def work(descriptor: int, number: int) -> None:
        size = os.fstat(descriptor).st_size
        for begin in range(number * PIECE, size, threads * PIECE):
            at, end = begin, min(begin + PIECE, size)
            while at < end:
                at += os.preadv(descriptor, [slots[number][at - begin :]], at)

    def run() -> None:
        descriptor = os.open(path, os.O_RDONLY | flags)
        try:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, [descriptor] * threads, range(threads)))
        finally:
            os.close(descriptor)

    return run


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""An encrypted file on a disk, which no cache holds, to a GPU or to the host: the package's reader
beside plain reads of the same file, by O_DIRECT and through the page cache. All take turns, as the
rate of a disk that others use changes within seconds."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import warpcipher
from common import Row, parser, report
from read_chunks import Zeros
from warpcipher import formats

PIECE = 4 << 20


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--mib", type=int, default=1024, help="size of the plaintext")
    arguments.add_argument("--folder", type=Path, required=True, help="on a disk")
    arguments.add_argument("--host", action="store_true", help="to host memory, not to a GPU")
    arguments.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 16])
    options = arguments.parse_args()
    size = options.mib << 20
    out: Any = bytearray(size) if options.host else warpcipher.DeviceArray(size, 0, 0)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, key = Path(folder) / "file", os.urandom(32)
        with path.open("wb") as writer:
            formats.encrypt_stream(Zeros(size), writer, key)
            writer.flush()
            os.fsync(writer.fileno())

        def ours() -> None:
            with formats.open(path, key) as file:
                file.readinto(out)

        ways: dict[str, Callable[[], None]] = {"formats.open, readinto": ours}
        for threads in options.threads:
            for name, flags in (("O_DIRECT", os.O_DIRECT), ("page cache", 0)):
                ways[f"{name}, {threads} threads"] = plain(path, flags, threads)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.repetitions):
            for name, way in ways.items():
                forget(path)
                begin = time.perf_counter()
                way()
                taken[name].append(time.perf_counter() - begin)
    rows = [
        Row(name, "GB/s", [size / each / 1e9 for each in found]) for name, found in taken.items()
    ]
    residence = f"{options.folder} to {'host' if options.host else 'GPU'} memory"
    report(rows, options, size=f"{options.mib} MiB", residence=residence)


def forget(path: Path) -> None:
    """Takes a file out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def plain(path: Path, flags: int, threads: int) -> Callable[[], None]:
    """Reads of all of a file, each of PIECE bytes, into aligned memory of a thread."""

    def part(number: int, descriptor: int, size: int) -> None:
        with mmap.mmap(-1, PIECE) as memory:
            for offset in range(number * PIECE, size, threads * PIECE):
                os.preadv(descriptor, [memory], offset)

    def read() -> None:
        descriptor = os.open(path, os.O_RDONLY | flags)
        try:
            size = os.fstat(descriptor).st_size
            with ThreadPoolExecutor(threads) as pool:
                for done in [pool.submit(part, i, descriptor, size) for i in range(threads)]:
                    done.result()
        finally:
            os.close(descriptor)

    return read


if __name__ == "__main__":
    main()

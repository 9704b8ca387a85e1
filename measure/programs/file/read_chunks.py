# SPDX-License-Identifier: Apache-2.0
"""An encrypted file into memory of a GPU or of the host, against plain reads of the same file into
page-locked memory (the time of reading only).

On a tmpfs: by threads and sizes of pieces. On a disk, with --disk, the file is one that no cache
holds, and plain reads go by O_DIRECT and through the page cache; all take turns, as the rate of a
disk that others use changes within seconds."""

from __future__ import annotations

import mmap
import os
import tempfile
from argparse import Namespace
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import warpcipher
from warpcipher import formats
from warpcipher_measure.program import Row, Times, by_turns, parser, rates, report

SLOT = 16 << 20
CHUNK = 16 << 10
SEALED = CHUNK + 16


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--mib", type=int, default=8192, help="size of the plaintext")
    arguments.add_argument("--folder", type=Path, required=True, help="on a tmpfs, or on a disk")
    arguments.add_argument("--host", action="store_true", help="to host memory, not to a GPU")
    arguments.add_argument("--disk", action="store_true", help="past the caches, by turns")
    arguments.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    arguments.add_argument(
        "--piece-mib", type=int, nargs="+", default=[0, 1, 4, 8, 16], help="0: the shipped choice"
    )
    options = arguments.parse_args()
    size = options.mib << 20
    out = bytearray(size) if options.host else warpcipher.DeviceArray(size, 0, 0)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "file"
        if options.disk:
            rows = measure_disk(path, size, out, options)
        else:
            rows = measure_columns(path, size, out, options)
            rows += measure_format(path, size, out, options)
    residence = f"{options.folder} to {'host' if options.host else 'GPU'} memory"
    report(rows, options, size=f"{options.mib} MiB", residence=residence)


def measure_columns(path: Path, size: int, out: Any, options: Namespace) -> list[Row]:
    """Chunks of 16 KiB as columns, against plain reads of the same file."""
    key, count = os.urandom(32), size // CHUNK
    ivs = b"".join(i.to_bytes(12, "big") for i in range(count))
    lengths, offsets = array("Q", [CHUNK]) * count, array("Q", range(0, count * SEALED, SEALED))
    part = 4096
    with path.open("wb") as file:
        for first in range(0, count, part):
            these = min(part, count - first)
            file.write(
                warpcipher.run_columns(
                    "aes-256-gcm",
                    "encrypt",
                    key,
                    bytes(these * CHUNK),
                    lengths=lengths[:these],
                    ivs=ivs[12 * first : 12 * (first + these)],
                ).out
            )
    with path.open("rb") as file:
        plain = {
            f"plain reads, {threads} threads": plain_read(path, threads)
            for threads in options.threads
        }
        ways = {
            f"{threads} threads, pieces of {piece or '-'} MiB": partial(
                formats.read_chunks,
                file.fileno(),
                "aes-256-gcm",
                key,
                out,
                offsets=offsets,
                lengths=lengths,
                ivs=ivs,
                threads=threads,
                piece_size=piece << 20,
            )
            for threads in options.threads
            for piece in options.piece_mib
        }
        return measure(plain, count * SEALED, options) + measure(ways, size, options)


def measure_format(path: Path, size: int, out: Any, options: Namespace) -> list[Row]:
    """A Cobblestone file: whole, a tensor out of it, and in order."""
    key = os.urandom(32)
    with path.open("wb") as writer:
        formats.encrypt_stream(Zeros(size), writer, key)
    tensor = min(size, 32 << 20)
    part = bytearray(tensor) if options.host else warpcipher.DeviceArray(tensor, 0, 0)
    with formats.open(path, key) as file:

        def read(target: Any, position: int) -> None:
            file.seek(position)
            file.readinto(target)

        def read_in_order() -> None:
            file.seek(0)
            while file.read(1 << 20):
                pass

        ways = {
            "formats.open, readinto": lambda: read(out, 0),
            "formats.open, read(1 MiB) in order": read_in_order,
        }
        rows = measure(ways, size, options)
        one = {"32 MiB": lambda: read(part, (size - tensor) // 2)}
        times = by_turns(one, options.repetitions)["32 MiB"].wall
    rows.append(Row("formats.open, 32 MiB out of the file", "ms", [1000 * t for t in times]))
    return rows


def measure_disk(path: Path, size: int, out: Any, options: Namespace) -> list[Row]:
    key = os.urandom(32)
    with path.open("wb") as writer:
        formats.encrypt_stream(Zeros(size), writer, key)
        writer.flush()
        os.fsync(writer.fileno())

    def ours() -> None:
        with formats.open(path, key) as file:
            file.readinto(out)

    def forget() -> None:
        """Takes the file out of the page cache."""
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    ways: dict[str, Callable[[], object]] = {"formats.open, readinto": ours}
    for threads in options.threads:
        for name, flags in (("O_DIRECT", os.O_DIRECT), ("page cache", 0)):
            ways[f"{name}, {threads} threads"] = plain_read(path, threads, 4 << 20, flags)
    return rates(by_turns(ways, options.repetitions, before=forget), size / 1e9)


def measure(ways: dict[str, Callable[[], object]], size: int, options: Namespace) -> list[Row]:
    """One way after the other, as a way's first read makes what the next ones use."""
    taken: dict[str, Times] = {}
    for name, way in ways.items():
        taken |= by_turns({name: way}, options.repetitions)
    return rates(taken, size / 1e9)


class Zeros:
    """A plaintext of that many bytes, never held as a whole."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readinto(self, buffer: memoryview, /) -> int:
        count = min(len(buffer), self.left)
        self.left -= count
        return count


def plain_read(
    path: Path, threads: int, piece: int = SLOT, flags: int | None = None
) -> Callable[[], object]:
    """Reads all of a file into memory that is page-locked, or aligned where there are flags."""
    slots = [
        memoryview(warpcipher.pinned(piece) if flags is None else mmap.mmap(-1, piece))
        for _ in range(threads)
    ]

    def work(descriptor: int, number: int) -> None:
        size = os.fstat(descriptor).st_size
        for begin in range(number * piece, size, threads * piece):
            at, end = begin, min(begin + piece, size)
            while at < end:
                at += os.preadv(descriptor, [slots[number][at - begin :]], at)

    def run() -> None:
        descriptor = os.open(path, os.O_RDONLY | (flags or 0))
        try:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, [descriptor] * threads, range(threads)))
        finally:
            os.close(descriptor)

    return run


if __name__ == "__main__":
    main()

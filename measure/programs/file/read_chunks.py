# SPDX-License-Identifier: Apache-2.0
"""An encrypted file into memory of a GPU or of the host, by threads and sizes of pieces, against
plain reads of the same file: on all threads into page-locked memory (what reading alone takes), and
on one thread."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import warpcipher
from common import Row, parser, report, seconds
from warpcipher import formats

SLOT = 16 << 20
CHUNK = 16 << 10
SEALED = CHUNK + 16


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--mib", type=int, default=8192, help="size of the plaintext")
    arguments.add_argument("--folder", type=Path, required=True, help="on a tmpfs, or on a disk")
    arguments.add_argument("--host", action="store_true", help="to host memory, not to a GPU")
    arguments.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    arguments.add_argument(
        "--piece-mib", type=int, nargs="+", default=[0, 1, 4, 8, 16], help="0: the shipped choice"
    )
    options = arguments.parse_args()
    size = options.mib << 20
    out = bytearray(size) if options.host else warpcipher.DeviceArray(size, 0, 0)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "file"
        rows = measure_columns(path, size, out, options) + measure_format(path, size, out, options)
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
    rows = []
    with path.open("rb") as file:
        for threads in options.threads:
            taken = seconds(plain_read(file.fileno(), count * SEALED, threads), options.repetitions)
            rows.append(rate(f"plain reads, {threads} threads", count * SEALED, taken))
        for threads in options.threads:
            for piece in options.piece_mib:

                def read(threads: int = threads, piece: int = piece) -> None:
                    formats.read_chunks(
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

                taken = seconds(read, options.repetitions)
                rows.append(rate(f"{threads} threads, pieces of {piece or '-'} MiB", size, taken))
    return rows


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

        whole = seconds(lambda: read(out, 0), options.repetitions)
        one = seconds(lambda: read(part, (size - tensor) // 2), options.repetitions)
        order = seconds(read_in_order, options.repetitions)
    return [
        rate("formats.open, readinto", size, whole),
        Row("formats.open, 32 MiB out of the file", "ms", [1000 * t for t in one]),
        rate("formats.open, read(1 MiB) in order", size, order),
    ]


def rate(name: str, size: int, taken: list[float]) -> Row:
    return Row(name, "GB/s", [size / t / 1e9 for t in taken])


class Zeros:
    """A plaintext of that many bytes, never held as a whole."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readinto(self, buffer: memoryview, /) -> int:
        count = min(len(buffer), self.left)
        self.left -= count
        return count


def plain_read(descriptor: int, size: int, threads: int) -> Callable[[], object]:
    """Reads all of a file into page-locked slots, one for each thread."""
    slots = [memoryview(warpcipher.pinned(SLOT)) for _ in range(threads)]

    def work(number: int) -> None:
        for offset in range(number * SLOT, size, threads * SLOT):
            view = slots[number][: min(SLOT, size - offset)]
            done = 0
            while done < len(view):
                done += os.preadv(descriptor, [view[done:]], offset + done)

    def run() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))

    return run


if __name__ == "__main__":
    main()

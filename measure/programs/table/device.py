# SPDX-License-Identifier: Apache-2.0
"""Encrypted Parquet on a GPU. `modules`: all modules of many pages from ciphertext to plain chunks,
both in device memory. `file`: a file on a tmpfs to plain chunks in device memory, beside the same
chunks of a plain file, bytes that are read and copied and no more, and pyarrow, which decrypts on
the host before it copies. By turns."""

from __future__ import annotations

import inspect
import os
import tempfile
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import warpcipher
from pyarrow.parquet import encryption
from warpcipher import parquet
from warpcipher.parquet import modules
from warpcipher_measure.program import Row, Times, by_turns, parser, rates, report

PAGES_OF_CHUNK = 128
COLUMNS = 8
ROWS_OF_PAGE = {"1 MiB": 131_072, "20,000 rows": 20_000}
SLOT = 16 << 20


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("what", choices=["modules", "file"])
    arguments.add_argument("--mib", type=int, default=8192, help="of all pages")
    arguments.add_argument(
        "--pages",
        type=int,
        nargs="+",
        default=[1 << 20, 64 << 10, 8 << 10],
        help="bytes of a page, for `modules`",
    )
    arguments.add_argument(
        "--header", type=int, default=31, help="bytes of a page header, as pyarrow's; 0: none"
    )
    arguments.add_argument("--folder", type=Path, help="on a tmpfs, for `file`")
    arguments.add_argument(
        "--threads", type=int, default=16, help="of the plain reads and of pyarrow"
    )
    options = arguments.parse_args()
    size = options.mib << 20
    rows: list[Row] = []
    if options.what == "modules":
        for page in options.pages:
            rows += measure_modules(page, options.header, size, options.repetitions)
        residence = "device memory"
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for name, count in ROWS_OF_PAGE.items():
                rows += measure_file(Path(folder), name, count, size, options)
        residence = f"{options.folder} to device memory"
    report(rows, options, size=f"{options.mib} MiB, AES-128-GCM", residence=residence)


# --- all modules ----------------------------------------------------------------------------------


class Modules:
    """Chunks of pages of one size, header, page, header, page, encrypted and plain, in device
    memory, and the columns of a batch of all their modules."""

    def __init__(self, page: int, header: int, total: int) -> None:
        count = total // page
        self.key = os.urandom(16)
        self.plain = cupy.random.randint(0, 256, count * (header + page), dtype="uint8")
        sealed_header = header + modules.OVERHEAD if header else 0
        sealed_page = sealed_header + page + modules.OVERHEAD
        self.sealed = cupy.zeros(count * sealed_page, "uint8")
        numbers = np.arange(count, dtype="uint64")

        def both(heads: Any, pages: Any) -> Any:
            return np.stack([heads, pages], axis=1).reshape(-1) if header else pages

        lengths = both(np.full(count, header, "uint64"), np.full(count, page, "uint64"))
        plain = both(numbers * (header + page), numbers * (header + page) + header)
        begins = both(numbers * sealed_page, numbers * sealed_page + sealed_header)
        crypto = modules.FileCrypto(modules.GCM, b"table" + os.urandom(8))
        of_chunks = [
            crypto.page_aads(
                first // PAGES_OF_CHUNK % 1000,
                first // PAGES_OF_CHUNK // 1000,
                False,
                min(PAGES_OF_CHUNK, count - first),
            )
            for first in range(0, count, PAGES_OF_CHUNK)
        ]
        aad_size = of_chunks[0][0].sizes[0]
        aads = both(
            *(
                np.frombuffer(b"".join(each[i].data for each in of_chunks), f"V{aad_size}")
                for i in (0, 1)
            )
        ).tobytes()
        sizes = np.full(len(lengths), aad_size, "uint64")
        ivs = np.frombuffer(os.urandom(12 * len(lengths)), "uint8")
        self.host = {
            "aad": aads,
            "aad_lengths": sizes,
            "aad_offsets": np.arange(len(lengths), dtype="uint64") * aad_size,
        }
        self.texts = begins + modules.LENGTH + modules.NONCE
        self.places = plain
        self.lengths = lengths
        warpcipher.run_columns(
            "aes-128-gcm",
            "encrypt",
            self.key,
            self.plain,
            lengths=lengths,
            offsets=plain,
            out=self.sealed,
            out_offsets=self.texts,
            ivs=ivs,
            **self.host,
        ).raise_for_status()
        self.nonce_index = cupy.asarray(self.texts.astype("int64") - modules.NONCE)[
            :, None
        ] + cupy.arange(12)
        self.sealed[self.nonce_index] = cupy.asarray(ivs).reshape(-1, 12)
        self.ivs = ivs
        self.out = cupy.zeros_like(self.plain)

    def run(self, columns: dict[str, Any]) -> None:
        warpcipher.run_columns(
            "aes-128-gcm", "decrypt", self.key, self.sealed, out=self.out, **columns
        ).raise_for_status()

    def on_host(self) -> Callable[[], None]:
        """Columns and nonces in host memory."""
        sealed = self.lengths + modules.TAG
        given = {
            "lengths": sealed,
            "offsets": self.texts,
            "out_offsets": self.places,
            "ivs": self.ivs,
        }
        return lambda: self.run(given | self.host)

    def on_device(self) -> Callable[[], None]:
        """Columns on the GPU, and nonces taken from the modules there."""
        given = {
            "lengths": self.lengths + modules.TAG,
            "offsets": self.texts,
            "out_offsets": self.places,
        }
        aads = {**self.host, "aad": np.frombuffer(self.host["aad"], "uint8")}
        there = {name: cupy.asarray(value) for name, value in (given | aads).items()}
        return lambda: self.run(there | {"ivs": self.sealed[self.nonce_index].reshape(-1)})


def measure_modules(page: int, header: int, total: int, repetitions: int) -> list[Row]:
    made = Modules(page, header, total)
    actions = {
        f"pages of {page} bytes, columns on the GPU": made.on_device(),
        f"pages of {page} bytes, columns on the host": made.on_host(),
    }
    for action in actions.values():
        made.out[...] = 0
        action()
        if not cupy.array_equal(made.out, made.plain):
            raise SystemExit("decrypted to something else")
    return rates(turns(actions, repetitions), made.plain.nbytes / 1e9)


# --- a file ---------------------------------------------------------------------------------------


def measure_file(folder: Path, name: str, count: int, size: int, options: Namespace) -> list[Row]:
    key = os.urandom(16)
    path, plain = folder / "sealed.parquet", folder / "plain.parquet"
    write(path, key, count, size)
    parquet.to_plain(path, key, plain)
    target = cupy.empty(path.stat().st_size, "uint8")
    check(path, key)
    actions: dict[str, Callable[[], object]] = {
        f"pages of {name}: column_chunks": lambda: parquet.column_chunks(path, key, device=0),
        f"pages of {name}: column_chunks of the plain file": lambda: parquet.column_chunks(
            plain, device=0
        ),
        f"pages of {name}: read and copied, {options.threads} threads": copy_of(
            path, target, options.threads
        ),
        f"pages of {name}: pyarrow, decrypted and copied": by_pyarrow(path, key, options.threads),
    }
    found = rates(turns(actions, options.repetitions), path.stat().st_size / 1e9)
    path.unlink(), plain.unlink()
    return found


def write(path: Path, key: bytes, count: int, size: int) -> None:
    """Doubles of COLUMNS columns, in row groups of 64 MiB a column."""
    group = 8 << 20
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.random(group) for i in range(COLUMNS)})
    options: dict[str, Any] = {
        "compression": "none",
        "use_dictionary": False,
        "data_page_size": 8 * count,
        "write_batch_size": count,
        "encryption_properties": encryption.create_encryption_properties(key),
    }
    if "max_rows_per_page" in inspect.signature(pq.ParquetWriter.__init__).parameters:
        options["max_rows_per_page"] = count
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        for _ in range(max(1, size // (8 * group * COLUMNS))):
            writer.write_table(table, row_group_size=group)


def check(path: Path, key: bytes) -> None:
    """The first row group has the bytes that host memory gets."""
    with parquet.open(path, key) as file:
        here, there = file.column_chunks([0]), file.column_chunks([0], device=0)
    for one, other in zip(here.chunks, there.chunks, strict=True):
        if bytes(one.data) != cupy.asnumpy(other.data).tobytes():
            raise SystemExit("the device has other bytes")


def copy_of(path: Path, target: Any, threads: int) -> Callable[[], object]:
    """Reads all of a file into page-locked slots, two for each thread, and copies them on."""
    size = target.nbytes
    slots = [np.frombuffer(warpcipher.pinned(SLOT), "uint8") for _ in range(2 * threads)]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in slots]

    def work(descriptor: int, thread: int) -> None:
        for turn, offset in enumerate(range(thread * SLOT, size, threads * SLOT)):
            number = 2 * thread + turn % 2
            streams[number].synchronize()
            view = slots[number][: min(SLOT, size - offset)]
            done = 0
            while done < len(view):
                done += os.preadv(descriptor, [view[done:]], offset + done)
            target[offset : offset + len(view)].set(view, stream=streams[number])

    def run() -> None:
        with path.open("rb") as file, ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, [file.fileno()] * threads, range(threads)))
        cupy.cuda.Device().synchronize()

    return run


def by_pyarrow(path: Path, key: bytes, threads: int) -> Callable[[], object]:
    pa.set_cpu_count(threads)

    def run() -> object:
        properties = encryption.create_decryption_properties(key)
        table = pq.ParquetFile(path, decryption_properties=properties).read()
        return [
            cupy.asarray(chunk.to_numpy()) for column in table.columns for chunk in column.chunks
        ]

    return run


def turns(actions: dict[str, Callable[[], object]], repetitions: int) -> dict[str, Times]:
    return by_turns(actions, repetitions, wait=cupy.cuda.Device().synchronize)


if __name__ == "__main__":
    main()

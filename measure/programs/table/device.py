# SPDX-License-Identifier: Apache-2.0
"""Encrypted Parquet on a GPU. `modules`: all modules of many pages from ciphertext to plain chunks,
both in device memory. `file`: a file on a tmpfs to plain chunks in device memory, beside the same
chunks of a plain file, bytes that are read and copied and no more, and pyarrow, which decrypts on
the host before it copies. By turns."""

from __future__ import annotations

import inspect
import os
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
from warpcipher.parquet import crypto
from warpcipher_measure.program import Action, Actions, Program, by_turns

PAGES = [1 << 20, 64 << 10, 8 << 10]
HEADER = 31  # bytes, as pyarrow's
PAGES_OF_CHUNK = 128
COLUMNS = 8
SEALED = "sealed.parquet"
ROWS_OF_PAGE = {"1 MiB": 131_072, "20,000 rows": 20_000}
SLOT = 16 << 20


def main() -> None:
    program = Program(__doc__)
    program.option("what", choices=["modules", "file"])
    program.option("--mib", type=int, default=8192, help="of all pages")
    program.option("--pages", type=int, nargs="+", default=PAGES, help="bytes, for `modules`")
    program.option("--folder", type=Path, help="on a tmpfs, for `file`")
    program.option("--threads", type=int, default=16, help="of plain reads and of pyarrow")
    options = program.parse()
    size, residence = options.mib << 20, "device memory"

    def measure(actions: Actions, moved: int) -> None:
        wait = cupy.cuda.Device().synchronize
        program.rates(by_turns(actions, options.repetitions, wait=wait), moved / 1e9)

    if options.what == "modules":
        for page in options.pages:
            made = Modules(page, size)
            measure(decryptions(made, page), made.plain.nbytes)
    else:
        residence = f"{options.folder} to device memory"
        with program.folder() as folder:
            path, key = folder / SEALED, os.urandom(16)
            for name, count in ROWS_OF_PAGE.items():
                write(path, key, count, size)
                actions = readings(folder, key, name, options.threads)
                measure(actions, path.stat().st_size)
    program.finish(size=f"{options.mib} MiB, AES-128-GCM", residence=residence)


# --- all modules ----------------------------------------------------------------------------------


class Modules:
    """Chunks of pages of one size, header, page, header, page, encrypted and plain, in device
    memory, and the columns of a batch of all their modules."""

    def __init__(self, page: int, total: int) -> None:
        count = total // page
        self.key = os.urandom(16)
        self.plain = cupy.random.randint(0, 256, count * (HEADER + page), dtype="uint8")
        sealed_header = HEADER + crypto.OVERHEAD
        sealed_page = sealed_header + page + crypto.OVERHEAD
        self.sealed = cupy.zeros(count * sealed_page, "uint8")
        numbers = np.arange(count, dtype="uint64")

        def both(heads: Any, pages: Any) -> Any:
            return np.stack([heads, pages], axis=1).reshape(-1)

        lengths = both(np.full(count, HEADER, "uint64"), np.full(count, page, "uint64"))
        places = both(numbers * (HEADER + page), numbers * (HEADER + page) + HEADER)
        begins = both(numbers * sealed_page, numbers * sealed_page + sealed_header)
        texts = begins + crypto.LENGTH + crypto.NONCE
        file_crypto = crypto.FileCrypto(crypto.GCM, b"table" + os.urandom(8))
        pages = [min(PAGES_OF_CHUNK, count - i) for i in range(0, count, PAGES_OF_CHUNK)]
        of_chunks = [
            file_crypto.page_aads(chunk % 1000, chunk // 1000, False, its)
            for chunk, its in enumerate(pages)
        ]
        size = of_chunks[0][0].sizes[0]
        of_kinds = (b"".join(each[kind].data for each in of_chunks) for kind in (0, 1))
        aads = {
            "aad": both(*(np.frombuffer(data, f"V{size}") for data in of_kinds)).tobytes(),
            "aad_lengths": np.full(len(lengths), size, "uint64"),
            "aad_offsets": np.arange(len(lengths), dtype="uint64") * size,
        }
        ivs = np.frombuffer(os.urandom(12 * len(lengths)), "uint8")
        sealing = {"lengths": lengths, "offsets": places, "out_offsets": texts, "ivs": ivs}
        warpcipher.run_columns(
            "aes-128-gcm", "encrypt", self.key, self.plain, out=self.sealed, **sealing, **aads
        ).raise_for_status()
        nonces = cupy.asarray(texts.astype("int64") - crypto.NONCE)
        self.nonce_index = nonces[:, None] + cupy.arange(12)
        self.sealed[self.nonce_index] = cupy.asarray(ivs).reshape(-1, 12)
        self.out = cupy.zeros_like(self.plain)
        opening = {"lengths": lengths + crypto.TAG, "offsets": texts, "out_offsets": places}
        self.host = {**opening, **aads, "ivs": ivs}
        there = {**opening, **aads, "aad": np.frombuffer(aads["aad"], "uint8")}
        self.device = {name: cupy.asarray(value) for name, value in there.items()}

    def open(self, columns: dict[str, Any]) -> None:
        warpcipher.run_columns(
            "aes-128-gcm", "decrypt", self.key, self.sealed, out=self.out, **columns
        ).raise_for_status()

    def open_by_device(self) -> None:
        """Columns on the GPU, and nonces taken from the modules there."""
        self.open(self.device | {"ivs": self.sealed[self.nonce_index].reshape(-1)})


def decryptions(made: Modules, page: int) -> Actions:
    actions: Actions = {
        f"pages of {page} bytes, columns on the GPU": made.open_by_device,
        f"pages of {page} bytes, columns on the host": lambda: made.open(made.host),
    }
    for action in actions.values():
        made.out[...] = 0
        action()
        if not cupy.array_equal(made.out, made.plain):
            raise SystemExit("decrypted to something else")
    return actions


# --- a file ---------------------------------------------------------------------------------------


def readings(folder: Path, key: bytes, name: str, threads: int) -> Actions:
    path, plain = folder / SEALED, folder / "plain.parquet"
    parquet.to_plain(path, key, plain)
    with parquet.open(path, key) as file:  # the first row group has the bytes that the host gets
        here, there = file.column_chunks([0]), file.column_chunks([0], device=0)
    for one, other in zip(here.chunks, there.chunks, strict=True):
        if bytes(one.data) != cupy.asnumpy(other.data).tobytes():
            raise SystemExit("the device has other bytes")
    target = cupy.empty(path.stat().st_size, "uint8")
    ways: Actions = {
        "column_chunks": lambda: parquet.column_chunks(path, key, device=0),
        "column_chunks of the plain file": lambda: parquet.column_chunks(plain, device=0),
        f"read and copied, {threads} threads": copy_of(path, target, threads),
        "pyarrow, decrypted and copied": by_pyarrow(path, key, threads),
    }
    return {f"pages of {name}: {what}": way for what, way in ways.items()}


def write(path: Path, key: bytes, count: int, size: int) -> None:
    """Doubles of COLUMNS columns, in row groups of 64 MiB a column."""
    group = 8 << 20
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.random(group) for i in range(COLUMNS)})
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    options |= {"data_page_size": 8 * count, "write_batch_size": count}
    options["encryption_properties"] = encryption.create_encryption_properties(key)
    if "max_rows_per_page" in inspect.signature(pq.ParquetWriter.__init__).parameters:
        options["max_rows_per_page"] = count
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        for _ in range(max(1, size // (8 * group * COLUMNS))):
            writer.write_table(table, row_group_size=group)


def copy_of(path: Path, target: Any, threads: int) -> Action:
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


def by_pyarrow(path: Path, key: bytes, threads: int) -> Action:
    pa.set_cpu_count(threads)

    def run() -> object:
        properties = encryption.create_decryption_properties(key)
        table = pq.ParquetFile(path, decryption_properties=properties).read()
        chunks = (chunk for column in table.columns for chunk in column.chunks)
        return [cupy.asarray(chunk.to_numpy()) for chunk in chunks]

    return run


if __name__ == "__main__":
    main()

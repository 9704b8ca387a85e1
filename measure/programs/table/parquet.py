# SPDX-License-Identifier: Apache-2.0
"""Encrypted Parquet on a tmpfs: read_table against pyarrow's own read, to_plain against cp, and the
metadata of many chunks. By turns; in CPU seconds, too, for machines that are shared."""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption
from warpcipher import parquet
from warpcipher_measure.program import Row, by_turns, parser, report

PAGES = {"1 MiB": 1 << 20, "64 KiB": 64 << 10, "8 KiB": 8 << 10}
COLUMNS = 6


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=2_000_000, help=f"of {COLUMNS} doubles")
    arguments.add_argument("--chunks", type=int, default=5000, help="for the metadata")
    arguments.add_argument("--folder", type=Path, required=True, help="on a tmpfs")
    options = arguments.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, size in PAGES.items():
            rows += measure(Path(folder), name, size, options.rows, options.repetitions)
    rows += metadata(options.chunks, options.repetitions)
    size = f"{COLUMNS} columns of {options.rows} doubles, not compressed, AES-128-GCM"
    report(rows, options, size=size, residence="tmpfs to memory, or to tmpfs")


def measure(folder: Path, name: str, size: int, count: int, repetitions: int) -> list[Row]:
    key, path = os.urandom(16), folder / "t.parquet"
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.random(count) for i in range(COLUMNS)})
    pq.write_table(
        table,
        path,
        compression="none",
        use_dictionary=False,
        data_page_size=size,
        write_batch_size=max(size // 32, 64),
        encryption_properties=encryption.create_encryption_properties(key),
    )
    peer = encryption.create_decryption_properties(key)
    copy = ["cp", str(path), str(folder / "copy")]
    return times(
        {
            f"pages of {name}: read_table": lambda: parquet.read_table(path, key),
            f"pages of {name}: pyarrow": lambda: pq.ParquetFile(
                path, decryption_properties=peer
            ).read(),
            f"pages of {name}: to_plain": lambda: parquet.to_plain(path, key, folder / "plain"),
            f"pages of {name}: cp": lambda: subprocess.run(copy, check=True),
        },
        repetitions,
    )


def metadata(chunks: int, repetitions: int) -> list[Row]:
    """Reading a footer and writing it again, with statistics of every chunk."""
    key, columns = os.urandom(16), 20
    table = pa.table({f"c{i}": range(4 * chunks // columns) for i in range(columns)})
    sink = io.BytesIO()
    properties = encryption.create_encryption_properties(key)
    pq.write_table(table, sink, row_group_size=4, encryption_properties=properties)
    data = sink.getvalue()

    def walk() -> None:
        with parquet.open(data, key) as file:
            assert len(file.metadata) > 1000

    return times({f"metadata of {chunks} chunks": walk}, repetitions)


def times(actions: dict[str, Callable[[], object]], repetitions: int) -> list[Row]:
    return [
        row
        for name, taken in by_turns(actions, repetitions).items()
        for row in (
            Row(name, "ms", [1000 * each for each in taken.wall]),
            Row(f"{name}, CPU", "ms", [1000 * each for each in taken.cpu]),
        )
    ]


if __name__ == "__main__":
    main()

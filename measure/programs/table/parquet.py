# SPDX-License-Identifier: Apache-2.0
"""Encrypted Parquet on a tmpfs: read_table against pyarrow's own read, to_plain against cp, and the
metadata of many chunks. By turns; in CPU seconds, too, for machines that are shared."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption
from warpcipher import parquet
from warpcipher_measure.program import Actions, Program, by_turns

PAGES = {"1 MiB": 1 << 20, "64 KiB": 64 << 10, "8 KiB": 8 << 10}
COLUMNS = 6


def main() -> None:
    program = Program(__doc__)
    program.option("--rows", type=int, default=2_000_000, help=f"of {COLUMNS} doubles")
    program.option("--chunks", type=int, default=5000, help="for the metadata")
    program.option("--folder", type=Path, required=True, help="on a tmpfs")
    options = program.parse()
    with program.folder() as folder:
        for name, size in PAGES.items():
            actions = reads(folder, name, size, options.rows)
            program.times(by_turns(actions, options.repetitions))
    program.times(by_turns(metadata(options.chunks), options.repetitions))
    size = f"{COLUMNS} columns of {options.rows} doubles, not compressed, AES-128-GCM"
    program.finish(size=size, residence="tmpfs to memory, or to tmpfs")


def reads(folder: Path, name: str, size: int, count: int) -> Actions:
    key, path = os.urandom(16), folder / "t.parquet"
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.random(count) for i in range(COLUMNS)})
    properties = encryption.create_encryption_properties(key)
    plain: Any = {"compression": "none", "use_dictionary": False, "data_page_size": size}
    plain |= {"write_batch_size": max(size // 32, 64)}
    pq.write_table(table, path, encryption_properties=properties, **plain)
    peer = encryption.create_decryption_properties(key)
    copy = ["cp", str(path), str(folder / "copy")]
    ways: Actions = {
        "read_table": lambda: parquet.read_table(path, key),
        "pyarrow": lambda: pq.ParquetFile(path, decryption_properties=peer).read(),
        "to_plain": lambda: parquet.to_plain(path, key, folder / "plain"),
        "cp": lambda: subprocess.run(copy, check=True),
    }
    return {f"pages of {name}: {what}": way for what, way in ways.items()}


def metadata(chunks: int) -> Actions:
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

    return {f"metadata of {chunks} chunks": walk}


if __name__ == "__main__":
    main()

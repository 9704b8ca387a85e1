# SPDX-License-Identifier: Apache-2.0
"""Many encrypted tables read by Ray's workers on one machine: `read_ray` with one task at a time
and with two, by turns, after a read that starts the workers."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from common import Row, parser, report
from pyarrow.parquet import encryption
from warpcipher import keys, parquet


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--files", type=int, default=200)
    arguments.add_argument("--rows", type=int, default=500_000, help="of two doubles, a file")
    arguments.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--folder", type=Path, required=True, help="on a tmpfs")
    options = arguments.parse_args()
    ray.init(num_cpus=max(options.workers), include_dashboard=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        key = write(Path(folder), options.files, options.rows)
        source = keys.from_file(key)

        def read(workers: int) -> float:
            tables = Path(folder) / "tables"
            start = time.perf_counter()
            found = parquet.read_ray(
                tables, source, concurrency=workers, tasks=options.files // 5 or 1
            )
            assert found.count() == options.files * options.rows
            return time.perf_counter() - start

        read(max(options.workers))
        taken: dict[int, list[float]] = {workers: [] for workers in options.workers}
        for _ in range(options.repetitions):
            for workers, times in taken.items():
                times.append(read(workers))
    rows = [Row(f"{workers} at a time", "s", times) for workers, times in taken.items()]
    first = taken[options.workers[0]]
    for workers in options.workers[1:]:
        ratios = [one / many for one, many in zip(first, taken[workers], strict=True)]
        rows.append(Row(f"{workers} against {options.workers[0]}", "times", ratios))
    size = f"{options.files} files of {options.rows} rows of two doubles"
    report(rows, options, size=size, residence=f"{options.folder} to Ray's object store")


def write(folder: Path, files: int, rows: int) -> Path:
    """The files, and where their key lies."""
    key = os.urandom(16)
    (folder / "key").touch(0o600)
    (folder / "key").write_text(key.hex())
    (folder / "tables").mkdir()
    rng = np.random.default_rng(1)
    table = pa.table({name: rng.random(rows) for name in "ab"})
    for number in range(files):
        properties = encryption.create_encryption_properties(key)
        path = folder / "tables" / f"{number}.parquet"
        pq.write_table(table, path, encryption_properties=properties)
    return folder / "key"


if __name__ == "__main__":
    main()

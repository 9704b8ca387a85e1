# SPDX-License-Identifier: Apache-2.0
"""Tables that pyarrow decodes of what is decrypted here.

Long chunks go through the cores column by column: a thread decrypts a chunk, decodes it while it is
in a cache, and takes the next. Short ones are decrypted all together, since each read of a file
object in Python costs as much as decrypting some hundred KiB.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .file import Chunk, File
from .footer import PLAIN_MAGIC
from .image import Image, enclosed
from .lazy import LazyImage, Rooms
from .plain_metadata import footer_in_place, plain_footer

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

SHORT_CHUNK = 1 << 20
_MOST_IN_MEMORY = 256 << 20
_PARTS_OF_THREAD = 8
"""Parts of a table for each thread, where it has so many columns: threads then end together."""


class ArrowDecoder:
    """pyarrow. Raises ValueError where it is not installed."""

    def __init__(self) -> None:
        try:
            self._parquet: Any = importlib.import_module("pyarrow.parquet")
            self._arrow: Any = importlib.import_module("pyarrow")
        except ImportError:
            raise ValueError(
                "tables and schemas need pyarrow: pip install 'warpcipher[parquet]'"
            ) from None

    def schema(self, file: File) -> pyarrow.Schema:
        """The schema of a file, whose data is not read."""
        footer = PLAIN_MAGIC + enclosed(plain_footer(file, [], {}, {}))
        return self._parquet.read_schema(self._arrow.BufferReader(footer))

    def table(
        self,
        file: File,
        row_groups: Sequence[int],
        columns: Sequence[int],
        names: Sequence[str] | None,
    ) -> pyarrow.Table:
        """The table of these row groups and columns. names: what the columns were chosen by."""
        image = Image(file, row_groups, columns)
        if image.room <= min(_MOST_IN_MEMORY, SHORT_CHUNK * max(len(image.chunks), 1)):
            return self._read(self._whole(image), None, names, use_threads=True)
        return self._by_columns(file, image.chunks, row_groups, columns, names)

    def _whole(self, image: Image) -> Any:
        whole = self._arrow.allocate_buffer(image.room, resizable=True)
        with memoryview(whole) as memory, memory.cast("B") as out:
            end = image.fill(out)
        footer = enclosed(image.footer())
        whole.resize(end + len(footer))
        with memoryview(whole) as memory, memory.cast("B") as out:
            out[end:] = footer
        return self._arrow.BufferReader(whole)

    def _room(self, size: int) -> memoryview:
        """Of Arrow's pool, which keeps what was freed for the next table."""
        return memoryview(self._arrow.allocate_buffer(size)).cast("B")

    def _by_columns(
        self,
        file: File,
        chunks: Sequence[Chunk],
        row_groups: Sequence[int],
        columns: Sequence[int],
        names: Sequence[str] | None,
    ) -> pyarrow.Table:
        tail = enclosed(footer_in_place(file, row_groups, columns))
        metadata = self._parquet.read_metadata(self._arrow.BufferReader(PLAIN_MAGIC + tail))
        rooms = Rooms(max(chunk.size for chunk in chunks), self._room)
        cores = self._arrow.cpu_count()
        parts = _parts(file, chunks, columns, cores * _PARTS_OF_THREAD)
        threads = -(-cores // len(parts))

        def read(part: Sequence[int]) -> pyarrow.Table:
            chosen = set(part)
            mine = [chunk for chunk in chunks if chunk.column in chosen]
            lazy = LazyImage(file, mine, tail, rooms, threads)
            paths = names if len(parts) == 1 else [file.leaves[column].name for column in part]
            try:
                source = self._arrow.PythonFile(lazy, mode="r")
                return self._read(source, metadata, paths, use_threads=len(parts) == 1)
            except Exception:
                failure = lazy.take_failure()
                if failure is not None:
                    raise failure from None
                raise
            finally:
                lazy.close()

        if len(parts) == 1:
            return read(parts[0])
        tables = _run_all([partial(read, part) for part in parts], cores)
        fields = [field for table in tables for field in table.schema]
        return self._arrow.Table.from_arrays(
            [column for table in tables for column in table.columns],
            schema=self._arrow.schema(fields, metadata=tables[0].schema.metadata),
        )

    def _read(
        self, source: Any, metadata: Any, names: Sequence[str] | None, *, use_threads: bool
    ) -> pyarrow.Table:
        # Not through a data set, which reads a whole struct where a part of it was asked for.
        with self._parquet.ParquetFile(source, metadata=metadata) as reader:
            return reader.read(columns=names, use_threads=use_threads)


_pools: list[ThreadPoolExecutor] = []
"""At most one, whose threads stay: Arrow's memory belongs to the thread that decoded into it, and
what a thread that ended leaves behind is slow to use again."""

os.register_at_fork(after_in_child=_pools.clear)


def _run_all(tasks: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """What the tasks return, in their order; none runs any more when one has failed."""
    if not _pools:
        _pools.append(ThreadPoolExecutor(threads, "warpcipher-table"))
    coming = [_pools[0].submit(task) for task in tasks]
    try:
        return [each.result() for each in coming]
    finally:
        for each in coming:
            each.cancel()
        wait(coming)


def _parts(
    file: File, chunks: Sequence[Chunk], columns: Sequence[int], most: int
) -> list[list[int]]:
    """The columns in parts that threads read apart, of about equal size; columns of one struct stay
    together. One part where names cannot tell the columns apart."""
    fields = [
        (root, list(leaves)) for root, leaves in groupby(columns, lambda i: file.leaves[i].path[0])
    ]
    roots = [root for root, _ in fields]
    if len(set(roots)) != len(roots) or any("." in root for root in roots):
        return [list(columns)]
    sizes = dict.fromkeys(columns, 0)
    for chunk in chunks:
        sizes[chunk.column] += chunk.size
    enough = sum(sizes.values()) / most
    parts: list[list[int]] = []
    size = enough
    for _, leaves in fields:
        if size >= enough:
            parts.append([])
            size = 0
        parts[-1] += leaves
        size += sum(sizes[leaf] for leaf in leaves)
    return parts

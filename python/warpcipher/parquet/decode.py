# SPDX-License-Identifier: Apache-2.0
"""Tables that pyarrow decodes from decrypted chunks.

Long chunks go through the cores column by column: a thread decrypts a chunk, decodes it while it is
in a cache, and takes the next. Short ones are decrypted all together, since each read of a file
object in Python costs as much as decrypting some hundred KiB.
"""

from __future__ import annotations

import io
import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .. import _later
from ..formats.base import wipe
from .decryption import Decryption
from .file import BaseFile, Chunk
from .footer import PLAIN_MAGIC
from .image import Image, enclosed, footer_in_place, plain_footer

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]


_FIRST_LOOK = 64 << 10
"""Bytes at the end that a reader takes to find the footer: no chunk is decrypted for them."""


class Rooms:
    """Buffers of `size` bytes that serve one chunk after another, of any reader: memory that is new
    may cost more than decryption. make: makes one, with any content."""

    def __init__(self, size: int, make: Callable[[int], memoryview]) -> None:
        self._size = size
        self._make = make
        self._free: deque[memoryview] = deque()

    def take(self) -> memoryview:
        """A buffer, with any content."""
        try:
            return self._free.pop()
        except IndexError:
            return self._make(self._size)

    def give(self, room: memoryview) -> None:
        """Takes it back."""
        self._free.append(room)


class LazyImage(io.RawIOBase):
    """The plain file of some chunks.

    chunks: of an open file. tail: what follows them, a plain footer and its end. rooms: as long as
    the longest chunk. threads: that decrypt; 0: one a core. Chunks are authentic before a byte of
    them is returned.

    Where that fails, `read` returns nothing, and `take_failure` says why: pyarrow keeps for ever
    what `read` of a file object raises, and with it the file.
    """

    def __init__(
        self, file: BaseFile, chunks: Sequence[Chunk], tail: bytes, rooms: Rooms, threads: int = 0
    ) -> None:
        super().__init__()
        self._file = file
        self._chunks = sorted(chunks, key=lambda chunk: chunk.start)
        self._starts = [chunk.start for chunk in self._chunks]
        self._tail = tail
        self._tail_start = file.source.size + _FIRST_LOOK
        self._size = self._tail_start + len(self._tail)
        self._position = 0
        self._rooms = rooms
        self._lent: list[tuple[memoryview, memoryview]] = []
        self._threads = threads
        self._lock = threading.Lock()
        self._failure: Exception | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1, /) -> memoryview:
        """The next bytes. Their buffer serves another chunk once the view exports none to Arrow."""
        left = max(self._size - self._position, 0)
        count = left if size < 0 else min(size, left)
        try:
            with self._lock:
                found = self._find(self._position, count)
        except Exception as error:
            self._failure = error
            return memoryview(b"")
        self._position += count
        return found

    def take_failure(self) -> Exception | None:
        """Why a `read` returned nothing: InvalidTag, FormatError, OSError. It is forgotten: its
        traceback may hold Arrow's file object, and so this one, where no garbage collector sees
        it."""
        failure, self._failure = self._failure, None
        return failure

    def close(self) -> None:
        """Gives back the buffers that nobody has."""
        self._take_back()
        super().close()

    def _find(self, start: int, count: int) -> memoryview:
        number = bisect_left(self._starts, start)
        chunk = self._chunks[number] if number < len(self._chunks) else None
        if chunk is not None and (chunk.start, chunk.size) == (start, count):
            self._take_back()
            room = self._rooms.take()
            view = room[:count]
            self._lent.append((view, room))
            self._decrypt(chunk, view)
            return view
        out = memoryview(bytearray(count))
        self._fill(out, start)
        return out

    def _take_back(self) -> None:
        """The buffers of which the reader has no view."""
        still = []
        for view, room in self._lent:
            try:
                view.release()
            except BufferError:
                still.append((view, room))
            else:
                self._rooms.give(room)
        self._lent = still

    def _decrypt(self, chunk: Chunk, out: memoryview) -> None:
        """Into `out`, which is as long as the chunk is in the file."""
        room = self._rooms.take() if self._file.source.is_fetched else None
        Decryption(self._file, [chunk], room).run(out, chunk.start, self._threads)
        if room is not None:
            self._rooms.give(room)

    def _fill(self, out: memoryview, start: int) -> None:
        """Bytes outside chunks, which few readers ask for."""
        end = start + len(out)
        number = max(bisect_left(self._starts, start + 1) - 1, 0)
        for chunk in self._chunks[number:]:
            if chunk.start >= end:
                break
            if chunk.start + chunk.size <= start:
                continue
            plain = bytearray(chunk.size)
            self._decrypt(chunk, memoryview(plain))
            _overlay(out, start, plain, chunk.start)
            wipe(plain)
        _overlay(out, start, PLAIN_MAGIC, 0)
        _overlay(out, start, self._tail, self._tail_start)


def _overlay(out: memoryview, start: int, data: bytes | bytearray, at: int) -> None:
    """Writes what of `data`, which begins at `at`, is in `out`, which begins at `start`."""
    first, last = max(at, start), min(at + len(data), start + len(out))
    if first < last:
        out[first - start : last - start] = data[first - at : last - at]


SHORT_CHUNK = 1 << 20
_MOST_IN_MEMORY = 256 << 20
_PARTS_OF_THREAD = 8
"""Parts of a table for each thread, where it has so many columns: threads then end together."""


class ArrowDecoder:
    """pyarrow. Raises ValueError where it is not installed."""

    def __init__(self) -> None:
        says = "tables and schemas need pyarrow: pip install 'warpcipher[parquet]'"
        self._parquet = _later.needed("pyarrow.parquet", says)
        self._arrow = _later.needed("pyarrow", says)

    def schema(self, file: BaseFile) -> pyarrow.Schema:
        """The schema of a file, whose data is not read."""
        footer = PLAIN_MAGIC + enclosed(plain_footer(file, [], {}, {}))
        return self._parquet.read_schema(self._arrow.BufferReader(footer))

    def table(self, image: Image, names: Sequence[str] | None) -> pyarrow.Table:
        """The table of an image. names: what its columns were chosen by."""
        if image.room <= min(_MOST_IN_MEMORY, SHORT_CHUNK * max(len(image.chunks), 1)):
            return self._read(self._whole(image), None, names, use_threads=True)
        return self._by_columns(image, names)

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

    def _by_columns(self, image: Image, names: Sequence[str] | None) -> pyarrow.Table:
        file, chunks = image.file, image.chunks
        tail = enclosed(footer_in_place(file, image.row_groups, image.columns))
        metadata = self._parquet.read_metadata(self._arrow.BufferReader(PLAIN_MAGIC + tail))
        rooms = Rooms(max(chunk.size for chunk in chunks), self._room)
        cores = self._arrow.cpu_count()
        parts = _parts(image, cores * _PARTS_OF_THREAD)
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
    """The results of the tasks, in their order; none runs any more when one has failed."""
    if not _pools:
        _pools.append(ThreadPoolExecutor(threads, "warpcipher-table"))
    coming = [_pools[0].submit(task) for task in tasks]
    try:
        return [each.result() for each in coming]
    finally:
        for each in coming:
            each.cancel()
        wait(coming)


def _parts(image: Image, most: int) -> list[list[int]]:
    """The columns in parts that threads read apart, of about equal size; columns of one struct stay
    together. One part where names cannot tell the columns apart."""
    leaves_of = image.file.leaves
    fields = [
        (root, list(leaves))
        for root, leaves in groupby(image.columns, lambda i: leaves_of[i].path[0])
    ]
    roots = [root for root, _ in fields]
    if len(set(roots)) != len(roots) or any("." in root for root in roots):
        return [list(image.columns)]
    sizes = dict.fromkeys(image.columns, 0)
    for chunk in image.chunks:
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

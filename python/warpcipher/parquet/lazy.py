# SPDX-License-Identifier: Apache-2.0
"""A plain Parquet file that is decrypted as it is read, for a reader that reads a chunk at a time.

    offsets   0      ...      those of the encrypted file      ...      its size, and 64 KiB on
              PAR1 | chunks, each where it lies encrypted, zeros after it | plain footer

So no image of the table is made, and the memory of one chunk serves the next.
"""

from __future__ import annotations

import io
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence

from ..formats.base import wipe
from .file import Chunk, File
from .footer import PLAIN_MAGIC
from .host import HostOpening

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
        self, file: File, chunks: Sequence[Chunk], tail: bytes, rooms: Rooms, threads: int = 0
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
        HostOpening(self._file, [chunk], room).run(out, chunk.start, self._threads)
        if room is not None:
            self._rooms.give(room)

    def _fill(self, out: memoryview, start: int) -> None:
        """Other bytes than those of a chunk, which few readers ask for."""
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

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
from collections.abc import Callable, Sequence
from typing import Any

from ..formats.base import wipe
from .file import File
from .footer import PLAIN_MAGIC
from .image import enclosed
from .opening import Opening
from .plain_metadata import footer_in_place

_FIRST_LOOK = 64 << 10
"""Bytes at the end that a reader takes to find the footer: no chunk is decrypted for them."""


class LazyImage(io.RawIOBase):
    """The plain file. Chunks are authentic before a byte of them is returned; InvalidTag,
    FormatError and OSError come out of `read`.

    allocate: makes a buffer of that many bytes, with any content. What a reader frees may serve it
    again: memory that is new, and zeros in it, cost more than decryption.
    """

    def __init__(
        self,
        file: File,
        row_groups: Sequence[int],
        columns: Sequence[int],
        allocate: Callable[[int], Any] = bytearray,
    ) -> None:
        super().__init__()
        self._file = file
        chunks = file.chunks(row_groups, columns)
        self._chunks = sorted(chunks, key=lambda chunk: chunk.start)
        self._starts = [chunk.start for chunk in self._chunks]
        self._tail = enclosed(footer_in_place(file, row_groups, columns))
        self._tail_start = file.source.size + _FIRST_LOOK
        self._size = self._tail_start + len(self._tail)
        self._position = 0
        self._allocate = allocate
        # Not of `allocate`: the C library keeps it for the next table, pyarrow's pool may not.
        self._room = bytearray(max((chunk.size for chunk in chunks), default=0))
        self._lock = threading.Lock()

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

    def read(self, size: int = -1, /) -> Any:
        """The next bytes, in a buffer of their own."""
        left = max(self._size - self._position, 0)
        count = left if size < 0 else min(size, left)
        out = self._allocate(count)
        try:
            with self._lock:
                self._fill(memoryview(out).cast("B"), self._position)
        except BaseException:
            wipe(out)
            raise
        self._position += count
        return out

    def _fill(self, out: memoryview, start: int) -> None:
        end = start + len(out)
        filled = start  # up to here
        number = max(bisect_left(self._starts, start + 1) - 1, 0)
        for chunk in self._chunks[number:]:
            if chunk.start >= end:
                break
            if chunk.start + chunk.size <= start:
                continue
            opening = Opening(self._file, [chunk], chunk.start, None, self._room)
            at = chunk.start - start
            if chunk.start > filled:
                _zero(out[filled - start : at])
            if at >= 0 and at + opening.size <= len(out):
                opening.run(out[at : at + opening.size])
            else:
                plain = bytearray(opening.size)
                opening.run(memoryview(plain))
                _overlay(out, start, plain, chunk.start)
                wipe(plain)
            filled = min(max(filled, chunk.start + opening.size), end)
        _zero(out[filled - start :])
        _overlay(out, start, PLAIN_MAGIC, 0)
        _overlay(out, start, self._tail, self._tail_start)


def _zero(out: memoryview) -> None:
    """What the buffer held before is nobody's to see."""
    out[:] = bytes(len(out))


def _overlay(out: memoryview, start: int, data: bytes | bytearray, at: int) -> None:
    """Writes what of `data`, which begins at `at`, is in `out`, which begins at `start`."""
    first, last = max(at, start), min(at + len(data), start + len(out))
    if first < last:
        out[first - start : last - start] = data[first - at : last - at]

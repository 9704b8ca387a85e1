# SPDX-License-Identifier: Apache-2.0
"""An object as a file: ranges of it, several requests at a time, ahead of reads that follow each
other."""

from __future__ import annotations

import io
import os
import threading
from collections import deque
from typing import TYPE_CHECKING

from .store import IN_FLIGHT, PART, ObjectInfo, Store, shown

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from typing_extensions import Buffer

FIRST_AHEAD = 1 << 20
"""Bytes read ahead when reads begin to follow each other; doubles, up to PART."""


class ObjectFile(io.RawIOBase):
    """An object of a store, read-only and seekable. `read_at` may be called from any thread; the
    methods of files are for one at a time. Memory: IN_FLIGHT parts at most."""

    def __init__(self, store: Store, path: str, info: ObjectInfo) -> None:
        super().__init__()
        self._store, self._path = store, path
        self.info = info
        self.size = info.size
        self.name = shown(info.url)
        self._position = 0
        self._expected = -1
        self._ahead: deque[tuple[int, int, Future[Buffer]]] = deque()  # begin, end
        self._step = FIRST_AHEAD
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def read_at(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset` on; fewer only at the end of the object."""
        if offset < 0 or length < 0:
            raise ValueError(f"{length} bytes at {offset}: expected no negative number")
        length = max(0, min(length, self.size - offset))
        if length <= PART:
            return bytes(self._read(offset, length))
        parts = [
            self._submit(begin, min(begin + PART, offset + length))
            for begin in range(offset, offset + length, PART)
        ]
        return b"".join(part.result() for part in parts)

    def _read(self, offset: int, length: int) -> Buffer:
        if self.closed:
            raise ValueError("read of an object that is closed")
        return self._store.read(self._path, offset, length, self.info) if length else b""

    def _submit(self, begin: int, end: int) -> Future[Buffer]:
        from concurrent.futures import ThreadPoolExecutor  # most commands open no object

        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(IN_FLIGHT, "warpcipher-read")
        return self._pool.submit(self._read, begin, end - begin)

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self.size - self._position))
        if not count:
            return 0
        if self._position != self._expected:
            self._drop()
            data = memoryview(self.read_at(self._position, count))
        else:
            self._read_ahead(self._position + count)
            begin, end, part = self._ahead[0]
            data = memoryview(part.result())[self._position - begin :][:count]
            if self._position + len(data) == end:
                self._ahead.popleft()
        view[: len(data)] = data
        self._position += len(data)
        self._expected = self._position
        return len(data)

    def _read_ahead(self, wanted: int) -> None:
        """Asks for more, so that IN_FLIGHT requests are on their way."""
        end = self._ahead[-1][1] if self._ahead else self._position
        while end < self.size and len(self._ahead) < IN_FLIGHT:
            if self._ahead and self._step < PART and end >= wanted + self._step:
                break
            begin, end = end, min(end + self._step, self.size)
            self._ahead.append((begin, end, self._submit(begin, end)))
            self._step = min(2 * self._step, PART)

    def _drop(self) -> None:
        for _, _, part in self._ahead:
            part.cancel()
        self._ahead.clear()
        self._step = FIRST_AHEAD

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise ValueError(f"seek to {start + offset}: expected no negative position")
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._drop()
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()

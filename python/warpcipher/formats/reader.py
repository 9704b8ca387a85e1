# SPDX-License-Identifier: Apache-2.0
"""A read-only, seekable file object over an encrypted file: decrypts only the chunks that a read
touches."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from .._uncopied import Uncopied
from .base import Decryptor, Format, FormatError, Options, wipe
from .whole import Reader, file_size, read_whole

CACHE_BYTES = 4 << 20
"""Decrypted chunks kept for small reads; at least one chunk is kept, whatever its size."""


class SeekableReader(Reader, Protocol):
    """The encrypted file: a seekable binary file object."""

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def close(self) -> None: ...


class DecryptingReader(Uncopied, io.RawIOBase):
    """The plaintext of an encrypted file, at random. `warpcipher.formats.open` wraps it in a
    BufferedReader.

    source: a seekable binary file object, read from its beginning. Not safe for concurrent use by
    itself (BufferedReader's lock makes it so). The final chunk is authenticated before the
    constructor returns, so the size is to be trusted; every other chunk is when it is read. Raises
    InvalidTag or FormatError.
    """

    def __init__(
        self,
        source: SeekableReader,
        chosen: Format,
        key: object,
        options: Options,
        *,
        close_source: bool,
    ) -> None:
        super().__init__()
        self._source = source
        self._close_source = close_source
        self._decryptor: Decryptor | None = None
        self._cache: OrderedDict[int, bytearray] = OrderedDict()
        self._position = 0
        try:
            self._file_size = file_size(source, source.seek(0, os.SEEK_END))
            prefix = self._read_at(0, min(chosen.probe_size(key, options), self._file_size))
            self._decryptor = decryptor = chosen.decryptor(key, prefix, options)
            self._layout = decryptor.layout
            self._size = decryptor.plaintext_size(self._file_size, self._read_at)
            self._chunks = self._layout.chunk_count(self._file_size)
            self._cached = max(1, CACHE_BYTES // self._layout.chunk)
            if chosen.authenticated:
                self._chunk(self._chunks - 1)
        except BaseException:
            self.close()
            raise

    def _read_at(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes of the encrypted file; FormatError where the file has become
        shorter."""
        return bytes(self._load(offset, length))

    def _load(self, offset: int, length: int) -> bytearray:
        buffer = bytearray(length)
        self._source.seek(offset)
        done = read_whole(self._source, memoryview(buffer))
        if done < length:
            raise FormatError(f"the encrypted file ended at byte {offset + done} while it was read")
        return buffer

    def _decrypt(self, first: int, count: int, out: memoryview) -> int:
        """Decrypts chunks into `out`, which holds all of them; returns the bytes of plaintext."""
        if self._decryptor is None:
            raise ValueError("read of a closed file")
        start = self._layout.file_start(first)
        final = first + count == self._chunks
        end = self._file_size if final else self._layout.file_start(first + count)
        self._decryptor.seek(first, self._read_at)
        data = self._load(start, end - start)
        return self._decryptor.process(memoryview(data), out, final=final)

    def _chunk(self, index: int) -> bytearray:
        """The plaintext of one chunk, from the cache or decrypted into it."""
        if index in self._cache:
            self._cache.move_to_end(index)
            return self._cache[index]
        end = self._file_size if index + 1 == self._chunks else self._layout.file_start(index + 1)
        while len(self._cache) >= self._cached:
            wipe(self._cache.popitem(last=False)[1])
        plain = bytearray(end - self._layout.file_start(index))
        size = self._decrypt(index, 1, memoryview(plain))
        del plain[size:]
        self._cache[index] = plain
        return plain

    def readinto(self, buffer: object, /) -> int:
        """Fills `buffer` from the current position; fewer bytes only at the end of the file."""
        self._check_open()
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        view = view[: max(0, min(len(view), self._size - self._position))]
        done = 0
        while done < len(view):
            index, within = self._layout.locate(self._position + done)
            # Whole chunks but the final one go straight to the caller, a piece at a time.
            last, _ = self._layout.locate(self._position + len(view))
            whole = min(last, self._chunks - 1) - index if within == 0 else 0
            if whole > 1:
                whole = min(whole, self._layout.chunks_per_piece())
                size = self._layout.plaintext_start(index + whole) - self._layout.plaintext_start(
                    index
                )
                done += self._decrypt(index, whole, view[done : done + size])
            else:
                part = memoryview(self._chunk(index))[within : within + len(view) - done]
                view[done : done + len(part)] = part
                done += len(part)
        self._position += done
        return done

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check_open()
        bases: dict[int, Callable[[], int]] = {
            os.SEEK_SET: lambda: 0,
            os.SEEK_CUR: lambda: self._position,
            os.SEEK_END: lambda: self._size,
        }
        if whence not in bases:
            raise ValueError(f"whence is {whence}, expected 0, 1 or 2")
        position = bases[whence]() + offset
        if position < 0:
            raise ValueError(f"seek to {position}, before the beginning of the file")
        self._position = position
        return position

    def tell(self) -> int:
        self._check_open()
        return self._position

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on a closed file")

    def readable(self) -> bool:
        self._check_open()
        return True

    def seekable(self) -> bool:
        self._check_open()
        return True

    @property
    def size(self) -> int:
        """Bytes of plaintext."""
        return self._size

    def close(self) -> None:
        """Wipes keys and decrypted chunks, and closes the file where `open` opened it."""
        if not self.closed:
            for plain in self._cache.values():
                wipe(plain)
            self._cache.clear()
            if self._decryptor is not None:
                self._decryptor.close()
                self._decryptor = None
            if self._close_source:
                self._source.close()
        super().close()

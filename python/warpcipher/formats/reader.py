# SPDX-License-Identifier: Apache-2.0
"""A read-only, seekable file object over an encrypted file: decrypts only the chunks that a read
touches, and ahead of reads that follow each other.

    long reads            straight to the caller's memory, of the host or of a GPU, on all cores
    short, in order       from a window that is decrypted ahead, on all cores
    short, anywhere       from a cache of single chunks
"""

from __future__ import annotations

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

import warpcipher as wc

from .. import _later, _native, stores
from .._descriptors import open_seekable
from .._types import Data, PathLike, StreamLike
from .._uncopied import Uncopied
from ..arguments import PLAIN, require_int
from .base import Decryptor, Format, Options, wipe
from .edits import Kept
from .layout import FormatError, Layout
from .registry import decryptor_of
from .whole import Reader, file_size, read_whole

CACHE_BYTES = 4 << 20
"""Decrypted chunks kept for small reads; at least one chunk is kept, whatever its size."""

FIRST_WINDOW = 128 << 10
"""Bytes decrypted ahead when reads begin to follow each other; doubles from there."""

LAST_WINDOW = 4 << 20
"""The most that is decrypted ahead. Processor time of a 2-core EPYC, reads of 64 KiB: 1 MiB 0.74 ns
a byte, 2 MiB to 16 MiB 0.62 to 0.65."""

DIRECT = 1 << 20
"""A longer read goes straight to the caller's memory."""

LOAD = 64 << 20
"""The most that is held of an encrypted file that has no descriptor to read from."""


class SeekableReader(Reader, Protocol):
    """The encrypted file: a seekable binary file object."""

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def close(self) -> None: ...


def open_place(
    place: PathLike, opener: Callable[[str, int], int] | None = open_seekable
) -> io.FileIO | stores.ObjectFile:
    """The file at a path or a URL, without a buffer. opener: of a path, as `open` takes it."""
    place = stores.local_path(place)
    return stores.open_object(place) if stores.is_url(place) else io.FileIO(place, opener=opener)


class DecryptingReader(Uncopied, io.RawIOBase):
    """The plaintext of an encrypted file, at random. `warpcipher.formats.open` wraps it in a
    BufferedReader.

    source: a seekable binary file object, read from its beginning. Not safe for concurrent use by
    itself (BufferedReader's lock makes it so), except for `read_range`. The final chunk is
    authenticated before the constructor returns, so the size is to be trusted; every other chunk is
    when it is read. Raises InvalidTag or FormatError.
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
        self.format = chosen.name
        self._name = getattr(source, "name", None)
        self._decryptor: Decryptor | None = None
        self._cache: OrderedDict[int, bytearray] = OrderedDict()
        self._window = bytearray()
        self._window_start = 0
        self._window_filled = 0
        self._window_size = FIRST_WINDOW
        self._position = 0
        self._expected = 0
        self._source_lock = threading.Lock()
        self._has_descriptor = has_descriptor(source)
        try:
            self._file_size = file_size(source, source.seek(0, os.SEEK_END))
            self._unwrap(chosen)
            self._decryptor = decryptor = decryptor_of(chosen, key, options, self._read_start)
            self._size = decryptor.plaintext_size(self._file_size, self._read_at)
            self._layout = decryptor.layout
            self._kept = Kept(self._size, decryptor.edits)
            self._chunks = self._layout.chunk_count(self._file_size)
            self._cached = max(1, CACHE_BYTES // self._layout.chunk)
            if chosen.authenticated and self._chunks:
                self._chunk(self._chunks - 1)
        except BaseException:
            self.close()
            raise

    def _unwrap(self, chosen: Format) -> None:
        """A file that is text is decoded, all of it: lines are not of one length for certain."""
        if not chosen.unwrap_size:
            return
        prefix = self._read_start(0, chosen.unwrap_size)
        self._source.seek(0)
        decoded = chosen.decoded(self._source, prefix)
        if decoded is None:
            return
        if self._close_source:
            self._source.close()
        self._source, self._close_source, self._has_descriptor = decoded, True, False
        self._file_size = len(decoded.getbuffer())

    def _read_start(self, offset: int, length: int) -> bytes:
        """As `_read_at`; fewer bytes only where the file has no more."""
        return self._read_at(offset, max(0, min(length, self._file_size - offset)))

    def _read_at(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes of the encrypted file; FormatError where the file has become
        shorter."""
        return bytes(self._load(offset, length))

    def _load(self, offset: int, length: int) -> bytearray:
        buffer = bytearray(length)
        with self._source_lock:
            self._source.seek(offset)
            done = read_whole(self._source, memoryview(buffer))
        if done < length:
            raise FormatError(f"the encrypted file ended at byte {offset + done} while it was read")
        return buffer

    def _open_decryptor(self) -> Decryptor:
        if self._decryptor is None:
            raise ValueError("read of a closed file")
        return self._decryptor

    def _chunk_end(self, index: int) -> int:
        """The plaintext position where chunk `index` ends."""
        return self._size if index + 1 >= self._chunks else self._layout.plaintext_start(index + 1)

    def _decrypt(self, first: int, end: int, out: memoryview) -> int:
        """Decrypts the chunks from `first` on and before `end` into `out`, which holds all of their
        plaintext; returns the bytes of plaintext."""
        decryptor = self._open_decryptor()
        decryptor.seek(first, self._read_at)
        data = self._load(*self.place_of(first, end))
        return decryptor.process(memoryview(data), out, final=end == self._chunks)

    def _decrypt_chunks(self, position: int, length: int, out: memoryview) -> None:
        """As `_text` of a format without ranges, from where a chunk begins to where one ends."""
        first, last = (self._layout.locate(place)[0] for place in (position, position + length - 1))
        begin = position
        while first <= last:
            end = min(first + self._layout.chunks_per_piece(), last + 1)
            stop = self._chunk_end(end - 1)
            part = out[begin - position : stop - position]
            if end == self._chunks:  # its padding comes with it
                scratch = bytearray(self._file_size - self._layout.file_start(first))
                self._decrypt(first, end, memoryview(scratch))
                part[:] = memoryview(scratch)[: len(part)]
                wipe(scratch)
            else:
                self._decrypt(first, end, part)
            first, begin = end, stop

    def read_range(self, position: int, length: int, out: Any, stream: StreamLike = None) -> None:
        """Decrypts `length` bytes from `position` on, which the file has, into the beginning of
        `out`, in host memory or on a GPU. From any thread; the position of the file stays. Raises
        as `read_chunks`; ValueError for a format without ranges, and where an edit list makes the
        content of several."""
        if length:
            begin, count = self._kept.locate(position)
            if count < length:
                raise ValueError("the file has an edit list: read it into host memory")
            position = begin
        decryptor = self._open_decryptor()
        if not decryptor.reads_ranges:  # it says why
            decryptor.read_range(b"", 0, self._file_size, position, length, out, stream)
        self._text(position, length, out, stream)

    def _text(self, position: int, length: int, out: Any, stream: StreamLike = None) -> None:
        """As `read_range`, from byte `position` of the text on that the chunks hold; of a format
        without ranges from where a chunk begins to where one ends."""
        decryptor = self._open_decryptor()
        if not decryptor.reads_ranges:
            return self._decrypt_chunks(position, length, memoryview(out))
        source: Any = b""
        begin = 0
        if self._has_descriptor:
            source = self._source.fileno()  # type: ignore[attr-defined]
        elif length:
            first, last = (self._layout.locate(at)[0] for at in (position, position + length - 1))
            begin, size = self.place_of(first, last + 1)
            source = self._load(begin, size)
        decryptor.read_range(source, begin, self._file_size, position, length, out, stream)
        return None

    @property
    def name(self) -> Any:
        """The name of the encrypted file, as its file object has it; None: it has none."""
        return self._name

    @property
    def layout(self) -> Layout:
        """Where the chunks lie."""
        return self._layout

    def place_of(self, first: int, end: int) -> tuple[int, int]:
        """Where the chunks from `first` on and before `end` begin in the encrypted file, and their
        size."""
        start = self._layout.file_start(first)
        stop = self._file_size if end == self._chunks else self._layout.file_start(end)
        return start, stop - start

    def open_on_gpu(self, first: int, end: int, sealed: Any) -> Any:
        """The plaintext of these chunks, whose ciphertext lies on a GPU, on that GPU. Raises
        ValueError for formats that a GPU does not authenticate; InvalidTag."""
        return self._open_decryptor().open_on_gpu(first, sealed, final=end == self._chunks)

    def _chunk(self, index: int) -> bytearray:
        """The plaintext of one chunk, from the cache or decrypted into it."""
        if index in self._cache:
            self._cache.move_to_end(index)
            return self._cache[index]
        while len(self._cache) >= self._cached:
            wipe(self._cache.popitem(last=False)[1])
        start = self._layout.plaintext_start(index)
        plain = bytearray(self._chunk_end(index) - start)
        if not plain:  # no range holds its tag
            self._decrypt(index, index + 1, memoryview(bytearray(self._layout.overhead)))
        else:
            self._text(start, len(plain), plain)
        self._cache[index] = plain
        return plain

    def _from_window(self, position: int, out: memoryview) -> int:
        """Copies what the window holds from `position` on; 0 where it holds nothing of it."""
        at = position - self._window_start
        if not 0 <= at < self._window_filled:
            return 0
        count = min(len(out), self._window_filled - at)
        with memoryview(self._window) as window:
            out[:count] = window[at : at + count]
        return count

    def _move_window(self, position: int) -> bool:
        """Decrypts ahead from the chunk that holds `position`; False where that failed, as where a
        chunk is damaged that was not asked for."""
        first, _ = self._layout.locate(position)
        start = self._layout.plaintext_start(first)
        end = start + self._window_size
        last, _ = self._layout.locate(min(end, self._size) - 1)
        if last > first and self._chunk_end(last) > end:
            last -= 1
        size = self._chunk_end(last) - start
        self._drop_window(size)
        try:
            self._text(start, size, self._window)
        except (wc.InvalidTag, FormatError, OSError):
            self._drop_window(0)
            return False
        self._window_start, self._window_filled = start, size
        self._window_size = min(2 * self._window_size, LAST_WINDOW)
        return True

    def _drop_window(self, size: int) -> None:
        """Makes the window one of `size` bytes, whose content is of no use."""
        if len(self._window) != size:
            wipe(self._window)
            self._window = bytearray(size)
        self._window_filled = 0

    def readinto(self, buffer: object, /) -> int:
        """Fills `buffer` from the current position; fewer bytes only at the end of the file. On an
        exception what it would have written is zeros."""
        self._check_open()
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        view = view[: max(0, min(len(view), self._kept.size - self._position))]
        done = 0
        try:
            while done < len(view):
                position, count = self._kept.locate(self._position + done)
                count = self._read_some(
                    position, view[done : done + count], position == self._expected
                )
                self._expected = position + count
                done += count
        except BaseException:
            wipe(view)
            raise
        self._position += done
        return done

    def _read_some(self, position: int, view: memoryview, in_order: bool) -> int:
        """Some of the text from `position` on, at least a byte. in_order: it follows what was
        read before."""
        count = self._from_window(position, view)
        if count:
            return count
        long = DIRECT if in_order else min(DIRECT, self._layout.chunk + 1)
        if len(view) >= long and self._open_decryptor().reads_ranges:
            count = len(view) if self._has_descriptor else min(len(view), LOAD)
            self._text(position, count, view)
            return count
        index, within = self._layout.locate(position)
        if not in_order:
            self._window_size = FIRST_WINDOW
        elif self._chunks > 1 and index not in self._cache and self._move_window(position):
            return self._from_window(position, view)
        part = memoryview(self._chunk(index))[within : within + len(view)]
        view[: len(part)] = part
        return len(part)

    def readall(self) -> bytes:
        """All that follows the current position."""
        self._check_open()
        plain = bytearray(max(0, self._kept.size - self._position))
        try:
            self.readinto(plain)
            return bytes(plain)
        finally:
            wipe(plain)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check_open()
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"whence is {whence}, expected 0, 1 or 2")
        position = (0, self._position, self._kept.size)[whence] + offset
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
    def reads_ranges(self) -> bool:
        """Whether `read_range` works: chunks are authenticated each by itself, and the content is
        one range of their text."""
        return self._open_decryptor().reads_ranges and len(self._kept.ranges) <= 1

    @property
    def size(self) -> int:
        """Bytes of plaintext."""
        return self._kept.size

    def require_range(self, offset: int, length: int) -> None:
        """Raises ValueError for bytes of plaintext that the file does not have."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise ValueError(
                f"the range [{offset}, +{length}) leaves the file, which has {self.size} bytes"
            )

    def close(self) -> None:
        """Wipes keys and decrypted chunks, and closes the file where `open` opened it."""
        if not self.closed:
            for plain in self._cache.values():
                wipe(plain)
            self._cache.clear()
            self._drop_window(0)
            if self._decryptor is not None:
                self._decryptor.close()
                self._decryptor = None
            if self._close_source:
                self._source.close()
        super().close()


def has_descriptor(source: object) -> bool:
    """Whether a file object has the same bytes as its descriptor: a file that the system has.
    Others have one too, such as `gzip.GzipFile`, whose bytes are not."""
    if type(source) is io.BufferedReader:
        source = source.raw
    return type(source) is io.FileIO


class DecryptedFile(Uncopied, io.BufferedReader):
    """The result of `warpcipher.formats.open`: an ordinary buffered file object over the plaintext,
    whose `readinto` also takes arrays, in host memory or on a GPU.

    raw: a `DecryptingReader`; `raw.size` is the size of the plaintext, `raw.format` the format.
    """

    raw: DecryptingReader

    def __init__(self, raw: DecryptingReader) -> None:
        super().__init__(raw, buffer_size=16 << 10)

    def __repr__(self) -> str:
        name = "" if self.raw.name is None else f"{self.raw.name!r}, "
        closed = ", closed" if self.closed else ""
        return f"<DecryptedFile {name}{self.raw.format}, {self.raw.size} bytes{closed}>"

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes from the current position; all that follow for -1 or None."""
        if size is None or size == -1:
            size = max(0, self.raw.size - self.tell())
        return super().read(size)

    def readinto(self, out: Data, /, *, stream: StreamLike = None) -> int:
        """Fills `out` from the current position; fewer bytes only at the end of the file. Returns
        how many.

        out:    a writable buffer or array. On a GPU plaintext exists only in its memory:
                ciphertext travels there in overlapped pieces. `raw` files go to host memory only.
        stream: for an array on a GPU: its former uses are on this stream; None: on the current one
                of its library. The call returns when all is there.

        Every tag is checked before the call returns. On an exception `out` is zeros wherever the
        call would have written, and the position stays. Raises as `read_chunks`.
        """
        if type(out) in PLAIN and memoryview(out).nbytes < DIRECT:  # type: ignore[arg-type]
            return super().readinto(out)  # type: ignore[arg-type]
        arrays = _later.load("arrays")
        view = arrays.library_of(out, "out").view(out, "out", None, True)
        if not isinstance(view, _native.Span) and not self.raw.reads_ranges:
            return super().readinto(view)
        position = self.tell()
        size: int = arrays.size_of(view)
        count = max(0, min(size, self.raw.size - position))
        if count == 0:
            return 0
        self.raw.read_range(position, count, out, stream)
        self.seek(position + count)
        return count

    def read_device(
        self, offset: int, length: int, device: int | None = None
    ) -> _native.DeviceArray:
        """`length` bytes of plaintext from `offset` on, in new memory of a GPU. The position of the
        file stays, and several threads may read at a time.

        device: CUDA ordinal; None: the current device.

        The array owns its memory, and wipes it at the end: any library takes it through DLPack or
        the CUDA array interface. ValueError: the file has no such range. EngineError: no GPU.
        Raises as `read_chunks`; then nothing is handed out.
        """
        for name, value in (("offset", offset), ("length", length)):
            require_int(name, value, 0)
        self.raw.require_range(offset, length)
        place = _native.pointer_device(0) if device is None else device
        array = _native.DeviceArray(length, place, 0)
        self.raw.read_range(offset, length, array)
        return array

# SPDX-License-Identifier: Apache-2.0
"""Full reads and writes on file objects. Return counts are checked, so a wrong count raises instead
of looping or corrupting data. A writer of files as text."""

from __future__ import annotations

import binascii
import hashlib
import operator
from collections.abc import Callable, Iterator
from typing import Protocol


class Reader(Protocol):
    """A source: `readinto`, as every binary file object has."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...


class Writer(Protocol):
    """A target: `write` of a binary file object, raw ones included."""

    def write(self, data: memoryview, /) -> int | None: ...


def read_whole(reader: Reader, buffer: memoryview, check: Callable[[], None] = lambda: None) -> int:
    """Fills the buffer, of bytes; fewer only at the end of the file. Returns how many.

    check: called after each read; may raise. BlockingIOError: the file is in non-blocking mode and
    has nothing now. OSError, TypeError: `readinto` returned no number of bytes in the buffer.
    """
    done = 0
    while done < len(buffer):
        count = reader.readinto(buffer[done:])
        if count is None:
            raise BlockingIOError("the input is in non-blocking mode: give a blocking one")
        count = _checked(count, 0, len(buffer) - done, "readinto", reader)
        if count == 0:
            break
        done += count
        check()
    return done


def write_whole(writer: Writer, data: memoryview) -> None:
    """Writes all of `data`, which is bytes. The errors are as of `read_whole`; a write of
    nothing is one too."""
    while len(data):
        count = writer.write(data)
        if count is None:
            raise BlockingIOError("the output is in non-blocking mode: give a blocking one")
        data = data[_checked(count, 1, len(data), "write", writer) :]


def read_all(reader: Reader) -> None:
    """Reads what is left of a file, and keeps nothing. The errors are those of `read_whole`."""
    block = memoryview(bytearray(4 << 20))
    try:
        while read_whole(reader, block):
            pass
    finally:
        block[:] = bytes(len(block))  # it may be plaintext


def copy_whole(reader: Reader, writer: Writer) -> None:
    """Writes all that is left of a file. The errors are as of `read_whole` and `write_whole`."""
    block = memoryview(bytearray(1 << 18))
    while count := read_whole(reader, block):
        write_whole(writer, block[:count])


class Digested:
    """A file that is read or written, with the count and the SHA-256 of its bytes."""

    def __init__(self, file: Reader | Writer) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.count = 0

    @property
    def digest(self) -> bytes:
        return self._hash.digest()

    def readinto(self, buffer: memoryview, /) -> int | None:
        return self._add(buffer, self._file.readinto(buffer))  # type: ignore[union-attr]

    def write(self, data: memoryview, /) -> int | None:
        return self._add(data, self._file.write(data))  # type: ignore[union-attr]

    def _add(self, data: memoryview, count: int | None) -> int | None:
        self._hash.update(data[: count or 0])
        self.count += count or 0
        return count


class Parts:
    """A file of parts that come one after the other."""

    def __init__(self, parts: Iterator[bytes | memoryview]) -> None:
        self._parts = parts
        self._part = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        while not self._part:
            if (part := next(self._parts, None)) is None:
                return 0
            self._part = memoryview(part)
        count = min(len(buffer), len(self._part))
        buffer[:count] = self._part[:count]
        self._part = self._part[count:]
        return count


class TextWriter:
    """Writes a file as base64 in lines of 64 between two lines, which may be empty."""

    COLUMNS = 64
    LINE = COLUMNS * 3 // 4
    """Bytes that a line holds."""

    def __init__(self, writer: Writer, begin: bytes = b"", end: bytes = b"") -> None:
        self._writer = writer
        self._begin = begin
        self._end = end
        self._rest = bytearray()
        self._count = 0

    def write(self, data: memoryview, /) -> int:
        """Writes all of `data`."""
        self._rest += data
        whole = len(self._rest) - len(self._rest) % self.LINE
        self._put(bytes(self._rest[:whole]))
        del self._rest[:whole]
        return len(data)

    def finish(self) -> int:
        """Writes what is left, and the end. Returns the bytes of the text."""
        self._put(bytes(self._rest), self._end)
        self._rest.clear()
        return self._count

    def _put(self, data: bytes, end: bytes = b"") -> None:
        text = binascii.b2a_base64(data, newline=False)
        lines = [text[i : i + self.COLUMNS] + b"\n" for i in range(0, len(text), self.COLUMNS)]
        text = self._begin + b"".join(lines) + end
        self._begin = b""  # once, with the first data
        write_whole(self._writer, memoryview(text))
        self._count += len(text)


def file_size(reader: object, end: object) -> int:
    """The result of a seek to the end of the file, checked."""
    size = _checked_int(end, "seek", reader)
    if size < 0:
        raise OSError(f"seek of {type(reader).__name__} returned {size}: expected 0 or more")
    return size


def _checked(count: object, least: int, most: int, method: str, file: object) -> int:
    number = _checked_int(count, method, file)
    if not least <= number <= most:
        raise OSError(
            f"{method} of {type(file).__name__} returned {number}: expected {least} to {most} bytes"
        )
    return number


def _checked_int(value: object, method: str, file: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{method} of {type(file).__name__} returned {type(value).__name__}: expected an int"
        ) from None

# SPDX-License-Identifier: Apache-2.0
"""The bytes of a safetensors file, wherever they come from: a plain file, one that is encrypted in
a format of `warpcipher.formats`, or bytes and file objects of a caller. Bytes out of an encrypted
file were authenticated.

Bytes and file objects lie in a memory file of the system while they are written or read, so that
all that works on a descriptor works on them too: all cores, and GPUs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import FileIO
from typing import Any, BinaryIO, Protocol

from .. import formats, stores
from .._descriptors import open_seekable
from .._new_file import replaced
from .._types import PathLike
from .._uncopied import Uncopied
from ..formats.file_chunks import read_plain
from ..formats.gds import read_into
from ..formats.whole import copy_whole, write_whole

AT_ONCE = 32 << 20
"""Bytes of an object that are asked for together."""


class Image(Protocol):
    """A safetensors file as plaintext. size: its bytes."""

    size: int

    def read(self, offset: int, out: Any) -> None:
        """Fills `out`, a memoryview of bytes or an array on a GPU, from `offset` on.

        Raises InvalidTag, FormatError (the file became shorter) and OSError; the content of `out`
        is then not to be used.
        """

    def close(self) -> None:
        """Wipes keys and lets go of the file. Idempotent."""


def read_bytes(image: Image, offset: int, length: int) -> bytes:
    """`length` bytes of an image. Raises as `Image.read`."""
    found = bytearray(length)
    image.read(offset, memoryview(found))
    return bytes(found)


class PlainImage(Uncopied):
    """A file that is not encrypted, read by all cores. Its reads go to host memory or to a GPU."""

    def __init__(self, path: str) -> None:
        self._descriptor = open_seekable(path)
        self._lock = threading.Lock()
        try:
            self.size = os.fstat(self._descriptor).st_size
        except BaseException:
            self.close()
            raise

    def read(self, offset: int, out: Any) -> None:
        read_plain(self.fileno(), offset, out)

    @contextmanager
    def in_file(self, offset: int, length: int) -> Iterator[tuple[int, int]]:
        """A descriptor of a file with these bytes, and the place in this one where it begins."""
        yield self.fileno(), 0

    def fileno(self) -> int:
        """The descriptor, while the file is open."""
        if self._descriptor < 0:
            raise ValueError("read of a closed file")
        return self._descriptor

    def close(self) -> None:
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class ObjectImage(Uncopied):
    """A plain file at a URL. Of a read to a GPU host memory holds a copy."""

    def __init__(self, url: str) -> None:
        self._file = stores.open_object(url)
        self.size = self._file.size

    def read(self, offset: int, out: Any) -> None:
        if not isinstance(out, memoryview):
            with self.in_file(offset, len(out)) as (descriptor, _):
                read_plain(descriptor, 0, out)
            return
        done = 0
        for part in self._parts(offset, len(out)):
            out[done : done + len(part)] = part
            done += len(part)

    @contextmanager
    def in_file(self, offset: int, length: int) -> Iterator[tuple[int, int]]:
        """As of `PlainImage`: a copy in memory."""
        with _memory_file() as file:
            for part in self._parts(offset, length):
                write_whole(file, memoryview(part))
            yield file.fileno(), offset

    def _parts(self, offset: int, length: int) -> Iterator[bytes]:
        for begin in range(offset, offset + length, AT_ONCE):
            size = min(AT_ONCE, offset + length - begin)
            part = self._file.read_at(begin, size)
            if len(part) < size:
                raise formats.FormatError(f"the file ended at byte {begin + len(part)}")
            yield part

    def close(self) -> None:
        self._file.close()


def plain_image(path: PathLike) -> PlainImage | ObjectImage:
    """A file that is not encrypted, at a path or URL."""
    return ObjectImage(path) if stores.is_url(path) else PlainImage(os.fsdecode(path))


class FormatImage(Uncopied):
    """A file in one of `formats.FORMATS` that authenticates. Its reads go to host memory or to a
    GPU, of several threads at a time. gds: to a GPU by kvikio."""

    def __init__(self, path: str, key: object, context: bytes, gds: bool = False) -> None:
        self._path = path
        self._gds = gds
        self._file = formats.open(path, key, options=formats.Options(context=context))
        self.size = self._file.raw.size

    def read(self, offset: int, out: Any) -> None:
        if self._gds and not isinstance(out, memoryview):
            read_into(self._file, self._path, offset, len(out), out)
        else:
            self._file.raw.read_range(offset, len(out), out)

    def close(self) -> None:
        self._file.close()


@contextmanager
def written(target: Any) -> Iterator[BinaryIO]:
    """A file to write: of the path `target`, which gets its name when it is whole; or one whose
    content goes to the file object or URL `target` then. Raises OSError."""
    target = stores.local_path(target)
    if not (hasattr(target, "write") or stores.is_url(target)):
        with replaced(target) as file:
            yield file
        return
    with _memory_file() as file:
        yield file
        size = os.fstat(file.fileno()).st_size
        file.seek(0)
        upload = stores.writing(target, size=size) if stores.is_url(target) else None
        with upload or nullcontext(target) as sink:
            copy_whole(file, sink)


def streamed(target: Any) -> AbstractContextManager[Any]:
    """As `written`, for what is written in order: it goes to a URL as it comes."""
    return stores.writing(target) if stores.is_url(target) else written(target)


@contextmanager
def place_of(data: Any) -> Iterator[str]:
    """A path to what bytes, or a file object from where it stands to its end, hold. Raises
    TypeError and OSError."""
    with _memory_file() as file:
        if hasattr(data, "read"):
            while part := data.read(1 << 20):
                write_whole(file, memoryview(part))
        else:
            try:
                view = memoryview(data).cast("B")
            except TypeError:
                raise TypeError(
                    f"data is {type(data).__name__}: expected bytes or a binary file object; "
                    "load_file takes a path"
                ) from None
            write_whole(file, view)
        yield f"/proc/self/fd/{file.fileno()}"


def _memory_file() -> FileIO:
    return open(os.memfd_create("warpcipher"), "w+b", buffering=0)  # noqa: PTH123

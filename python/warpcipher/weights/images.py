# SPDX-License-Identifier: Apache-2.0
"""The bytes of a safetensors file, wherever they come from: a plain file, or one that is encrypted
in a format of `warpcipher.formats`. What is given out of an encrypted one was authenticated."""

from __future__ import annotations

import errno
import os
import threading
from typing import Any, BinaryIO, Protocol

from .. import formats
from .._descriptors import open_seekable
from .._uncopied import Uncopied
from ..formats import FormatError
from ..formats.file_chunks import read_plain
from ..formats.gds import read_into


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

    def fileno(self) -> int:
        """The descriptor, while the file is open."""
        if self._descriptor < 0:
            raise ValueError("read of a closed file")
        return self._descriptor

    def copy_to(self, file: BinaryIO, offset: int) -> None:
        """Writes what follows `offset` to a file, by the kernel; file systems may share it."""
        left = self.size - offset
        while left:
            count = _copy(self.fileno(), file.fileno(), left, offset)
            if count == 0:
                raise FormatError(f"the file ended at byte {offset} while it was read")
            offset += count
            left -= count

    def close(self) -> None:
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _copy(source: int, target: int, size: int, offset: int) -> int:
    """Copies up to `size` bytes to where the target stands; returns how many."""
    try:
        return os.copy_file_range(source, target, size, offset)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        return os.sendfile(target, source, offset, size)


class FormatImage(Uncopied):
    """A file in one of `formats.FORMATS` that authenticates. Its reads go to host memory or to a
    GPU, of several threads at a time. gds: to a GPU by kvikio."""

    def __init__(self, path: str, key: object, context: bytes, gds: bool = False) -> None:
        self._path = path
        self._gds = gds
        options = formats.Options(context=context)
        self._file = formats.open(path, key, options=options)
        self.size = self._file.raw.size

    def read(self, offset: int, out: Any) -> None:
        if self._gds and not isinstance(out, memoryview):
            read_into(self._file, self._path, offset, len(out), out)
        else:
            self._file.raw.read_range(offset, len(out), out)

    def close(self) -> None:
        self._file.close()

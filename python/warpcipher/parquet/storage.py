# SPDX-License-Identifier: Apache-2.0
"""Where a file is read from and written to: a path, a URL, bytes, or a file object. A path gets its
name when all is written."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, Union, cast

import warpcipher as wc

from .. import _later, stores
from .._descriptors import open_seekable
from .._new_file import replaced
from .._types import Buffer
from .._uncopied import Closed
from ..formats import FormatError
from ..formats.source import Regular
from ..formats.whole import Writer, file_size, read_whole
from ..stores.store import shown

SourceLike: TypeAlias = Union[str, "os.PathLike[str]", "Buffer", Any]

_MOST_AT_ONCE = 1 << 30


class Source(Closed):
    """Random access to a file. `read` gives views; they hold for as long as someone has them.

    descriptor: of a file that takes pread(); -1 where it lies elsewhere.
    """

    def __init__(self, source: SourceLike) -> None:
        self._bytes: memoryview | None = None
        self.descriptor = -1
        self._file: Any = None
        self._close_file = False
        self._lock = threading.Lock()
        self.url: str | None = None
        source = stores.local_path(source)
        if stores.is_url(source):
            self.url, self._close_file = source, True
            source = cast("Any", stores.open_object(source))
        if isinstance(source, (str, os.PathLike)):
            self.name = os.fspath(source)
            try:
                self.descriptor = open_seekable(self.name)
            except IsADirectoryError as error:
                text = "a directory: read_dataset reads its files, and find_files lists them"
                raise IsADirectoryError(error.errno, text, self.name) from None
            self.size = os.fstat(self.descriptor).st_size
        elif hasattr(source, "readinto") and hasattr(source, "seek"):
            self.name = str(getattr(source, "name", "the file"))
            self._file = source
            self.size = file_size(source, source.seek(0, os.SEEK_END))
        else:
            try:
                self._bytes = memoryview(source).cast("B")
            except TypeError:
                raise TypeError(
                    f"source is {type(source).__name__}: expected a path, bytes, or a binary file "
                    "object that can seek"
                ) from None
            self.name = "the file"
            self.size = len(self._bytes)

    @property
    def path(self) -> str | None:
        """Of a file on this machine that was opened by its path."""
        return self.name if self.descriptor >= 0 else None

    @property
    def place(self) -> str | None:
        """Its path, or its URL."""
        return self.path or self.url

    @property
    def opened(self) -> Regular | stores.ObjectFile:
        """The file at its path, or the object at its URL."""
        if self.url is None:
            return Regular(self.descriptor, closefd=False)
        return cast("stores.ObjectFile", self._file)

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode; None for a file that is not on this machine."""
        return identity_of(self.descriptor if self.descriptor >= 0 else self._file)

    @property
    def is_fetched(self) -> bool:
        """Whether its bytes must be fetched through a file object."""
        return self._bytes is None and self.descriptor < 0

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly these bytes; FormatError where the file does not have them."""
        buffer, (position,) = self.read_spans([(offset, length)])
        return buffer[position : position + length]

    def read_spans(
        self, spans: Sequence[tuple[int, int]], room: Buffer | None = None
    ) -> tuple[memoryview, list[int]]:
        """Several (offset, length) in one buffer, and where in it each begins.

        room: a buffer with room for all, which is overwritten; None makes one. Of bytes the result
        is the source itself and nothing is copied.
        """
        for offset, length in spans:
            if offset < 0 or length < 0 or offset + length > self.size:
                raise FormatError(
                    f"{length} bytes at {offset} are not in the file, which has {self.size}"
                )
        if self._bytes is not None:
            return self._bytes, [offset for offset, _ in spans]
        size = sum(length for _, length in spans)
        buffer = memoryview(bytearray(size) if room is None else room)[:size]
        positions: list[int] = []
        filled = 0
        runs: list[list[int]] = []  # offset in the file, in the buffer, length
        for offset, length in spans:
            positions.append(filled)
            if runs and runs[-1][0] + runs[-1][2] == offset:
                runs[-1][2] += length
            else:
                runs.append([offset, filled, length])
            filled += length
        for offset, position, length in runs:
            self._fill(offset, buffer[position : position + length])
        return buffer, positions

    def _fill(self, offset: int, view: memoryview) -> None:
        if self.descriptor < 0:
            if self._file is None:
                raise ValueError("read of a file that is closed")
            with self._lock:
                self._file.seek(offset)
                done = read_whole(self._file, view)
        else:
            done = 0
            while done < len(view):
                part = view[done : done + _MOST_AT_ONCE]
                count = os.preadv(self.descriptor, [part], offset + done)
                if not count:
                    break
                done += count
        if done < len(view):
            raise FormatError(f"the file ended at byte {offset + done} while it was read")

    def close(self) -> None:
        """Closes the file, if it was opened here."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        if self._close_file and self._file is not None:
            self._file.close()
        self._file = None


def name_file(error: Exception, path: str) -> None:
    """Has the text of an error name the file that was being read."""
    path = shown(path)
    if path in str(error):
        return
    if isinstance(error, OSError) and error.strerror is not None:
        error.strerror = f"{error.strerror} (while reading {path})"
    elif len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{path}: {error.args[0]}",)
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(f"while reading {path}")


@contextlib.contextmanager
def naming(source: SourceLike) -> Iterator[None]:
    """Has errors of its content name a file that was given by its path or URL."""
    try:
        yield
    except (wc.InvalidTag, ValueError) as error:
        if isinstance(source, (str, os.PathLike)):
            name_file(error, os.fspath(source))
        raise


def identity_of(file: Any) -> tuple[int, int] | None:
    """Device and inode of a regular file, by path, descriptor or file object; None of others: to
    write over another (a pipe, /dev/null) does no harm."""
    try:
        is_named = isinstance(file, (int, str, os.PathLike))
        status = os.stat(file if is_named else file.fileno())  # noqa: PTH116
    except (OSError, AttributeError, TypeError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def load_fsspec(url: str) -> Any:
    """fsspec, for the URL that needs it."""
    scheme = url.partition("://")[0]
    return _later.needed("fsspec", f"{scheme}:// needs fsspec: pip install 'warpcipher[parquet]'")


Dest: TypeAlias = Union[str, "os.PathLike[str]", Writer]


def refuse_source(source: Source, dest: Dest | None, *, in_place: bool = False) -> None:
    """Raises ValueError where the output would take the place of the file that is read: a lost key
    would then lose the data. in_place: a path may, as it is replaced when all is written."""
    dest = stores.local_path(dest)
    if in_place and isinstance(dest, (str, os.PathLike)):
        return
    if stores.is_url(dest):
        same = dest == source.url
    else:
        found = source.identity
        same = found is not None and found == identity_of(dest)
    if same:
        raise ValueError(f"dest is the source, {source.name}: give another path")


@contextlib.contextmanager
def writing(dest: Dest, source: Source | None = None) -> Iterator[Writer]:
    """A writer for `dest`. A path is written under another name beside it, which replaces what was
    there when all is on the disk, and vanishes on an error; an object of a URL is replaced at the
    end, or not at all. A file object stays open. source: where `dest` is its path, OSError if that
    stands for another file at the end."""
    dest = stores.local_path(dest)
    if not isinstance(dest, (str, os.PathLike)):
        if not hasattr(dest, "write"):
            raise TypeError(f"dest is {type(dest).__name__}: expected a path or a binary file")
        yield dest
        return
    of = -1
    if source is not None and source.identity is not None and source.identity == identity_of(dest):
        of = source.descriptor
    with stores.writing(dest) if stores.is_url(dest) else replaced(dest, of=of) as file:
        yield file

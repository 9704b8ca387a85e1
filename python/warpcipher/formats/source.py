# SPDX-License-Identifier: Apache-2.0
"""A file or object that is read at any place, and one that is written again with another beginning
or end: the rest is copied, by the store or the kernel where they can."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

from .. import stores
from .._descriptors import copy_range, open_seekable, steady
from .._new_file import replaced
from .._types import PathLike
from .whole import write_whole

AT_ONCE = 8 << 20
"""Bytes that are copied together."""


class Regular(io.FileIO):
    """A regular file, and its bytes when they are asked for."""

    @property
    def size(self) -> int:
        return os.fstat(self.fileno()).st_size

    def read_at(self, offset: int, length: int) -> bytes:
        return os.pread(self.fileno(), length, offset)


def open_source(place: PathLike) -> Regular | stores.ObjectFile:
    """The file at a path or the object at a URL."""
    place = stores.local_path(place)
    if stores.is_url(place):
        return stores.open_object(place)
    return Regular(place, opener=open_seekable)


def created(
    target: PathLike,
    replace: bool,
    size: int | None,
    permissions: int | None = None,
    of: int = -1,
) -> AbstractContextManager[BinaryIO | stores.Upload]:
    """A new file, or an object at a URL, which is there when all of it is written. size: of the
    source; permissions, of: as of `replaced`."""
    if stores.is_url(target):
        return stores.writing(target, replace=replace, size=size)
    return replaced(target, replace=replace, permissions=permissions, of=of)


def is_made_by_store(
    path: PathLike, out: PathLike, change: Callable[[str, str], bool], *, replace: bool, copy: bool
) -> bool:
    """Whether a store made `out` of the object at `path` by itself. change: has it do so, given two
    URLs; False: it cannot. Raises OSError, FileExistsError; ValueError where it cannot, and
    `out` is `path`, unless `copy` is True."""
    if stores.is_url(path) and stores.is_url(out):
        if not replace:
            with contextlib.suppress(FileNotFoundError):
                stores.stat(out)
                raise FileExistsError(errno.EEXIST, "there is an object of this name", out)
        if change(path, out):
            return True
    if stores.is_url(path) and path == out and not copy:
        raise ValueError(
            "the store cannot copy all but the part of an object that is made again, or the file "
            "is text: copy=True (--copy) reads and writes all of it, or name an output"
        )
    return False


def is_same_file(path: PathLike, out: PathLike) -> bool:
    """Whether two paths are names of one file, however they are spelt."""
    with contextlib.suppress(OSError):
        return path == out or os.path.samefile(path, out)  # noqa: PTH121
    return False


@contextlib.contextmanager
def in_place_of(
    path: PathLike, source: Any, out: PathLike, *, replace: bool
) -> Iterator[BinaryIO | stores.Upload]:
    """A new file, made of one that must not change meanwhile, nor its name stand for another, where
    that is replaced: OSError. It has the permissions of that one, where it replaces none. path: of
    that one, open as `source`."""
    if not isinstance(source, Regular):
        with created(out, replace, source.size) as target:
            yield target
            if out == (info := source.info).url and stores.stat(info.url) != info:
                raise OSError(errno.ESTALE, "the object changed while it was read", out)
        return
    before = os.fstat(source.fileno())
    is_in_place = is_same_file(path, out)
    of = source.fileno() if is_in_place else -1
    with (
        created(out, replace, before.st_size, before.st_mode & 0o777, of) as target,
        # Looked at before the new file appears.
        steady(out if is_in_place else source.fileno(), before),
    ):
        yield target


def write_changed(
    path: PathLike,
    source: Any,
    out: PathLike,
    kept: tuple[int, int],
    *,
    beginning: bytes = b"",
    end: bytes = b"",
    replace: bool,
    copy: bool,
    within: AbstractContextManager[Any] | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Writes the file or object at `path`, open as `source`, again to `out`: with
    another beginning, or another end. kept: the first byte of those that stay, and the one after
    the last. within: makes the new file; None: `in_place_of`. check: may raise between parts.

    Raises as `is_made_by_store`; OSError where a file changed meanwhile.
    """
    first, last = kept

    def change(url: str, dest: str) -> bool:
        version = source.info.version
        if end:
            return stores.replace_end(url, last, end, dest=dest, version=version)
        return stores.replace_beginning(url, first, beginning, dest=dest, version=version)

    if is_made_by_store(path, out, change, replace=replace, copy=copy):
        return
    target: Any
    with within or in_place_of(path, source, out, replace=replace) as target:
        write_whole(target, memoryview(beginning))
        for begin in range(first, last, AT_ONCE):
            check()
            stop = min(begin + AT_ONCE, last)
            if isinstance(source, Regular) and not stores.is_url(out):
                copy_range(source.fileno(), target.fileno(), begin, stop)
            else:
                write_whole(target, memoryview(source.read_at(begin, stop - begin)))
        write_whole(target, memoryview(end))

# SPDX-License-Identifier: Apache-2.0
"""Opening, writing and renaming by descriptor, as files of any kind need them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ._types import Buffer, PathLike

T = TypeVar("T")

_NO_SUCH_RENAME = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
# linux/fs.h
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2


def open_seekable(path: PathLike, flags: int = os.O_RDONLY | os.O_CLOEXEC) -> int:
    """A descriptor of a file that can be read at any place; an `opener` of `open`, too.

    OSError for a FIFO, a socket or a terminal, which is not even opened: that may wait for ever.
    Should one get the name between the look and the opening, O_NONBLOCK keeps that from waiting.
    """
    _require_seekable(os.stat(path).st_mode, path)  # noqa: PTH116
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _require_seekable(os.fstat(descriptor).st_mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_seekable(mode: int, path: PathLike) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
        raise OSError(errno.ESPIPE, "not a regular file, which this needs", os.fspath(path))


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """The descriptor, which is closed at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Errors of the system name the path that the user gave."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def awaited(call: Callable[[int, Any], T], descriptor: int, argument: Any) -> T:
    """The result of os.read, os.readv or os.write. Waits where another program that has a pipe or a
    terminal too made it non-blocking."""
    while True:
        try:
            return call(descriptor, argument)
        except BlockingIOError:
            import select  # hardly any run needs it

            poll = select.poll()
            poll.register(descriptor, select.POLLOUT if call is os.write else select.POLLIN)
            poll.poll()


def write_all(descriptor: int, data: Buffer) -> None:
    """Writes all of `data`. A write of nothing is an OSError: a loop over it would never end."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[written(awaited(os.write, descriptor, rest)) :]


def copy_range(source: int, target: int, offset: int, end: int) -> None:
    """Writes the bytes of a file from `offset` to `end` to where the target stands, by the kernel;
    file systems may share them. OSError where the file became shorter meanwhile."""
    left = end - offset
    while left > 0:
        count = _copy(source, target, min(left, 1 << 30), offset)
        if count == 0:
            raise OSError(errno.EIO, f"the file ended at byte {offset} while it was read")
        offset += count
        left -= count


def _copy(source: int, target: int, size: int, offset: int) -> int:
    try:
        return os.copy_file_range(source, target, size, offset)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        return os.sendfile(target, source, offset, size)


@contextlib.contextmanager
def steady(file: int | PathLike, before: os.stat_result) -> Iterator[None]:
    """Raises OSError where a file, a descriptor or a path, is another one at the end, or has
    changed. before: its status."""
    yield
    now = os.stat(file)  # noqa: PTH116
    if not os.path.samestat(now, before) or any(
        getattr(now, name) != getattr(before, name) for name in ("st_size", "st_mtime_ns")
    ):
        name = "the file" if isinstance(file, int) else os.fspath(file)
        raise OSError(errno.EBUSY, f"{name} changed while it was read: nothing was written")


def written(count: int, path: str | None = None) -> int:
    """The result of a write. Raises OSError if it made no progress."""
    if count <= 0:
        raise OSError(errno.EIO, "nothing could be written", path)
    return count


def rename_noreplace(folder: int, old: str, new: str) -> bool:
    """Renames within a folder. FileExistsError: the new name is taken. False: it cannot be done
    here (the kernel, the file system or the C library does not have it), and nothing happened."""
    return _rename(folder, old, new, _RENAME_NOREPLACE)


def rename_exchange(folder: int, old: str, new: str) -> bool:
    """Exchanges two names in a folder, in one step. False: it cannot be done here."""
    return _rename(folder, old, new, _RENAME_EXCHANGE)


def _rename(folder: int, old: str, new: str, flags: int) -> bool:
    try:
        import ctypes

        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, AttributeError):
        return False
    if function(folder, os.fsencode(old), folder, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_SUCH_RENAME:
        return False
    raise OSError(code, os.strerror(code))

# SPDX-License-Identifier: Apache-2.0
"""What encrypt and decrypt read, and standard output as what they write to."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

PIPE_SIZE = 1 << 20


def named(error: OSError, path: str) -> OSError:
    """The error with the path that the user gave."""
    return OSError(error.errno, error.strerror, path)


def default_mode(mode: int) -> int:
    """What the umask leaves of a mode."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mode & ~mask


class InputFile:
    """A file, pipe or device that is read to its end. size, mode, times (of access and change, in
    nanoseconds): None where it has none."""

    def __init__(self, descriptor: int, path: str) -> None:
        self.descriptor = descriptor
        self.path = path
        self.count = 0
        status = os.fstat(descriptor)
        kind = stat.S_IFMT(status.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self.is_regular = kind == stat.S_IFREG
        self.size = status.st_size if self.is_regular else None
        self.mode = status.st_mode & 0o777 if self.is_regular else None
        # Fewer blocks of 512 bytes than it has bytes for: it has holes.
        self.has_holes = self.is_regular and status.st_blocks * 512 < status.st_size
        self.times = (status.st_atime_ns, status.st_mtime_ns) if self.is_regular else None
        # Standard input may stand in the middle of a file.
        self._start = os.lseek(descriptor, 0, os.SEEK_CUR) if self.is_regular else 0
        if self.is_regular:
            with contextlib.suppress(OSError):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        elif kind == stat.S_IFIFO:
            widen_pipe(descriptor)

    def readinto(self, buffer: memoryview, /) -> int:
        try:
            count = os.readv(self.descriptor, [buffer])
        except OSError as error:
            raise named(error, self.path) from None
        self.count += count
        return count

    def fileno(self) -> int:
        return self.descriptor

    def passed(self, count: int) -> None:
        """`count` bytes were read by pread(), which did not move the descriptor: moves it."""
        os.lseek(self.descriptor, count, os.SEEK_CUR)
        self.count += count

    def change(self) -> str | None:
        """How the size of a file that was read to its end changed meanwhile; None: it did not.

        Files that the kernel makes up as they are read say that they hold nothing: they tell
        nothing.
        """
        if self.size is None:
            return None
        size, now = self.size - self._start, os.fstat(self.descriptor).st_size - self._start
        if size == now and (self.count == size or size == 0):
            return None
        return f"{size} bytes when it was opened, {self.count} were read, {now} now"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor > 2:
            os.close(self.descriptor)


def widen_pipe(descriptor: int) -> None:
    """Lets a pipe hold more, where the system allows it: fewer switches between the two ends."""
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


class StandardOutput:
    """Standard output as a target: what is written is out."""

    path = "standard output"

    def __init__(self) -> None:
        self.count = 0
        if stat.S_ISFIFO(os.fstat(1).st_mode):
            widen_pipe(1)

    def write(self, data: memoryview, /) -> int:
        try:
            count = os.write(1, data)
        except OSError as error:
            raise named(error, self.path) from None
        self.count += count
        return count

    def commit(self, mode: int | None, times: tuple[int, int] | None = None) -> None:
        """Nothing is left to do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Nowhere:
    """The target of a file that is only checked."""

    path = "nowhere"

    def __init__(self) -> None:
        self.count = 0

    def write(self, data: memoryview, /) -> int:
        self.count += len(data)
        return len(data)

    def commit(self, mode: int | None, times: tuple[int, int] | None = None) -> None:
        """Nothing is left to do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH116
"""Inputs and outputs of commands: files, standard output, and files that get their names when they
are whole (`_new_file`), where the user lets them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Any, TypeAlias

from warpcipher._descriptors import awaited, naming, written
from warpcipher._new_file import NewFile, target_of
from warpcipher._tree_names import HEAD_SIZE
from warpcipher._uncopied import Closed

from .errors import CliError, shown, usage
from .folders import Identity, identity_of, open_folder

PIPE_SIZE = 1 << 20


def default_mode(mode: int) -> int:
    """A mode less the umask's part."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mode & ~mask


class InputFile(Closed):
    """A file, pipe or device that is read to its end. size, mode, times (of access and change, in
    nanoseconds): None if it has none."""

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
        with naming(self.path):
            count = awaited(os.readv, self.descriptor, [buffer])
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

    def close(self) -> None:
        if self.descriptor > 2:
            os.close(self.descriptor)


def widen_pipe(descriptor: int) -> None:
    """Lets a pipe hold more, where the system allows it: fewer switches between the two ends."""
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


class _Passing(Closed):
    """A target whose bytes are gone as soon as they are written."""

    def __init__(self) -> None:
        self.count = 0

    def commit(self, mode: int | None, times: tuple[int, int] | None = None) -> None:
        """Nothing is left to do."""

    def close(self) -> None:
        pass


class StandardOutput(_Passing):
    """Standard output as a target: written bytes are out."""

    path = "standard output"

    def __init__(self) -> None:
        super().__init__()
        if stat.S_ISFIFO(os.fstat(1).st_mode):
            widen_pipe(1)

    def write(self, data: memoryview, /) -> int:
        with naming(self.path):
            count = awaited(os.write, 1, data)
        self.count += count
        return count


class Nowhere(_Passing):
    """The target of a file that is only checked."""

    path = "nowhere"

    def write(self, data: memoryview, /) -> int:
        self.count += len(data)
        return len(data)


class Kept:
    """Files that no output of a run may replace: its key, its inputs, its outputs.

    They are known by device and inode, which holds while they are there: another file may have the
    numbers of one that was removed.
    """

    def __init__(self) -> None:
        self._known: dict[Identity, tuple[str, str | None]] = {}

    def add(self, identity: Identity, what: str, path: str | None) -> None:
        """what: its name in errors. path: None for a standard stream, which stays."""
        self._known[identity] = what, path

    def refuse(self, status: os.stat_result, target: str) -> None:
        """Raises CliError where `target`, whose status this is, is one of them."""
        identity = identity_of(status)
        what, path = self._known.get(identity, ("", ""))
        if what and (path is None or _stands_for(path, identity)):
            raise usage(f"{shown(target)} is {what}, which is never overwritten")


def _stands_for(path: str, identity: Identity) -> bool:
    try:
        return identity in (identity_of(os.stat(path)), identity_of(os.lstat(path)))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # such as a path that is too long
        return True


class OutputFile(NewFile):
    """A file that gets its name from `commit`, and vanishes without it. head: its first bytes.

    folder: descriptor of its folder, which the object closes. force: it may replace a regular file.
    kept: files that it may not replace all the same. beneath: it belongs to a
    tree, where a symbolic link is replaced and not written through.
    """

    def __init__(
        self,
        folder: int,
        name: str,
        path: str,
        *,
        force: bool,
        kept: Kept | None = None,
        beneath: bool = False,
    ) -> None:
        self.count = 0
        self.head = b""
        self._force = force
        self._kept = kept
        self._beneath = beneath
        super().__init__(folder, name, path)

    def write(self, data: memoryview | bytes, /) -> int:
        with naming(self.path):
            count = os.write(self._descriptor, data)
        if len(self.head) < HEAD_SIZE:
            self.head += data[: min(count, HEAD_SIZE - len(self.head))]
        self.count += count
        return count

    def passed(self, count: int) -> None:
        """`count` bytes were written by pwrite(), which did not move the descriptor: moves it.
        `head` has its bytes by then."""
        os.lseek(self._descriptor, count, os.SEEK_CUR)
        self.count += count

    def write_all(self, data: bytes, mode: int | None, of: int = -1) -> None:
        """Writes all that the file shall hold, and commits it."""
        rest = memoryview(data)
        while rest:
            rest = rest[written(self.write(rest), self.path) :]
        self.commit(mode, of=of)

    def commit(self, mode: int | None, times: tuple[int, int] | None = None, of: int = -1) -> None:
        """Makes the file durable and gives it its name. mode: None takes the umask's rest;
        times: of access and change, in nanoseconds, None leaves them. of: as of `give_name`."""
        try:
            with naming(self.path):
                os.fchmod(self._descriptor, default_mode(0o666) if mode is None else mode)
                if times is not None:
                    os.utime(self._descriptor, ns=times)
                self.give_name(replace=self._force, of=of)
        except FileExistsError:
            raise exists(self.path) from None

    def _check_target(self) -> None:
        how: Any = {"force": self._force, "kept": self._kept, "beneath": self._beneath}
        check_target(self._folder, self._name, self.path, **how)


Target: TypeAlias = OutputFile | StandardOutput | Nowhere
"""The target of a run."""


class WithHoles:
    """Writes to an output, and leaves out blocks of zeros, which take no room on the disk."""

    BLOCK = 4096
    _ZEROS = bytes(BLOCK)

    def __init__(self, output: OutputFile) -> None:
        self._output = output

    def write(self, data: memoryview, /) -> int:
        done = 0
        while done < len(data):
            end = done + self.BLOCK - self._output.count % self.BLOCK
            if data[done:end] == self._ZEROS:
                os.ftruncate(self._output.fileno(), self._output.count + self.BLOCK)
                self._output.passed(self.BLOCK)
                done = end
                continue
            while end < len(data) and data[end : end + self.BLOCK] != self._ZEROS:
                end += self.BLOCK
            done += self._output.write(data[done:end])
        return done


def open_output(path: str, *, force: bool) -> OutputFile:
    """The output of a command that has one name for it and no inputs."""
    base, name = real_target(path)
    return OutputFile(open_folder(base, ()), name, path, force=force)


def real_target(path: str) -> tuple[str, str]:
    """Folder and name of the file that an output's name stands for, through symbolic links."""
    base, name = target_of(path)
    if name in ("", ".", ".."):
        raise usage(f"{shown(path) or 'an empty name'} names no file")
    return base, name


def check_target(
    folder: int, name: str, path: str, *, force: bool, kept: Kept | None, beneath: bool = False
) -> None:
    """Raises CliError where the output may not take its name."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise not_a_file(path)
    if kept is not None:
        kept.refuse(status, path)
    if not (stat.S_ISREG(status.st_mode) or (beneath and stat.S_ISLNK(status.st_mode))):
        # keygen, bench and lab, which keep nothing, have no way to write to standard output.
        hint = f": write to it with `-o - > {shown(path)}`" if kept is not None else ""
        raise usage(f"{shown(path)} is not a regular file{hint}")
    if not force:
        raise exists(path)


def exists(path: str) -> CliError:
    return usage(f"{shown(path)} exists: use --force to replace it, or name another output")


def not_a_file(path: str) -> CliError:
    return usage(f"{shown(path)} is a directory, and the output is a file")

# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
# ruff: noqa: PTH104, PTH115, PTH116, PTH118
"""Files that get their names when they are whole: everything here that writes a file by name.

A file is written to a temporary name in its folder, made durable, and then given its name, so that
the name never stands for half a file: not after an error, a signal or a loss of power. Only
SIGKILL, a crash of the machine or a loss of power can leave something: the temporary,
`.warpcipher-XXXXXXXXXXXXXXXX.part`.

A symbolic link is written through, as `open` does: the file that it leads to is replaced, and the
link stays. A device, FIFO, socket or folder is refused before anything is written.

Who may write in the folder may put something else under the temporary name. So a new name is a hard
link to the descriptor's open file. Where that cannot be (an output is replaced, a file system has
no hard links), the temporary is renamed, after a look at what its name stands for.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from typing import BinaryIO

from ._descriptors import closing, rename_exchange, rename_noreplace
from ._types import PathLike
from ._uncopied import Closed

unfinished: dict[str, int] = {}
"""Temporaries that are being written, each with the descriptor of its folder: a program that a
signal ends removes them before, as the command line does."""

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_MOST_LINKS = 40  # as the kernel
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LOCK_SECONDS = 1.0
_ACCESS = "system.posix_acl_access"
KEPT_ATTRIBUTES = ("user.", _ACCESS)
"""Prefixes of the names of attributes that users set; others are the system's."""


def target_of(path: PathLike) -> tuple[str, str]:
    """Folder and name of the file that a path leads to, through symbolic links; it may be missing.

    An open file of a process (/dev/stdout, /dev/fd/3) stays a link in /proc: writing to that is
    not replacing it. Raises OSError, PermissionError for another user's link in a folder that all
    may write to, such as /tmp: the kernel does not follow those either (protected_symlinks).
    """
    given = place = os.fsdecode(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(place)
        if name in ("", ".", ".."):
            return folder or ".", name
        folder = os.path.realpath(folder) if place is not given else folder or "."
        try:
            link = os.readlink(os.path.join(folder, name))
        except OSError:  # it is none
            return folder, name
        folder = os.path.realpath(folder)
        if folder.startswith("/proc/"):
            return folder, name
        _require_trusted(folder, name, given)
        place = os.path.join(folder, link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), given)


def _require_trusted(folder: str, name: str, given: str) -> None:
    if _is_planted(os.stat(folder), os.lstat(os.path.join(folder, name))):
        says = "another user's symbolic link in a folder that all may write to"
        raise PermissionError(errno.EACCES, says, given)


def _is_planted(above: os.stat_result, there: os.stat_result) -> bool:
    """Whether it is another user's, in a folder that all may write to, such as /tmp."""
    is_shared = above.st_mode & stat.S_ISVTX and above.st_mode & stat.S_IWOTH
    return bool(is_shared) and there.st_uid not in (os.geteuid(), above.st_uid)


def _lock(descriptor: int) -> None:
    """Waits for others that replace the same file now; not for a program that keeps it locked, such
    as flock(1)."""
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() <= deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:  # no locks here
            return


def require_replaceable(folder: int, name: str, path: str) -> os.stat_result | None:
    """The status of the regular file that has the name; None where nothing has it.

    Raises OSError where something else has it, which nothing may replace.
    """
    if name in ("", ".", ".."):
        raise IsADirectoryError(errno.EISDIR, "the path names no file", path)
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        says = "not a regular file, and an output replaces the file of its name: write to a file"
        raise OSError(errno.EINVAL, says, path)
    return status


class NewFile(Closed):
    """A file that gets its name from `commit`, and vanishes without it.

    folder: descriptor of its folder, which the object closes. path: its name in errors.
    permissions: of the temporary, less the umask's.
    """

    def __init__(self, folder: int, name: str, path: str, permissions: int = 0o600) -> None:
        self.path = path
        self._folder = folder
        self._name = name
        self._temporary = f".warpcipher-{os.urandom(8).hex()}.part"
        self._descriptor = -1
        try:
            self._check_target()
            unfinished[self._temporary] = folder
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._temporary, flags, permissions, dir_fd=folder)
            status = os.fstat(self._descriptor)
            self.identity = (status.st_dev, status.st_ino)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise self._named(error) from None
            raise

    def fileno(self) -> int:
        return self._descriptor

    def take_over(self, old: os.stat_result) -> int:
        """Takes owner, group, access list and attributes of the file of its name, which `old` is
        the status of, as far as the system lets it. Returns that one's permissions; those of the
        group only where that is the same."""
        with contextlib.suppress(OSError):
            there = os.open(self._name, _LOOK, dir_fd=self._folder)
            with closing(there):
                names = os.listxattr(there)
                for name in names:
                    if name.startswith(KEPT_ATTRIBUTES):
                        os.setxattr(self._descriptor, name, os.getxattr(there, name))
                if _ACCESS not in names:  # new files have their folder's list
                    os.removexattr(self._descriptor, _ACCESS)
        for owner in (old.st_uid, -1):
            with contextlib.suppress(OSError):
                os.fchown(self._descriptor, owner, old.st_gid)
                break
        is_same = os.fstat(self._descriptor).st_gid == old.st_gid
        return stat.S_IMODE(old.st_mode) & (0o777 if is_same else 0o707)

    def detach(self) -> int:
        """Closes all but the descriptor, which is the caller's from here on."""
        kept, self._descriptor = self._descriptor, -1
        self.close()
        return kept

    def give_name(self, *, replace: bool, of: int = -1) -> None:
        """Makes the file durable and gives it its name. FileExistsError without `replace`, where
        something has the name. of: a descriptor of the file whose next version it is; OSError where
        the name stands for another."""
        try:
            if of >= 0:
                if not self.take_place_of(of):
                    says = "another program changed it meanwhile: nothing was written, try again"
                    raise OSError(errno.EBUSY, says)
                return
            os.fsync(self._descriptor)
            if replace:
                self._check_target()
                self._check_temporary()
                os.rename(self._temporary, self._name, **self._both)
            else:
                self._create()
            self._named_now()
        except OSError as error:
            raise self._named(error) from None

    def take_place_of(self, mine: int) -> bool:
        """Makes the file durable and gives it the name of an earlier version, which the descriptor
        `mine` has open. False: something else has the name, and keeps it. Where names cannot be
        exchanged, what gets the name after the last look is replaced."""
        os.fsync(self._descriptor)
        _lock(mine)  # of two that replace one version, one does
        self._check_temporary()
        if not self._stands_for(self._name, mine):
            return False
        try:
            if rename_exchange(self._folder, self._temporary, self._name):
                if not self._stands_for(self._temporary, mine):
                    rename_exchange(self._folder, self._temporary, self._name)
                    return False
                os.unlink(self._temporary, dir_fd=self._folder)
            else:
                os.rename(self._temporary, self._name, **self._both)
        except FileNotFoundError:
            return False
        self._named_now()
        return True

    def _named_now(self) -> None:
        unfinished.pop(self._temporary, None)
        # Else a loss of power may leave the name with the file of before, or with none.
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            os.fsync(self._folder)

    def _check_target(self) -> None:
        """Raises OSError, or another error, where the file may not take its name."""
        require_replaceable(self._folder, self._name, self.path)

    def _create(self) -> None:
        """Gives the file a name that nothing has, which the system sees to where it can."""
        try:
            self._link()
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            self._check_temporary()
            self._rename_new()
        else:
            with contextlib.suppress(OSError):  # the file has its name: not a failure
                os.unlink(self._temporary, dir_fd=self._folder)

    def _link(self) -> None:
        opened = f"/proc/self/fd/{self._descriptor}"
        if os.path.lexists(opened):
            if os.fstat(self._descriptor).st_nlink == 0:  # nothing can be linked to it any more
                raise self._exchanged()
            os.link(opened, self._name, dst_dir_fd=self._folder, follow_symlinks=True)
            return
        # /proc is not mounted.
        self._check_temporary()
        os.link(self._temporary, self._name, **self._both, follow_symlinks=False)
        if not self._stands_for(self._name, self._descriptor):
            os.unlink(self._name, dir_fd=self._folder)
            raise self._exchanged()

    def _rename_new(self) -> None:
        if rename_noreplace(self._folder, self._temporary, self._name):
            return
        # A file that takes the name from here on is replaced: docs/cli.md says so.
        with contextlib.suppress(FileNotFoundError):
            os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.rename(self._temporary, self._name, **self._both)

    @property
    def _both(self) -> dict[str, int]:
        return {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}

    def _stands_for(self, name: str, descriptor: int) -> bool:
        """Whether the name leads to the descriptor's open file."""
        try:
            named = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(descriptor))

    def _check_temporary(self) -> None:
        if not self._stands_for(self._temporary, self._descriptor):
            raise self._exchanged()

    def _exchanged(self) -> OSError:
        says = f"another program exchanged the temporary {self._temporary}"
        return OSError(errno.EBUSY, f"{says}: use a folder that only you can write to")

    def _named(self, error: OSError) -> OSError:
        """The error with the path that the user gave."""
        return OSError(error.errno, error.strerror, self.path)

    def close(self) -> None:
        """Closes the file, and removes it if it has not got its name."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if unfinished.pop(self._temporary, None) is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


@contextlib.contextmanager
def replaced(
    path: PathLike, *, replace: bool = True, permissions: int | None = None, of: int = -1
) -> Iterator[BinaryIO]:
    """A file that gets its name when all of it is written and on the disk; else nothing is left.

    It has owner, group, permissions and attributes of a file that it replaces, from the beginning
    on. It can be read by its descriptor, so that it can be mapped.
    replace:     False raises FileExistsError where something has the name.
    permissions: of a file that replaces none; None: the umask's rest.
    of:          as of `give_name`.
    Raises OSError for a device, FIFO, socket or folder, before anything is written.
    """
    given = os.fsdecode(path)
    base, name = target_of(given)
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        there = require_replaceable(folder, name, given)
    except BaseException:
        os.close(folder)
        raise
    if there is not None and not replace:
        os.close(folder)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), given)
    is_new = there is None and permissions is None
    with NewFile(folder, name, given, 0o666 if is_new else 0o600) as new:
        if there is not None and of < 0 and _is_planted(os.fstat(folder), there):
            permissions = stat.S_IMODE(there.st_mode) & 0o777  # its owner gets nothing new to read
        elif there is not None:
            permissions = new.take_over(there)
        if permissions is not None:
            os.fchmod(new.fileno(), permissions)
        with open(new.fileno(), "wb", buffering=0, closefd=False) as file:
            yield file
        new.give_name(replace=replace, of=of)

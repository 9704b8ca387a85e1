# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
# ruff: noqa: PTH104
"""Files as the commands write them: an output has its name only when it is whole.

An output is written to a temporary name in its folder, made durable, and then given its name, so
that the name never stands for half a file: not after an error, a signal or a loss of power. Only
SIGKILL, a crash of the machine or a loss of power can leave something: the temporary,
`.warpcipher-XXXXXXXXXXXXXXXX.part`.

Who may write in the folder may put something else under the temporary name. So a new name is a hard
link to what the descriptor has open. Where that cannot be (an output is replaced, a file system has
no hard links), the temporary is renamed, after a look at what its name stands for.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from warpcipher._descriptors import rename_noreplace, written
from warpcipher._tree_names import HEAD_SIZE

from .cleanup import temporaries
from .errors import CliError, SystemRefusedError, shown, usage
from .files import default_mode, named
from .folders import Identity, identity_of, open_folder

if TYPE_CHECKING:
    from typing_extensions import Self

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class OutputFile:
    """A file that gets its name from `commit`, and vanishes without it. head: its first bytes.

    folder: descriptor of its folder, which the object closes. force: it may replace a regular file.
    kept: what it may not replace all the same, and what an error calls it.
    """

    def __init__(
        self,
        folder: int,
        name: str,
        path: str,
        *,
        force: bool,
        kept: Mapping[Identity, str] | None = None,
    ) -> None:
        self.path = path
        self.count = 0
        self.head = b""
        self._folder = folder
        self._name = name
        self._force = force
        self._kept = kept
        self._temporary = f".warpcipher-{os.urandom(8).hex()}.part"
        try:
            check_target(folder, name, path, force=force, kept=kept)
            temporaries[self._temporary] = folder
            self._descriptor = os.open(
                self._temporary,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
                dir_fd=folder,
            )
        except BaseException as error:
            temporaries.pop(self._temporary, None)
            os.close(folder)
            if isinstance(error, OSError):
                raise named(error, path) from None
            raise
        try:
            self.identity = identity_of(os.fstat(self._descriptor))
        except OSError as error:
            self._discard()
            raise named(error, path) from None

    def write(self, data: memoryview | bytes, /) -> int:
        try:
            count = os.write(self._descriptor, data)
        except OSError as error:
            raise named(error, self.path) from None
        if len(self.head) < HEAD_SIZE:
            self.head += data[: min(count, HEAD_SIZE - len(self.head))]
        self.count += count
        return count

    def fileno(self) -> int:
        return self._descriptor

    def passed(self, count: int) -> None:
        """`count` bytes were written by pwrite(), which did not move the descriptor: moves it.
        `head` has its bytes by then."""
        os.lseek(self._descriptor, count, os.SEEK_CUR)
        self.count += count

    def write_all(self, data: bytes, mode: int | None) -> None:
        """Writes all that the file shall hold, and commits it."""
        rest = memoryview(data)
        while rest:
            rest = rest[written(self.write(rest), self.path) :]
        self.commit(mode)

    def commit(self, mode: int | None, times: tuple[int, int] | None = None) -> None:
        """Makes the file durable and gives it its name. mode: None takes what the umask leaves;
        times: of access and change, in nanoseconds, None leaves them."""
        try:
            os.fchmod(self._descriptor, default_mode(0o666) if mode is None else mode)
            if times is not None:
                os.utime(self._descriptor, ns=times)
            os.fsync(self._descriptor)
            if self._force:
                self._replace()
            else:
                self._create()
            temporaries.pop(self._temporary, None)
            with contextlib.suppress(OSError):  # some file systems cannot sync a folder
                os.fsync(self._folder)
        except OSError as error:
            raise named(error, self.path) from None

    def _create(self) -> None:
        """Gives the file a name that nothing has, which the system sees to where it can."""
        try:
            self._link()
        except FileExistsError:
            raise exists(self.path) from None
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            self._check_temporary()
            self._rename_new()
        else:
            with contextlib.suppress(OSError):  # the file has its name: it is no failure
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
        if not self._stands_for(self._name):
            os.unlink(self._name, dir_fd=self._folder)
            raise self._exchanged()

    def _replace(self) -> None:
        check_target(self._folder, self._name, self.path, force=True, kept=self._kept)
        self._check_temporary()
        os.rename(self._temporary, self._name, **self._both)

    def _rename_new(self) -> None:
        try:
            if rename_noreplace(self._folder, self._temporary, self._name):
                return
        except FileExistsError:
            raise exists(self.path) from None
        # What takes the name from here on is replaced: docs/cli.md says so.
        check_target(self._folder, self._name, self.path, force=False, kept=self._kept)
        os.rename(self._temporary, self._name, **self._both)

    @property
    def _both(self) -> dict[str, int]:
        return {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}

    def _stands_for(self, name: str) -> bool:
        """Whether the name is that of what was written."""
        try:
            status = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return identity_of(status) == self.identity

    def _check_temporary(self) -> None:
        if not self._stands_for(self._temporary):
            raise self._exchanged()

    def _exchanged(self) -> CliError:
        return SystemRefusedError(
            f"{shown(self.path)}: another program exchanged the temporary {self._temporary}: "
            "use a folder that you alone can write to"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._discard()

    def _discard(self) -> None:
        """Lets go of the file, and removes it where it has not got its name."""
        os.close(self._descriptor)
        if self._temporary in temporaries:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
            temporaries.pop(self._temporary, None)
        os.close(self._folder)


def open_output(path: str, *, force: bool) -> OutputFile:
    """The output of a command that has one name for it and no inputs."""
    base, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise usage(f"{shown(path) or 'an empty name'} names no file")
    return OutputFile(open_folder(base or ".", ()), name, path, force=force)


def check_target(
    folder: int, name: str, path: str, *, force: bool, kept: Mapping[Identity, str] | None
) -> None:
    """Raises CliError where the output may not take its name."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise usage(f"{shown(path)} is a directory, and the output is a file")
    if kept is not None and identity_of(status) in kept:
        raise never_overwritten(path, kept[identity_of(status)])
    if stat.S_ISLNK(status.st_mode) and not _leads_to_device(folder, name):
        if not force:
            raise exists(path)
        return  # the link is replaced, not what it points to
    if not stat.S_ISREG(status.st_mode):
        # keygen, bench and lab, which keep nothing, have no way to write to standard output.
        hint = f": write to it with `-o - > {shown(path)}`" if kept is not None else ""
        raise usage(f"{shown(path)} is not a regular file{hint}")
    if not force:
        raise exists(path)


def _leads_to_device(folder: int, name: str) -> bool:
    """Whether a link leads to what is written to and not replaced: a device, a pipe, or, as
    /dev/stdout does, what a process has open."""
    if os.readlink(name, dir_fd=folder).startswith(("/proc/", "/dev/fd/")):
        return True
    try:
        kind = os.stat(name, dir_fd=folder).st_mode
    except OSError:  # it leads nowhere
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def exists(path: str) -> CliError:
    return usage(f"{shown(path)} exists: use --force to replace it, or name another output")


def never_overwritten(path: str, what: str) -> CliError:
    return usage(f"{shown(path)} is {what}, which is never overwritten")

# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
# ruff: noqa: PTH102, PTH106, PTH112, PTH118
"""Files as encrypt, decrypt and keygen read and write them.

An output is written to a temporary name in its folder, made durable, and then given its name, so
that the name never stands for half a file: not after an error, a signal or a loss of power. Only
SIGKILL, a crash of the machine or a loss of power can leave something behind: the temporary,
`.warpcipher-XXXXXXXXXXXXXXXX.part`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from .errors import CliError, shown, usage

if TYPE_CHECKING:
    from typing_extensions import Self

PIPE_SIZE = 1 << 20
_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

# What a signal must remove: temporaries (name -> folder), and folders that this run made, if empty.
_temporaries: dict[str, int] = {}
_made_folders: list[str] = []


def reserve_standard_streams() -> None:
    """Opens the standard streams that the caller closed, so that no file gets their numbers.

    They stay unusable: 0 cannot be read, 1 and 2 cannot be written.
    """
    for descriptor, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free: this one


def clean_up_on_signals() -> None:
    """Makes SIGINT, SIGTERM and SIGHUP remove what is unfinished before they end the process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _on_signal)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    die(number, "interrupted")


def die(number: int, reason: str = "") -> None:
    """Removes what is unfinished and ends the process by a signal, as a shell expects.

    Nothing waits for the threads of a running stream: they may be stuck in a write.
    """
    remove_unfinished()
    if reason:
        with contextlib.suppress(OSError):
            os.write(2, f"\nwarpcipher: {reason}\n".encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def remove_unfinished() -> None:
    """Removes the temporaries, and the folders that were made and hold nothing."""
    for name, folder in list(_temporaries.items()):
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
    for path in reversed(_made_folders):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def open_folder(base: str, parts: tuple[str, ...], *, create: bool = False) -> int:
    """A descriptor of the folder base/parts[0]/... . Only `base` may be a symbolic link.

    create: makes the folders that are missing, for the owner alone.
    """
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    path = base
    for part in parts:
        path = os.path.join(path, part)
        try:
            if create:
                _make_folder(part, folder, path)
            below = os.open(
                part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
            )
        except OSError as error:
            raise _named(error, path) from None
        finally:
            os.close(folder)
        folder = below
    return folder


def _make_folder(name: str, parent: int, path: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
        _made_folders.append(path)


def make_folder(path: str) -> None:
    """Makes one folder if it is missing, for the owner alone at first. CliError: it is a file."""
    if os.path.isdir(path):
        return
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        raise usage(f"{shown(path)} exists and is not a directory") from None
    _made_folders.append(path)


def was_made(path: str) -> bool:
    """Whether this run made the folder."""
    return path in _made_folders


def forget_folders() -> None:
    """The run is over: what it made stays."""
    _made_folders.clear()


def _named(error: OSError, path: str) -> OSError:
    return OSError(error.errno, error.strerror, path)


class InputFile:
    """A file, pipe or device that is read to its end. size, mode: None where it has none."""

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
        self.identity = status.st_dev, status.st_ino
        if self.is_regular:
            with contextlib.suppress(OSError):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        elif kind == stat.S_IFIFO:
            widen_pipe(descriptor)

    def readinto(self, buffer: memoryview, /) -> int:
        try:
            count = os.readv(self.descriptor, [buffer])
        except OSError as error:
            raise _named(error, self.path) from None
        self.count += count
        return count

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
            raise _named(error, self.path) from None
        self.count += count
        return count

    def commit(self, mode: int | None) -> None:
        """Nothing is left to do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class OutputFile:
    """A file that gets its name from `commit`, and vanishes without it.

    folder: descriptor of its folder, which the object closes. force: it may replace a regular file.
    keep: identity (device, inode) of the input, which is never replaced.
    """

    def __init__(
        self, folder: int, name: str, path: str, *, force: bool, keep: tuple[int, int] | None = None
    ) -> None:
        self.path = path
        self.count = 0
        self._folder = folder
        self._name = name
        self._force = force
        self._temporary = f".warpcipher-{os.urandom(8).hex()}.part"
        try:
            check_target(folder, name, path, force=force, keep=keep)
            _temporaries[self._temporary] = folder
            self._descriptor = os.open(
                self._temporary,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
                dir_fd=folder,
            )
        except BaseException as error:
            _temporaries.pop(self._temporary, None)
            os.close(folder)
            if isinstance(error, OSError):
                raise _named(error, path) from None
            raise

    def write(self, data: memoryview | bytes, /) -> int:
        try:
            count = os.write(self._descriptor, data)
        except OSError as error:
            raise _named(error, self.path) from None
        self.count += count
        return count

    def commit(self, mode: int | None) -> None:
        """Makes the file durable and gives it its name. mode: None takes what the umask leaves."""
        try:
            os.fchmod(self._descriptor, 0o666 & ~current_umask() if mode is None else mode)
            os.fsync(self._descriptor)
            self._rename()
            _temporaries.pop(self._temporary, None)
            with contextlib.suppress(OSError):  # some file systems cannot sync a folder
                os.fsync(self._folder)
        except OSError as error:
            raise _named(error, self.path) from None

    def _rename(self) -> None:
        if not self._force:
            try:
                os.link(
                    self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder
                )
            except FileExistsError:
                raise exists(self.path) from None
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                check_target(self._folder, self._name, self.path, force=False, keep=None)
            else:
                os.unlink(self._temporary, dir_fd=self._folder)
                return
        os.rename(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)
        if self._temporary in _temporaries:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
            _temporaries.pop(self._temporary, None)
        os.close(self._folder)


def check_target(
    folder: int, name: str, path: str, *, force: bool, keep: tuple[int, int] | None
) -> None:
    """Raises CliError where the output may not take its name."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise usage(f"{shown(path)} is a directory, and the output is a file")
    if stat.S_ISLNK(status.st_mode):
        if not force:
            raise exists(path)
        return  # the link is replaced, not what it points to
    if not stat.S_ISREG(status.st_mode):
        # keygen and lab, which keep no input, have no way to write to standard output.
        hint = f": write to it with `-o - > {shown(path)}`" if keep is not None else ""
        raise usage(f"{shown(path)} is not a regular file{hint}")
    if (status.st_dev, status.st_ino) == keep:
        raise usage(f"{shown(path)} is the input itself, which is never overwritten")
    if not force:
        raise exists(path)


def exists(path: str) -> CliError:
    return usage(f"{shown(path)} exists: use --force to replace it, or name another output")


def current_umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

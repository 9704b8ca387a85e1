# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
# ruff: noqa: PTH112, PTH118
"""Folders: opened without following links out of a tree, made, and removed again if unused."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Iterator
from typing import NamedTuple

from warpcipher._descriptors import closing, naming

from .errors import CliError, SystemRefusedError, shown, usage

Identity = tuple[int, int]
"""Device and inode: the identity of a file or folder, whatever its name."""


class _Place(NamedTuple):
    base: str
    parts: tuple[str, ...]


class _Made(NamedTuple):
    place: _Place
    identity: Identity


class _Opened(NamedTuple):
    place: _Place
    identity: Identity
    mode: int


_made: dict[str, _Made] = {}
"""The folders that this run made, by path, in the order of making."""
_opened: dict[str, _Opened] = {}
"""The folders that are writable only for the run, by path, outer ones first."""
_locked: list[int] = []
"""Descriptors of the trees that no other run may write to now."""
WRITING = stat.S_IRWXU
"""Permissions of the owner that writing in a folder takes."""


def identity_of(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def parts_of(name: str) -> tuple[str, ...]:
    """The folders of a name in a tree; the root has none."""
    return tuple(name.split("/")) if name else ()


def open_folder(base: str, parts: tuple[str, ...], *, create: bool = False) -> int:
    """A descriptor of the folder base/parts[0]/... . Only `base` may be a symbolic link.

    create: makes the folders that are missing, only for the owner, and lets the run write in all.
    """
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    path = base
    if create:
        open_for_run(folder, base, (), path)
    for depth, part in enumerate(parts, 1):
        path = os.path.join(path, part)
        with naming(path), closing(folder):
            if create:
                _make(part, folder, path, _Place(base, parts[:depth]))
            folder = os.open(
                part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
            )
        if create:
            open_for_run(folder, base, parts[:depth], path)
    return folder


def _make(name: str, parent: int | None, path: str, place: _Place) -> bool:
    """Makes a folder and notes it; False where the name is taken."""
    with _signals_wait():
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            return False
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=parent)
            raise
        _made[path] = _Made(place, identity_of(status))
    return True


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """A signal would find a folder that is made and not yet noted, and leave it."""
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def make_folder(path: str) -> None:
    """Makes one folder if it is missing, at first only for the owner. CliError: it is a file."""
    if os.path.isdir(path):
        return
    base, name = os.path.split(path.rstrip("/"))
    if not _make(path, None, path, _Place(base or ".", (name,))):
        raise not_a_folder(path)


def not_a_folder(path: str) -> CliError:
    return usage(f"{shown(path)} exists and is not a directory")


def finish(
    base: str, parts: tuple[str, ...], mode: int, times: tuple[int, int] | None, *, always: bool
) -> None:
    """Gives a folder its mode and times, if this run made it (always: an earlier one may have) and
    nothing else was put in its place."""
    path = os.path.join(base, *parts)
    made = _made.get(path)
    if made is None and not always:
        return
    try:
        folder = open_folder(base, parts)
    except FileNotFoundError:
        return  # it held nothing but failed files
    with closing(folder):
        if made is None or identity_of(os.fstat(folder)) == made.identity:
            os.fchmod(folder, mode)
            _opened.pop(path, None)
            if times is not None:
                os.utime(folder, ns=times)


def lock(path: str) -> None:
    """Keeps other runs from writing to a tree until this one ends, where the file system has locks.
    Raises CliError where another run writes to it."""
    import fcntl

    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    _locked.append(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemRefusedError(
            f"another run writes to {shown(path)}: wait until it has ended"
        ) from None
    except OSError:
        return


def made(path: str) -> bool:
    """Whether this run made the folder."""
    return path in _made


def open_for_run(folder: int, base: str, parts: tuple[str, ...], path: str) -> None:
    """Lets the run write in a folder of its output whose permissions do not, until it ends."""
    status = os.fstat(folder)
    if status.st_mode & WRITING == WRITING or path in _opened:
        return
    with contextlib.suppress(PermissionError):  # it is another user's: the next error says so
        with _signals_wait():
            _opened[path] = _Opened(_Place(base, parts), identity_of(status), status.st_mode)
            os.fchmod(folder, stat.S_IMODE(status.st_mode) | WRITING)
        return
    del _opened[path]


def close_opened() -> None:
    """Gives the folders that were opened for the run their permissions again."""
    while _opened:
        _, ((base, parts), identity, mode) = _opened.popitem()
        with contextlib.suppress(OSError), closing(open_folder(base, parts)) as folder:
            if identity_of(os.fstat(folder)) == identity:
                os.fchmod(folder, stat.S_IMODE(mode))


def remove_empty() -> None:
    """Removes the folders that this run made and that hold nothing."""
    for path, ((base, parts), identity) in reversed(list(_made.items())):
        with contextlib.suppress(OSError), closing(open_folder(base, parts[:-1])) as parent:
            status = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
            if identity_of(status) == identity:
                os.rmdir(parts[-1], dir_fd=parent)
                del _made[path]


def forget() -> None:
    """The run is over: its files stay."""
    close_opened()
    _made.clear()
    while _locked:
        os.close(_locked.pop())

# SPDX-License-Identifier: Apache-2.0
"""A file that gets its name when it is whole."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

unfinished: set[Path] = set()
"""Temporaries that are being written: a program that a signal ends removes them before, as the
command line does."""


@contextlib.contextmanager
def replaced(
    path: str | os.PathLike[str], *, replace: bool = True, permissions: int | None = None
) -> Iterator[BinaryIO]:
    """A file that gets its name when all of it is written and on the disk; else nothing is left.

    It has the permissions of a regular file that it replaces, from the beginning on. It can be read
    by its descriptor, so that it can be mapped.
    replace:     False raises FileExistsError where something has the name.
    permissions: of a file that replaces none; None: what the umask leaves.
    """
    place = Path(os.fsdecode(path))
    if replace:
        permissions = _permissions(place, permissions)
    elif os.path.lexists(place):  # before the work; it is seen to again at the end
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    temporary = place.with_name(f".warpcipher-{os.urandom(8).hex()}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    unfinished.add(temporary)
    try:
        descriptor = os.open(temporary, flags, 0o666 if permissions is None else 0o600)
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123
            if permissions is not None:
                os.fchmod(descriptor, permissions)
            yield file
            os.fsync(descriptor)
        if replace:
            temporary.replace(place)
        else:
            try:
                place.hardlink_to(temporary)  # which, unlike a rename, replaces nothing
            except FileExistsError as error:
                raise FileExistsError(error.errno, error.strerror, str(place)) from None
            temporary.unlink()
        _sync_folder(place.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        unfinished.discard(temporary)


def _sync_folder(folder: Path) -> None:
    """Else a loss of power may leave the name with the file of before, or with none."""
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder, or may not open it
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _permissions(place: Path, other: int | None) -> int | None:
    """Of the regular file at a path; `other` where there is none."""
    try:
        status = place.stat()
    except FileNotFoundError:
        return other
    return stat.S_IMODE(status.st_mode) & 0o777 if stat.S_ISREG(status.st_mode) else other

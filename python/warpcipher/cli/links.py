# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
"""Symbolic links of a tree that is decrypted, made last: nothing is written through one."""

from __future__ import annotations

import errno
import os

from warpcipher._new_file import unfinished

from . import folders
from .cleanup import remove
from .files import named
from .jobs import Place
from .outputs import Kept, check_target


def _target(folder: int, name: str) -> str | None:
    """What a link says; None where the name is that of no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def make(
    place: Place,
    target: str,
    *,
    force: bool,
    update: bool,
    kept: Kept,
) -> None:
    """Makes a link, where it is not there. force: it may replace a file or another link; update:
    another link alone.

    Raises FileExistsError where the name is taken by what it may not replace, CliError where it may
    not have its name all the same, OSError.
    """
    folder = folders.open_folder(place.base, place.parts[:-1], create=True)
    name = place.parts[-1]
    try:
        there = _target(folder, name)
        if there == target:
            return
        force = force or (update and there is not None)
        if not force and _exists(folder, name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        check_target(folder, name, place.path, force=force, kept=kept, beneath=True)
        if not force:
            os.symlink(target, name, dir_fd=folder)
            return
        temporary = f".warpcipher-{os.urandom(8).hex()}.part"
        unfinished[temporary] = folder
        try:
            os.symlink(target, temporary, dir_fd=folder)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            unfinished.pop(temporary)
        except OSError:
            remove(temporary)
            raise
    except OSError as error:
        raise named(error, place.path) from None
    finally:
        os.close(folder)

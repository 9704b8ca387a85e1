# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
"""Symbolic links of a tree that is decrypted, made last: nothing is written through one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from . import folders
from .cleanup import remove, temporaries
from .files import named
from .jobs import Place
from .outputs import check_target, exists


def make(place: Place, target: str, *, force: bool, kept: Mapping[folders.Identity, str]) -> None:
    """Makes a link, where it is not there. force: it may replace a file or another link.

    Raises CliError where it may not have its name, OSError.
    """
    folder = folders.open_folder(place.base, place.parts[:-1], create=True)
    name = place.parts[-1]
    try:
        with contextlib.suppress(OSError):
            if os.readlink(name, dir_fd=folder) == target:
                return
        check_target(folder, name, place.path, force=force, kept=kept)
        if not force:
            os.symlink(target, name, dir_fd=folder)
            return
        temporary = f".warpcipher-{os.urandom(8).hex()}.part"
        temporaries[temporary] = folder
        try:
            os.symlink(target, temporary, dir_fd=folder)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            temporaries.pop(temporary)
        except OSError:
            remove(temporary)
            raise
    except FileExistsError:
        raise exists(place.path) from None
    except OSError as error:
        raise named(error, place.path) from None
    finally:
        os.close(folder)

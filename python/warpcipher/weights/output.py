# SPDX-License-Identifier: Apache-2.0
"""A file that gets its name when it is whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], *, replace: bool = True) -> Iterator[BinaryIO]:
    """A file that gets its name when all of it is written and on the disk; else nothing is left.

    replace: False raises FileExistsError where something has the name.
    """
    place = Path(os.fsdecode(path))
    temporary = place.with_name(f".warpcipher-{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

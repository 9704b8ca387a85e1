# SPDX-License-Identifier: Apache-2.0
"""Writes and renames by descriptor, as the commands and checkpoints need them."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._types import Buffer

_NO_SUCH_RENAME = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
# linux/fs.h
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2


def write_all(descriptor: int, data: Buffer) -> None:
    """Writes all of `data`. A write of nothing is an OSError: a loop over it would never end."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[written(os.write(descriptor, rest)) :]


def written(count: int, path: str | None = None) -> int:
    """What a write returned. Raises OSError where that is no progress."""
    if count <= 0:
        raise OSError(errno.EIO, "nothing could be written", path)
    return count


def rename_noreplace(folder: int, old: str, new: str) -> bool:
    """Renames within a folder. FileExistsError: the new name is taken. False: it cannot be done
    here (the kernel, the file system or the C library does not have it), and nothing happened."""
    return _rename(folder, old, new, _RENAME_NOREPLACE)


def rename_exchange(folder: int, old: str, new: str) -> bool:
    """Exchanges two names in a folder, in one step. False: it cannot be done here."""
    return _rename(folder, old, new, _RENAME_EXCHANGE)


def _rename(folder: int, old: str, new: str, flags: int) -> bool:
    try:
        import ctypes

        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, AttributeError):
        return False
    if function(folder, os.fsencode(old), folder, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_SUCH_RENAME:
        return False
    raise OSError(code, os.strerror(code))

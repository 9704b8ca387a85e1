# SPDX-License-Identifier: Apache-2.0
"""Models as bytes and file objects: `save`, `load`, and `save_file` to a file object.

They lie in a memory file of the system while they are written or read, so that what goes through a
descriptor works on them as on any file: all cores, and GPUs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from .._new_file import replaced
from ..formats.whole import write_whole


@contextmanager
def written(target: Any) -> Iterator[BinaryIO]:
    """A file to write: of the path `target`, which gets its name when it is whole; or one whose
    content goes to the file object `target` then. Raises OSError."""
    if not hasattr(target, "write"):
        with replaced(target) as file:
            yield file
        return
    with _memory_file() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, target, 1 << 20)


@contextmanager
def place_of(data: Any) -> Iterator[str]:
    """A path to what bytes, or a file object from where it stands to its end, hold. Raises
    TypeError and OSError."""
    with _memory_file() as file:
        if hasattr(data, "read"):
            while part := data.read(1 << 20):
                write_whole(file, memoryview(part))
        else:
            try:
                view = memoryview(data).cast("B")
            except TypeError:
                raise TypeError(
                    f"data is {type(data).__name__}: expected bytes or a binary file object; "
                    "load_file takes a path"
                ) from None
            write_whole(file, view)
        yield f"/proc/self/fd/{file.fileno()}"


def _memory_file() -> BinaryIO:
    return open(os.memfd_create("warpcipher"), "w+b", buffering=0)  # noqa: PTH123

# SPDX-License-Identifier: Apache-2.0
"""Where a file is written to: a path, which gets its name when all is written, or a file object."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, TypeAlias, Union

from ..formats.replaced import replaced
from ..formats.whole import Writer

Dest: TypeAlias = Union[str, "os.PathLike[str]", Writer]


@contextlib.contextmanager
def writing(dest: Dest) -> Iterator[Writer]:
    """A writer for `dest`. A path is written under another name beside it, which replaces what was
    there when all is on the disk, and vanishes on an error; an object of a URL is replaced at the
    end, or not at all. A file object stays open."""
    if not isinstance(dest, (str, os.PathLike)):
        if not hasattr(dest, "write"):
            raise TypeError(f"dest is {type(dest).__name__}: expected a path or a binary file")
        yield dest
        return
    if isinstance(dest, str) and "://" in dest:
        with _open_url(dest) as file:
            yield file
        return
    with replaced(dest) as file:
        yield file


@contextlib.contextmanager
def _open_url(url: str) -> Iterator[Any]:
    """A transaction of fsspec: closing the file alone would give a part of it the final name. The
    file system is one of its own, because a transaction takes in all that is written through it."""
    from .source import load_fsspec

    system, path = load_fsspec(url).core.url_to_fs(url, skip_instance_cache=True)
    with system.transaction, system.open(path, "wb") as file:
        yield file

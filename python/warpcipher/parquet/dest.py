# SPDX-License-Identifier: Apache-2.0
"""Where a file is written to: a path, which gets its name when all is written, or a file object."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, TypeAlias, Union

from .._new_file import replaced
from ..formats.whole import Writer
from .source import Source, identity_of, load_fsspec, without_scheme

Dest: TypeAlias = Union[str, "os.PathLike[str]", Writer]


def refuse_source(source: Source, dest: Dest | None, *, in_place: bool = False) -> None:
    """Raises ValueError where the output would take the place of the file that is read: a lost key
    would then lose the data. in_place: a path may, as it is replaced when all is written."""
    dest = without_scheme(dest)
    if in_place and isinstance(dest, (str, os.PathLike)):
        return
    if isinstance(dest, str) and "://" in dest:
        same = dest == source.url
    else:
        found = source.identity
        same = found is not None and found == _identity(dest)
    if same:
        raise ValueError(f"dest is the source, {source.name}: give another path")


def _identity(dest: Dest | None) -> tuple[int, int] | None:
    """Device and inode of what is there; None where there is nothing."""
    try:
        if isinstance(dest, (str, os.PathLike)):
            return identity_of(os.stat(dest))  # noqa: PTH116
        return identity_of(os.fstat(dest.fileno()))  # type: ignore[union-attr]
    except (OSError, AttributeError, TypeError, ValueError):
        return None


@contextlib.contextmanager
def writing(dest: Dest) -> Iterator[Writer]:
    """A writer for `dest`. A path is written under another name beside it, which replaces what was
    there when all is on the disk, and vanishes on an error; an object of a URL is replaced at the
    end, or not at all. A file object stays open."""
    dest = without_scheme(dest)
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
    system, path = load_fsspec(url).core.url_to_fs(url, skip_instance_cache=True)
    with system.transaction, system.open(path, "wb") as file:
        yield file

# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH100, PTH116, PTH118, PTH120
"""Names of the files that belong to an encrypted tree itself: all that a run over single files
needs to know of trees."""

from __future__ import annotations

import contextlib
import os
import re

from ._types import PathLike

NAME = "MANIFEST.warpcipher"
JOURNAL = "MANIFEST.warpcipher.unfinished"
"""The finished part of an encryption that has not ended; of the form of a manifest."""
_PART = re.compile(re.escape(NAME) + r"\.[0-9a-f]{32}\.\d{6,}")
"""A part of the manifest of a tree with many files."""
HEAD_SIZE = 128
"""Bytes of an encrypted file whose hash is in the manifest."""
DEEPEST = 16
"""Folders of a path that are tried as a tree's."""


def is_part(name: str) -> bool:
    """Whether a file of a tree is a part of a manifest."""
    return _PART.fullmatch(name) is not None


def is_own(name: str) -> bool:
    """Whether a name in an encrypted tree is the manifest's or of a part of it, a journal's, or of
    an output which a run that was killed left."""
    last = name.rpartition("/")[2]
    return (
        is_part(name)
        or name in (NAME, JOURNAL)
        or last.startswith(".warpcipher-journal")
        or (last.startswith(".warpcipher-") and last.endswith(".part"))
    )


def root_above(path: PathLike) -> str | None:
    """The nearest folder above that has a manifest, of who owns the folder or may do all anyway:
    where many may write, as in /tmp, nobody makes files of others part of a tree."""
    folder = os.path.dirname(os.path.abspath(path))
    while True:
        with contextlib.suppress(OSError):
            owner = os.lstat(os.path.join(folder, NAME)).st_uid
            if owner in (0, os.geteuid(), os.stat(folder).st_uid):
                return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def require_no_tree(path: PathLike) -> None:
    """Raises ValueError for a path in a tree that has a manifest: a file that is replaced there
    would not be the one that the manifest lists."""
    if (root := root_above(path)) is not None:
        raise ValueError(in_a_tree(os.fspath(path), root))


def in_a_tree(path: str, root: str) -> str:
    """Why a file is not replaced."""
    return (
        f"{path} is part of the tree {root}, whose manifest lists it as it is: `warpcipher rekey "
        "-o NEW` makes a tree with other keys; or name an output elsewhere"
    )


def names_of(path: PathLike, extension: str) -> list[str]:
    """The names that a file may have in trees that its path still shows: the name of its own tree,
    if that has a manifest; else `c`, `b/c`, `a/b/c`."""
    path = os.path.abspath(path).removesuffix(extension)
    root = root_above(path)
    if root is not None:
        return [os.path.relpath(path, root)]
    parts = path.split("/")[1:]
    return ["/".join(parts[-count:]) for count in range(1, min(len(parts), DEEPEST) + 1)]

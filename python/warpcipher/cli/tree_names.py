# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH100, PTH118, PTH120
"""Names of the files that an encrypted tree has of its own: all that a run over single files needs
to know of trees."""

from __future__ import annotations

import os

NAME = "MANIFEST.warpcipher"
JOURNAL = "MANIFEST.warpcipher.unfinished"
"""What an encryption that has not ended has done; of the form of a manifest."""
HEAD_SIZE = 128
"""Bytes of an encrypted file whose hash is in the manifest."""


def is_own(name: str) -> bool:
    """Whether a name in an encrypted tree is the manifest's, the journal's, or that of an output
    which a run that was killed left."""
    last = name.rpartition("/")[2]
    return name in (NAME, JOURNAL) or (last.startswith(".warpcipher-") and last.endswith(".part"))


def root_above(path: str) -> str | None:
    """The nearest folder above that has a manifest."""
    folder = os.path.dirname(os.path.abspath(path))
    while True:
        if os.path.lexists(os.path.join(folder, NAME)):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above

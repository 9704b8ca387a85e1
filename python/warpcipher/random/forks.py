# SPDX-License-Identifier: Apache-2.0
"""Which process this is: a child of a fork must notice that it is one before it draws anything.

Its number alone would not do: the child of a child can get the number of its grandparent once that
one is gone. The count alone would not either: a fork that C code makes runs no Python handler.
"""

from __future__ import annotations

import os

_forks = 0


def _count() -> None:
    global _forks
    _forks += 1


# Only in the child, and with nothing to undo: it may run without the handlers of the beginning.
os.register_at_fork(after_in_child=_count)


def process() -> tuple[int, int]:
    """A value that differs between a process and the children that fork from it."""
    return os.getpid(), _forks

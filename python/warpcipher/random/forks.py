# SPDX-License-Identifier: Apache-2.0
"""Which process this is: a child of a fork must notice that it is one before it draws anything.

Its number alone would not do: the child of a child can get the number of its grandparent once that
one is gone. A count of forks alone would not either: it misses a child that C code makes without
fork(), by clone(2).
"""

from __future__ import annotations

from .. import _native

process = _native.random_process
"""process() -> int: a value that differs between a process and the children that fork from it."""

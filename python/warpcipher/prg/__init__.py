# SPDX-License-Identifier: Apache-2.0
"""Pseudorandom generators for private computation: seeds of 16 bytes to their children, trees of
them, and distributed point functions. docs/guides/private-computation.md has the definitions.

    from warpcipher import prg

    prg.expand(seeds)                                   # two children of each seed
    prg.tree(roots, 20)                                 # the 2^20 leaves of each root
    mine, theirs = prg.dpf.generate([3], bits=20)       # keys of a point function, for two servers
    prg.dpf.answer(mine, table)                         # private information retrieval
"""

from __future__ import annotations

from . import dpf
from .generators import expand, tree

__all__ = ["dpf", "expand", "tree"]

# SPDX-License-Identifier: Apache-2.0
"""Known-plaintext key search; docs/search.md is its manual.

template    the known part of a key
candidates  scores of a side-channel measurement
pairs       plaintext and ciphertext, as pairs of blocks
ranges      which key numbers are done
pace        how far a search has come, and whether its rate has fallen
session     checkpoints
devices     searchers, self-tests, rates; the workers of this machine
run         the search; warpcipher.cluster has the workers of a Ray cluster
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..arguments import view_bytes
from .candidates import Scores, candidates_from_scores, parse_candidates
from .devices import SearcherInfo, searchers
from .pace import Estimate, Lately, Progress
from .pairs import Algorithm, Pair, Test
from .run import Search
from .session import CheckpointError
from .template import Candidates, Template

__all__ = [
    "Candidates", "CheckpointError", "Estimate", "Lately", "Pair", "Progress", "Scores", "Search",
    "SearcherInfo", "Template", "candidates_from_scores", "parse_candidates", "search", "searchers",
    "verify",
]  # fmt: skip


search = Search
"""The name by which `warpcipher` offers it."""


def verify(algorithm: str, pairs: Iterable[Pair | Sequence[bytes]], key: bytes) -> bool:
    """Whether a key turns every pair right. Parity bits of DES keys are ignored.

    >>> import warpcipher as wc
    >>> block = wc.Cipher("des-ecb", b"8 bytes!").encrypt(b"8 bytes.")
    >>> wc.keysearch.verify("des-ecb", [(b"8 bytes.", block)], b"8 bytes!")
    True
    """
    return Test(Algorithm.named(algorithm), pairs).native.passes(view_bytes("key", key))

# SPDX-License-Identifier: Apache-2.0
"""Known-plaintext key search; docs/search.md is its manual.

template    the known part of a key
candidates  scores of a side-channel measurement
pairs       plaintext and ciphertext, as pairs of blocks
ranges      which key numbers are done
pace        how far a search has come, and whether its rate has fallen
arguments   checks of arguments
session     checkpoints
devices     searchers, self-tests, rates; the workers of this machine
run         the search; warpcipher.cluster has the workers of a Ray cluster
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .candidates import Scores, candidates_from_scores, parse_candidates
from .devices import SearcherInfo, searchers
from .pace import Estimate, Lately, Progress
from .pairs import Algorithm, Pair, Test
from .run import Search
from .session import CheckpointError
from .template import Candidates, Template

__all__ = [
    "Candidates",
    "CheckpointError",
    "Estimate",
    "Lately",
    "Pair",
    "Progress",
    "Scores",
    "Search",
    "SearcherInfo",
    "Template",
    "candidates_from_scores",
    "parse_candidates",
    "search",
    "searchers",
    "verify",
]


def search(
    algorithm: str,
    pairs: Iterable[Pair | Sequence[bytes]],
    template: Template | str | None = None,
    *,
    key_mask: bytes | None = None,
    candidates: Candidates | None = None,
    start: int = 0,
    count: int | None = None,
    shard: tuple[int, int] | None = None,
    find_all: bool = False,
    engine: str = "auto",
    devices: Sequence[int] | None = None,
    checkpoint: str | None = None,
    cluster: str | None = None,
    interval: float = 0.5,
) -> Search:
    """A search for the key under which the pairs belong together; iterate over it to run it.

    algorithm:  "aes-128-ecb", or another cipher of `warpcipher.algorithms()` in ECB, CBC, CFB, OFB
                or CTR.
    pairs:      `Pair`s, or tuples (plaintext, ciphertext[, iv[, mask]]).
    template:   the known part of the key; None: nothing. key_mask, candidates: see `Template`.
    start, count, shard: the part of the keys, by number, that is searched: `count` from `start` on,
                and of these the part (i, n), i from 1 to n. Numbers depend only on the template.
    find_all:   go on after the first key.
    engine:     "auto", or a name of `searchers()`; devices: some of its devices, by number.
    checkpoint: a file that records the tested ranges; a search whose file exists goes on there.
    cluster:    the address of a Ray cluster whose nodes search; "auto": this machine's. They see
                template and pairs.
    interval:   seconds between two reports of progress.

    Raises ValueError for wrong arguments, CheckpointError (a ValueError) for a checkpoint that
    is damaged, in use or another search's, EngineError where a device cannot run or fails its
    self-test.

    >>> import warpcipher as wc
    >>> key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    >>> sealed = wc.Cipher("aes-128-ctr", key).encrypt(b"attack at dawn", iv=bytes(16))
    >>> pair = b"attack at dawn", sealed, bytes(16)
    >>> wc.search("aes-128-ctr", [pair], key.hex()[:-1] + "?", engine="cpu").run() == [key]
    True
    """
    return Search(
        algorithm,
        pairs,
        template,
        key_mask=key_mask,
        candidates=candidates,
        start=start,
        count=count,
        shard=shard,
        find_all=find_all,
        engine=engine,
        devices=devices,
        checkpoint=checkpoint,
        cluster=cluster,
        interval=interval,
    )


def verify(algorithm: str, pairs: Iterable[Pair | Sequence[bytes]], key: bytes) -> bool:
    """Whether a key turns every pair right. Parity bits of DES keys are ignored.

    >>> import warpcipher as wc
    >>> block = wc.Cipher("des-ecb", b"8 bytes!").encrypt(b"8 bytes.")
    >>> wc.keysearch.verify("des-ecb", [(b"8 bytes.", block)], b"8 bytes!")
    True
    """
    return Test(Algorithm.named(algorithm), pairs).native.passes(key)

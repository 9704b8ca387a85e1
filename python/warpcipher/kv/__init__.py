# SPDX-License-Identifier: Apache-2.0
"""KV caches of language model servers, encrypted before they leave for other memory.

    from warpcipher import kv

    vault = kv.Vault(key)                                        # bytes, or a source of wc.keys
    who = kv.Identity("tenant", "model", hashes=[...])           # a hash for each block
    sealed = vault.seal(layers, ids, identity=who)               # blocks of these numbers
    misses = vault.open(sealed, layers, free_ids, identity=who)  # [] where all are there

`warpcipher.kv.lmcache` is the serde for LMCache; it needs that package, and loads only when it is
imported. docs/guides/llm.md says what this protects, and what not.
"""

from __future__ import annotations

from .blocks import Blocks
from .vault import Identity, Vault

__all__ = ["Blocks", "Identity", "Vault"]

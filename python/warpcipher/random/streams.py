# SPDX-License-Identifier: Apache-2.0
"""Streams of a key, and keys derived from one.

A stream is 2^56 bytes. Its blocks are numbered by 64 bits; the upper two bits are a domain, and the
domain 11 is this file's: blocks of it are keys, and belong to no array.

    block n of chacha20     RFC 8439: counter n mod 2^32, nonce LE32(n >> 32) || LE64(stream)
    block n of aes-256-ctr  AES-256(key, BE64(stream) || BE64(n))
"""

from __future__ import annotations

from .._native import Key, PlainCipher
from .._types import Buffer

STREAM_SIZE = 1 << 56
"""Bytes of a stream."""

ARRAY_START = 64
"""Arrays begin at multiples of this: elements may share a block, arrays may not."""

KEY_DOMAIN = 3 << 62
DISCRETE = 1 << 60
"""The number of the key of `discrete_gaussian_` and `discrete_laplace_`; those below are keys of
spawned generators."""

SEEDS = DISCRETE + 1
"""Of the key of the words that `BitGenerator.seed_seq` gives."""


def child_key(algorithm: str, key: Buffer, stream: int, index: int) -> bytearray:
    """Key number `index` (below 2^61) of a key's stream: 32 bytes."""
    out = bytearray(32)
    if algorithm == "chacha20":
        iv = (KEY_DOMAIN + index).to_bytes(8, "little") + stream.to_bytes(8, "little")
    else:
        iv = stream.to_bytes(8, "big") + (KEY_DOMAIN + 2 * index).to_bytes(8, "big")
    PlainCipher(Key(algorithm, key), False, "auto").encrypt(bytes(32), out, iv, None, 16)
    return out

# SPDX-License-Identifier: Apache-2.0
"""The generators of `warpcipher.prg` by pyca/cryptography and by plain Python."""

from __future__ import annotations

import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

# bytes.fromhex(sha256(b"DistributedPointFunction::kPrgKeyLeft\n")[:32]) reversed, and so on.
FIXED_KEYS = [
    "fda2b6a5d0085f93e53da0f6cc37e05b",
    "0b4d6ff6e01feae26c02bbdeaeb694ef",
    "981c1db20111a346e323548c58d1a505",
    "b88eae17d2caa069fe5558efa1bda9cc",
]


def aes(key: bytes, block: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)  # noqa: S305


def xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def rotated(x: int, bits: int) -> int:
    return (x << bits | x >> (32 - bits)) & 0xFFFFFFFF


def chacha(constants: bytes, key: bytes, rounds: int) -> bytes:
    state = list(struct.unpack("<16I", constants + key + bytes(16)))
    x = list(state)
    columns = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    diagonals = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for a, b, c, d in (columns + diagonals) * (rounds // 2):
        for to, other, target, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[to] = (x[to] + x[other]) & 0xFFFFFFFF
            x[target] = rotated(x[target] ^ x[to], bits)
    return struct.pack("<16I", *((s + t) & 0xFFFFFFFF for s, t in zip(state, x, strict=True)))


def children(name: str, seed: bytes, count: int) -> bytes:
    if name == "aes-128-mmo":
        turned = seed[8:] + xor(seed[:8], seed[8:])
        keys = [bytes.fromhex(key) for key in FIXED_KEYS[:count]]
        return b"".join(xor(aes(key, turned), turned) for key in keys)
    if name == "aes-128-keyed":
        return (
            Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor().update(bytes(16 * count))
        )
    if name == "aes-128-half":
        hashed = children("aes-128-mmo", seed, 4)
        return (hashed[:16] + xor(hashed[:16], seed) + hashed[32:])[: 16 * count]
    return chacha(b"expand 16-byte k", 2 * seed, int(name[6:]))[: 16 * count]

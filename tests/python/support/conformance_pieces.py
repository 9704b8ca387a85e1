# SPDX-License-Identifier: Apache-2.0
"""Long messages in chained pieces: what each piece leaves for the next one."""

from __future__ import annotations

import conformance_oracle as oracle
import warpcipher as wc
from conformance import ALGORITHMS, DIRECTIONS
from conformance_vectors import Vector
from warpcipher.formats import raw


def next_iv(algorithm: str, iv: bytes, text: bytes, data: bytes) -> bytes:
    """The IV with which the same message goes on after a piece (SP 800-38A, section 6)."""
    mode = algorithm.rsplit("-", 1)[-1]
    block = ALGORITHMS[algorithm].block_size
    if mode == "ecb":
        return b""
    if mode == "ctr":
        return ((int.from_bytes(iv, "big") + len(data) // block) % (1 << 128)).to_bytes(16, "big")
    if mode == "chacha20":
        number = int.from_bytes(iv[:4], "little") + len(data) // block
        return (number % (1 << 32)).to_bytes(4, "little") + iv[4:]
    if mode == "ofb":
        last = zip(text[-block:], data[-block:], strict=True)
        return bytes(a ^ b for a, b in last) if data else iv
    return (iv + data)[-block:]


CHAINED = tuple(name for name, info in ALGORITHMS.items() if raw.whole_limit(info) is None)


def check_pieces(engine: str, v: Vector, piece: int) -> None:
    """The message in pieces of `piece` bytes, each with the IV that the one before left."""
    cipher = wc.Cipher(v.algorithm, v.key, engine=engine)
    for direction in DIRECTIONS:
        source, target = (v.text, v.data) if direction == "encrypt" else (v.data, v.text)
        iv, result = v.iv, b""
        for start in range(0, len(source), piece):
            end = start + piece
            options = oracle.options(v.algorithm, iv, b"", 16)
            result += getattr(cipher, direction)(source[start:end], **options)
            iv = next_iv(v.algorithm, iv, v.text[start:end], v.data[start:end])
        assert result == target, f"{v.algorithm} {direction} of {v.source} in pieces of {piece}"

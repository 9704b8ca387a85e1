# SPDX-License-Identifier: Apache-2.0
"""The numbers of `warpcipher.random`, by its definition (docs/design/random.md), in NumPy over the
ciphers: the native code is compared with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from warpcipher import Cipher

BLOCK = {"chacha20": 64, "aes-256-ctr": 16}
FURTHER = 1 << 63
AGAIN = 1 << 62


def blocks(key: bytes, algorithm: str, stream: int, first: int, count: int) -> bytes:
    """Blocks of a stream by their numbers."""
    cipher = Cipher(algorithm, key)  # type: ignore[arg-type]
    out = b""
    while count:
        if algorithm == "chacha20":  # the cipher's counter has 32 bits
            part = min(count, (1 << 32) - (first & 0xFFFFFFFF))
            iv = first.to_bytes(8, "little") + stream.to_bytes(8, "little")
        else:
            part = count
            iv = stream.to_bytes(8, "big") + first.to_bytes(8, "big")
        out += cipher.encrypt(bytes(part * BLOCK[algorithm]), iv=iv)
        first += part
        count -= part
    return out


def words(key: bytes, algorithm: str, stream: int, position: int, size: int, base: int = 0) -> Any:
    """`size` bytes of a domain of a stream."""
    block = BLOCK[algorithm]
    first, last = position // block, -(-(position + size) // block)
    text = blocks(key, algorithm, stream, base + first, last - first)
    return np.frombuffer(text, np.uint8)[position - first * block :][:size].copy()


def further(key: bytes, algorithm: str, stream: int, position: int, dtype: Any) -> Any:
    """Words after the first of the element at a position, one after the other."""
    for t in range(256):
        number = FURTHER + (t << 54) + position // 4
        yield from np.frombuffer(blocks(key, algorithm, stream, number, 1), dtype).tolist()


def random_width(distribution: str, dtype: str, first: int = 0, second: int = 1) -> int:
    """Bytes of the stream that an element takes."""
    size = 1 if dtype == "bool" else int("".join(c for c in dtype if c.isdigit())) // 8
    span = second - first
    if distribution == "integers":
        if dtype != "bool" and span == 1 << 8 * size:
            return size
        return 4 if span <= 1 << 20 else 8
    if distribution in ("normal", "exponential"):
        return 8 if dtype == "float64" else 4
    if distribution == "bernoulli":
        return 4
    return size


def integers(
    key: bytes,
    algorithm: str,
    stream: int,
    position: int,
    count: int,
    dtype: str,
    low: int,
    high: int,
) -> Any:
    """Integers from low to high - 1, as Python integers in an object array."""
    width = random_width("integers", dtype, low, high)
    span, bits = high - low, 8 * width
    drawn = words(key, algorithm, stream, position, count * width).view(f"<u{width}").tolist()
    if dtype != "bool" and span == 1 << bits:
        return np.array([low + word for word in drawn], object)
    least = (1 << bits) % span
    out = []
    for i, word in enumerate(drawn):
        rest = further(key, algorithm, stream, position + i * width, f"<u{width}")
        while (word * span) % (1 << bits) < least:
            word = next(rest)
        out.append(low + (word * span >> bits))
    return np.array(out, object)


def unit(key: bytes, algorithm: str, stream: int, position: int, count: int, dtype: str) -> Any:
    """Uniform numbers on [0, 1), exact in float64."""
    width, drop, bits = {
        "float16": (2, 5, 11),
        "bfloat16": (2, 8, 8),
        "float32": (4, 8, 24),
        "float64": (8, 11, 53),
    }[dtype]
    drawn = words(key, algorithm, stream, position, count * width).view(f"<u{width}")
    return (drawn >> drop).astype(np.float64) * 2.0**-bits


def bernoulli(key: bytes, algorithm: str, stream: int, position: int, count: int, p: float) -> Any:
    """Ones and zeros."""
    threshold = round(p * 2**64) if p < 1 else 1 << 64
    drawn = words(key, algorithm, stream, position, 4 * count).view("<u4").tolist()
    out = []
    for i, word in enumerate(drawn):
        if word == threshold >> 32:
            low = next(further(key, algorithm, stream, position + 4 * i, "<u4"))
            out.append(low < (threshold & 0xFFFFFFFF))
        else:
            out.append(word < threshold >> 32)
    return np.array(out, np.uint8)


def permutation(key: bytes, algorithm: str, stream: int, position: int, count: int) -> Any:
    """The order of 64-bit words, of which no two are equal."""
    for attempt in range(1, 256):
        base = 0 if attempt == 1 else AGAIN + ((attempt - 1) << 54)
        drawn = words(key, algorithm, stream, position, 8 * count, base).view("<u8")
        if len(np.unique(drawn)) == count:
            return np.argsort(drawn)
    raise AssertionError("256 draws with equal words")


def in_a_child(work: Callable[[], bytes]) -> bytes:
    """The result of `work` in a child of a fork; the text of an exception where it raises one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                os.write(writing, work())
            except Exception as error:
                os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return data

# SPDX-License-Identifier: Apache-2.0
"""Plaintext and ciphertext that belong together, and the pairs of blocks that they come to.

Each mode is one block cipher call a block (SP 800-38A, section 6), so that a pair in a mode is
blocks of which one side is known in full and the other wholly or partly:

    ECB   P -> C                CFB   C before -> P + C        + is exclusive or,
    CBC   P + C before -> C     OFB   P + C before -> P + C    "before" starts with the IV
                                CTR   counter -> P + C

ECB and CBC with a partly known P are tested backwards, from C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .. import _native
from ..arguments import kind, require_items, require_text
from .template import CIPHERS, hash_parts

MODES = ("ecb", "cbc", "cfb", "ofb", "ctr")
MOST_BLOCKS = 1 << 16

BlockPair = tuple[bool, bytes, bytes, bytes]  # decrypt, in, expected, mask


@dataclass(frozen=True)
class Pair:
    """One message, or the beginning of one.

    plaintext:  may be shorter than the ciphertext: the rest of it is unknown then.
    ciphertext: whole blocks in ECB and CBC.
    iv:         one block; the ciphertext block before, for text from within a message. None
                in ECB; in CBC, CFB and OFB None leaves the first block out.
    mask:       as long as the plaintext: bits of one are known. None: all are.
    name:       what errors call it, such as a line of a file; "": by its number, from 0.
    """

    plaintext: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)
    iv: bytes | None = field(default=None, repr=False)
    mask: bytes | None = field(default=None, repr=False)
    name: str = field(default="", compare=False)

    @classmethod
    def from_text(cls, text: str, name: str = "") -> Pair:
        """PLAINTEXT:CIPHERTEXT[:IV] in hex; ? in the plaintext for a digit that is unknown."""
        parts = require_text("the pair", text).strip().split(":")
        if len(parts) not in (2, 3):
            raise ValueError(f"a pair is PLAINTEXT:CIPHERTEXT[:IV], got {len(parts) - 1} colons")
        digits = re.sub(r"\s", "", parts[0])
        if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F?]*", digits):
            raise ValueError("the plaintext of a pair is not an even number of hex digits and ?")
        others = [_from_hex(part) for part in parts[1:]]
        return cls(
            bytes.fromhex(digits.replace("?", "0")),
            others[0],
            others[1] if len(others) > 1 else None,
            bytes.fromhex(re.sub("[^?]", "f", digits).replace("?", "0")),
            name,
        )


@dataclass(frozen=True)
class Algorithm:
    """A cipher in a mode that keys can be searched for."""

    cipher: str
    mode: str

    @classmethod
    def named(cls, name: str) -> Algorithm:
        """From "aes-128-cbc"; just "aes-128" is ECB."""
        require_text("the algorithm", name)
        given, name = name, name.lower().replace("_", "-")
        for cipher in CIPHERS:
            if name == cipher:
                return cls(cipher, "ecb")
            if name.startswith(f"{cipher}-") and name[len(cipher) + 1 :] in MODES:
                return cls(cipher, name[len(cipher) + 1 :])
        raise ValueError(
            f"unknown algorithm {given!r}: expected a cipher ({', '.join(CIPHERS)}), - and a mode "
            f"({', '.join(MODES)})"
        )


class Test:
    """The test of a key: all block pairs of all pairs."""

    def __init__(self, algorithm: Algorithm, pairs: Iterable[Pair | Sequence[bytes]]) -> None:
        self.algorithm = algorithm
        self.blocks: list[BlockPair] = []
        given_pairs = require_items("pairs", pairs, "an iterable of pairs")
        for index, given in enumerate(given_pairs):
            name = (isinstance(given, Pair) and given.name) or f"pair {index}"
            try:
                self.blocks += _blocks(algorithm, _as_pair(given))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name}: {error}") from None
        if len(self.blocks) > MOST_BLOCKS:
            raise ValueError(
                f"the pairs have {len(self.blocks)} blocks, expected {MOST_BLOCKS} at most"
            )
        if not self.blocks:
            hint = "" if algorithm.mode == "ecb" else ": without its IV a pair lacks a first block"
            raise ValueError(
                f"no pair of plaintext and ciphertext has a block with a known bit{hint}"
            )
        self.native = _native.KeyTest(algorithm.cipher, self.blocks)

    @property
    def digest(self) -> str:
        """SHA-256 over the block pairs."""
        rows = (bytes([row[0]]) + b"".join(row[1:]) for row in self.blocks)
        return hash_parts(b"warpcipher pairs 1", [self.algorithm.cipher.encode(), *rows])


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueError("a pair is not in hex digits") from None


def _as_pair(given: object) -> Pair:
    """A pair whose fields are bytes-like. TypeError for a field that is not."""
    if not isinstance(given, Pair | tuple | list):
        raise TypeError(
            f"it is {kind(given)}: expected a Pair or (plaintext, ciphertext[, iv[, mask]])"
        )
    if not isinstance(given, Pair) and not 2 <= len(given) <= 4:
        raise TypeError(f"it has {len(given)} fields, not (plaintext, ciphertext[, iv[, mask]])")
    pair = given if isinstance(given, Pair) else Pair(*given)
    for name in ("plaintext", "ciphertext", "iv", "mask"):
        value = getattr(pair, name)
        if value is None and name in ("iv", "mask"):
            continue
        _native.check_bytes(value, f"its {name}")
    return pair


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def _blocks(algorithm: Algorithm, pair: Pair) -> list[BlockPair]:
    size = CIPHERS[algorithm.cipher][1]
    mode = algorithm.mode
    plaintext, ciphertext = bytes(pair.plaintext), bytes(pair.ciphertext)
    iv = None if pair.iv is None else bytes(pair.iv)
    mask = b"\xff" * len(plaintext) if pair.mask is None else bytes(pair.mask)
    if len(mask) != len(plaintext):
        raise ValueError(f"the mask has {len(mask)} bytes, the plaintext {len(plaintext)}")
    if len(plaintext) > len(ciphertext):
        raise ValueError(
            f"the plaintext has {len(plaintext)} bytes, more than the {len(ciphertext)} of the "
            "ciphertext"
        )
    if mode in ("ecb", "cbc") and len(ciphertext) % size:
        raise ValueError(f"the ciphertext has {len(ciphertext)} bytes, not a multiple of {size}")
    if iv is not None and (mode == "ecb" or len(iv) != size):
        expected = "ECB takes none" if mode == "ecb" else f"expected {size}"
        raise ValueError(f"the IV has {len(iv)} bytes: {expected}")
    if iv is None and mode == "ctr":
        raise ValueError(f"CTR needs the IV: the first counter, {size} bytes")
    found: list[BlockPair] = []
    before = iv
    for at in range(0, len(plaintext), size):
        c = ciphertext[at : at + size]
        m = mask[at : at + size].ljust(size, b"\0")
        p = plaintext[at : at + size].ljust(size, b"\0")
        stream = _xor(p, c.ljust(size, b"\0"))
        if any(m):
            found += _block(mode, p, c, m, stream, before)
        if mode == "ctr" and before is not None:
            counter = int.from_bytes(before, "big") + 1
            before = (counter % (1 << 8 * size)).to_bytes(size, "big")
        elif mode == "ofb":
            before = stream if all(byte == 0xFF for byte in m) else None
        else:
            before = c
    return found


def _block(
    mode: str, p: bytes, c: bytes, m: bytes, stream: bytes, before: bytes | None
) -> list[BlockPair]:
    full = all(byte == 0xFF for byte in m)
    if mode == "ecb":
        return [(False, p, c, m) if full else (True, c, p, m)]
    if before is None:
        return []
    if mode == "cbc":
        mixed = _xor(p, before)
        return [(False, mixed, c, m) if full else (True, c, mixed, m)]
    return [(False, before, stream, m)]

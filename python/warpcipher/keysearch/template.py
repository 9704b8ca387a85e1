# SPDX-License-Identifier: Apache-2.0
"""Key templates: the known part of a key, as text.

    2b7e1516????????abf7158809cf4f3c      hex digits, ? for one that is unknown
    2b7e{2}??{14}                         the byte before {n} stands n times
    [digit]{8}  [30-39,41,61-66]{16}      a set for a byte: classes, values and ranges in hex
    0b0101????...                         bit by bit

Spaces, colons and underscores between bytes are ignored.
"""

from __future__ import annotations

import hashlib
import math
import re
import string
from collections.abc import Iterable, Mapping

from .. import _native
from ..arguments import kind, require_int, require_items, require_text, view_bytes

CIPHERS = {name: (key_size, block_size) for name, key_size, block_size in _native.ciphers()}

CLASSES = {
    "digit": string.digits,
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "alpha": string.ascii_letters,
    "alnum": string.ascii_letters + string.digits,
    "hexdigit": string.digits + "abcdef",
    "print": "".join(map(chr, range(0x20, 0x7F))),
}

_TOKEN = re.compile(
    r"(?:\[(?P<set>[^\[\]]*)\]|(?P<byte>[0-9a-fA-F?]{2}))(?:\{(?P<times>\d{1,3})\})?"
)
_RANGE = re.compile(r"([0-9a-fA-F]{2})-([0-9a-fA-F]{2})")
_BITS = re.compile(r"[01?]+")
_MASK = re.compile(r"\?[dluahHsb]")

Candidates = Mapping[int, Mapping[int, int] | Iterable[int]]


class Template:
    """The keys of a cipher that fit the known part.

    text:       as at the top of this file; None when nothing is known.
    mask:       one byte for each of the key: bits of one are known, others unknown, whatever text
                has there.
    candidates: for some bytes (by position from 0) the values that they may have: a mapping from
                value to cost, 0 to 255, or just values, which all cost 0. Keys are searched by the
                sum of their costs, the least first. The text's value for such a byte does not
                count.

    Raises ValueError where these make no template, TypeError for arguments of other types; the text
    names positions, never known bytes.
    """

    def __init__(
        self,
        cipher: str,
        text: str | None = None,
        *,
        mask: bytes | None = None,
        candidates: Candidates | None = None,
    ) -> None:
        if text is not None:
            require_text("the template", text)
        if require_text("the cipher", cipher) not in CIPHERS:
            raise ValueError(f"unknown cipher {cipher!r}: expected one of {', '.join(CIPHERS)}")
        self.cipher = cipher
        self.key_size = CIPHERS[cipher][0]
        used = 0xFF if cipher.startswith("aes") else 0xFE  # without the parity bit
        value, known, sets = _parse(text if text is not None else f"??{{{self.key_size}}}")
        if len(value) != self.key_size:
            raise ValueError(
                f"the template has {len(value)} bytes: a key of {cipher} has {self.key_size}"
                f"{_mask_hint(text or '')}"
            )
        if mask is not None:
            mask = bytes(view_bytes("the key mask", mask))
            if len(mask) != self.key_size:
                raise ValueError(
                    f"the key mask has {len(mask)} bytes: a key of {cipher} has {self.key_size}"
                )
            known = bytearray(a & b for a, b in zip(known, mask, strict=True))
        lists: dict[int, dict[int, int]] = {}
        for position, values in sets.items():
            if mask is not None and mask[position] != 0xFF:
                raise ValueError(f"byte {position} has a set, and a mask that does not know it all")
            if not _as_bits(position, values, used, value, known):
                lists[position] = dict.fromkeys(sorted(values), 0)
        if candidates is not None and not isinstance(candidates, Mapping):
            raise TypeError(
                f"the candidates are {kind(candidates)}: expected a mapping from bytes, by "
                "position, to their values"
            )
        for given_position, given in (candidates or {}).items():
            position = require_int("the position of a byte with candidates", given_position)
            lists[position] = _costs(position, given, self.key_size)
        self._lists = tuple((at, tuple(lists[at].items())) for at in sorted(lists))
        for position in lists:
            known[position] = 0
        self._value = bytes(a & b & used for a, b in zip(value, known, strict=True))
        self._known = bytes(byte & used for byte in known)
        self.space = _native.KeySpace(*self.parts)

    @property
    def parts(
        self,
    ) -> tuple[str, bytes, bytes, tuple[tuple[int, tuple[tuple[int, int], ...]], ...]]:
        """Arguments that make the same key space elsewhere, with the known part of the key."""
        return self.cipher, self._value, self._known, self._lists

    @property
    def keys(self) -> int:
        """How many keys fit. DES keys are counted without their parity bits."""
        return self.space.size

    @property
    def digest(self) -> str:
        """SHA-256 over all that decides which number a key has."""
        parts = [self.cipher.encode(), self._known, self._value]
        for position, candidates in self._lists:
            parts.append(bytes([position, len(candidates) - 1]))
            parts.append(b"".join(bytes(candidate) for candidate in candidates))
        return hash_parts(b"warpcipher key template 1", parts)

    def __repr__(self) -> str:
        return f"<Template {self.cipher}: 2^{self.space.log2_size:.4g} keys>"


def hash_parts(label: bytes, parts: Iterable[bytes]) -> str:
    """SHA-256 in hex over a label and parts, each with its length."""
    digest = hashlib.sha256(label)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def show_count(count: int) -> str:
    """A number of keys for people: 16777216 (2^24)."""
    power = math.log2(count) if count else 0.0
    exponent = f"2^{power:.2f}".rstrip("0").rstrip(".")
    return f"{count} ({exponent})" if count < 10**18 else exponent


def is_mask(text: str) -> bool:
    """Whether a template that can be read may be meant as a mask of hashcat's: its `?d` are an
    unknown digit and the digit d here. True where two bytes or more are `?d`, `?a` or `?b`, and no
    other is known by half."""
    halves = [
        token["byte"]
        for token in _TOKEN.finditer(re.sub(r"[\s:_]", "", text))
        for _ in range(int(token["times"] or 1))
        if token["byte"] and token["byte"].count("?") == 1
    ]
    return len(halves) > 1 and {"?d", "?a", "?b"}.issuperset(halves)


def _mask_hint(text: str) -> str:
    """The template for a mask of hashcat's, if a text that is not a template looks like one. The
    same whatever the text: it may hold a part of a key."""
    hint = "; for hashcat's ?d ?l ?u ?a ?b write [digit] [lower] [upper] [print] ??"
    return hint if len(_MASK.findall(text)) > 1 else ""


def _parse(text: str) -> tuple[bytearray, bytearray, dict[int, set[int]]]:
    """Value, mask of known bits, and the sets of bytes that have one."""
    compact = re.sub(r"[\s:_]", "", text)
    if compact.startswith("0b") and _BITS.fullmatch(compact[2:]) and len(compact) > 10:
        return (*_parse_bits(compact[2:]), {})
    value, known, sets = bytearray(), bytearray(), {}
    at = 0
    while at < len(compact):
        token = _TOKEN.match(compact, at)
        if token is None:
            raise ValueError(
                f"the template cannot be read at character {at + 1} (byte {len(value)}): expected "
                f"two hex digits or ?, or a set in brackets{_mask_hint(text)}"
            )
        at = token.end()
        for _ in range(int(token["times"] or 1)):
            if token["set"] is not None:
                sets[len(value)] = _parse_set(token["set"], len(value))
                value.append(0)
                known.append(0)
            else:
                digits = token["byte"]
                value.append(int(digits.replace("?", "0"), 16))
                known.append(int("".join("0" if d == "?" else "f" for d in digits), 16))
            if len(value) > 1024:
                raise ValueError("the template is longer than any key")
    return value, known, sets


def _parse_bits(bits: str) -> tuple[bytearray, bytearray]:
    if len(bits) % 8:
        raise ValueError(f"the template has {len(bits)} bits, expected a multiple of 8")
    size = len(bits) // 8
    value = int(bits.replace("?", "0"), 2)
    known = int(bits.replace("0", "1").replace("?", "0"), 2)
    return bytearray(value.to_bytes(size, "big")), bytearray(known.to_bytes(size, "big"))


def _parse_set(text: str, position: int) -> set[int]:
    values: set[int] = set()
    for item in text.split(","):
        bounds = _RANGE.fullmatch(item)
        if item in CLASSES:
            values.update(CLASSES[item].encode())
        elif bounds is not None and int(bounds[1], 16) <= int(bounds[2], 16):
            values.update(range(int(bounds[1], 16), int(bounds[2], 16) + 1))
        elif re.fullmatch("[0-9a-fA-F]{2}", item):
            values.add(int(item, 16))
        else:
            raise ValueError(
                f"the set of byte {position} has an item that is not a byte in hex (41), a range "
                f"(30-39) or a class ({', '.join(CLASSES)})"
            )
    return values


def _as_bits(
    position: int, values: set[int], used: int, value: bytearray, known: bytearray
) -> bool:
    """Known and unknown bits that say the same as a set, if there are such: they search faster
    than a list of candidates."""
    distinct = {entry & used for entry in values}
    one = next(iter(distinct))
    varying = 0
    for entry in distinct:
        varying |= entry ^ one
    if len(distinct) != 1 << varying.bit_count():
        return False
    value[position], known[position] = one, ~varying & 0xFF
    return True


def _costs(position: int, given: Mapping[int, int] | Iterable[int], size: int) -> dict[int, int]:
    what = f"the candidates of byte {position}"
    if isinstance(given, Mapping):
        items: Iterable[tuple[object, object]] = given.items()
    else:
        expected = "a mapping from value to cost, or values"
        items = ((value, 0) for value in require_items(what, given, expected))
    costs = {
        require_int(f"a value of {what}", value): require_int(f"a cost of {what}", cost)
        for value, cost in items
    }
    if not 0 <= position < size:
        raise ValueError(f"candidates of byte {position}: the key has bytes 0 to {size - 1}")
    if not costs:
        raise ValueError(f"candidates of byte {position}: there are none")
    for candidate, cost in costs.items():
        if not (0 <= candidate <= 255 and 0 <= cost <= 255):
            raise ValueError(
                f"candidates of byte {position}: values and costs are integers from 0 to 255"
            )
    return costs

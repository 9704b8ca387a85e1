# SPDX-License-Identifier: Apache-2.0
"""Bech32 (BIP 173), as age writes its keys: without the limit of 90 characters.

    prefix || "1" || data in groups of 5 bits || checksum of 30 bits

There are libraries; none of them is kept, and each is as long as this.
"""

from __future__ import annotations

from collections.abc import Iterable

_CHARACTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES = {character: value for value, character in enumerate(_CHARACTERS)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECKSUM_SIZE = 6


def _polymod(values: Iterable[int]) -> int:
    checksum = 1
    for value in values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for i, term in enumerate(_GENERATOR):
            if top >> i & 1:
                checksum ^= term
    return checksum


def _expanded(prefix: str) -> list[int]:
    return [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]


def encode(prefix: str, data: bytes) -> str:
    """The lower-case text of data with a lower-case prefix."""
    groups = _regroup(data, 8, 5, pad=True)
    rest = _polymod([*_expanded(prefix), *groups, *[0] * _CHECKSUM_SIZE]) ^ 1
    checksum = [rest >> 5 * (_CHECKSUM_SIZE - 1 - i) & 31 for i in range(_CHECKSUM_SIZE)]
    return prefix + "1" + "".join(_CHARACTERS[value] for value in (*groups, *checksum))


def decode(text: str) -> tuple[str, bytes]:
    """The prefix, in lower case, and the data. ValueError if the text is not Bech32: the error
    shows nothing of it, as it may be a secret."""
    if text not in (text.lower(), text.upper()):
        raise ValueError("upper and lower case are mixed")
    text = text.lower()
    prefix, separator, coded = text.rpartition("1")
    if not separator or not prefix:
        raise ValueError("it has no prefix")
    if not all("!" <= character <= "~" for character in prefix):
        raise ValueError("its prefix has a character that is not printable ASCII")
    if len(coded) < _CHECKSUM_SIZE:
        raise ValueError("it is too short for a checksum")
    try:
        groups = [_VALUES[character] for character in coded]
    except KeyError:
        raise ValueError("it has a character that Bech32 has not") from None
    if _polymod([*_expanded(prefix), *groups]) != 1:
        raise ValueError("its checksum does not match: a character is wrong or missing")
    return prefix, bytes(_regroup(groups[:-_CHECKSUM_SIZE], 5, 8, pad=False))


def _regroup(values: Iterable[int], before: int, after: int, *, pad: bool) -> list[int]:
    """Groups of `before` bits as groups of `after` bits."""
    bits = count = 0
    groups = []
    for value in values:
        bits = bits << before | value
        count += before
        while count >= after:
            count -= after
            groups.append(bits >> count & ((1 << after) - 1))
        bits &= (1 << count) - 1
    if pad:
        if count:
            groups.append(bits << (after - count) & ((1 << after) - 1))
    elif count >= before or bits:
        raise ValueError("it does not end at a whole byte")
    return groups

# SPDX-License-Identifier: Apache-2.0
"""Bech32 against the vectors of BIP 173, without its limit of 90 characters."""

from __future__ import annotations

import random

import pytest
from warpcipher.formats import bech32

# BIP 173, "Valid checksums", without the two whose data do not end at a byte.
VALID = [
    ("A12UEL5L", "a", b""),
    ("a12uel5l", "a", b""),
    (
        "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs",
        "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio",
        b"",
    ),
    (
        "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
        "abcdef",
        bytes.fromhex("00443214c74254b635cf84653a56d7c675be77df"),
    ),
    (
        "11qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqc8247j",
        "1",
        bytes(51),
    ),
    ("?1ezyfcl", "?", b""),
]
# BIP 173, "The following string are not valid Bech32", and why.
INVALID = [
    ("\x201nwldj5", "not printable"),
    ("\x7f1axkwrx", "not printable"),
    ("\x801eym55h", "not printable"),
    ("pzry9x0s0muk", "no prefix"),
    ("1pzry9x0s0muk", "no prefix"),
    ("x1b4n0q5v", "Bech32 has not"),
    ("li1dgmt3", "too short"),
    ("de1lg7wt\xff", "Bech32 has not"),
    ("A1G7SGD8", "checksum does not match"),
    ("10a06t8", "no prefix"),
    ("1qzzfhee", "no prefix"),
    ("a12UEL5L", "mixed"),
]


@pytest.mark.parametrize(("text", "prefix", "data"), VALID)
def test_valid(text: str, prefix: str, data: bytes) -> None:
    assert bech32.decode(text) == (prefix, data)
    assert bech32.encode(prefix, data) == text.lower()


@pytest.mark.parametrize(("text", "why"), INVALID)
def test_invalid(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        bech32.decode(text)


def test_random_data_and_every_wrong_character() -> None:
    draw = random.Random(3)
    for size in range(70):
        data = draw.randbytes(size)
        text = bech32.encode("age", data)
        assert bech32.decode(text) == bech32.decode(text.upper()) == ("age", data)
    for place in range(4, len(text)):
        wrong = "q" if text[place] != "q" else "p"
        with pytest.raises(ValueError, match="checksum"):
            bech32.decode(text[:place] + wrong + text[place + 1 :])

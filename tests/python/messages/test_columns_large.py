# SPDX-License-Identifier: Apache-2.0
"""A columnar batch of a million messages: right from end to end, and one wrong descriptor among
them refused by its number before anything is written."""

from __future__ import annotations

import os
import random
from array import array
from typing import Any

import pytest
import warpcipher as wc

COUNT = 1_000_000
SIZE = 16
SEALED = SIZE + 16
KEYS = [wc.Key("aes-128-gcm", bytes([i, 7] * 8)) for i in range(100)]
NUMBERS = b"".join(i.to_bytes(12, "little") for i in range(COUNT))


def seal_all(**change: Any) -> wc.Columns:
    arguments: dict[str, Any] = {
        "keys": KEYS,
        "key_index": array("I", range(100)) * (COUNT // 100),
        "lengths": array("Q", [SIZE]) * COUNT,
        "ivs": NUMBERS,
        "engine": "cpu",
        **change,
    }
    return wc.run_columns("aes-128-gcm", "encrypt", data=bytes(SIZE * COUNT), **arguments)


pytestmark = pytest.mark.skipif(
    not any(info.name == "cpu" and info.usable for info in wc.engines()), reason="no engine 'cpu'"
)


def test_a_million_messages() -> None:
    text = os.urandom(SIZE * COUNT)
    arguments: dict[str, Any] = {
        "keys": KEYS,
        "key_index": array("I", range(100)) * (COUNT // 100),
        "ivs": NUMBERS,
        "engine": "cpu",
    }
    sealed = wc.run_columns(
        "aes-128-gcm", "encrypt", data=text, lengths=array("Q", [SIZE]) * COUNT, **arguments
    ).raise_for_status()
    assert sealed.written == memoryview(array("Q", [SEALED]) * COUNT)
    for i in random.sample(range(COUNT), 200):
        sealer = wc.aead.AESGCM(bytes([i % 100, 7] * 8))
        expected = sealer.encrypt(
            NUMBERS[12 * i : 12 * i + 12], text[SIZE * i : SIZE * i + SIZE], None
        )
        assert sealed.out[SEALED * i : SEALED * i + SEALED] == expected
    bad = random.sample(range(COUNT), 3)
    for i in bad:
        sealed.out[SEALED * i + SEALED - 1] ^= 1
    opened = wc.run_columns(
        "aes-128-gcm", "decrypt", data=sealed.out, lengths=sealed.written, **arguments
    )
    assert [i for i, status in enumerate(opened.status) if status] == sorted(bad)
    for i in bad:
        assert opened.out[SIZE * i : SIZE * i + SIZE] == bytes(SIZE)
    expected_text = bytearray(text)
    for i in bad:
        expected_text[SIZE * i : SIZE * i + SIZE] = bytes(SIZE)
    assert opened.out == expected_text


def test_the_one_that_is_wrong_is_named() -> None:
    at = random.randrange(1, COUNT)
    out = bytearray(SEALED * COUNT)
    offsets = array("Q", range(0, SEALED * COUNT, SEALED))

    def changed(column: array[int], value: int) -> array[int]:
        column = column[:]
        column[at] = value
        return column

    lengths, keys = array("Q", [SIZE]) * COUNT, array("I", [0]) * COUNT
    for change, text in (
        ({"key_index": changed(keys, 100)}, f"message {at}: key index 100"),
        ({"offsets": changed(array("Q", [0]) * COUNT, SIZE * COUNT)}, f"message {at}: in range"),
        ({"lengths": changed(lengths, (1 << 62) - 1)}, f"message {at}: in range"),
        ({"out_offsets": changed(offsets, SEALED * COUNT)}, f"message {at}: out range"),
        ({"out_offsets": changed(offsets, offsets[at - 1] + 1)}, f"message ({at}|{at - 1}) writes"),
        ({"ivs": NUMBERS[: 12 * at] + NUMBERS[:12] + NUMBERS[12 * at + 12 :], "keys": KEYS[0],
          "key_index": None}, f"messages 0 and {at} encrypt"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            seal_all(out=out, **change)
    assert not any(out)

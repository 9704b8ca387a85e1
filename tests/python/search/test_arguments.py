# SPDX-License-Identifier: Apache-2.0
"""Key search: arguments of a wrong type or size are named at once, and what they should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import warpcipher as wc
from warpcipher.keysearch import Pair, Template, candidates_from_scores, parse_candidates
from warpcipher.keysearch.ranges import select

POINTERS = np.array([object(), object()])
"""16 bytes, as a block has, but they are addresses."""
PAIR = Pair(bytes(16), wc.Cipher("aes-128-ecb", bytes(16)).encrypt(bytes(16)))


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        ({"shard": (1.5, 3)}, TypeError, "a number of the shard is float: expected an int"),
        ({"shard": (1, "3")}, TypeError, "a number of the shard is str: expected an int"),
        ({"shard": (1, 2, 3)}, TypeError, "the shard is tuple: expected two ints"),
        ({"shard": 5}, TypeError, "the shard is int: expected two ints"),
        ({"shard": "1/3"}, TypeError, "the shard is str: expected two ints"),
        ({"start": 1.0}, TypeError, "start is float: expected an int"),
        ({"count": "7"}, TypeError, "count is str: expected an int"),
        ({"devices": 0}, TypeError, "devices is int: expected numbers of devices"),
        ({"devices": [0.0]}, TypeError, "the number of a device is float: expected an int"),
        ({"interval": "1"}, TypeError, "interval is str: expected a number of seconds"),
        ({"interval": float("nan")}, ValueError, "interval is nan: expected .* 0 or more"),
        ({"interval": float("inf")}, ValueError, "interval is inf: expected .* 0 or more"),
        ({"interval": 10**400}, ValueError, "interval is an integer too large for a float"),
        ({"interval": -1}, ValueError, "interval is -1: expected .* 0 or more"),
        ({"checkpoint": 5}, TypeError, "int"),
        ({"checkpoint": b"c"}, TypeError, "the checkpoint is bytes: expected a path as text"),
        ({"key_mask": 5}, TypeError, "the key mask is int: expected bytes-like"),
        ({"key_mask": "ff" * 16}, TypeError, "the key mask is str: expected bytes-like"),
        ({"key_mask": POINTERS}, TypeError, "the key mask holds Python objects"),
        ({"pairs": [(POINTERS, bytes(16))]}, TypeError, "its plaintext holds Python objects"),
        ({"pairs": [(bytes(16), POINTERS)]}, TypeError, "its ciphertext holds Python objects"),
        ({"pairs": [(bytes(16), "text")]}, TypeError, "its ciphertext is str: expected bytes-like"),
        ({"candidates": 5}, TypeError, "the candidates are int: expected a mapping"),
        ({"template": 5}, TypeError, "the template is int: expected a str"),
        ({"algorithm": 5}, TypeError, "the algorithm is int: expected a str"),
        ({"pairs": 5}, TypeError, "pairs is int: expected an iterable of pairs"),
        ({"pairs": PAIR}, TypeError, "pairs is Pair: expected an iterable of pairs"),
    ],
)
def test_search_refuses(options: Any, error: type[Exception], expected: str) -> None:
    given = {"algorithm": "aes-128", "pairs": [PAIR], "template": "00{15}??", **options}
    with pytest.raises(error, match=expected):
        wc.search(given.pop("algorithm"), given.pop("pairs"), **given)


@pytest.mark.parametrize(
    ("candidates", "error", "expected"),
    [
        (5, TypeError, "the candidates are int: expected a mapping"),
        ([1, 2], TypeError, "the candidates are list: expected a mapping"),
        ({"3": [1]}, TypeError, "position of a byte with candidates is str: expected an int"),
        ({3.0: [1]}, TypeError, "position of a byte with candidates is float: expected an int"),
        ({3: 5}, TypeError, "candidates of byte 3 is int: expected a mapping from value to cost"),
        ({3: "ab"}, TypeError, "candidates of byte 3 is str: expected a mapping"),
        ({3: [1.5]}, TypeError, "value of the candidates of byte 3 is float: expected an int"),
        ({3: [[1]]}, TypeError, "value of the candidates of byte 3 is list: expected an int"),
        ({3: {1: 0.5}}, TypeError, "cost of the candidates of byte 3 is float: expected an int"),
        ({3: {1: None}}, TypeError, "cost of the candidates of byte 3 is NoneType"),
        ({16: [1]}, ValueError, "candidates of byte 16: the key has bytes 0 to 15"),
        ({3: []}, ValueError, "candidates of byte 3: there are none"),
        ({3: [256]}, ValueError, "integers from 0 to 255"),
        ({3: {1: -1}}, ValueError, "integers from 0 to 255"),
    ],
)
def test_template_refuses_candidates(
    candidates: Any, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        Template("aes-128", candidates=candidates)


def test_template_refuses_a_cipher_that_is_no_text() -> None:
    for cipher in (5, None, ["aes-128"]):
        with pytest.raises(TypeError, match=r"the cipher is .*: expected a str"):
            Template(cipher)  # type: ignore[arg-type]


def test_integers_of_numpy_are_integers() -> None:
    by_list = Template("aes-128", "00{16}", candidates={3: [1, 2]})
    by_array = Template("aes-128", "00{16}", candidates={np.int64(3): np.array([1, 2], np.uint8)})
    assert by_array.digest == by_list.digest
    start, end = select(1 << 100, np.int64(5), np.int64(1 << 62), (np.int8(1), np.int8(100)))
    assert (start, end) == (5, 5 + (1 << 62) // 100)
    assert candidates_from_scores({0: np.arange(256.0)}, keep=np.int32(1)) == {0: {255: 0}}


@pytest.mark.parametrize(
    ("scores", "keep", "error", "expected"),
    [
        (5, 1, TypeError, "the scores are int: expected a mapping"),
        ({0: 5}, 1, TypeError, "the scores of byte 0 is int: expected 256 of them or a mapping"),
        ({"0": {1: 1}}, 1, TypeError, "the position of a byte with scores is str"),
        ({0: {"1": 1}}, 1, TypeError, "a value with one of the scores of byte 0 is str"),
        ({0: {1: None}}, 1, TypeError, "a score of byte 0 is NoneType: expected a number"),
        ({0: {1: "x"}}, 1, ValueError, "byte 0 has a score that is not a finite number"),
        ({0: {1: 10**400}}, 1, ValueError, "byte 0 has a score that is not a finite number"),
        ({0: {1: 1e308, 2: -1e308}}, 2, ValueError, "scores too far apart"),
        ({0: {1: 1}}, 1.5, TypeError, "keep is float: expected an int"),
        ({0: {1: 1}}, "1", TypeError, "keep is str: expected an int"),
    ],
)
def test_scores_are_refused(scores: Any, keep: Any, error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        candidates_from_scores(scores, keep=keep)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"1":' * 100_000, "nested too deeply"),
        ('{"3": {"16": ' + "[" * 100_000 + "]" * 100_000 + "}}", "nested too deeply"),
        ('{"3": {"16": 1' + "0" * 400 + "}}", "not a finite number"),
        ('{"3": {"16": 1' + "0" * 5000 + "}}", "not a finite number"),
        ('{"3": {"16": 1e999}}', "not a finite number"),
        ("9" * 5000, "not a JSON object"),
    ],
)
def test_json_that_is_deep_or_large_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_candidates(text)


@pytest.mark.parametrize("call", [parse_candidates, Pair.from_text])
def test_text_of_another_type_is_refused(call: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match=r"int"):
        call(5)

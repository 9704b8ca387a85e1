# SPDX-License-Identifier: Apache-2.0
"""Key templates: what text, masks and candidates with scores say about a key."""

from __future__ import annotations

import itertools
import random

import pytest
from warpcipher.keysearch import Template, candidates_from_scores, parse_candidates
from warpcipher.keysearch.template import is_mask


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("2b7e151628aed2a6abf7158809cf4f3c", 1),
        ("2b7e1516 28:ae:d2:a6_abf71588 09cf4f??", 256),
        ("2b{15}?0", 16),
        ("??{16}", 1 << 128),
        ("[digit]{2}00{14}", 100),
        ("[30-39,61,62]00{15}", 12),
        ("[00-7f]00{15}", 128),
        ("[00-ff]{16}", 1 << 128),
        ("0b" + "01?" * 42 + "11", 1 << 42),
        (None, 1 << 128),
    ],
)
def test_template_says_how_many_keys_fit(text: str | None, keys: int) -> None:
    assert Template("aes-128", text).keys == keys


def test_template_in_every_form_has_the_same_keys() -> None:
    key = bytes(range(16))
    by_hex = Template("aes-128", key.hex()[:-2] + "??")
    by_bits = Template("aes-128", "0b" + f"{int.from_bytes(key, 'big'):0128b}"[:-8] + "????????")
    by_mask = Template("aes-128", key.hex(), mask=b"\xff" * 15 + b"\0")
    by_set = Template("aes-128", key.hex()[:-2] + "[00-ff]")
    assert by_hex.digest == by_bits.digest == by_mask.digest == by_set.digest
    assert by_hex.digest != Template("aes-128", key.hex()[:-2] + "0?").digest
    assert "000102" not in repr(by_hex)


def test_des_template_ignores_parity() -> None:
    assert Template("des", "??{8}").keys == 1 << 56
    assert Template("des", "00{8}").digest == Template("des", "01{8}").digest
    assert Template("des", "[digit]00{7}").keys == 5
    template = Template("des", "00{7}?0")
    assert template.space.log2_equivalents == 8
    assert template.space.key_at(0) == b"\x01" * 8


@pytest.mark.parametrize(
    ("cipher", "text", "expected"),
    [
        ("aes-128", "00{15}", "has 15 bytes"),
        ("aes-128", "00{17}", "has 17 bytes"),
        ("aes-128", "zz{16}", "cannot be read at character 1.* in brackets$"),
        ("aes-128", "?l?l{15}", r"in brackets; for hashcat's \?d .* write \[digit\]"),
        ("des", "19?d?d?d?d?d?d", r"has 7 bytes: .*hashcat"),
        ("aes-128", "00{15}0", "cannot be read"),
        ("aes-128", "[40-30]00{15}", "a range"),
        ("aes-128", "[vowel]00{15}", "a class"),
        ("aes-128", "0b" + "01" * 31 + "0", "multiple of 8"),
        ("aes-128", "00{999}00{999}", "longer than any key"),
        ("idea", "00{16}", "unknown cipher"),
    ],
)
def test_bad_template_is_refused(cipher: str, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Template(cipher, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?d?d?d?d?d?d?d?d", True),
        ("31 39 ?d{6}", True),
        ("?a?b????????????", True),
        ("?d??????????????", False),
        ("?d?d?d?d?d?d?d?3", False),
        ("?d?dd?d?d?d?d?d?", False),
        ("[digit]{8}", False),
    ],
)
def test_mask_of_hashcat_is_noticed(text: str, expected: bool) -> None:
    Template("des", text)
    assert is_mask(text) is expected


def test_bad_masks_are_refused() -> None:
    with pytest.raises(TypeError, match="the template is bytes: expected a str"):
        Template("aes-128", b"00{16}")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="key mask has 3 bytes"):
        Template("aes-128", mask=b"abc")
    with pytest.raises(ValueError, match="byte 0 has a set, and a mask"):
        Template("aes-128", "[digit]00{15}", mask=bytes(16))


# --- scores --------------------------------------------------------------------------------------


def test_scores_become_costs_in_their_order() -> None:
    source = random.Random(4)
    scores = {
        2: [source.gauss(0, 3) for _ in range(256)],
        5: {value: source.gauss(0, 1) for value in (1, 7, 9, 200)},
    }
    candidates = candidates_from_scores(scores, keep=40)
    template = Template("aes-128", "00{16}", candidates=candidates)
    assert template.keys == 160
    order = [template.space.key_at(number) for number in range(template.keys)]
    sums = [scores[2][key[2]] + scores[5][key[5]] for key in order]
    best = max(scores[2]) + max(scores[5].values())
    assert sums[0] == best
    # Two roundings to half a step each: a later key is better by two steps at most.
    step = (max(scores[2]) - sorted(scores[2])[-40]) / 255
    assert all(later <= earlier + 2 * step for earlier, later in itertools.pairwise(sums))


def test_equal_scores_cost_nothing() -> None:
    assert candidates_from_scores({1: {5: 2.0, 6: 2.0}}) == {1: {5: 0, 6: 0}}
    assert parse_candidates('{"1": ["05", "fF"]}') == {1: {5: 0, 255: 0}}
    assert parse_candidates('{"1": {"05": -1, "06": 0}, "2": {"00": 0}}') == {
        1: {5: 255, 6: 0},
        2: {0: 0},
    }


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "[]", "{}", "1", '{"a": ["00"]}', '{"1": 5}', '{"1": []}', '{"1": {}}'),
        *(
            '{"1": ["0"]}',
            '{"1": ["+1"]}',
            '{"1": [5]}',
            '{"1": {"00": "x"}}',
            '{"1": {"00": true}}',
        ),
        *('{"1": {"00": NaN}}', '{"1": {"0a": 1, "0A": 2}}', '{"1": ["00"], "01": ["00"]}'),
    ],
)
def test_bad_candidates_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"byte|candidates"):
        parse_candidates(text)


def test_bad_scores_are_refused() -> None:
    for scores in ({1: [0.0] * 255}, {1: {}}, {1: {0: float("inf")}}):
        with pytest.raises(ValueError, match="byte 1"):
            candidates_from_scores(scores)
    with pytest.raises(ValueError, match="keep is 0"):
        candidates_from_scores({}, keep=0)

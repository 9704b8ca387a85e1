# SPDX-License-Identifier: Apache-2.0
"""Key search: pairs and ranges, and that every searcher finds what is there."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import warpcipher as wc
from warpcipher.keysearch import (
    Pair,
    Template,
    searchers,
)
from warpcipher.keysearch.pairs import MODES
from warpcipher.keysearch.ranges import RangeSet, select
from warpcipher.keysearch.template import CIPHERS

ENGINES = [entry.name for entry in searchers() if entry.usable]


def random_key(cipher: str, random_source: random.Random) -> bytes:
    """With odd parity, where the cipher has parity bits."""
    key = random_source.randbytes(CIPHERS[cipher][0])
    return key if cipher.startswith("aes") else with_parity(key)


def with_parity(key: bytes) -> bytes:
    return bytes((b & 0xFE) | (1 - (b & 0xFE).bit_count() % 2) for b in key)


def pair_of(algorithm: str, key: bytes, size: int = 32) -> Pair:
    iv_size = {a.name: a.iv_size for a in wc.algorithms()}[algorithm]
    iv = bytes(range(iv_size)) or None
    plaintext = bytes(range(100, 100 + size))
    return Pair(plaintext, wc.Cipher(algorithm, key).encrypt(plaintext, iv=iv), iv)


def hide(key: bytes, bits: list[int]) -> bytes:
    """A key mask that does not know these bits, counted from 0 at the most significant."""
    mask = bytearray(b"\xff" * len(key))
    for bit in bits:
        mask[bit // 8] &= ~(0x80 >> bit % 8)
    return bytes(mask)


# --- pairs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cipher", "mode"), list(itertools.product(CIPHERS, MODES)))
def test_right_key_passes_in_every_mode_and_a_wrong_one_does_not(cipher: str, mode: str) -> None:
    algorithm = f"{cipher}-{mode}"
    if algorithm not in {entry.name for entry in wc.algorithms()}:
        return  # nothing to encrypt with: DES has no CTR here
    key = random_key(cipher, random.Random(algorithm))
    wrong = bytes([key[0] ^ 2]) + key[1:]
    whole = pair_of(algorithm, key, 48)
    partly = Pair(whole.plaintext, whole.ciphertext, whole.iv, b"\x0f\x00\xff\x01" * 12)
    beginning = Pair(whole.plaintext[:5], whole.ciphertext, whole.iv)
    pairs = [whole, partly, beginning]
    if mode in ("cbc", "cfb", "ofb"):
        pairs[1:1] = [Pair(whole.plaintext, whole.ciphertext)]  # the first block is left out
    if mode == "ofb":
        pairs.remove(partly)  # what follows a partly known block is lost: one block of 10 bits
    for pair in pairs:
        assert wc.keysearch.verify(algorithm, [pair], key)
        assert not wc.keysearch.verify(algorithm, [pair], wrong)
    assert wc.keysearch.verify(algorithm, pairs, key)


def test_counter_carries() -> None:
    iv = b"\xff" * 16
    key = bytes(16)
    ciphertext = wc.Cipher("aes-128-ctr", key).encrypt(bytes(48), iv=iv)
    assert wc.keysearch.verify("aes-128-ctr", [(bytes(48), ciphertext, iv)], key)


@pytest.mark.parametrize(
    ("algorithm", "pair", "expected"),
    [
        ("aes-128-ecb", (b"a" * 17, b"b" * 16), "more than the 16 of"),
        ("aes-128-ecb", (b"a" * 15, b"b" * 15), "not a multiple of 16"),
        ("aes-128-ecb", (b"a" * 16, b"b" * 16, b"c" * 16), "ECB takes none"),
        ("aes-128-cbc", (b"a" * 16, b"b" * 16, b"c" * 8), "expected 16"),
        ("aes-128-cbc", (b"a" * 16, b"b" * 16), "no pair.*without its IV"),
        ("aes-128-ctr", (b"a" * 16, b"b" * 16), "CTR needs the IV"),
        ("aes-128-ecb", (b"a" * 16, b"b" * 16, None, b"x"), "mask has 1 bytes"),
        ("aes-128-ecb", (b"a" * 16, b"b" * 16, None, bytes(16)), "no pair"),
        ("aes-128-gcm", (b"a" * 16, b"b" * 16), "unknown algorithm"),
    ],
)
def test_bad_pair_is_refused(algorithm: str, pair: tuple[bytes, ...], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        wc.search(algorithm, [pair])


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ((b"a" * 16, b"b" * 16), "pair 0: it is bytes: expected a Pair or"),
        ([(b"a" * 16, b"b" * 16), (b"a",)], "pair 1: it has 1 fields"),
        ([("a" * 16, b"b" * 16)], "pair 0: its plaintext is str"),
        ([Pair(b"a" * 16, 16)], "pair 0: its ciphertext is int"),  # type: ignore[arg-type]
    ],
)
def test_pair_of_another_type_is_refused(pairs: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        wc.search("aes-128-ecb", pairs)


@pytest.mark.parametrize("text", ["00", "0:00", "xx:00", "00:xx", "00:11:22:33"])
def test_bad_text_of_a_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="pair"):
        Pair.from_text(text)


# --- ranges --------------------------------------------------------------------------------------


def test_range_set_is_a_set() -> None:
    source = random.Random(1)
    for _ in range(50):
        ranges, numbers = RangeSet(), set()
        for _ in range(source.randrange(10)):
            first = source.randrange(60)
            end = first + source.randrange(12)
            if first == end or source.random() < 0.7:
                ranges.add(first, end)
                numbers.update(range(first, end))
            else:
                ranges.remove(first, end)
                numbers.difference_update(range(first, end))
        assert {n for low, high in ranges for n in range(low, high)} == numbers
        assert ranges.count == len(numbers)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(ranges))
        gap = ranges.first_gap(5, 50)
        missing = sorted(set(range(5, 50)) - numbers)
        assert (gap[0] if gap else None) == (missing[0] if missing else None)
        assert gap is None or set(range(*gap)) <= set(missing)


def test_shards_cover_each_key_once() -> None:
    for keys, parts in ((10, 3), (1 << 200, 7), (5, 5)):
        shards = [select(keys, 0, None, (index, parts)) for index in range(1, parts + 1)]
        assert shards[0][0] == 0
        assert shards[-1][1] == keys
        assert all(a[1] == b[0] for a, b in itertools.pairwise(shards))
    assert select(10, 4, 100, None) == (4, 10)
    for bad in ((10, 10, None, None), (10, -1, None, None), (10, 0, 0, None), (10, 0, 5, (0, 2))):
        with pytest.raises(ValueError, match=r"expected|numbered"):
            select(*bad)


# --- searches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cipher", CIPHERS)
def test_key_is_found_whichever_byte_is_unknown(cipher: str, engine: str) -> None:
    source = random.Random(cipher)
    key = random_key(cipher, source)
    algorithm = f"{cipher}-ecb"
    pair = pair_of(algorithm, key)
    for byte in range(len(key)):
        text = f"{key[:byte].hex()}??{key[byte + 1 :].hex()}"
        assert wc.search(algorithm, [pair], text, engine=engine).run() == [key], byte


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cipher", CIPHERS)
def test_key_is_found_at_the_first_last_and_any_number(cipher: str, engine: str) -> None:
    source = random.Random(cipher + "numbers")
    key = random_key(cipher, source)
    step = 1 if cipher.startswith("aes") else 2
    bits = [8 * byte + bit for byte in range(len(key)) for bit in range(8 if step == 1 else 7)]
    unknown = 8 if engine == "reference" else 13
    template = Template(cipher, key.hex(), mask=hide(key, source.sample(bits, unknown)))
    assert template.keys == 1 << unknown
    numbers = {0, template.keys - 1, *(source.randrange(template.keys) for _ in range(4))}
    for number in numbers:
        planted = template.space.key_at(number)
        search = wc.search(
            f"{cipher}-ecb", [pair_of(f"{cipher}-ecb", planted)], template, engine=engine
        )
        assert search.run() == [planted]
        assert search.result == "found"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cipher", ["aes-256", "des"])
def test_nothing_unknown(cipher: str, engine: str) -> None:
    key = random_key(cipher, random.Random(0))
    pair = pair_of(f"{cipher}-ecb", key)
    assert wc.search(cipher, [pair], key.hex(), engine=engine).run() == [key]
    other = bytes([key[0] ^ 0x80]) + key[1:]
    search = wc.search(cipher, [pair], other.hex(), engine=engine)
    assert search.run() == []
    assert search.result == "exhausted"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cipher", ["aes-128", "des", "des-ede3"])
def test_every_hit_of_a_weak_test_is_found_once(cipher: str, engine: str) -> None:
    """Few known bits let wrong keys pass on purpose; the reference says which. The same range in
    shards gives the same keys."""
    key = random_key(cipher, random.Random(7))
    key = key[:2] + b"\x2a" + key[3:]
    whole = pair_of(f"{cipher}-ecb", key, 8 if cipher != "aes-128" else 16)
    weak = Pair(
        whole.plaintext, whole.ciphertext, None, b"\x3f\x01".ljust(len(whole.plaintext), b"\0")
    )
    text = f"{key[:2].hex()}[20-2b]??{key[4:].hex()}"
    expected = wc.search(cipher, [weak], text, find_all=True, engine="reference").run()
    assert len(expected) > 5
    assert key in expected
    search = wc.search(cipher, [weak], text, find_all=True, engine=engine)
    assert sorted(search.run()) == sorted(expected)
    sharded = [
        found
        for index in (1, 2, 3)
        for found in wc.search(
            cipher, [weak], text, find_all=True, engine=engine, shard=(index, 3)
        ).run()
    ]
    assert sorted(sharded) == sorted(expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_false_positives_of_the_first_pair_are_counted_and_dropped(engine: str) -> None:
    key = bytes(range(16))
    whole = pair_of("aes-128-ecb", key, 32)
    weak = [
        Pair(whole.plaintext[:16], whole.ciphertext[:16], None, b"\x1f" + bytes(15)),
        Pair(whole.plaintext[16:], whole.ciphertext[16:], None, b"\x0f\x0f" + bytes(14)),
    ]
    text = key.hex()[:-3] + "???"
    search = wc.search("aes-128", weak, text, find_all=True, engine=engine)
    keys = search.run()
    assert key in keys
    assert all(wc.keysearch.verify("aes-128", weak, found) for found in keys)


@pytest.mark.parametrize("engine", ENGINES)
def test_exhaustion_tests_each_key_exactly_once(engine: str) -> None:
    """With one known bit about half of all keys pass, and the others when it is the opposite: two
    searches report all keys, none twice."""
    template = Template("aes-128", "00{5}[00-02]?000?0" + "00{7}")
    seen: list[bytes] = []
    for bit in (0, 1):
        pair = Pair(bytes([bit]) + bytes(15), bytes(16), None, b"\x01" + bytes(15))
        seen += wc.search("aes-128", [pair], template, find_all=True, engine=engine).run()
    assert sorted(seen) == sorted(map(template.space.key_at, range(template.keys)))


def test_progress_ends_with_everything_done() -> None:
    key = bytes(range(16))
    search = wc.search(
        "aes-128",
        [pair_of("aes-128-ecb", b"x" * 16)],
        key.hex()[:-3] + "???",
        engine="reference",
        interval=0,
    )
    *before, last = list(search)
    assert last.done == last.total == 4096
    assert last.fraction == 1
    assert [p.done for p in before] == sorted(p.done for p in before)
    assert search.result == "exhausted"
    assert search.keys == []


def test_cancel_stops_and_says_so() -> None:
    search = wc.search("aes-256", [pair_of("aes-256-ecb", bytes(32))], "??{31}01", interval=0.02)
    next(search)
    search.cancel()
    *_, last = search
    assert search.result == "cancelled"
    assert last.done < last.total == 1 << 248


def test_start_and_count_restrict() -> None:
    template = Template("aes-128", "00{14}????")
    key = template.space.key_at(5000)
    pair = pair_of("aes-128-ecb", key)
    assert wc.search("aes-128", [pair], template, start=5000, count=1).run() == [key]
    assert wc.search("aes-128", [pair], template, start=4000, count=1000).run() == []
    assert wc.search("aes-128", [pair], template, start=5001, count=1000).run() == []


def test_likely_candidates_come_first() -> None:
    candidates = {3: {0x10: 5, 0x20: 0, 0x30: 9}, 9: {1: 4, 2: 0}}
    template = Template("aes-128", "00{16}", candidates=candidates)
    order = [template.space.key_at(number) for number in range(template.keys)]
    costs = [candidates[3][key[3]] + candidates[9][key[9]] for key in order]
    assert costs == sorted(costs)
    assert len(set(order)) == 6
    assert wc.search("aes-128", [pair_of("aes-128-ecb", order[4])], template).run() == [order[4]]


def test_unknown_engines_and_devices_are_refused() -> None:
    pair = pair_of("aes-128-ecb", bytes(16))
    with pytest.raises(wc.EngineError, match="unknown searcher 'abacus'"):
        wc.search("aes-128", [pair], engine="abacus")
    with pytest.raises(ValueError, match="numbered from 0"):
        wc.search("aes-128", [pair], engine="reference", devices=[7])


def test_too_little_known_is_refused() -> None:
    pair = Pair(bytes(16), bytes(16), None, b"\xff" + bytes(15))
    with pytest.raises(ValueError, match="do not determine the key"):
        wc.search("aes-128", [pair])

# SPDX-License-Identifier: Apache-2.0
"""Distributed point functions: shares that add up, keys as bytes, and answers over tables."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prg_oracle import children, xor
from warpcipher.prg import dpf
from warpcipher.prg.dpf import PRGS

ROOT = Path(__file__).resolve().parents[3]
GROUPS = ["gf2", "u32", "u64"]
DTYPES = {"gf2": np.uint8, "u32": np.uint32, "u64": np.uint64}
VALUES = {"gf2": [1], "u32": [1, 2**32 - 1, 0x12345678], "u64": [1, 2**64 - 1, 0x123456789ABCDEF0]}
ENGINES = ["cpu", "reference"]
TREES: list[Any] = ["aes-128-mmo", "aes-128-half"]


def total(group: str, a: Any, b: Any) -> Any:
    return a ^ b if group == "gf2" else a + b


def unpacked(group: str, shares: Any, bits: int) -> Any:
    """A value for each point."""
    if group != "gf2":
        return shares
    return np.unpackbits(shares, axis=1, bitorder="little")[:, : 1 << bits]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("group", GROUPS)
def test_all_points_of_small_domains(group: Any, name: Any, engine: str) -> None:
    for bits in range(10 if engine == "cpu" else 8):
        points = list(range(1 << bits))
        value = VALUES[group][-1]
        keys = dpf.generate(points, [value] * len(points), bits, group=group, prg=name)
        found = [dpf.evaluate_all(k, engine=engine) for k in keys]
        sums = unpacked(group, total(group, *found), bits)
        assert (sums == np.eye(1 << bits, dtype=DTYPES[group]) * DTYPES[group](value)).all()
        shares = [dpf.evaluate(k, points, engine=engine) for k in keys]
        for share, all_of in zip(shares, found, strict=True):
            assert (share == unpacked(group, all_of, bits)).all()
            if bits < 3 and group == "gf2":
                assert not (all_of >> (1 << bits)).any()


@pytest.mark.parametrize("name", PRGS)
@pytest.mark.parametrize("group", GROUPS)
def test_engines_are_equal(group: Any, name: Any) -> None:
    for count, bits in ((0, 5), (1, 7), (3, 9), (17, 3)):
        points = [7 * k % (1 << bits) for k in range(count)]
        keys, _ = dpf.generate(points, None, bits, group=group, prg=name)
        first, second = (dpf.evaluate_all(keys, engine=engine) for engine in ENGINES)
        assert (first == second).all()
        assert len(first) == count
        table = np.random.default_rng(1).bytes(24 * ((1 << bits) - 1))
        answers = [dpf.answer(keys, table, 24, engine=engine) for engine in ENGINES]
        assert answers[0] == answers[1]
        assert len(answers[0]) == 24 * count


@pytest.mark.parametrize("name", PRGS)
@pytest.mark.parametrize("group", GROUPS)
def test_points_of_large_domains(group: Any, name: Any) -> None:
    """More than 2^32 leaves, and the edges of blocks and subtrees."""
    for bits in (33, 47, 63):
        last = (1 << bits) - 1
        points = [0, last, (1 << 32) + 5, last // 3]
        values = [VALUES[group][k % len(VALUES[group])] for k in range(4)]
        keys = dpf.generate(points, values, bits, group=group, prg=name)
        near = np.array([[p, p ^ 1, p ^ 128, p ^ (1 << 32), p ^ (1 << (bits - 1))] for p in points])
        shares = [dpf.evaluate(k, near) for k in keys]
        sums = total(group, *shares)
        assert (sums[:, 0] == np.array(values, DTYPES[group])).all()
        assert not sums[:, 1:].any()
        assert shares[0].all(axis=1).any() or group == "gf2"  # a share is not the value
        assert (shares[0] == dpf.evaluate(keys[0], near, engine="reference")).all()


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("group", GROUPS)
def test_a_tree_deeper_than_a_thread_takes(group: Any, name: Any) -> None:
    bits = {"gf2": 23, "u32": 17, "u64": 16}[group]
    point = (1 << bits) - 12345
    mine, theirs = dpf.generate([point, 3], None, bits, group=group, prg=name)
    sums = unpacked(group, total(group, dpf.evaluate_all(mine), dpf.evaluate_all(theirs)), bits)
    assert [np.flatnonzero(row).tolist() for row in sums] == [[point], [3]]
    places = np.array([0, point, 1 << 14, (1 << bits) - 1])
    here = unpacked(group, dpf.evaluate_all(mine), bits)[:, places]
    assert (dpf.evaluate(mine, places) == here).all()


@pytest.mark.parametrize("size", [8, 16, 72, 256])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("group", GROUPS)
def test_answers(group: Any, name: Any, size: int) -> None:
    """Tables that end within the domain, at block edges, and beyond one thread's part."""
    generator = np.random.default_rng(size)
    for records in (1, 2, 127, 129, 5000):
        bits = max(1, (records - 1).bit_length())
        table = generator.integers(0, 256, (records, size), dtype=np.uint8)
        points = [0, records - 1, records // 2]
        keys = dpf.generate(points, None, bits, group=group, prg=name)
        answers = [dpf.answer(k, table) for k in keys]
        assert answers[0].dtype == DTYPES[group]
        assert answers[0].shape[0] == 3
        assert (total(group, *answers).view(np.uint8) == table[points]).all(), records
        out = np.empty_like(answers[0])
        assert dpf.answer(keys[0], table, out=out) is out
        assert (out == answers[0]).all()
    weighted = dpf.generate([3], [0 if group == "gf2" else 5], 3, group=group)
    numbers = np.arange(8 * size, dtype=DTYPES[group]).reshape(8, size)
    sums = total(group, *(dpf.answer(k, numbers) for k in weighted))
    assert (sums == numbers[3] * DTYPES[group](0 if group == "gf2" else 5)).all()


def test_odd_records_of_bits() -> None:
    table = np.random.default_rng(5).integers(0, 256, (300, 77), dtype=np.uint8)
    keys = dpf.generate([299], None, 9)
    answers = [dpf.answer(k, table) for k in keys]
    assert ((answers[0] ^ answers[1])[0] == table[299]).all()
    assert (dpf.answer(keys[0], table, engine="reference") == answers[0]).all()


def test_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    keys = dpf.generate([3, 4], None, 5, group="u32")
    made = dpf.evaluate_all(keys[0], library="torch")
    assert made.dtype == torch.uint32
    assert (made.numpy() == dpf.evaluate_all(keys[0])).all()
    table = torch.arange(64, dtype=torch.int32).reshape(32, 2)
    sums = [dpf.answer(k, table).view(torch.int32) for k in keys]
    assert (sums[0] + sums[1]).tolist() == [[6, 7], [8, 9]]


@pytest.mark.parametrize("name", PRGS)
@pytest.mark.parametrize("group", GROUPS)
def test_keys_as_bytes(group: Any, name: Any) -> None:
    for bits in (0, 1, 8, 20, 63):
        keys = dpf.generate([0, (1 << bits) - 1], None, bits, group=group, prg=name)
        for party, held in enumerate(keys):
            text = held.to_bytes()
            in_block = {"gf2": 7, "u32": 2, "u64": 1}[group] + (name == "aes-128-half")
            depth = max(0, bits - in_block)
            assert held.key_size == 16 * (depth + 3)
            assert len(text) == 16 + 2 * held.key_size
            assert text[:12] == b"wdpf" + bytes(
                [1, PRGS.index(name), GROUPS.index(group), bits, party, 0, 0, 0]
            )
            read = dpf.Keys.from_bytes(text)
            assert read.to_bytes() == text
            assert (read.prg, read.group, read.bits, read.party) == (name, group, bits, party)
            assert held[1].to_bytes()[16:] == text[16 + held.key_size :]
            assert len(held[:]) == 2
            assert len(held[2:]) == 0


def damage(text: bytes, at: int, value: int) -> bytes:
    return text[:at] + bytes([value]) + text[at + 1 :]


def test_damaged_keys_are_refused() -> None:
    keys = dpf.generate([5, 6], None, 20)[1]
    text, size = keys.to_bytes(), keys.key_size
    for other in (*(text[:cut] for cut in (0, 3, 15, 16, len(text) - 1)), text + b"\0"):
        with pytest.raises(ValueError, match=r"do not begin with wdpf|2 keys of 20 bits have"):
            dpf.Keys.from_bytes(other)
    for wrong in ("wdpf", None):
        with pytest.raises(TypeError, match=r"data is \w+: expected bytes-like"):
            dpf.Keys.from_bytes(wrong)  # type: ignore[arg-type]
    headers = [(0, 0), (4, 2), (5, 6), (6, 3), (7, 64), (7, 19), (7, 21), (8, 0), (8, 2), (9, 1)]
    right_bits = 16 + size - 32
    records = [(16, text[16] ^ 1), (right_bits + 2, 0xFF), (right_bits + 15, 1), (12, 1), (12, 3)]
    for at, value in headers + records:
        with pytest.raises(ValueError, match=r"wdpf|version|damaged|keys of|party is|other party"):
            dpf.Keys.from_bytes(damage(text, at, value))
    text = dpf.generate([5, 6], None, 20, prg="aes-128-half")[1].to_bytes()
    for at, value in ((5, 0), (5, 6), (6, 1), (7, 21), (8, 0), (16, text[16] ^ 1)):
        with pytest.raises(ValueError, match=r"damaged|keys of|other party"):
            dpf.Keys.from_bytes(damage(text, at, value))


def test_keys_are_secrets() -> None:
    keys, _ = dpf.generate([5], None, 20)
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="to_bytes"):
            call(keys)
    record = keys.to_bytes()[16:]
    assert record[:8].hex() not in repr(keys)
    assert "20 bits" in repr(keys)
    memory = keys._records
    with keys:
        pass
    assert memory == bytes(len(memory))
    assert len(keys) == 0
    memory = dpf.generate([5], None, 20)[0]._records  # of an object that ends
    assert memory == bytes(len(memory))


def test_neither_key_has_the_point() -> None:
    """All but the root is the same for both parties, and roots are random."""
    first, second = (k.to_bytes()[16:] for k in dpf.generate([5], None, 20))
    assert first[16:] == second[16:]
    assert first[:16] != second[:16]
    assert first != dpf.generate([5], None, 20)[0].to_bytes()[16:]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda k: dpf.generate([32], None, 5), r"point 0 is out of range: expected 0 to 2\^5 - 1"),
        (lambda k: dpf.generate([1], [2], 5), "value 0 is out of range"),
        (lambda k: dpf.generate([1], [1 << 32], 5, group="u32"), "value 0 is out of range"),
        (lambda k: dpf.generate([1, 2], [1], 5), "2 points and 1 values"),
        (lambda k: dpf.generate([-1], None, 5), "points"),
        (lambda k: dpf.generate([1], None, 64), "bits is 64: expected 0 to 63"),
        (lambda k: dpf.generate([1], None, 5, group="u8"), "group is 'u8': expected one of gf2"),  # type: ignore[arg-type]
        (lambda k: dpf.evaluate(k, [32]), r"at\[0\] is 32: expected 0 to 2\^5 - 1"),
        (lambda k: dpf.evaluate(k, np.zeros((3, 1), np.int64)), "shape"),
        (lambda k: dpf.evaluate_all(k, out=np.zeros(3, np.uint8)), "out has 3 bytes: expected 8"),
        (lambda k: dpf.answer(k, np.zeros((33, 2), np.uint8)), "33 records"),
        (lambda k: dpf.answer(k, bytes(33), 2), "whole records of 2"),
        (lambda k: dpf.answer(k, bytes(33)), "record_size is not given"),
        (lambda k: dpf.answer(k, bytes(33), 0), "record_size is 0"),
        (lambda k: dpf.answer(k, bytes(33), 33, engine="cuda"), "expected auto, cpu or reference"),
    ],
)
def test_refusals(call: Any, text: str) -> None:
    keys, _ = dpf.generate([1, 2], None, 5)
    with pytest.raises(ValueError, match=text):
        call(keys)


def test_records_are_whole_integers() -> None:
    keys, _ = dpf.generate([1], None, 5, group="u64")
    with pytest.raises(ValueError, match="a record has 12 bytes: expected a multiple of 8"):
        dpf.answer(keys, bytes(24), 12)


def share_by_hand(name: str, record: bytes, party: int, point: int) -> int:
    """Of a key of 9 bits to u32."""
    correlated = name == "aes-128-half"
    depth = 6 if correlated else 7
    node, right = record[:16], int.from_bytes(record[128:136], "little")
    for level in range(depth):
        side = point >> (8 - level) & 1
        seed = node if correlated else bytes([node[0] & 0xFE]) + node[1:]
        child = children(name, seed, 2)[16 * side : 16 * side + 16]
        if node[0] & 1:
            added = bytearray(record[16 * (level + 1) : 16 * (level + 2)])
            if side and not correlated:
                added[0] = (added[0] & 0xFE) | (right >> level & 1)
            child = xor(child, added)
        node = child
    place = 4 * (point % 2 ** (9 - depth))
    values = children(name, bytes([node[0] & 0xFE]) + node[1:], 4)[32:]
    share = int.from_bytes(values[place : place + 4], "little")
    if node[0] & 1:
        correction = record[16 * (depth + (1 if correlated else 2)) :]
        share += int.from_bytes(correction[place : place + 4], "little")
    return (-share if party else share) % 2**32


@pytest.mark.parametrize("name", PRGS)
def test_the_definition(name: Any) -> None:
    """Keys of the format evaluated by other code, at all points."""
    keys = dpf.generate([200], [77], 9, group="u32", prg=name)
    for party, held in enumerate(keys):
        shares = [share_by_hand(name, held.to_bytes()[16:], party, at) for at in range(512)]
        assert shares == dpf.evaluate_all(held)[0].tolist()


def test_the_example() -> None:
    program = ROOT / "examples" / "private_retrieval.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 records of 1024")


def test_a_point_by_itself_is_not_a_sequence() -> None:
    with pytest.raises(TypeError, match="points is int: expected a sequence of integers"):
        dpf.generate(5, bits=4)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""run_columns: the columnar batch against the oracle, its forms of columns, and what it refuses."""

from __future__ import annotations

import re
import struct
from array import array
from enum import IntEnum
from itertools import accumulate
from pathlib import Path
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from hypothesis import given, settings
from hypothesis import strategies as st

ALGORITHMS = {info.name: info for info in wc.algorithms()}


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(ALGORITHMS)),
    sizes=st.lists(st.integers(0, 400), max_size=12),
    key_count=st.integers(1, 3),
    gap=st.integers(0, 5),
    with_aad=st.booleans(),
    pad=st.booleans(),
)
def test_matches_the_oracle(
    name: str, sizes: list[int], key_count: int, gap: int, with_aad: bool, pad: bool
) -> None:
    info = ALGORITHMS[name]
    padding = "pkcs7" if pad and info.takes_padding else None
    if info.whole_blocks and padding is None:
        sizes = [n - n % info.block_size for n in sizes]
    sizes = [n + info.least_size for n in sizes]
    count = len(sizes)
    keys = [oracle.painted(f"key {k}", info.key_size) for k in range(key_count)]
    key_index = [i % key_count for i in range(count)]
    ivs = [oracle.painted(f"iv {i}", info.iv_size) for i in range(count)]
    aads = [oracle.painted(f"aad {i}", i if with_aad and info.is_aead else 0) for i in range(count)]
    texts = [oracle.painted(f"text {i}", n) for i, n in enumerate(sizes)]
    sealed = [
        oracle.encrypt(name, keys[k], text, iv, aad, padding=padding)
        for k, text, iv, aad in zip(key_index, texts, ivs, aads, strict=True)
    ]
    options: dict[str, Any] = {"padding": padding, "key_index": key_index}
    if info.iv_size:
        options["ivs"] = b"".join(ivs)
    if info.is_aead:
        lengths = [len(aad) for aad in aads]
        options["aad"] = b"".join(aads)
        options["aad_lengths"] = lengths
        options["aad_offsets"] = list(accumulate(lengths, initial=0))[:count]
    for direction, given_, wanted in (("encrypt", texts, sealed), ("decrypt", sealed, texts)):
        lengths = [len(x) for x in given_]
        columns = wc.run_columns(
            name, direction, keys, b"".join(given_), lengths=lengths, **options
        )
        columns.raise_for_status()
        assert type(columns.out) is bytearray
        assert list(columns.status) == [wc.Status.OK] * count
        assert list(columns.written) == [len(x) for x in wanted]
        if padding is None or direction == "encrypt":
            assert columns.out == b"".join(wanted)
        # With gaps, which stay as they are, or are zeros in an output that was made.
        offsets = list(accumulate((n + gap for n in lengths), initial=3))[:count]
        data = b"abc" + b"".join(x + b"g" * gap for x in given_)
        room = [max(len(x), len(y)) for x, y in zip(given_, wanted, strict=True)]
        out_offsets = list(accumulate((n + gap for n in room), initial=gap))[:count]
        out = bytearray(b"\xee" * (sum(room) + gap * count + gap))
        columns = wc.run_columns(
            name,
            direction,
            [wc.Key(name, key) for key in keys],
            data,
            lengths=array("Q", lengths),
            offsets=array("Q", offsets),
            out_offsets=array("Q", out_offsets),
            out=out,
            **{**options, "key_index": array("I", key_index)},
        )
        assert columns.out is out
        assert out[:gap] == b"\xee" * gap
        for start, size, n, wanted_one in zip(
            out_offsets, room, columns.written, wanted, strict=True
        ):
            assert out[start : start + n] == wanted_one
            assert out[start + size : start + size + gap] == b"\xee" * gap


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(sorted(ALGORITHMS)),
    ranges=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=8),
)
def test_inputs_may_overlap(name: str, ranges: list[tuple[int, int]]) -> None:
    """In any order, one within the other, or the same: as columns and as messages of a batch."""
    info = ALGORITHMS[name]
    data = oracle.painted("data", 700)
    if info.whole_blocks:
        ranges = [(start, size - size % info.block_size) for start, size in ranges]
    ranges = [(start, size + info.least_size) for start, size in ranges]
    texts = [data[start : start + size] for start, size in ranges]
    key = oracle.painted("key", info.key_size)
    ivs = [oracle.painted(f"iv {i}", info.iv_size) for i in range(len(ranges))]
    wanted = [oracle.encrypt(name, key, x, iv) for x, iv in zip(texts, ivs, strict=True)]
    columns = wc.run_columns(
        name,
        "encrypt",
        key,
        data,
        offsets=[start for start, _ in ranges],
        lengths=[size for _, size in ranges],
        ivs=b"".join(ivs) or None,
    ).raise_for_status()
    assert columns.out == b"".join(wanted)
    batch = wc.Batch()
    view = memoryview(data)
    handles = [
        batch.add(name, "encrypt", key, view[start : start + size], iv=iv or None)
        for (start, size), iv in zip(ranges, ivs, strict=True)
    ]
    batch.run()
    assert [handle.result() for handle in handles] == wanted


def test_gaps_of_a_new_output_are_zeros() -> None:
    columns = wc.run_columns(
        "aes-128-ctr",
        "encrypt",
        bytes(16),
        bytes(20),
        lengths=[10, 10],
        ivs=bytes(32),
        out_offsets=[5, 1000],
    )
    block = oracle.encrypt("aes-128-ctr", bytes(16), bytes(10), bytes(16))
    assert columns.out == bytes(5) + block + bytes(985) + block


def test_shared_aad_and_one_key() -> None:
    key, nonces = bytes(32), b"".join(i.to_bytes(12, "big") for i in range(3))
    columns = wc.run_columns(
        "aes-256-gcm",
        "encrypt",
        key,
        b"aabbbb",
        lengths=[2, 0, 4],
        ivs=nonces,
        aad=b"all",
        tag_length=12,
    )
    wanted = [
        oracle.encrypt(
            "aes-256-gcm", key, text, nonces[12 * i : 12 * i + 12], b"all", tag_length=12
        )
        for i, text in enumerate((b"aa", b"", b"bbbb"))
    ]
    assert columns.out == b"".join(wanted)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"algorithm": 3}, TypeError, "algorithm is int: expected a name"),
        ({"algorithm": "\ud800"}, ValueError, "surrogates"),
        ({"engine": None}, TypeError, "engine is NoneType: expected a name"),
        ({"tag_length": "16"}, TypeError, "tag_length is str"),
        ({"direction": 1}, ValueError, "direction is 1"),
    ],
)
def test_names_that_are_none(wrong: dict[str, Any], error: type[Exception], says: str) -> None:
    given = {"algorithm": "aes-128-gcm", "direction": "encrypt", **wrong}
    out = bytearray(b"\xff" * 20)
    with pytest.raises(error, match=says):
        wc.run_columns(
            **given, keys=bytes(16), data=b"text", lengths=[4], ivs=bytes(range(12)), out=out
        )
    assert out == b"\xff" * 20


def test_statuses_are_those_of_c() -> None:
    header = (Path(__file__).parents[3] / "include/warpcipher/core.h").read_text(encoding="utf-8")
    values = re.search(r"typedef enum wc_status \{(.*?)\}", header, re.DOTALL)
    assert values is not None
    of_c = {name: int(value) for name, value in re.findall(r"WC_([A-Z_]+) = (\d+)", values[1])}
    for raised in ("QUEUE_FULL", "QUEUE_CLOSED", "CANCELLED", "WRITE_FAILED"):  # by exceptions
        del of_c[raised]
    assert {status.name: status.value for status in wc.Status} == of_c
    assert issubclass(wc.Status, IntEnum)


def test_failures() -> None:
    key = bytes(16)
    nonces = b"".join(i.to_bytes(12, "big") for i in range(3))
    good = wc.run_columns("aes-128-gcm", "encrypt", key, b"x" * 30, lengths=[10] * 3, ivs=nonces)
    data = bytearray(good.out)
    data[26 + 3] ^= 1
    out = bytearray(b"\xff" * 30)
    columns = wc.run_columns(
        "aes-128-gcm", "decrypt", key, data, lengths=[26] * 3, ivs=nonces, out=out
    )
    assert list(columns.status) == [wc.Status.OK, wc.Status.INVALID_TAG, wc.Status.OK]
    assert list(columns.written) == [10, 0, 10]
    assert out == b"x" * 10 + bytes(10) + b"x" * 10
    assert repr(columns) == "<warpcipher.Columns of 3 messages, 1 failed>"
    with pytest.raises(wc.InvalidTag, match="message 1"):
        columns.raise_for_status()
    assert good.raise_for_status() is good


INTEGERS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "range of them": lambda values: values,
    "Q": lambda values: array("Q", values),
    "q": lambda values: array("q", values),
    "I": lambda values: array("I", values),
    "h": lambda values: array("h", values),
    "bytes": bytes,
    "unaligned": lambda values: memoryview(b"x" + struct.pack(f"{len(values)}Q", *values))[1:].cast(
        "Q"
    ),
}


@pytest.mark.parametrize("make", INTEGERS.values(), ids=INTEGERS.keys())
def test_forms_of_integers(make: Any) -> None:
    columns = wc.run_columns(
        "aes-128-ctr",
        "encrypt",
        bytes(16),
        bytes(60),
        lengths=make(range(20, 23)),
        offsets=make(range(3)),
        ivs=bytes(48),
    )
    assert list(columns.written) == [20, 21, 22]
    stream = oracle.encrypt("aes-128-ctr", bytes(16), bytes(22), bytes(16))
    assert columns.out == stream[:20] + stream[:21] + stream


def test_numpy_columns() -> None:
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    for kind in (numpy.uint64, numpy.int64, numpy.int32):
        columns = wc.run_columns(
            "aes-128-ctr",
            "encrypt",
            bytes(16),
            numpy.zeros(6, numpy.float32),
            lengths=numpy.array([10, 14], kind),
            ivs=numpy.zeros((2, 16), numpy.uint8),
        )
        assert isinstance(columns.out, numpy.ndarray)
        stream = oracle.encrypt("aes-128-ctr", bytes(16), bytes(14), bytes(16))
        assert columns.out.tobytes() == stream[:10] + stream
        assert numpy.asarray(columns.written).tolist() == [10, 14]


REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "direction": (ValueError, "direction", {"direction": "sideways"}),
    "algorithm": (ValueError, "unknown algorithm", {"algorithm": "aes-1"}),
    "padding": (ValueError, "padding", {"padding": "pkcs7"}),
    "key size": (ValueError, "16 bytes", {"keys": bytes(17)}),
    "no keys": (ValueError, "key", {"keys": []}),
    "keys are numbers": (TypeError, "key", {"keys": [1]}),
    "None as keys": (TypeError, "keys is None", {"keys": None}),
    "several keys": (ValueError, "2 keys, and there is no key_index", {"keys": [bytes(16)] * 2}),
    "key index": (ValueError, "key index 1", {"key_index": [0, 1]}),
    "huge key index": (ValueError, "key_index", {"key_index": [0, 1 << 40]}),
    "key index count": (ValueError, "key_index", {"key_index": []}),
    "lengths beyond data": (ValueError, "leaves the buffer", {"lengths": [8, 9]}),
    "lengths short of data": (
        ValueError,
        "lengths add up to 15, data holds 16",
        {"lengths": [8, 7]},
    ),
    "no lengths": (ValueError, "lengths add up to 0", {"lengths": [], "ivs": None}),
    "huge lengths": (ValueError, "2\\^62|leaves", {"lengths": [8, (1 << 64) - 1]}),
    "huge offset": (ValueError, "leaves the buffer", {"offsets": [0, (1 << 64) - 1]}),
    "negative length": (ValueError, "lengths", {"lengths": [8, -1]}),
    "negative lengths in a buffer": (ValueError, "negative", {"lengths": array("q", [8, -1])}),
    "length is text": (TypeError, "lengths holds str: expected integers", {"lengths": ["8", "8"]}),
    "length is a float": (TypeError, "lengths holds float", {"lengths": [8.0, 8.0]}),
    "lengths are text": (TypeError, "lengths is str", {"lengths": "88"}),
    "lengths are floats": (TypeError, "format 'd'", {"lengths": array("d", [8, 8])}),
    "None as lengths": (TypeError, "lengths is None", {"lengths": None}),
    "lengths are a number": (TypeError, "lengths is int", {"lengths": 8}),
    "offsets count": (ValueError, "offsets has 1", {"offsets": [0]}),
    "no offsets": (ValueError, "offsets has 0", {"offsets": []}),
    "out_offsets count": (ValueError, "out_offsets has 1", {"out_offsets": [0]}),
    "out_offsets beyond out": (ValueError, "leaves the buffer", {"out_offsets": [0, 9]}),
    "ivs": (ValueError, "ivs", {"ivs": bytes(31)}),
    "short ivs": (ValueError, "IV of 16", {"ivs": bytes(30)}),
    "no ivs": (ValueError, "IV", {"ivs": None}),
    "aad": (ValueError, "AAD", {"aad": b"x"}),
    "tag": (ValueError, "tag", {"tag_length": 12}),
    "small out": (ValueError, "leaves the buffer", {"out": bytearray(15)}),
    "read-only out": (BufferError, "read-only", {"out": bytes(16)}),
    "data is text": (TypeError, "data is str", {"data": "x" * 16}),
    "strided data": (BufferError, "contiguous", {"data": memoryview(bytes(32))[::2]}),
    "engine": (wc.EngineError, "unknown engine", {"engine": "warp"}),
}


@pytest.mark.parametrize(("error", "text", "change"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(error: type[Exception], text: str, change: dict[str, Any]) -> None:
    out = bytearray(b"\x5a" * 16)
    arguments: dict[str, Any] = {
        "algorithm": "aes-128-ctr",
        "direction": "encrypt",
        "keys": bytes(16),
        "data": bytes(16),
        "lengths": [8, 8],
        "ivs": bytes(32),
        "out": out,
        **change,
    }
    with pytest.raises(error, match=text):
        wc.run_columns(**arguments)
    assert out == b"\x5a" * 16


def test_key_of_another_algorithm() -> None:
    key = wc.Key("aes-128-ecb", bytes(16))
    with pytest.raises(ValueError, match="key 0 is for aes-128-ecb, the batch is aes-128-ctr"):
        wc.run_columns("aes-128-ctr", "encrypt", key, bytes(16), lengths=[16], ivs=bytes(16))


def test_gcm_refusals() -> None:
    arguments: dict[str, Any] = {"lengths": [8, 8], "ivs": bytes(24)}
    with pytest.raises(ValueError, match="nonce"):
        wc.run_columns("aes-128-gcm", "encrypt", bytes(16), bytes(16), **arguments)
    with pytest.raises(ValueError, match="12 bytes for 2 messages, a single nonce"):
        wc.run_columns(
            "aes-128-gcm", "encrypt", bytes(16), bytes(16), lengths=[8, 8], ivs=bytes(range(12))
        )
    arguments["ivs"] = bytes(23) + b"\1"
    with pytest.raises(ValueError, match=r"short|tag"):
        wc.run_columns("aes-128-gcm", "decrypt", bytes(16), bytes(16), **arguments)
    with pytest.raises(ValueError, match="aad"):
        wc.run_columns(
            "aes-128-gcm",
            "encrypt",
            bytes(16),
            bytes(16),
            aad=b"x",
            aad_offsets=[0, 0],
            **arguments,
        )


def test_no_messages() -> None:
    columns = wc.run_columns("aes-128-gcm", "encrypt", bytes(16), b"", lengths=[])
    assert columns.out == b""
    assert list(columns.status) == list(columns.written) == []


def test_results_of_a_good_batch_are_not_fetched_to_say_so() -> None:
    """Millions would take longer than the batch. The result is there all the same."""
    fetched: list[bool] = []

    def fetch() -> bytes:
        fetched.append(True)
        done = wc.run_columns(
            "aes-128-ctr", "encrypt", bytes(16), bytes(3), lengths=[3], ivs=bytes(16)
        )
        assert isinstance(done._results, bytes)
        return done._results

    columns = wc.Columns(b"", fetch, True)
    assert columns.raise_for_status() is columns
    assert not fetched
    assert list(columns.written) == [3]
    assert list(columns.status) == [0]
    assert len(fetched) == 1

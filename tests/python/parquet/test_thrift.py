# SPDX-License-Identifier: Apache-2.0
"""Thrift's compact protocol: against thriftpy2, and against input that means harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from warpcipher.formats import FormatError
from warpcipher.parquet import thrift

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

IDL = """
struct Inner { 1: optional i64 n  2: optional string name  40: optional list<bool> flags }
struct Outer {
  1: optional bool yes  2: optional byte small  3: optional i16 short  4: optional i32 word
  5: optional i64 long_  6: optional double real  7: optional binary raw  8: optional Inner inner
  9: optional list<Inner> inners  10: optional list<i32> words  11: optional list<string> texts
  12: optional map<string, i64> counts  13: optional set<i16> shorts  90: optional bool far
  200: optional list<list<i32>> nested
}
"""
INNER: thrift.Shape = {1: None, 2: None}
ALL: thrift.Shape = {**dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 10, 11, 90)), 8: INNER, 9: INNER}


def integers(bits: int) -> Any:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


inners = st.fixed_dictionaries(
    {}, optional={"n": integers(64), "name": st.text(max_size=5), "flags": st.lists(st.booleans())}
)
outers = st.fixed_dictionaries(
    {},
    optional={
        "yes": st.booleans(),
        "small": integers(8),
        "short": integers(16),
        "word": integers(32),
        "long_": integers(64),
        "real": st.floats(allow_nan=False),
        "raw": st.binary(max_size=300),
        "inner": inners,
        "inners": st.lists(inners, max_size=20),
        "words": st.lists(integers(32), max_size=20),
        "texts": st.lists(st.text(max_size=3), max_size=20),
        "counts": st.dictionaries(st.text(max_size=3), integers(64), max_size=3),
        "shorts": st.sets(integers(16), max_size=3),
        "far": st.booleans(),
        "nested": st.lists(st.lists(integers(32), max_size=3), max_size=3),
    },
)


@pytest.fixture(scope="module")
def idl(tmp_path_factory: pytest.TempPathFactory) -> Any:
    thriftpy2 = pytest.importorskip("thriftpy2", exc_type=ImportError)
    path: Path = tmp_path_factory.mktemp("idl") / "shapes.thrift"
    path.write_text(IDL)
    return thriftpy2.load(str(path), module_name="shapes_thrift")


def encode(idl: Any, value: dict[str, Any]) -> tuple[Any, bytes]:
    from thriftpy2.protocol import TCompactProtocol
    from thriftpy2.transport import TMemoryBuffer

    made = dict(value)
    if "inner" in made:
        made["inner"] = idl.Inner(**made["inner"])
    if "inners" in made:
        made["inners"] = [idl.Inner(**entry) for entry in made["inners"]]
    outer = idl.Outer(**made)
    buffer = TMemoryBuffer()
    outer.write(TCompactProtocol(buffer))
    return outer, buffer.getvalue()


def decode(idl: Any, data: bytes) -> Any:
    from thriftpy2.protocol import TCompactProtocol
    from thriftpy2.transport import TMemoryBuffer

    outer = idl.Outer()
    outer.read(TCompactProtocol(TMemoryBuffer(data)))
    return outer


@hypothesis.given(outers)
@hypothesis.settings(max_examples=80, deadline=None, database=None)
def test_bytes_come_back_whatever_is_asked_for(idl: Any, value: dict[str, Any]) -> None:
    _, data = encode(idl, value)
    outer = decode(idl, data)
    for shape in ({}, {4: None}, {8: INNER, 9: INNER}, ALL):
        fields = thrift.read_whole(data, shape, "it")
        assert decode(idl, thrift.write(fields)) == outer
    fields = thrift.read_whole(data, ALL, "it")
    names = {1: "yes", 2: "small", 3: "short", 4: "word", 5: "long_", 6: "real", 7: "raw"}
    names |= {10: "words", 11: "texts", 90: "far"}
    for number, name in names.items():
        assert (number in fields) == (name in value)
        if name not in value:
            continue
        found, expected = fields[number][1], value[name]
        if number in (10, 11):
            found = [each.decode() if number == 11 else each for each in found[1]]
        assert found == expected


def test_a_changed_number_is_all_that_changes(idl: Any) -> None:
    value = {"word": 5, "counts": {"a": 1}, "inner": {"n": 3, "name": "b"}, "nested": [[1], []]}
    _, data = encode(idl, value)
    fields = thrift.read_whole(data, {8: INNER}, "it")
    fields[8][1][1] = thrift.I64, -(1 << 40)
    outer = decode(idl, thrift.write(fields))
    assert outer.inner.n == -(1 << 40)
    assert (outer.word, outer.counts, outer.inner.name) == (5, {"a": 1}, "b")
    assert outer.nested == [[1], []]


def test_varints_may_be_longer_than_they_must(idl: Any) -> None:
    padded = b"\x45\xd8\x84\x80\x80\x00\0"
    assert len(padded) == 7
    assert thrift.read_whole(padded, {4: None}, "it") == {4: (thrift.I32, 300)}
    assert decode(idl, padded).word == 300


@hypothesis.given(outers, st.data())
@hypothesis.settings(max_examples=30, deadline=None, database=None)
def test_a_cut_struct_is_refused(idl: Any, value: dict[str, Any], data: Any) -> None:
    _, whole = encode(idl, value)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for shape in ({}, ALL):
        with pytest.raises(FormatError, match=r"^it: "):
            thrift.read_whole(cut, shape, "it")


@hypothesis.given(st.binary(max_size=200))
@hypothesis.settings(max_examples=200, deadline=None, database=None)
def test_any_bytes_give_a_struct_or_the_error(data: bytes) -> None:
    for shape in ({}, ALL):
        try:
            fields, end = thrift.read(data, shape, "it")
        except FormatError:
            continue
        assert 0 < end <= len(data)
        again, _ = thrift.read(thrift.write(fields), shape, "it")
        assert repr(again) == repr(fields)  # NaN is not itself


STRUCT_IN_STRUCT = b"\x1c" * 100_000
LIST_IN_LIST = b"\x19" + b"\x19" * 100_000


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (STRUCT_IN_STRUCT, "nested more than 48 deep"),
        (LIST_IN_LIST, "nested more than 48 deep"),
        (b"\x1b" + b"\x01\xbb" * 50_000, "nested more than 48 deep"),
        (
            b"\x19\xfc\xff\xff\xff\xff\x0f" + bytes(100),
            "a list of 4294967295 elements in 100 bytes",
        ),
        (b"\x1b\xff\xff\xff\xff\x0f\x88" + bytes(100), "a map of 4294967295 entries"),
        (b"\x18\xff\xff\xff\xff\x0f" + bytes(100), "4294967295 bytes of binary where 100 are left"),
        (b"\x16" + b"\xff" * 50, "an integer of more than 64 bits"),
        (b"\x1e\0", "unknown type 14"),
        (b"\x15\x02\x05\x02\x02\0", "field 1 is there twice"),
        (b"\x15\x02\0\0", "1 bytes follow its end"),
        (b"", "cut short after 0 bytes"),
    ],
)
@pytest.mark.parametrize("asked", [False, True])
def test_bombs_and_lies_are_refused_at_once(data: bytes, says: str, asked: bool) -> None:
    shape: dict[int, Any] = {}
    if asked:
        shape[1] = shape
    if data == LIST_IN_LIST and asked:
        says = "a list of elements of type 9"
    with pytest.raises(FormatError, match=says):
        thrift.read_whole(data, shape, "it")


def test_an_integer_above_64_bits_is_refused_where_it_is_asked_for() -> None:
    data = b"\x16" + b"\xff" * 9 + b"\x7f\0"
    with pytest.raises(FormatError, match="an integer of more than 64 bits"):
        thrift.read_whole(data, {1: None}, "it")

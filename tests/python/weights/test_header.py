# SPDX-License-Identifier: Apache-2.0
"""Headers of safetensors files: what is read, what is refused, and what a hostile one may cost."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpcipher.formats import FormatError
from warpcipher.weights import header
from warpcipher.weights.header import DTYPES

A: dict[str, Any] = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
B: dict[str, Any] = {"dtype": "BOOL", "shape": [], "data_offsets": [24, 25]}
C: dict[str, Any] = {"dtype": "U64", "shape": [2, 2], "data_offsets": [25, 57]}

TWICE = json.dumps({"x": A, "y": B}).replace('"y"', '"x"')


def image(text: bytes | str | dict[str, Any], data: int = 25) -> bytes:
    """A file with this header and that many bytes of data."""
    raw = json.dumps(text) if isinstance(text, dict) else text
    encoded = raw if isinstance(raw, bytes) else raw.encode()
    return len(encoded).to_bytes(8, "little") + encoded + bytes(data)


def read(file: bytes) -> header.Header:
    return header.read_header(lambda offset, length: file[offset : offset + length], len(file))


def test_a_header_is_read() -> None:
    found = read(image({"__metadata__": {"a": "b", "\u00e9": "\n"}, "y": B, "x": A}))
    assert list(found.tensors) == ["x", "y"]
    assert found.tensors["x"] == ("F32", (2, 3), 0, 24)
    assert found.tensors["y"].size == 1
    assert found.metadata == {"a": "b", "\u00e9": "\n"}
    assert found.data_size == 25
    assert read(image("{}   ", 0)).tensors == {}


def test_spaces_and_the_order_of_fields_are_free() -> None:
    text = '{ "x" :\n{"shape": [ 2 , 3 ],"data_offsets":[0,24] , "dtype":"F32"}\t}  '
    assert read(image(text, 24)).tensors["x"] == ("F32", (2, 3), 0, 24)


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not a safetensors file: 0 bytes"),
    "a cut length": (b"\1\0\0", "not a safetensors file: 3 bytes"),
    "a header beyond the file": (image({"x": A})[:20], "it claims a header of"),
    "a huge length": (b"\xff" * 8 + b"{}", "it claims a header of 18446744073709551615 bytes"),
    "no brace": (image("  {}"), 'does not begin with "{"'),
    "a list": (image("[]"), 'does not begin with "{"'),
    "an empty header": (image(""), 'does not begin with "{"'),
    "no end": (image('{"x":'), "found the end"),
    "text after the end": (image("{} x"), "follows the header"),
    "a byte that is not UTF-8": (image(b'{"\xff":1}'), "byte 2 is not UTF-8"),
    "half a surrogate pair": (image('{"\\ud800":1}'), "half a surrogate pair"),
    "a control character": (image('{"\n":1}'), "control character"),
    "a comma too many": (image(json.dumps({"x": B})[:-1] + ",}"), 'expected """'),
    "a tensor that is a number": (image('{"x":1}'), 'expected "{"'),
    "a tensor that is a list": (image('{"x":[]}'), 'expected "{"'),
    "the same tensor twice": (image(TWICE), "twice"),
    "the same name, spelt twice": (
        image(TWICE.replace('"x"', '"\\u0078"', 1)),
        "twice",
    ),
    "metadata twice": (image('{"__metadata__":{},"__metadata__":{}}'), "twice"),
    "a key of metadata twice": (image('{"__metadata__":{"a":"","a":""}}'), "'a' twice"),
    "metadata that is a number": (image('{"__metadata__":{"a":1}}'), 'expected """'),
    "metadata that is nested": (image('{"__metadata__":{"a":{}}}'), 'expected """'),
    "metadata that is a text": (image('{"__metadata__":"a"}'), 'expected "{"'),
    "an unknown dtype": (image({"x": A | {"dtype": "F33"}}), "unknown dtype 'F33'"),
    "a dtype of lower case": (image({"x": A | {"dtype": "f32"}}), "unknown dtype 'f32'"),
    "no dtype": (image({"x": A | {"dtype": None}}), "expected a dtype"),
    "an unknown field": (image({"x": A | {"device": "cpu"}}), 'expected "}"'),
    "a missing field": (image('{"x":{"dtype":"F32","shape":[2,3]}}'), 'expected ","'),
    "a field twice": (
        image('{"x":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}}'),
        "each once",
    ),
    "a dtype twice": (image('{"x":{"dtype":"F32","dtype":"F32","shape":[2]}}'), "each once"),
    "a shape that is a text": (image({"x": A | {"shape": "23"}}), "each once"),
    "a fraction": (image({"x": A | {"shape": [2.0, 3]}}), "each once"),
    "a negative length": (image({"x": A | {"shape": [-2, -3]}}), "each once"),
    "a leading zero": (image(json.dumps({"x": A}).replace("[2,", "[02,")), "not a whole number"),
    "a length left out": (image(json.dumps({"x": A}).replace("[2,", "[,")), "not a whole number"),
    "a huge tensor without elements": (
        image({"x": A | {"shape": [1 << 32, 1 << 32, 0], "data_offsets": [0, 0]}}),
        "bytes are more than a file can have",
    ),
    "a huge number": (image({"x": A | {"shape": [1 << 63]}}), "not a whole number below 2^63"),
    "a huge product": (image({"x": A | {"shape": [1 << 40] * 3}}), "more than a file can have"),
    "a huge product of nothing": (
        image({"x": A | {"shape": [1 << 40] * 3, "data_offsets": [0, 0]}}, 0),
        "more than a file can have",
    ),
    "many dimensions": (image({"x": A | {"shape": [1] * 65}}), "65 dimensions"),
    "very many dimensions": (image({"x": A | {"shape": [1] * 9999}}), "each once"),
    "offsets that are one": (image({"x": A | {"data_offsets": [0]}}), "data_offsets [0]"),
    "offsets that are three": (image({"x": A | {"data_offsets": [0, 24, 24]}}), "expected its"),
    "offsets the wrong way": (image({"x": A | {"data_offsets": [24, 0]}}), "expected its"),
    "a size that does not fit": (image({"x": A | {"data_offsets": [0, 25]}}), "shape make 24"),
    "half a byte": (
        image({"x": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}, 1),
        "not a whole number of bytes",
    ),
    "tensors that overlap": (image({"x": A, "y": B | {"data_offsets": [23, 24]}}), "overlaps"),
    "the same place": (image({"x": A, "y": A}, 24), "overlaps"),
    "a gap": (image({"x": A, "y": B | {"data_offsets": [25, 26]}}, 26), "leaves a gap"),
    "a gap at the beginning": (image({"y": B}), "leaves a gap"),
    "cut data": (image({"x": A, "y": B}, 24), "truncated: the tensors have 25 bytes"),
    "no data": (image({"x": A, "y": B}, 0), "truncated"),
    "data too long": (image({"x": A, "y": B}, 26), "too long"),
    "nested lists": (image('{"x":' + "[" * 50_000), 'expected "{"'),
    "nested objects": (image('{"x":{"a":' * 50_000), "each once"),
    "nested metadata": (image('{"__metadata__":' + '{"a":' * 50_000), 'expected """'),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_header_is_refused(name: str) -> None:
    file, message = REFUSED[name]
    with pytest.raises(FormatError) as caught:
        read(file)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_long_name_is_shortened_in_errors() -> None:
    with pytest.raises(FormatError) as caught:
        read(image({"n" * 100_000 + "\x1b": A | {"dtype": "?"}}))
    assert len(str(caught.value)) < 600
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"x":' + "[[],[],[],[]" * 1_000_000,
        '{"x":{"dtype":"F32","shape":[' + "1," * 4_000_000,
        '{"__metadata__":{"a":[' + "{}," * 3_000_000,
        '{"x":{"a":' + "0," * 4_000_000,
        "{" + " " * 9_000_000,
    ],
    ids=["lists", "shape", "objects", "field", "spaces"],
)
def test_a_bomb_costs_no_more_than_its_text(text: str) -> None:
    file = image(text)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            read(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(file)  # the bytes that were read, and their text


def test_nothing_but_the_length_is_read_of_a_header_that_is_too_long() -> None:
    asked = []

    def give(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return (100_000_001).to_bytes(8, "little")

    with pytest.raises(FormatError, match="of which a header may have 100000000"):
        header.read_header(give, 1 << 40)
    assert asked == [(0, 8)]


@given(st.binary(max_size=200))
def test_random_bytes_are_a_header_or_a_format_error(data: bytes) -> None:
    try:
        header.parse(data)
    except FormatError:
        pass
    else:
        assert data[:1] == b"{"


def changed(data: st.DataObject, spaces: bool) -> bytes:
    """A header of three tensors with up to four changed bytes, as json.dumps or as writers of the
    format spell it."""
    document = {"__metadata__": {"k": "v"}, "x": A, "y": B, "z": C}
    text = bytearray(json.dumps(document, separators=None if spaces else (",", ":")).encode())
    for _ in range(data.draw(st.integers(0, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(b'0123456789,":{}[]F')
        )
    return bytes(text)


@given(st.data(), st.booleans())
def test_a_changed_header_is_read_as_json_reads_it_or_refused(
    data: st.DataObject, spaces: bool
) -> None:
    text = changed(data, spaces)
    try:
        found = read(image(text, 57))
    except FormatError:
        return
    document = json.loads(text)
    assert found.metadata == document.pop("__metadata__", None)
    assert found.tensors == {
        name: (entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"])
        for name, entry in document.items()
    }


def outcome(text: bytes) -> object:
    """The tensors and their types, or the error."""
    try:
        tensors, metadata = header.parse(text)
    except FormatError as error:
        return str(error)
    return [(name, type(info), *info) for name, info in tensors.items()], metadata


def assert_read_as_by_the_general_reader(text: bytes) -> None:
    found = outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(header._Scanner, "take_plain", lambda self, tensors: None)
        assert outcome(text) == found


@given(st.data())
def test_plain_tensors_are_read_as_by_the_general_reader(data: st.DataObject) -> None:
    assert_read_as_by_the_general_reader(changed(data, False))


@pytest.mark.parametrize("name", REFUSED)
def test_faults_are_left_to_the_general_reader(name: str) -> None:
    """The error is the same, and so is its place, behind tensors that are spelled plainly."""
    text = REFUSED[name][0][8:].removeprefix(b"{").replace(b" ", b"")
    plain = json.dumps({f"p{i}": A for i in range(3)}, separators=(",", ":")).encode()
    assert_read_as_by_the_general_reader(plain[:-1] + b"," + text)


MEMBER = ',"a.b":{"dtype":"BF16","shape":[2,30],"data_offsets":[8,128]}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (',"a', ', "a'),
        ("a.b", "a\\u0041b"),
        ("a.b", "a\nb"),
        ("a.b", "__metadata__"),
        ('":{', '": {'),
        ("dtype", "shape"),
        ("BF16", "bf16"),
        ("BF16", ""),
        ("BF16", "F" * 33),
        ("BF16", "F\\u0033"),
        ("[2,30]", "[2, 30]"),
        ("[2,30]", "[2,]"),
        ("[2,30]", "[,2]"),
        ("[2,30]", "[02,30]"),
        ("[2,30]", "[-2,30]"),
        ("[2,30]", "[2.0,30]"),
        ("[2,30]", "[1,2,3,4,5,6,1,1,9]"),
        ("[2,30]", "[1000000000000000000]"),
        ("[2,30]", '"2,30"'),
        ("[2,30]", "[3,30]"),
        ("[8,128]", "[8]"),
        ("[8,128]", "[8,128,256]"),
        ("[8,128]", "[8,0128]"),
        ("[8,128]", "[]"),
        ("[8,128]}", "[8,128],}"),
    ],
)
def test_other_spellings_are_left_to_the_general_reader(old: str, new: str) -> None:
    scanner = header._Scanner(MEMBER.replace(old, new) + "}")
    tensors: dict[str, header.TensorInfo] = {}
    scanner.take_plain(tensors)
    assert tensors == {}
    first = '{"f":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}'
    assert_read_as_by_the_general_reader(f"{first}{MEMBER.replace(old, new)}}}".encode())


@pytest.mark.parametrize("shape", [(), (0,), (1, 2, 3, 1, 1, 1, 1, 10)])
def test_plain_tensors_have_up_to_eight_dimensions(shape: tuple[int, ...]) -> None:
    size = math.prod(shape) * 2
    text = MEMBER.replace("[2,30]", str(list(shape)).replace(" ", ""))
    tensors: dict[str, header.TensorInfo] = {}
    header._Scanner(text.replace("128", f"{8 + size}")).take_plain(tensors)
    assert tensors == {"a.b": header.TensorInfo("BF16", shape, 8, 8 + size)}


def test_tensors_of_plain_headers_are_taken_at_once() -> None:
    """Not the first, which has no comma before it."""
    taken: list[int] = []
    take = header._Scanner.take_plain

    def count(self: header._Scanner, tensors: dict[str, header.TensorInfo]) -> None:
        before = len(tensors)
        take(self, tensors)
        taken.append(len(tensors) - before)

    made, _ = header.build([(f"t{i}", "F8_E4M3", (3, i)) for i in range(100)], {"a": "b"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(header._Scanner, "take_plain", count)
        header.parse(made[8:])
        header.parse(made[8:].replace(b"t1", "\u00e9".encode()))
    assert taken == [100, 100]


def test_what_is_built_is_read_again() -> None:
    entries = [(f"t{i}", dtype, (8, i)) for i, dtype in enumerate(DTYPES)]
    made, placed = header.build(entries, {"b": "2", "a": '"\u2028\x7f'})
    found = read(made + bytes(max(info.end for info in placed.values())))
    assert found.tensors == placed
    assert found.metadata == {"b": "2", "a": '"\u2028\x7f'}
    assert len(made) % 8 == 0


@pytest.mark.parametrize(
    ("entries", "metadata", "message"),
    [
        ([("__metadata__", "U8", (1,))], None, "cannot be called"),
        ([("x", "U8", (1,)), ("x", "U8", (1,))], None, "given twice"),
        ([("x", "F4", (1,))], None, "not a whole number of bytes"),
        ([("\ud800", "U8", (1,))], None, "surrogate"),
        ([], {"a": "x" * 100_000_001}, "at most 100000000"),
    ],
)
def test_what_no_header_can_hold_is_refused(
    entries: list[tuple[str, str, tuple[int, ...]]], metadata: dict[str, str] | None, message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        header.build(entries, metadata)

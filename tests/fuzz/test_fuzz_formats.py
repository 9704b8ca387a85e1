# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the readers of every file format and of keysets: valid files, changed at random.

Whatever the change, a reader gives the documented errors, and every byte that it releases is the
byte of the plaintext at that place. A changed file of an authenticated format is always refused.
Short by default; WARPCIPHER_TEST_LONG=100 tries a hundred times as much.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import warpcipher as wc
from conformance_oracle import painted
from format_cases import CASES, Case
from warpcipher import formats

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

EXAMPLES = 200 * int(os.environ.get("WARPCIPHER_TEST_LONG", "1"))
REFUSED = (wc.InvalidTag, formats.FormatError)
settings = hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

Change = Callable[[bytes], bytes]


@functools.cache
def sealed_file(case: Case, size: int, number: int = 0) -> bytes:
    """A file of `size` bytes of plaintext; `number` gives others under the same key."""
    return case.encrypt(plain_of(size, number))


def plain_of(size: int, number: int = 0) -> bytes:
    return painted(f"plain {number}", size)


def place(fraction: float, size: int) -> int:
    return min(size, int(fraction * (size + 1)))


fractions = st.one_of(st.floats(0, 1), st.floats(0, 0.02), st.floats(0.98, 1))


@st.composite
def changes(draw: hypothesis.strategies.DrawFn, case: Case, size: int) -> Change:
    """One change of a file: a bit, bytes, a cut, a copy within it, a part of another file."""
    kind = draw(
        st.sampled_from(("flip", "set", "cut", "drop", "repeat", "insert", "graft", "swap"))
    )
    at, length, bit = draw(fractions), draw(st.integers(1, 300)), draw(st.integers(0, 7))
    filling = draw(st.binary(min_size=1, max_size=40))

    def apply(data: bytes) -> bytes:
        start = place(at, len(data))
        end = min(len(data), start + length)
        part = data[start:end]
        if kind == "flip" and part:
            return data[:start] + bytes([part[0] ^ 1 << bit]) + data[start + 1 :]
        if kind == "set":
            return data[:start] + filling + data[start + len(filling) :]
        if kind == "cut":
            return data[:start]
        if kind == "drop":
            return data[:start] + data[end:]
        if kind == "repeat":
            return data[:end] + part + data[end:]
        if kind == "insert":
            return data[:start] + filling + data[start:]
        if kind == "graft":  # from a file under the same key, at the same place
            other = sealed_file(case, size, 1)
            return data[:start] + other[start:end] + data[end:]
        starts = case.chunk_starts(data)
        if kind == "swap" and len(starts) > 2:
            i = start % (len(starts) - 2)
            first, middle, last = starts[i : i + 3]
            return data[:first] + data[middle:last] + data[first:middle] + data[last:]
        return data

    return apply


def sizes_of(case: Case) -> list[int]:
    """Plaintexts of no chunk, one, some and many."""
    return [0, 5, case.first_chunk, case.first_chunk + 2 * case.chunk + 1, 7 * case.chunk]


@every_case
def test_changed_files(case: Case) -> None:
    @settings
    @hypothesis.given(st.data())
    def run(data: hypothesis.strategies.DataObject) -> None:
        size = data.draw(st.sampled_from(sizes_of(case)))
        bad = good = sealed_file(case, size)
        for change in data.draw(st.lists(changes(case, size), min_size=1, max_size=3)):
            bad = change(bad)
        other = sealed_file(case, size, 1)
        hypothesis.assume(bad != other)  # all of it grafted: a good file
        # With the header of the other file, the chunks of that one are the authentic ones.
        plain = plain_of(size, int(bad[: case.header] == other[: case.header]))
        check_stream(case, plain, good, bad)
        spans = st.lists(st.tuples(fractions, st.integers(0, 3 * case.chunk)), max_size=4)
        check_random_access(case, plain, good, bad, data.draw(spans))
        formats.detect(bad, case.key, context=case.context)

    run()


def check_stream(case: Case, plain: bytes, good: bytes, bad: bytes) -> None:
    out = io.BytesIO()
    try:
        case.decrypt_to(out, bad)
    except REFUSED:
        assert bad != good, "an unchanged file was refused"
        assert plain.startswith(out.getvalue()), "bytes that are not the plaintext's"
    else:
        assert bad == good, "a changed file was taken"
        assert out.getvalue() == plain


def check_random_access(
    case: Case, plain: bytes, good: bytes, bad: bytes, spans: list[tuple[float, int]]
) -> None:
    """The reader checks the end when it opens and a chunk when it is read, so parts of a changed
    file may be read; what is read must be right."""
    try:
        with formats.open(
            io.BytesIO(bad), case.key, format=case.format, options=case.options
        ) as file:
            for at, length in spans:
                position = place(at, len(plain))
                file.seek(position)
                assert file.read(length) == plain[position : position + length]
            file.seek(0)
            assert file.read() == plain
    except REFUSED:
        assert bad != good, "an unchanged file was refused"
    else:
        assert bad == good, "a changed file was taken"


@every_case
def test_random_files(case: Case) -> None:
    @settings
    @hypothesis.given(st.binary(max_size=600))
    def run(bad: bytes) -> None:
        out = io.BytesIO()
        with pytest.raises(REFUSED):
            case.decrypt_to(out, bad)
        assert out.getvalue() == b""

    run()


@pytest.mark.parametrize("algorithm", [info.name for info in wc.algorithms()])
def test_raw_has_no_unexpected_error(algorithm: str) -> None:
    """`raw` authenticates nothing: a changed file gives some plaintext, of the size it must have,
    or the error of a length or a padding that cannot be. GCM in raw is authenticated."""
    info = next(info for info in wc.algorithms() if info.name == algorithm)
    key = painted("key", info.key_size)
    iv = painted("iv", info.iv_size) if info.iv != "none" else None
    try:
        options = formats.Options(algorithm=algorithm, iv=iv, padding="auto")
        formats.encrypt_stream(io.BytesIO(b""), io.BytesIO(), key, format="raw", options=options)
    except ValueError:
        assert info.least_size > 0

    @hypothesis.settings(settings, max_examples=EXAMPLES // 5)
    @hypothesis.given(st.binary(max_size=200))
    def run(bad: bytes) -> None:
        out = io.BytesIO()
        try:
            formats.decrypt_stream(io.BytesIO(bad), out, key, format="raw", options=options)
        except (wc.InvalidTag, ValueError):
            assert out.getvalue() == b"" or not info.is_aead
        else:
            assert len(bad) - info.block_size <= len(out.getvalue()) <= len(bad)
        try:
            with formats.open(io.BytesIO(bad), key, format="raw", options=options) as file:
                assert file.read() == out.getvalue()
        except (wc.InvalidTag, ValueError):
            return

    run()


TEMPLATES = list(formats.TEMPLATES)


@st.composite
def changed_json(draw: hypothesis.strategies.DrawFn, text: str) -> str:
    """The text of a keyset with one value replaced, or some characters."""
    junk = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(1 << 70), 1 << 70),
        st.text(max_size=60),
        st.binary(max_size=60).map(lambda raw: base64.b64encode(raw).decode()),
        st.lists(st.integers(), max_size=2),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    )
    if draw(st.booleans()):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 10)))
        return text[:start] + draw(st.text(max_size=10)) + text[end:]
    document = json.loads(text)
    node: object = document
    while True:
        name = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        inner = node[name]
        if isinstance(inner, dict | list) and inner and draw(st.booleans()):
            node = inner
            continue
        if isinstance(node, dict) and draw(st.booleans()):
            del node[name]
        else:
            node[name] = draw(junk)
        return json.dumps(document)


def test_changed_keysets() -> None:
    texts = [formats.Keyset.generate(template).to_json() for template in TEMPLATES]

    @settings
    @hypothesis.given(st.data())
    def run(data: hypothesis.strategies.DataObject) -> None:
        text = data.draw(changed_json(data.draw(st.sampled_from(texts))))
        try:
            keyset = formats.Keyset.from_json(text)
        except ValueError:
            return
        assert formats.Keyset.from_json(keyset.to_json()) == keyset
        sealed = io.BytesIO()
        formats.encrypt_stream(io.BytesIO(b"text"), sealed, keyset)
        opened = io.BytesIO()
        formats.decrypt_stream(io.BytesIO(sealed.getvalue()), opened, keyset)
        assert opened.getvalue() == b"text"

    run()


@pytest.mark.parametrize("key", [None, bytes(16), bytes(32), bytes(5)], ids=repr)
def test_info_of_any_file(tmp_path: Path, key: bytes | None) -> None:
    path = tmp_path / "file"

    @hypothesis.settings(settings, max_examples=EXAMPLES // 2)
    @hypothesis.given(st.binary(max_size=200))
    def run(content: bytes) -> None:
        path.write_bytes(content)
        try:
            found = formats.info(path, key)
        except ValueError:
            assert key == bytes(5), "no key of any format"
            return
        assert found.size == len(content)
        assert not found.certain

    run()

# SPDX-License-Identifier: Apache-2.0
"""Random access: whatever is read from an opened file is the slice of the plaintext."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from format_cases import CASES, SMALL_SEGMENTS, Case, paint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warpcipher import InvalidTag, formats
from warpcipher.formats import layout
from warpcipher.formats.reader import DecryptingReader

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
@pytest.mark.parametrize("piece_size", [1 << 10, layout.PIECE_SIZE])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_reads_are_slices(
    case: Case, piece_size: int, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", piece_size)
    chunks = data.draw(st.integers(0, 40 if case in SMALL_SEGMENTS else 6))
    size = max(0, chunks * case.chunk + data.draw(st.integers(-case.chunk, case.chunk)))
    plain = paint(size)
    with formats.open(io.BytesIO(case.encrypt(plain)), case.key, options=case.options) as file:
        expected = io.BytesIO(plain)
        for _ in range(data.draw(st.integers(1, 8))):
            match data.draw(st.sampled_from(["read", "seek", "readinto", "relative", "end"])):
                case "read":
                    count = data.draw(st.integers(-1, size + 10))
                    assert file.read(count) == expected.read(count)
                case "readinto":
                    length = data.draw(st.integers(0, size + 10))
                    got, want = bytearray(length), bytearray(length)
                    assert file.readinto(got) == expected.readinto(want)
                    assert got == want
                case "seek":
                    place = data.draw(st.integers(0, size + 10))
                    assert file.seek(place) == expected.seek(place)
                case "relative":
                    step = data.draw(st.integers(-min(expected.tell(), 100), 100))
                    assert file.seek(step, os.SEEK_CUR) == expected.seek(step, os.SEEK_CUR)
                case "end":
                    back = data.draw(st.integers(0, size))
                    assert file.seek(-back, os.SEEK_END) == expected.seek(-back, os.SEEK_END)
            assert file.tell() == expected.tell()


class Counting(io.BytesIO):
    """An encrypted file that counts the bytes read from it."""

    count = 0

    def readinto(self, buffer: object, /) -> int:
        done = super().readinto(buffer)  # type: ignore[arg-type]
        self.count += done
        return done


@every_case
def test_only_the_chunks_needed_are_read(case: Case) -> None:
    plain = paint(100 * case.chunk)
    source = Counting(case.encrypt(plain))
    full = case.chunk + case.overhead
    raw = DecryptingReader(
        source, formats.get(case.format), case.key, case.options, close_source=False
    )
    opened = source.count
    assert opened <= case.header + 3 * full + 1
    raw.seek(50 * case.chunk)
    assert raw.read(10) == plain[50 * case.chunk :][:10]
    assert source.count - opened <= 2 * full
    before = source.count
    raw.seek(50 * case.chunk + 3)
    assert raw.read(10) == plain[50 * case.chunk + 3 :][:10]
    assert source.count == before, "the chunk was in the cache"
    raw.close()


@every_case
def test_a_damaged_chunk_fails_only_where_it_lies(case: Case) -> None:
    plain = paint(6 * case.chunk)
    sealed = bytearray(case.encrypt(plain))
    start, end = case.chunk_starts(bytes(sealed))[3:5]
    sealed[start + 1] ^= 4
    raw = DecryptingReader(
        io.BytesIO(sealed), formats.get(case.format), case.key, case.options, close_source=False
    )
    place = start - case.header - 3 * case.overhead
    assert raw.read(place) == plain[:place]
    buffer = bytearray(10)
    with pytest.raises(InvalidTag, match="chunk 3 failed authentication"):
        raw.readinto(buffer)
    assert not any(buffer)
    following = place + end - start - case.overhead
    raw.seek(following)
    assert raw.read() == plain[following:]
    raw.close()


@every_case
def test_the_size_is_authenticated_when_the_file_is_opened(case: Case) -> None:
    sealed = bytearray(case.encrypt(paint(5 * case.chunk)))
    sealed[-1] ^= 1
    with pytest.raises(InvalidTag, match="failed authentication"):
        formats.open(io.BytesIO(sealed), case.key, options=case.options)


@every_case
def test_the_file_object_is_an_ordinary_one(case: Case, tmp_path: Path) -> None:
    text = b"".join(b"line %d\n" % i for i in range(9000))
    path = tmp_path / "file"
    path.write_bytes(case.encrypt(text))
    with formats.open(path, case.key, options=case.options) as file:
        assert isinstance(file, io.BufferedReader)
        assert (file.readable(), file.seekable(), file.writable()) == (True, True, False)
        assert file.readline() == b"line 0\n"
        assert sum(1 for _ in file) == 8999
        assert file.read() == b""
        file.seek(0)
        assert [*io.TextIOWrapper(file)][-1] == "line 8999\n"
    assert file.closed
    with pytest.raises(ValueError, match="closed"):
        file.read()
    source = io.BytesIO(path.read_bytes())
    formats.open(source, case.key, options=case.options).close()
    assert not source.closed, "a file object given stays open"


def test_bad_seeks() -> None:
    case = CASES[0]
    with formats.open(io.BytesIO(case.encrypt(b"abc")), case.key, options=case.options) as file:
        with pytest.raises(ValueError, match="before the beginning"):
            file.raw.seek(-1)
        with pytest.raises(ValueError, match="whence"):
            file.raw.seek(0, 7)
        file.seek(100)
        assert file.read() == b""


def test_a_failing_open_closes_the_file_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CASES[0].encrypt(b"abc"))
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(InvalidTag):
            formats.open(path, bytes(16))
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


@every_case
def test_info_and_detect(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "file"
    sealed = case.encrypt(paint(1000))
    path.write_bytes(sealed)
    blind = formats.info(path)
    assert not blind.certain
    assert blind.size == len(sealed)
    assert case.format in [candidate.format for candidate in blind.candidates]
    known = formats.info(path, case.key, context=case.context)
    assert known.certain
    assert [candidate.format for candidate in known.candidates] == [case.format]
    assert known.candidates[0].plaintext_size == 1000
    assert known.candidates[0].chunk_size == case.chunk
    refused = formats.info(path, case.wrong_key, context=case.context)
    assert not refused.certain
    assert refused.candidates == (blind.candidates if formats.get(case.format).magic else ())
    assert formats.detect(sealed, case.key, context=case.context) == case.format
    assert formats.detect(sealed, case.key) == (None if case.context else case.format)
    assert formats.detect(sealed, case.wrong_key, context=case.context) is None
    assert formats.detect(b"", case.key) is None


def test_the_format_follows_from_the_key() -> None:
    keyset = formats.Keyset.generate("AES128_GCM_HKDF_4KB")
    for key, name in (
        (bytes(16), "cobblestone-128"),
        (bytearray(32), "cobblestone-256"),
        (keyset, "tink"),
        (keyset.to_json(), "tink"),
        (b"\n  " + keyset.to_json().encode(), "tink"),
    ):
        assert formats.resolve("auto", key).name == name
    for key in (bytes(24), b"", 7, None, "x" * 32, b"{" + bytes([0x80]) * 39):
        with pytest.raises(ValueError, match="no format goes with this key"):
            formats.resolve("auto", key)
    with pytest.raises(ValueError, match="unknown format 'zip'; there are cobblestone-128,"):
        formats.resolve("zip", bytes(16))


@pytest.mark.parametrize(
    "changes", [{"algorithm": "aes-128-ctr"}, {"iv": bytes(16)}, {"padding": "none"}]
)
@every_case
def test_options_of_raw_are_refused_elsewhere(case: Case, changes: dict[str, object]) -> None:
    options = formats.Options(**changes)  # type: ignore[arg-type]
    name = next(iter(changes))
    with pytest.raises(ValueError, match=f"takes no {name}: it belongs to formats? raw"):
        formats.encrypt_stream(io.BytesIO(), io.BytesIO(), case.key, options=options)
    with pytest.raises(ValueError, match=r"belongs to formats? raw"):
        case.decrypt(case.encrypt(b""), options=options)


@pytest.mark.parametrize(("name", "given"), [("cobblestone-128", 32), ("cobblestone-256", 16)])
def test_keys_of_the_wrong_size_or_type(name: str, given: int) -> None:
    with pytest.raises(ValueError, match=rf"{name} takes a key of \d+ bytes, got {given}"):
        formats.encrypt_stream(io.BytesIO(), io.BytesIO(), bytes(given), format=name)
    with pytest.raises(TypeError, match=f"{name} takes its key as bytes, got str"):
        formats.encrypt_stream(io.BytesIO(), io.BytesIO(), "k" * 16, format=name)
    with pytest.raises(TypeError, match="tink takes a Keyset or its JSON text as key, got int"):
        formats.encrypt_stream(io.BytesIO(), io.BytesIO(), 5, format="tink")


@pytest.mark.parametrize("file", [b"the content", io.StringIO("text"), 7])
def test_a_file_that_is_not_one(file: object) -> None:
    with pytest.raises(TypeError, match=r"file is \w+: expected a path, or a seekable file"):
        formats.open(file, bytes(32))  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""`formats.open(...).readinto` and `read_device`: into memory of the caller's, long and short, and
what is left after a failure."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from format_cases import CASES, COBBLESTONES, SMALL_SEGMENTS, Case, paint, tink_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warpcipher import InvalidTag, formats
from warpcipher.formats import reader

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
has_gpu = any(engine.name == "cuda" and engine.usable for engine in wc.engines())


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[Case, bytes], Path]:
    def store(case: Case, plain: bytes) -> Path:
        path = tmp_path / case.name
        path.write_bytes(case.encrypt(plain))
        return path

    return store


@every_case
@pytest.mark.parametrize("sizes", [(64, 256, 200), (1 << 10, 4 << 10, 1 << 20)])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_reads_of_a_file_are_slices(
    case: Case,
    sizes: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
    stored: Callable[[Case, bytes], Path],
    data: st.DataObject,
) -> None:
    for name, size in zip(("FIRST_WINDOW", "LAST_WINDOW", "DIRECT"), sizes, strict=True):
        monkeypatch.setattr(reader, name, size)
    chunks = data.draw(st.integers(0, 40 if case in SMALL_SEGMENTS else 6))
    size = max(0, chunks * case.chunk + data.draw(st.integers(-case.chunk, case.chunk)))
    plain = paint(size)
    with formats.open(stored(case, plain), case.key, options=case.options) as file:
        expected = io.BytesIO(plain)
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["read", "read1", "seek", "readinto", "rest"])):
                case "read":
                    count = data.draw(st.integers(-1, size + 10))
                    assert file.read(count) == expected.read(count)
                case "read1":
                    part = file.read1(data.draw(st.integers(1, 300)))
                    assert part == expected.read(len(part))
                case "readinto":
                    length = data.draw(st.integers(0, size + 10))
                    got, want = bytearray(length), bytearray(length)
                    assert file.readinto(got) == expected.readinto(want)
                    assert got == want
                case "seek":
                    place = data.draw(st.integers(0, size + 10))
                    assert file.seek(place) == expected.seek(place)
                case "rest":
                    assert file.read() == expected.read()
            assert file.tell() == expected.tell()


@every_case
def test_reads_in_order(case: Case, stored: Callable[[Case, bytes], Path]) -> None:
    plain = paint(30 * case.chunk + 5)
    for step in (1 + case.chunk // 3, case.chunk, 5 * case.chunk - 1):
        with formats.open(stored(case, plain), case.key, options=case.options) as file:
            assert b"".join(iter(lambda: file.read(step), b"")) == plain  # noqa: B023


@every_case
def test_reads_in_order_end_where_a_chunk_is_damaged(
    case: Case, stored: Callable[[Case, bytes], Path]
) -> None:
    path = stored(case, paint(30 * case.chunk))
    sealed = bytearray(path.read_bytes())
    sealed[case.chunk_starts(bytes(sealed))[20]] ^= 1
    path.write_bytes(sealed)
    good = case.first_chunk + 19 * case.chunk
    part = bytearray(case.chunk // 2)
    got = bytearray()
    with formats.open(path, case.key, options=case.options) as file:
        while len(got) + len(part) <= good:
            assert file.raw.readinto(part) == len(part)
            got += part
        part[:] = bytes(len(part))
        with pytest.raises(InvalidTag, match="chunk 20 failed"):
            file.raw.readinto(part)
    assert got == paint(30 * case.chunk)[: len(got)]
    assert not any(part)


@pytest.mark.parametrize("case", COBBLESTONES, ids=lambda case: case.name)
@pytest.mark.parametrize("as_file", [False, True])
def test_long_reads_check_all_tags_first(
    case: Case, as_file: bool, stored: Callable[[Case, bytes], Path]
) -> None:
    plain = paint(5 << 20)
    path = stored(case, plain)
    sealed = bytearray(path.read_bytes())
    sealed[-100_000] ^= 1
    path.write_bytes(sealed)
    source: Any = path if as_file else io.BytesIO(sealed)
    with formats.open(source, case.key, options=case.options) as file:
        out = bytearray(b"\xa5" * len(plain))
        file.seek(1000)
        with pytest.raises(InvalidTag, match="chunk 313 failed"):
            file.readinto(out)
        assert not any(out[: len(plain) - 1000])
        assert out[len(plain) - 1000 :] == b"\xa5" * 1000, "beyond the file"
        assert file.tell() == 1000
        with pytest.raises(InvalidTag, match="chunk 313 failed"):
            file.read()
        file.seek(0)
        assert file.read(3 << 20) == plain[: 3 << 20]


def test_a_file_that_shrinks(stored: Callable[[Case, bytes], Path]) -> None:
    case = CASES[0]
    path = stored(case, paint(3 << 20))
    with formats.open(path, case.key, options=case.options) as file:
        os.truncate(path, 2 << 20)
        out = bytearray(b"\xa5" * (3 << 20))
        with pytest.raises(formats.FormatError, match=f"ended at byte {2 << 20} while it was read"):
            file.readinto(out)
        assert not any(out)


def test_a_descriptor_of_other_bytes_is_not_read(tmp_path: Path) -> None:
    """A GzipFile has a descriptor, and that is not of the bytes that it gives."""
    case = CASES[0]
    plain = paint(2 << 20)
    path = tmp_path / "file.gz"
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(case.encrypt(plain))
    with (
        gzip.open(path) as source,
        formats.open(source, case.key, options=case.options) as file,  # type: ignore[arg-type]
    ):
        assert file.read() == plain


def test_a_closed_file_is_not_read(stored: Callable[[Case, bytes], Path]) -> None:
    case = CASES[0]
    with stored(case, paint(2 << 20)).open("rb") as source:
        file = formats.open(source, case.key, options=case.options)
    with pytest.raises(ValueError, match="closed file"):
        file.readinto(bytearray(2 << 20))
    file.raw.close()
    with pytest.raises(ValueError, match="closed"):
        file.raw.read_range(0, 10, bytearray(10))


@every_case
def test_arrays(case: Case, stored: Callable[[Case, bytes], Path]) -> None:
    numpy = pytest.importorskip("numpy")
    plain = paint(10 * case.chunk)
    with formats.open(stored(case, plain), case.key, options=case.options) as file:
        file.seek(16)
        array = numpy.zeros((2, 2 * case.chunk // 8), numpy.float32)
        assert file.readinto(array) == array.nbytes
        assert array.tobytes() == plain[16 : 16 + array.nbytes]
        assert file.tell() == 16 + array.nbytes
        assert file.read(5) == plain[16 + array.nbytes :][:5]
        file.seek(-4, os.SEEK_END)
        assert file.readinto(array) == 4
        assert array.tobytes()[:4] == plain[-4:]
        assert file.readinto(array) == 0
        with pytest.raises(BufferError, match="not C-contiguous"):
            file.readinto(numpy.zeros((4, 4))[:, 1])


def test_long_segments(stored: Callable[[Case, bytes], Path]) -> None:
    case = tink_case("tink-gcm-3MB", segment_size=3 << 20)
    plain = paint(10 << 20)
    with formats.open(stored(case, plain), case.key, options=case.options) as file:
        assert b"".join(iter(lambda: file.read(100_000), b"")) == plain
        file.seek((3 << 20) + 5)
        out = bytearray(6 << 20)
        file.readinto(out)
        assert out == plain[(3 << 20) + 5 :][: 6 << 20]


def test_raw_files_are_read_into_host_memory() -> None:
    numpy = pytest.importorskip("numpy")
    options = formats.Options(algorithm="aes-128-cbc", iv=bytes(16))
    plain, out = paint((3 << 20) + 50), io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), out, bytes(16), format="raw", options=options)
    with formats.open(out, bytes(16), format="raw", options=options) as file:
        array = numpy.zeros(3 << 20, numpy.uint8)
        file.seek(7)
        assert file.readinto(array) == 3 << 20
        assert array.tobytes() == plain[7:][: 3 << 20]
        file.seek(100)
        assert b"".join(iter(lambda: file.read(70_000), b"")) == plain[100:]
        with pytest.raises(ValueError, match="does not authenticate its parts"):
            file.raw.read_range(0, 10, bytearray(10))


@pytest.mark.skipif(has_gpu, reason="there is a GPU")
def test_a_read_to_a_gpu_that_is_not_there(stored: Callable[[Case, bytes], Path]) -> None:
    case = CASES[0]
    path = stored(case, paint(100))
    with formats.open(path, case.key, options=case.options) as file, pytest.raises(wc.EngineError):
        file.read_device(0, 10)


@pytest.mark.parametrize(
    ("offset", "length", "text"),
    [(-1, 5, "offset is -1"), (0, -5, "length is -5"), (90, 11, r"\[90, \+11\) leaves the file")],
)
def test_ranges_that_there_are_not(
    offset: int, length: int, text: str, stored: Callable[[Case, bytes], Path]
) -> None:
    case = CASES[0]
    with (
        formats.open(stored(case, paint(100)), case.key, options=case.options) as file,
        pytest.raises(ValueError, match=text),
    ):
        file.read_device(offset, length)

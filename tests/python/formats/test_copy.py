# SPDX-License-Identifier: Apache-2.0
"""Chunks copied from file to file: what comes out is what streams make, whatever the size, the
place in the file and what is wrong with it."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import warpcipher as wc
from warpcipher import formats
from warpcipher.formats import FormatError, Options, age, chunks, copy_chunks, layout, stream

CHUNK = 64 << 10
COPY = chunks._Chunks.copy
PIECE_SIZE = 1 << 20  # as on two cores: what is copied is longer
ON_CPU = Options(engine="cpu")  # elsewhere pieces go through a GPU where there is one
IDENTITY = age.Identity.generate()
KEYS: dict[str, Any] = {"age": IDENTITY, "cobblestone-256": bytes(range(32))}
SIZES = [
    PIECE_SIZE * 2 + 1,
    *(CHUNK * n + extra for n in (70, 96, 131) for extra in (-1, 0, 1, 7777)),
]


@pytest.fixture(autouse=True)
def _pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", PIECE_SIZE)


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of chunks that each call copied."""
    counts: list[int] = []

    def copy(*call: Any) -> int:
        done = COPY(*call)
        counts.append(done)
        return done

    monkeypatch.setattr(chunks._Chunks, "copy", copy)
    monkeypatch.setattr(copy_chunks, "AT_ONCE", 2 << 20)
    return counts


def encrypt(reader: Any, writer: Any, name: str, **how: Any) -> int:
    key = KEYS[name].recipient if name == "age" else KEYS[name]
    return formats.encrypt_stream(reader, writer, key, format=name, **{"options": ON_CPU, **how})


def decrypt(reader: Any, writer: Any, name: str, **how: Any) -> int:
    return formats.decrypt_stream(
        reader, writer, KEYS[name], format=name, **{"options": ON_CPU, **how}
    )


@pytest.mark.parametrize("buffering", [0, -1])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", KEYS)
def test_files_are_what_streams_make(
    tmp_path: Path, copied: list[int], name: str, size: int, buffering: int
) -> None:
    text = os.urandom(size)
    plain, sealed, back = (tmp_path / kind for kind in ("plain", "sealed", "back"))
    plain.write_bytes(b"before" + text)
    told: list[int] = []
    with plain.open("rb", buffering) as reader, sealed.open("wb", buffering) as writer:
        reader.read(6)
        writer.write(b"first")
        written = encrypt(reader, writer, name, progress=told.append)
        assert writer.tell() == 5 + written
        assert reader.tell() == 6 + size
    assert told == sorted(told)
    assert told[-1] == size
    assert copied
    assert sum(copied) > 0
    memory = io.BytesIO()
    decrypt(io.BytesIO(sealed.read_bytes()[5:]), memory, name)
    assert memory.getvalue() == text

    copied.clear()
    with sealed.open("rb", buffering) as reader, back.open("wb", buffering) as writer:
        reader.read(5)
        assert decrypt(reader, writer, name, progress=told.append) == size
    assert sum(copied) > 0
    assert back.read_bytes() == text
    assert told[-1] == written - (age_header_size(sealed, 5) if name == "age" else 56)


def age_header_size(path: Path, begin: int) -> int:
    data = path.read_bytes()[begin:]
    return data.index(b"\n", data.index(b"\n---") + 1) + 1 + 16


def sealed_file(path: Path, name: str = "age", size: int = 200 * CHUNK + 5) -> bytes:
    text = os.urandom(size)
    with path.open("wb") as writer:
        encrypt(io.BytesIO(text), writer, name)
    return text


@pytest.mark.parametrize("chunk", [40, 41, 130, 199])
def test_a_damaged_chunk_ends_the_plaintext_before_it(
    tmp_path: Path, copied: list[int], chunk: int
) -> None:
    sealed, back = tmp_path / "sealed", tmp_path / "back"
    text = sealed_file(sealed)
    data = bytearray(sealed.read_bytes())
    data[-5 - 16 - (CHUNK + 16) * (200 - chunk) + 100] ^= 1
    sealed.write_bytes(data)
    with (
        sealed.open("rb") as reader,
        back.open("wb", 0) as writer,
        pytest.raises(wc.InvalidTag, match="chunk"),
    ):
        decrypt(reader, writer, "age")
    assert copied
    rest = back.read_bytes()
    assert text.startswith(rest)
    assert len(rest) <= chunk * CHUNK


@pytest.mark.parametrize("cut", [1, CHUNK, 100 * CHUNK, 100 * CHUNK + 21, 5 + 16])
def test_a_truncated_file_is_refused(tmp_path: Path, copied: list[int], cut: int) -> None:
    sealed, back = tmp_path / "sealed", tmp_path / "back"
    text = sealed_file(sealed)
    os.truncate(sealed, sealed.stat().st_size - cut)
    with (
        sealed.open("rb") as reader,
        back.open("wb") as writer,
        pytest.raises((wc.InvalidTag, FormatError)),
    ):
        decrypt(reader, writer, "age")
    assert sum(copied) > 0
    assert text.startswith(back.read_bytes())


@pytest.mark.parametrize("to", [30 * CHUNK + 1, 150 * CHUNK - 9])
def test_a_file_that_shrinks_meanwhile_is_whole_as_far_as_it_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: int
) -> None:
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    text = os.urandom(200 * CHUNK)
    plain.write_bytes(text)

    def shrinking(cipher: Any, source: tuple[int, int], *call: Any) -> int:
        os.truncate(plain, max(to, source[1]))
        return COPY(cipher, source, *call)

    monkeypatch.setattr(chunks._Chunks, "copy", shrinking)
    with plain.open("rb") as reader, sealed.open("wb") as writer:
        try:
            encrypt(reader, writer, "age")
        except OSError as error:  # threads of the call were past the new end
            if "changed while it was encrypted" not in str(error):
                raise
            return
    memory = io.BytesIO()
    decrypt(io.BytesIO(sealed.read_bytes()), memory, "age")
    assert memory.getvalue() == text[: max(to, plain.stat().st_size)]


@pytest.mark.parametrize("to", [None, 0])
@pytest.mark.parametrize("name", KEYS)
def test_a_file_that_shrinks_to_the_chunks_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, to: int | None
) -> None:
    """Their edge, or less: only a format whose final chunk may be empty can end the file there."""
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    text = os.urandom(200 * CHUNK)
    plain.write_bytes(text)
    edges: list[int] = []

    def shrinking(cipher: Any, source: tuple[int, int], *call: Any) -> int:
        os.truncate(plain, source[1] if to is None else to)
        edges.append(source[1])
        return COPY(cipher, source, *call)

    monkeypatch.setattr(chunks._Chunks, "copy", shrinking)
    with plain.open("rb") as reader, sealed.open("wb") as writer:
        if name == "age":
            with pytest.raises(OSError, match="became shorter"):
                encrypt(reader, writer, name)
            return
        encrypt(reader, writer, name)
    memory = io.BytesIO()
    decrypt(io.BytesIO(sealed.read_bytes()), memory, name)
    assert memory.getvalue() == text[: edges[0]]


def test_numbers_of_chunks_are_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a copy that broke off: chunks behind its end may have been on the disk."""
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    plain.write_bytes(bytes(200 * CHUNK))

    def breaking(cipher: Any, source: tuple[int, int], target: tuple[int, int], wanted: int) -> int:
        return COPY(cipher, source, target, wanted // 2)

    monkeypatch.setattr(chunks._Chunks, "copy", breaking)
    with (
        plain.open("rb") as reader,
        sealed.open("wb", 0) as writer,
        pytest.raises(OSError, match="changed while it was encrypted"),
    ):
        encrypt(reader, writer, "age")


def test_a_full_disk_is_the_error_of_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    plain.write_bytes(bytes(200 * CHUNK))
    resource = pytest.importorskip("resource")
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 * CHUNK, before[1]))
    try:
        with plain.open("rb") as reader, sealed.open("wb", 0) as writer, pytest.raises(OSError):  # noqa: PT011
            encrypt(reader, writer, "age")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


class _Full:
    """The disk is full, until the unfinished chunks are cut off."""

    def __init__(self, sealing: Any) -> None:
        self.process, self.copies = sealing.seal, sealing.copies

    def __getattr__(self, name: str) -> Any:
        return self.process

    def copy(self, *_: object) -> tuple[int, int, int]:
        return 2, 0, errno.ENOSPC


def test_a_disk_that_is_full_for_a_moment_is_the_error_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(200 * CHUNK))
    sealing = chunks._Chunks._sealing.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(chunks._Chunks, "_sealing", property(lambda self: _Full(sealing(self))))

    class Named(io.FileIO):
        path = "its name"

        def passed(self, count: int) -> None:
            self.seek(count, os.SEEK_CUR)

    with plain.open("rb") as reader, Named(tmp_path / "sealed", "w") as writer:
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
            encrypt(reader, writer, "age")
        assert caught.value.filename == "its name"


def test_what_is_no_plain_pair_of_files_goes_the_other_way(
    tmp_path: Path, copied: list[int]
) -> None:
    plain = tmp_path / "plain"
    text = os.urandom(150 * CHUNK)
    plain.write_bytes(text)
    appended, longer = tmp_path / "appended", tmp_path / "longer"
    with plain.open("rb") as reader, appended.open("ab") as writer:
        encrypt(reader, writer, "age")
    longer.write_bytes(bytes(300 * CHUNK))
    with plain.open("rb") as reader, longer.open("r+b") as writer:
        size = encrypt(reader, writer, "age")
    with plain.open("rb") as reader:
        memory = io.BytesIO()
        encrypt(reader, memory, "age")
        reader.seek(0)
        armored = tmp_path / "armored"
        with armored.open("wb") as writer:
            encrypt(reader, writer, "age", options=Options(engine="cpu", armor=True))
    assert not copied
    assert longer.stat().st_size == 300 * CHUNK
    for sealed in (
        appended.read_bytes(),
        longer.read_bytes()[:size],
        memory.getvalue(),
        armored.read_bytes(),
    ):
        back = io.BytesIO()
        decrypt(io.BytesIO(sealed), back, "age")
        assert back.getvalue() == text


def test_an_exception_of_progress_leaves_no_plaintext_in_buffers_and_ends_the_run(
    tmp_path: Path, copied: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed, back = tmp_path / "sealed", tmp_path / "back"
    sealed_file(sealed)
    slots: list[Any] = []
    make = stream._Slot.__init__

    def remembered(self: Any, *arguments: Any) -> None:
        make(self, *arguments)
        slots.append(self)

    monkeypatch.setattr(stream._Slot, "__init__", remembered)

    def stop(_: int) -> None:
        raise RuntimeError("enough")

    with (
        sealed.open("rb") as reader,
        back.open("wb") as writer,
        pytest.raises(RuntimeError, match="enough"),
    ):
        decrypt(reader, writer, "age", progress=stop)
    assert len(copied) == 1
    assert all(not any(buffer) for slot in slots for buffer in slot.buffers)


def test_calls_are_short_also_where_a_disk_gets_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is reported after each call: it must not stay as long as while the disk was fast."""
    now = 0.0
    calls: list[tuple[int, float]] = []  # bytes and seconds of each

    class Disk:
        piece = PIECE_SIZE

        def copy(self, _source: Any, _target: Any, chunks: int) -> int:
            nonlocal now
            done = sum(size for size, _ in calls)
            seconds = chunks * CHUNK / (1e7 if 64 << 30 < done < 66 << 30 else 4e9)
            now += seconds
            calls.append((chunks * CHUNK, seconds))
            return chunks

    monkeypatch.setattr(copy_chunks, "time", SimpleNamespace(monotonic=lambda: now))
    source, target = tmp_path / "source", tmp_path / "target"
    source.touch()
    os.truncate(source, 80 << 30)  # sparse
    told: list[int] = []
    with source.open("rb", 0) as reader, target.open("wb", 0) as writer:
        files = copy_chunks.direct(reader), copy_chunks.direct(writer)
        assert files[0] is not None
        assert files[1] is not None
        copy_chunks.Copy(*files, Disk(), (CHUNK, CHUNK)).run(told.append)  # type: ignore[arg-type]
    assert sum(size for size, _ in calls) == told[-1] == (80 << 30) - CHUNK
    slow = [size for size, seconds in calls if seconds > 1]
    assert slow[0] > copy_chunks.AT_ONCE  # that nobody could foresee
    assert set(slow[1:]) == {copy_chunks.AT_ONCE}
    assert calls[-3][0] > copy_chunks.AT_ONCE  # it is fast again

# SPDX-License-Identifier: Apache-2.0
"""Streams: round trips over every edge, pipes, progress, failing files, bounded memory."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from format_cases import CASES, Case, paint
from warpcipher import EngineError, InvalidTag, formats
from warpcipher.formats import base, layout, stream

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(params=[1 << 10, 1 << 16, layout.PIECE_SIZE], ids=["1KiB", "64KiB", "full"])
def piece_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Pieces of several sizes, so that small files cross their edges."""
    monkeypatch.setattr(layout, "PIECE_SIZE", request.param)
    return int(request.param)


@every_case
def test_round_trip_at_every_edge(case: Case, piece_size: int) -> None:
    for size in case.sizes():
        plain = paint(size)
        sealed = case.encrypt(plain)
        assert case.decrypt(sealed) == plain, size
        if size > 8:
            assert plain[:8] not in sealed


@every_case
def test_layout_predicts_sizes_and_offsets(case: Case) -> None:
    chosen = formats.get(case.format)
    for size in case.sizes():
        sealed = case.encrypt(paint(size))
        layout = chosen.decryptor(case.key, sealed, case.options).layout
        assert layout.plaintext_size(len(sealed)) == size
        starts = case.chunk_starts(sealed)
        count = layout.chunk_count(len(sealed))
        # A full final chunk of cobblestone is followed by an empty one, 16 bytes of tag.
        assert count == len(starts) - 1
        assert [layout.file_start(i) for i in range(count)] == starts[:-1]
        for position in {0, size // 2, max(0, size - 1)}:
            index, within = layout.locate(position)
            assert layout.plaintext_start(index) + within == position
            assert 0 <= within < case.chunk


@every_case
def test_two_encryptions_of_one_plaintext_differ(case: Case) -> None:
    first, second = case.encrypt(paint(100)), case.encrypt(paint(100))
    assert first[: case.header] != second[: case.header]
    assert first[case.header :] != second[case.header :]


class Dribble(io.RawIOBase):
    """A stream that gives a few bytes a call and cannot seek, as a pipe does."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._source = io.BytesIO(data)
        self._step = 0

    def readinto(self, buffer: object, /) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        self._step = self._step % 97 + 1
        return self._source.readinto(view[: self._step])


class Reluctant(io.RawIOBase):
    """A raw output that takes part of what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = bytearray()

    def write(self, data: object, /) -> int:
        part = memoryview(data)[:1000]  # type: ignore[arg-type]
        self.taken += part
        return len(part)


@every_case
def test_short_reads_and_short_writes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 1 << 12)
    plain = paint(3 * case.chunk + 5)
    out = Reluctant()
    formats.encrypt_stream(Dribble(plain), out, case.key, format=case.format, options=case.options)
    back = Reluctant()
    formats.decrypt_stream(
        Dribble(bytes(out.taken)), back, case.key, format=case.format, options=case.options
    )
    assert back.taken == plain


def test_pipes_of_the_system() -> None:
    plain = paint(9 << 20)
    read_end, write_end = os.pipe()
    sealed = io.BytesIO()

    def feed() -> None:
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(plain)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with os.fdopen(read_end, "rb") as pipe:
        formats.encrypt_stream(pipe, sealed, bytes(32))
    feeder.join()
    back = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(sealed.getvalue()), back, bytes(32))
    assert back.getvalue() == plain


@every_case
def test_progress_grows_to_the_size_of_the_input(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 1 << 10)
    plain = paint(20 * case.chunk)
    threads = set()
    seen = []

    def progress(done: int) -> None:
        seen.append(done)
        threads.add(threading.get_ident())

    formats.encrypt_stream(
        io.BytesIO(plain), io.BytesIO(), case.key, options=case.options, progress=progress
    )
    assert seen == sorted(seen)
    assert seen[-1] == len(plain)
    assert threads == {threading.get_ident()}


class Failing(io.RawIOBase):
    """Reads zeros, or takes writes, and fails after `good` bytes."""

    def __init__(self, good: int, error: type[BaseException]) -> None:
        super().__init__()
        self._left = good
        self._error = error

    def readinto(self, buffer: object, /) -> int:
        count = min(memoryview(buffer).nbytes, 4096)  # type: ignore[arg-type]
        return self._use(count)

    def write(self, data: object, /) -> int:
        return self._use(memoryview(data).nbytes)  # type: ignore[arg-type]

    def _use(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise self._error("on purpose")
        return count


@pytest.mark.parametrize("good", [0, 100, 300_000, 2_000_000])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failing_reader_or_writer_ends_the_run(
    good: int, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 1 << 16)
    with pytest.raises(error, match="on purpose"):
        formats.encrypt_stream(Failing(good, error), io.BytesIO(), bytes(16))
    with pytest.raises(error, match="on purpose"):
        formats.encrypt_stream(io.BytesIO(paint(4 << 20)), Failing(good, error), bytes(16))
    assert not [
        t for t in threading.enumerate() if t.name in ("warpcipher-cipher", "warpcipher-writer")
    ]


def test_a_failing_progress_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 1 << 16)

    def progress(done: int) -> None:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        formats.encrypt_stream(
            io.BytesIO(paint(1 << 20)), io.BytesIO(), bytes(16), progress=progress
        )


@every_case
def test_an_engine_that_is_not_there_leaves_nothing(case: Case) -> None:
    options = formats.Options(context=case.context, engine="abacus")
    out = io.BytesIO()
    with pytest.raises((EngineError, ValueError), match="abacus"):
        formats.encrypt_stream(io.BytesIO(b"text"), out, case.key, options=options)
    assert out.getvalue() == b""


def test_options_of_the_wrong_type() -> None:
    with pytest.raises(TypeError, match="context is bytes, got str"):
        formats.Options(context="text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="iv is bytes, got int"):
        formats.Options(iv=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="padding is 'zeros': expected auto, pkcs7 or none"):
        formats.Options(padding="zeros")  # type: ignore[arg-type]


def test_paths_and_text_files_are_no_streams(tmp_path: Path) -> None:
    out = io.BytesIO()
    for crypt in (formats.encrypt_stream, formats.decrypt_stream):
        for reader in (str(tmp_path), tmp_path, io.StringIO("text"), b"text"):
            with pytest.raises(TypeError, match=f"reader is {type(reader).__name__}: expected"):
                crypt(reader, out, bytes(16))  # type: ignore[operator]
        with pytest.raises(TypeError, match=r"StringIO: expected a file opened in binary$"):
            crypt(io.BytesIO(b"text"), io.StringIO(), bytes(16))  # type: ignore[operator]
    assert out.getvalue() == b""


class NonBlocking(io.RawIOBase):
    def readinto(self, buffer: object, /) -> None:
        return None

    def write(self, data: object, /) -> None:
        return None


def test_non_blocking_files_are_refused() -> None:
    with pytest.raises(BlockingIOError, match="input"):
        formats.encrypt_stream(NonBlocking(), io.BytesIO(), bytes(16))
    with pytest.raises(BlockingIOError, match="output"):
        formats.encrypt_stream(io.BytesIO(b"x"), NonBlocking(), bytes(16))


@pytest.mark.parametrize("damaged", [0, 3, 4, 200, 255, 256])
def test_only_authenticated_pieces_are_written(
    damaged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 4 * 16400)
    case = CASES[0]
    plain = paint(256 * 16384 + 9)
    sealed = bytearray(case.encrypt(plain))
    sealed[56 + damaged * 16400] ^= 1
    out = io.BytesIO()
    with pytest.raises(InvalidTag, match=f"chunk {damaged} "):
        case.decrypt_to(out, bytes(sealed))
    assert out.getvalue() == plain[: damaged // 4 * 4 * 16384][: len(out.getvalue())]
    assert len(out.getvalue()) <= damaged // 4 * 4 * 16384


@every_case
def test_plaintext_is_wiped_from_the_output_buffer_when_a_chunk_fails(case: Case) -> None:
    plain = paint(3 * case.chunk)
    sealed = bytearray(case.encrypt(plain))
    sealed[-1] ^= 1
    decryptor = formats.get(case.format).decryptor(case.key, sealed, case.options)
    out = bytearray(len(plain) + case.overhead)
    with pytest.raises(InvalidTag, match="failed authentication"):
        decryptor.process(memoryview(sealed)[case.header :], memoryview(out), final=True)
    assert not any(out)


def test_buffers_and_keys_are_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 1 << 16)
    slots: list[stream._Slot] = []
    original = stream._Slot.__init__

    def remember(self: stream._Slot, cipher: base.PieceCipher, most: int | None = None) -> None:
        original(self, cipher, most)
        slots.append(self)

    monkeypatch.setattr(stream._Slot, "__init__", remember)
    case = CASES[1]
    sealed = case.encrypt(paint(1 << 20))
    case.decrypt(sealed)
    assert len(slots) == 2 * stream.SLOTS
    assert not any(any(buffer) for slot in slots for buffer in slot.buffers)
    encryptor = formats.get(case.format).encryptor(case.key, case.options)
    encryptor.close()
    with pytest.raises(ValueError, match="closed"):
        encryptor.process(memoryview(b"text"), memoryview(bytearray(100)), final=True)


def test_an_interrupt_ends_a_run_that_waits_for_input() -> None:
    script = (
        "import io, sys\n"
        "from warpcipher import formats\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    formats.encrypt_stream(sys.stdin.buffer.raw, io.BytesIO(), bytes(32))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.stdin.write("x" * 60_000)
        child.stdin.flush()
        time.sleep(0.3)
        child.send_signal(2)
        assert child.stdout.readline() == "interrupted\n"
        child.stdin.close()
        assert child.wait(30) == 0


@pytest.mark.parametrize("call", [formats.encrypt_stream, formats.decrypt_stream])
def test_options_of_another_type(call: Any) -> None:
    with pytest.raises(TypeError, match=r"options is dict: expected warpcipher\.formats\.Options"):
        call(io.BytesIO(), io.BytesIO(), bytes(32), options={"context": b""})

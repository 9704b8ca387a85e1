# SPDX-License-Identifier: Apache-2.0
"""File objects whose methods return what they must not: an error that says so, never an endless
loop, and no text that was not read."""

from __future__ import annotations

import errno
import io
import itertools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import layout, stream, whole

KEY = bytes(16)


class Calls(io.RawIOBase):
    """A file of bytes that answers as it should, but for one call of a method."""

    def __init__(self, data: bytes, method: str, after: int, answer: Callable[[int], Any]) -> None:
        super().__init__()
        self.inner = io.BytesIO(data)
        self.method, self.left, self.answer = method, after, answer

    def wrong(self, method: str, length: int) -> tuple[Any, ...]:
        if method != self.method:
            return ()
        self.left -= 1
        return (self.answer(length),) if self.left < 0 else ()

    def readinto(self, buffer: Any, /) -> Any:
        wrong = self.wrong("readinto", len(buffer))
        return wrong[0] if wrong else self.inner.readinto(buffer[:50_000])

    def write(self, data: Any, /) -> Any:
        wrong = self.wrong("write", len(data))
        return wrong[0] if wrong else self.inner.write(data[:50_000])

    def seek(self, place: int, whence: int = 0, /) -> Any:
        wrong = self.wrong("seek", 0)
        return wrong[0] if wrong else self.inner.seek(place, whence)


# Answers of a method that moves n bytes, and what the error says of it.
NEVER: dict[str, tuple[Callable[[int], Any], type[Exception], str]] = {
    "-1": (lambda n: -1, OSError, "returned -1: expected"),
    "-n": (lambda n: -n, OSError, r"returned -\d+: expected"),
    "n + 1": (lambda n: n + 1, OSError, r"returned \d+: expected . to \d+ bytes"),
    "2^70": (lambda n: 1 << 70, OSError, "returned 1180591620717411303424: expected"),
    "text": (lambda n: "4", TypeError, "returned str: expected an int"),
    "float": (lambda n: 4.0, TypeError, "returned float: expected an int"),
    "None": (lambda n: None, BlockingIOError, "non-blocking"),
}
every_answer = pytest.mark.parametrize(("answer", "kind", "text"), NEVER.values(), ids=NEVER)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 1 << 16)


@every_answer
@pytest.mark.parametrize("after", [0, 1, 9])
@pytest.mark.parametrize("crypt", ["encrypt", "decrypt"])
def test_a_wrong_answer_ends_a_stream(
    crypt: str, after: int, answer: Any, kind: type[Exception], text: str
) -> None:
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(paint(1 << 20)), sealed, KEY)
    given = paint(1 << 20) if crypt == "encrypt" else sealed.getvalue()
    run = formats.encrypt_stream if crypt == "encrypt" else formats.decrypt_stream
    with pytest.raises(kind, match=text):
        run(Calls(given, "readinto", after, answer), io.BytesIO(), KEY)
    out = Calls(b"", "write", after, answer)
    with pytest.raises(kind, match=text):
        run(io.BytesIO(given), out, KEY)
    wanted = io.BytesIO()
    run(io.BytesIO(given), wanted, KEY)
    if crypt == "decrypt":
        assert wanted.getvalue().startswith(out.inner.getvalue())


@pytest.mark.parametrize("size", [0, 5, 1 << 20])
@pytest.mark.parametrize("after", [0, 1])
def test_a_write_of_nothing_is_no_endless_loop(size: int, after: int) -> None:
    with pytest.raises(OSError, match=r"write of Calls returned 0: expected 1 to \d+ bytes"):
        formats.encrypt_stream(
            io.BytesIO(paint(size)), Calls(b"", "write", after, lambda n: 0), KEY
        )


def test_the_whole_message_formats() -> None:
    """raw in a mode that cannot be cut holds its text in memory: another way to the same loops."""
    options = formats.Options(algorithm="aes-128-gcm", iv=bytes(12))
    for method, error in (("readinto", "returned -1"), ("write", "returned -1")):
        bad, good = Calls(paint(9), method, 0, lambda n: -1), io.BytesIO(paint(9))
        reader, writer = (bad, io.BytesIO()) if method == "readinto" else (good, bad)
        with pytest.raises(OSError, match=error):
            formats.encrypt_stream(reader, writer, KEY, format="raw", options=options)


@every_answer
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_wrong_answer_ends_random_access(
    after: int, answer: Any, kind: type[Exception], text: str
) -> None:
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(paint(200_000)), sealed, KEY)
    source = Calls(sealed.getvalue(), "readinto", after, answer)
    with pytest.raises(kind, match=text), formats.open(source, KEY) as file:
        file.read()


@pytest.mark.parametrize("answer", [-1, None, "8", 4.0])
def test_a_seek_that_returns_no_size(answer: Any) -> None:
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(b"text"), sealed, KEY)
    with pytest.raises((OSError, TypeError), match="seek of Calls returned"):
        formats.open(Calls(sealed.getvalue(), "seek", 0, lambda n: answer), KEY)


def test_a_file_that_ends_early_is_told_from_one_that_errs() -> None:
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(paint(200_000)), sealed, KEY)
    with pytest.raises(formats.FormatError, match=r"ended at byte \d+ while it was read"):
        formats.open(Calls(sealed.getvalue(), "readinto", 1, lambda n: 0), KEY)


def test_numbers_of_other_types() -> None:
    """Objects with __index__ are numbers, NumPy's among them; a bool is one in Python."""

    class Number:
        def __index__(self) -> int:
            return 3

    taken = bytearray()

    class Writer:
        def write(self, data: memoryview, /) -> Any:
            part = data[: 3 if len(data) > 1 else 1]
            taken.extend(part)
            return Number() if len(part) == 3 else True

    whole.write_whole(Writer(), memoryview(b"abcdefg"))
    assert taken == b"abcdefg"


class Steps(io.RawIOBase):
    """A file of bytes that moves up to 30,000 at a time, and at call number `at` does something
    else first. moved: bytes of all calls."""

    def __init__(self, data: bytes, at: int, mishap: Callable[[Steps], int]) -> None:
        super().__init__()
        self.inner = io.BytesIO(data)
        self.left, self.mishap, self.moved = at, mishap, 0

    def most(self) -> int:
        self.left -= 1
        most = self.mishap(self) if self.left == -1 else 30_000
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return most

    def readinto(self, buffer: Any, /) -> int:
        count = self.inner.readinto(buffer[: self.most()])
        self.moved += count
        return count

    def write(self, data: Any, /) -> int:
        count = self.inner.write(data[: self.most()])
        self.moved += count
        return count


def fails(file: Steps) -> int:
    raise OSError(errno.EIO, "on purpose")


def is_closed(file: Steps) -> int:
    file.close()
    return 1


def is_short(file: Steps) -> int:
    return 1


def blocks(file: Steps) -> int:
    time.sleep(0.02)
    return 30_000


def threads() -> list[str]:
    """Threads of a stream: threads that read tables stay."""
    names = ("warpcipher-cipher", "warpcipher-writer")
    return [one.name for one in threading.enumerate() if one.name in names]


@pytest.mark.parametrize("side", ["reader", "writer"])
@pytest.mark.parametrize("crypt", ["encrypt", "decrypt"])
@pytest.mark.parametrize("mishap", [fails, is_closed, is_short, blocks])
def test_a_mishap_at_each_step(
    crypt: str, side: str, mishap: Callable[[Steps], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", bytes)  # so that one encryption is as another
    plain, sealed = paint(400_000), io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), sealed, KEY)
    given, wanted = plain, sealed.getvalue()
    run = formats.encrypt_stream
    if crypt == "decrypt":
        given, wanted, run = wanted, given, formats.decrypt_stream
    for at in itertools.count():
        reader = Steps(given, at if side == "reader" else -1, mishap)
        writer = Steps(b"", at if side == "writer" else -1, mishap)
        error = ""
        try:
            count = run(reader, writer, KEY)
        except (OSError, ValueError) as raised:
            error = str(raised)
        found = writer.inner.getvalue()
        assert len(found) == writer.moved
        assert not threads()
        if not error:
            assert (count, found) == (len(wanted), wanted)
            if mishap in (fails, is_closed) or at > 20:
                break
            continue
        assert mishap in (fails, is_closed)
        assert ("on purpose" if mishap is fails else "closed file") in error
        assert wanted.startswith(found)
        assert found != wanted
        # Nothing stands for what was not read: a chunk is all there, or not at all.
        assert len(found) <= 56 + reader.moved // 16384 * 16400
    assert at > 10


def test_a_reader_that_fails_while_a_write_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "JOIN_SECONDS", 0.1)
    is_stuck, goes_on = threading.Event(), threading.Event()

    def sticks(file: Steps) -> int:
        is_stuck.set()
        goes_on.wait(60)
        return 30_000

    def fails_then(file: Steps) -> int:
        is_stuck.wait(60)
        return fails(file)

    plain = paint(400_000)
    writer = Steps(b"", 1, sticks)
    with pytest.raises(OSError, match="on purpose"):
        formats.encrypt_stream(Steps(plain, 7, fails_then), writer, KEY)
    assert threads(), "they are daemons, and wait for the write"
    goes_on.set()
    for _ in range(500):
        if not threads():
            break
        time.sleep(0.01)
    assert not threads()
    sealed = writer.inner.getvalue()
    out = io.BytesIO()
    with pytest.raises((formats.FormatError, InvalidTag)):
        formats.decrypt_stream(io.BytesIO(sealed), out, KEY)
    assert plain.startswith(out.getvalue())


class Places(Steps):
    """The same, which can be read at any place."""

    def seek(self, place: int, whence: int = 0, /) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return self.inner.seek(place, whence)


@pytest.mark.parametrize("mishap", [fails, is_closed, is_short, blocks])
def test_a_mishap_at_each_step_of_random_access(mishap: Callable[[Steps], int]) -> None:
    plain, sealed = paint(400_000), io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), sealed, KEY)
    places = [(0, 10), (10, 100_000), (100_010, 50_000), (390_000, 20_000), (5, 300_000)]
    for at in itertools.count():
        source = Places(sealed.getvalue(), at, mishap)
        failures = 0
        try:
            file = formats.open(source, KEY)
        except (OSError, ValueError):
            assert mishap in (fails, is_closed)
            continue
        with file:
            for begin, count in places:
                out = bytearray(b"?" * count)
                file.seek(begin)
                try:
                    done = file.readinto(out)
                except (OSError, ValueError):
                    failures += 1
                    assert not out.strip(b"?\0"), "nothing of the text is left"
                    continue
                assert out[:done] == plain[begin : begin + count]
        assert not failures or mishap in (fails, is_closed)
        assert failures < 2 or mishap is is_closed, "what failed once is read the next time"
        if source.left >= 0:
            break
    assert at > 10

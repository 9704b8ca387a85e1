# SPDX-License-Identifier: Apache-2.0
"""Sources and sinks that fail, stop, do less than asked or are closed, at every call and in both
directions: the sink has an exact prefix of what it was to have, and no thread is left."""

from __future__ import annotations

import io
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from format_cases import CASES, Case, paint
from warpcipher import formats
from warpcipher.formats import layout, stream

KINDS = ["raises", "is closed", "would block", "lies"]
FIXED = [case for case in CASES if case.name.startswith(("cobblestone", "tink", "age"))]
"""Whose files are the same each time, where the system's random bytes are."""


class Turning(io.RawIOBase):
    """A file of one direction that goes wrong at call number `at`, and does a part of each call
    before."""

    def __init__(self, data: bytes, at: int, kind: str) -> None:
        self._rest = io.BytesIO(data)
        self.written = bytearray()
        self._left, self._kind = at, kind

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def _call(self, size: int, work: Callable[[int], int]) -> Any:
        self._left -= 1
        if self._left >= 0:
            return work(max(1, size * 2 // 3))
        if self._kind == "raises":
            raise OSError(5, "the file is broken")
        if self._kind == "is closed":
            raise ValueError("I/O operation on closed file")
        return None if self._kind == "would block" else size + 1

    def readinto(self, out: Any) -> Any:
        view = memoryview(out)
        return self._call(len(view), lambda size: self._rest.readinto(view[:size]))

    def write(self, data: Any) -> Any:
        view = memoryview(data)
        return self._call(len(view), lambda size: self._keep(view[:size]))

    def _keep(self, view: memoryview) -> int:
        self.written += view
        return len(view)


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And as many threads after a test as before."""
    monkeypatch.setattr(layout, "PIECE_SIZE", 1)
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def run(case: Case, encrypts: bool, reader: Any, writer: Any) -> None:
    work = formats.encrypt_stream if encrypts else formats.decrypt_stream
    work(reader, writer, case.key, format=case.format, options=case.options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encrypts", [True, False])
@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.name)
def test_each_call(case: Case, encrypts: bool, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = paint(3 * case.chunk + 5)
    if not encrypts:
        source = case.encrypt(source)

    def again() -> None:
        """From here on the same random bytes."""
        numbers = itertools.cycle(range(256))
        monkeypatch.setattr(os, "urandom", lambda size: bytes(itertools.islice(numbers, size)))

    again()
    whole = io.BytesIO()
    run(case, encrypts, io.BytesIO(source), whole)
    for side in ("reader", "writer"):
        for at in range(200):
            again()
            bad = Turning(source, at, kind)
            sink: Any = bad if side == "writer" else io.BytesIO()
            try:
                run(case, encrypts, bad if side == "reader" else io.BytesIO(source), sink)
            except formats.FormatError:
                pytest.fail(f"{side}, call {at}: passes for a wrong file")
            except (OSError, ValueError):
                pass
            else:
                break
            written = sink.written if side == "writer" else sink.getvalue()
            assert whole.getvalue().startswith(bytes(written)), (side, at)
        assert at > 4, side
        final = sink.written if side == "writer" else sink.getvalue()
        assert final == whole.getvalue(), (side, at)


def test_every_thread_of_a_stream_is_counted() -> None:
    """The check of the fixture sees threads of a stream that runs."""
    seen: list[int] = []

    class Counting(io.BytesIO):
        def write(self, data: Any) -> int:
            seen.append(threading.active_count())
            return super().write(data)

    formats.encrypt_stream(io.BytesIO(bytes(300_000)), Counting(), bytes(32))
    assert max(seen) > threading.active_count()
    assert stream.SLOTS > 1

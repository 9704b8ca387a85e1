# SPDX-License-Identifier: Apache-2.0
"""Readers and writers that do less than asked, more than is possible, raise, or return what is no
number: a stream comes out whole, or ends with an error, and never hangs."""

from __future__ import annotations

import random
from typing import Any

import pytest
import warpcipher as wc
from format_cases import CASES
from warpcipher import formats

WRONG: tuple[Any, ...] = (None, 0, -1, -(1 << 70), 1 << 40, 1.5, "1", OSError("injected"))
"""A result that no file returns, or an error. `readinto` may return 0: at the end."""


class Faulty:
    """A reader or a writer in pieces of random sizes, with something wrong at call number `at`."""

    def __init__(self, choose: random.Random, data: bytes = b"") -> None:
        self.choose = choose
        self.rest = memoryview(data)
        self.written = b""
        self.at = choose.choice((None, None, 1, 2, choose.randint(1, 200)))
        self.wrong = choose.choice(WRONG)
        self.calls = 0

    @property
    def went_wrong(self) -> bool:
        return self.at is not None and self.calls >= self.at

    def size(self, most: int) -> int:
        return min(most, self.choose.choice((1, 100, 5000, 1 << 20)))

    def fail(self) -> Any:
        if isinstance(self.wrong, OSError):
            raise self.wrong
        return self.wrong

    def readinto(self, buffer: memoryview) -> Any:
        self.calls += 1
        if self.calls == self.at:
            return self.fail()
        count = self.size(min(len(buffer), len(self.rest)))
        buffer[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count

    def write(self, data: memoryview) -> Any:
        self.calls += 1
        if self.calls == self.at:
            return self.fail()
        count = self.size(len(data))
        self.written += data[:count]
        return count


@pytest.mark.cases(60)
def test_streams_of_faulty_files(choose: random.Random) -> None:
    case = choose.choice(CASES)
    text = choose.randbytes(choose.choice((0, 50, 3000, 100_000)))
    encrypts = choose.random() < 0.5
    reader = Faulty(choose, text if encrypts else case.encrypt(text))
    writer = Faulty(choose)
    call = formats.encrypt_stream if encrypts else formats.decrypt_stream
    try:
        count = call(reader, writer, case.key, format=case.format, options=case.options)
    except (OSError, TypeError, wc.InvalidTag, formats.FormatError):
        assert reader.went_wrong or writer.went_wrong
        assert encrypts or text.startswith(writer.written)
        return
    assert not writer.went_wrong
    assert count == len(writer.written)
    found = case.decrypt(writer.written) if encrypts else writer.written
    if reader.went_wrong:  # 0 is the end of a file
        assert reader.wrong == 0
        assert text.startswith(found)
    assert found == text or (encrypts and reader.went_wrong)

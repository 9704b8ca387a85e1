# SPDX-License-Identifier: Apache-2.0
"""Which bytes of a decrypted text are the content of a file: Crypt4GH's edit lists.

A list of lengths: bytes to leave out, to keep, to leave out, ... After a last length that leaves
out, all the rest is kept; after one that keeps, nothing is (GA4GH, crypt4gh.pdf, data edit list).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from .whole import Writer, write_whole

ENDLESS = 1 << 64
"""More bytes than any text has."""


class Kept:
    """The ranges of a text that are kept, in order. size: bytes of all of them."""

    def __init__(self, size: int, lengths: Sequence[int] | None = None) -> None:
        """size: bytes of the text; ranges end where it does. lengths: see above; None: all is
        kept."""
        self.ranges: list[tuple[int, int]] = []
        position = 0
        for place, length in enumerate([0] if lengths is None else lengths):
            if place % 2:
                self._keep(position, min(position + length, size))
            position += length
        if lengths is None or len(lengths) % 2:
            self._keep(position, size)
        self._starts = [0, *accumulate(end - begin for begin, end in self.ranges)]
        self.size = self._starts.pop()

    def _keep(self, begin: int, end: int) -> None:
        if self.ranges and self.ranges[-1][1] == begin:
            begin = self.ranges.pop()[0]
        if begin < end:
            self.ranges.append((begin, end))

    def locate(self, position: int) -> tuple[int, int]:
        """Where byte number `position` of the content lies in the text, and how many bytes of the
        content follow each other there, this one included."""
        place = bisect_right(self._starts, position) - 1
        begin, end = self.ranges[place]
        begin += position - self._starts[place]
        return begin, end - begin


class KeptWriter:
    """Takes a text in pieces and writes what is kept of it. count: bytes that it wrote."""

    def __init__(self, writer: Writer, lengths: Sequence[int]) -> None:
        self._writer = writer
        self._ranges = iter(Kept(ENDLESS, lengths).ranges)
        self._begin, self._end = next(self._ranges, (ENDLESS, ENDLESS))
        self._position = 0
        self.count = 0

    def write(self, data: memoryview, /) -> int:
        start, stop = self._position, self._position + len(data)
        while self._begin < stop:
            part = data[max(self._begin - start, 0) : self._end - start]
            write_whole(self._writer, part)
            self.count += len(part)
            if self._end > stop:
                break
            self._begin, self._end = next(self._ranges, (ENDLESS, ENDLESS))
        self._position = stop
        return len(data)

# SPDX-License-Identifier: Apache-2.0
"""Which key numbers are done: sets of integers as ranges, and the part of a space for one shard."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ..arguments import kind, require_int

Range = tuple[int, int]  # first, and one past the last


class RangeSet:
    """A set of integers, kept as disjoint ranges in order that do not touch."""

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._ranges: list[Range] = []
        for first, end in ranges:
            self.add(first, end)

    def add(self, first: int, end: int) -> None:
        """Adds first to end - 1, some of which may be there already."""
        if first >= end:
            return
        low = bisect_left(self._ranges, first, key=lambda entry: entry[1])
        high = low
        while high < len(self._ranges) and self._ranges[high][0] <= end:
            first = min(first, self._ranges[high][0])
            end = max(end, self._ranges[high][1])
            high += 1
        self._ranges[low:high] = [(first, end)]

    def remove(self, first: int, end: int) -> None:
        """Removes first to end - 1, at least one, some of which may be missing."""
        kept: list[Range] = []
        for low, high in self._ranges:
            if low < first:
                kept.append((low, min(high, first)))
            if high > end:
                kept.append((max(low, end), high))
        self._ranges = kept

    def first_gap(self, first: int, end: int) -> Range | None:
        """The first range of numbers from `first` to `end - 1` that is missing."""
        for low, high in self._ranges:
            if high <= first:
                continue
            if low > first:
                return first, min(low, end)
            first = high
            if first >= end:
                return None
        return (first, end) if first < end else None

    def __len__(self) -> int:
        raise TypeError("a RangeSet may hold more numbers than len() can return: use count")

    @property
    def count(self) -> int:
        return sum(end - first for first, end in self._ranges)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RangeSet) and self._ranges == other._ranges

    __hash__ = None  # type: ignore[assignment]


def select(keys: int, start: int, count: int | None, shard: tuple[int, int] | None) -> Range:
    """The range to search of `keys` numbers: `count` of them from `start` on, of which the shard
    (i, n), i from 1 to n, takes one of n equal parts. Raises ValueError if there is none,
    TypeError for anything but an int."""
    start = require_int("start", start)
    if count is not None:
        count = require_int("count", count, 1)
    if not 0 <= start < keys:
        raise ValueError(f"start is {start}: the keys are numbered 0 to {keys - 1}")
    end = keys if count is None else min(keys, start + count)
    if shard is None:
        return start, end
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise TypeError(f"the shard is {kind(shard)}: expected two ints, (part, parts)")
    index, parts = (require_int("a number of the shard", number) for number in shard)
    if not 1 <= index <= parts:
        raise ValueError(f"the shard is {index}/{parts}, expected 1/{parts} to {parts}/{parts}")
    size = end - start
    first, last = start + size * (index - 1) // parts, start + size * index // parts
    if first == last:
        raise ValueError(f"shard {index}/{parts} of {size} keys is empty")
    return first, last

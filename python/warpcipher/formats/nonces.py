# SPDX-License-Identifier: Apache-2.0
"""The nonces of the chunks of a file, many at once."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=8)
def _column_constants(width: int, capacity: int) -> tuple[int, int]:
    """Columns of `width`-byte fields, each one integer: 1, 1, 1, ... and 0, 1, 2, ..."""
    ones = int.from_bytes((b"\0" * (width - 1) + b"\1") * capacity, "big")
    ramp = b"".join(i.to_bytes(width, "big") for i in range(capacity))
    return ones, int.from_bytes(ramp, "big")


class NonceColumn:
    """The nonces of consecutive chunks in one buffer, with no Python work for each of them.

    nonce(i) = template XOR (i << counter_shift) XOR (final ? 1 << final_shift : 0), big-endian.
    All fields of a column are added and XORed at once as one long integer: counters stay below the
    width of a field, so no carry leaves it.
    """

    def __init__(
        self, template: bytes, capacity: int, counter_shift: int, final_shift: int | None
    ) -> None:
        self.template = template
        self.counter_shift = counter_shift
        self.final_shift = final_shift
        self._width = len(template)
        self._capacity = capacity
        self._ones, self._ramp = _column_constants(len(template), capacity)
        self._base = int.from_bytes(template * capacity, "big")

    def build(self, first: int, count: int, final: bool) -> bytes:
        """`count` nonces (at most the capacity) from chunk `first` on; `final` marks the last of
        them."""
        column = self._base ^ ((self._ramp + first * self._ones) << self.counter_shift)
        column >>= 8 * self._width * (self._capacity - count)
        if final and self.final_shift is not None:
            column ^= 1 << self.final_shift
        return column.to_bytes(self._width * count, "big")

    def build_many(self, first: int, count: int, final: bool) -> bytes:
        """As `build`, of any count."""
        built, end, most = [], first + count, self._capacity
        for begin in range(first, end, most):
            left = end - begin
            built.append(self.build(begin, min(most, left), final and left <= most))
        return b"".join(built)

# SPDX-License-Identifier: Apache-2.0
"""Parts of a tensor, read without the rest of it: which bytes an index needs, and in which rows
they lie."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

from .frameworks import Framework
from .header import DTYPES, TensorInfo, shown

Read = Callable[[int, Any], None]
"""`read(offset, block)` fills a block from a byte of the data on."""

GROUP = 8 << 20
"""Bytes of rows and gaps that are read at once."""


class Box(NamedTuple):
    """The part of a tensor that an index takes.

    ranges: first and end index that are read of each dimension. rest: the index that takes the
    result out of the read part; None if that part is the result.
    """

    ranges: tuple[tuple[int, int], ...]
    rest: tuple[int | slice, ...] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that is read."""
        return tuple(end - first for first, end in self.ranges)


def box(index: object, shape: tuple[int, ...]) -> Box:
    """The box of an index as NumPy has it: ints, slices with a positive step, one ellipsis.

    Raises IndexError and TypeError.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    ellipses = [place for place, entry in enumerate(entries) if entry is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index has one ellipsis at most")
    if len(entries) - len(ellipses) > len(shape):
        raise IndexError(f"{len(entries)} indices for a tensor of {len(shape)} dimensions")
    fill = [slice(None)] * (len(shape) - len(entries) + len(ellipses))
    place = ellipses[0] if ellipses else len(entries)
    entries[place : place + len(ellipses)] = fill
    ranges: list[tuple[int, int]] = []
    rest: list[int | slice] = []
    for dimension, (entry, length) in enumerate(zip(entries, shape, strict=True)):
        first, end, after = _range(entry, length, dimension)
        ranges.append((first, end))
        rest.append(after)
    whole = all(entry == slice(None) for entry in rest)
    return Box(tuple(ranges), None if whole else tuple(rest))


def _range(entry: object, length: int, dimension: int) -> tuple[int, int, int | slice]:
    """First and end index to read, and the index of the wanted part in that."""
    if isinstance(entry, slice):
        first, end, step = entry.indices(length)
        if step < 1:
            raise IndexError(f"a step of {step} for dimension {dimension}: expected 1 or more")
        count = len(range(first, end, step))
        if count == 0:
            return first, first, slice(None)
        end = first + (count - 1) * step + 1
        return first, end, slice(None) if step == 1 else slice(None, None, step)
    try:
        number = operator.index(entry)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(entry, bool):
        raise TypeError(
            f"an index of {type(entry).__name__} for dimension {dimension}: expected an int, a "
            "slice or ..."
        )
    if not -length <= number < length:
        raise IndexError(f"index {number} for dimension {dimension}, which has {length}")
    return number % length, number % length + 1, 0


def read_box(
    framework: Framework, read: Read, name: str, info: TensorInfo, wanted: Box, smallest_gap: int
) -> Any:
    """The tensor that a box takes. smallest_gap: bytes between two rows; with fewer it costs less
    to read them, and throw them away, than to read each row by itself."""
    shape, ranges, item = _in_bytes(name, info, wanted)
    out = framework.block(math.prod(end - first for first, end in ranges) * item)
    if len(out):
        try:
            _fill(framework, read, info, _rows(shape, ranges, item), smallest_gap, out)
        except BaseException:
            framework.wipe(out)
            raise
    return tensor_of(framework, out, info.dtype, wanted.shape, name, wanted.rest)


def _in_bytes(
    name: str, info: TensorInfo, wanted: Box
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...], int]:
    """Shape, ranges and bytes of an element; of packed elements the last dimension is in bytes.
    Raises TypeError where the box takes a part of a byte."""
    bits = DTYPES[info.dtype].bits
    if bits % 8 == 0:
        return info.shape, wanted.ranges, bits // 8
    last = (*wanted.ranges[-1:], (0, info.shape[-1])) if info.shape else ()
    is_whole = wanted.rest is None or wanted.rest[-1:] == (slice(None),)
    if not last or not is_whole or any(place * bits % 8 for pair in last for place in pair):
        raise TypeError(
            f"tensor {shown(name)} is {info.dtype}, whose elements share bytes: take whole bytes "
            f"of the last dimension, a multiple of {8 // math.gcd(8, bits)} elements, or all"
        )
    (first, end), (_, length) = ((a * bits // 8, b * bits // 8) for a, b in last)
    return (*info.shape[:-1], length), (*wanted.ranges[:-1], (first, end)), 1


def tensor_of(
    framework: Framework,
    block: Any,
    dtype: str,
    shape: tuple[int, ...],
    name: str,
    rest: tuple[int | slice, ...] | None = None,
) -> Any:
    """The tensor in its own block, or a part of it, as a caller is given it. Memory that is
    not given out is wiped, after an error all. Raises TypeError: the library has no such dtype."""
    fitting = block
    given = False
    try:
        fitting = framework.aligned(block, dtype)
        tensor = framework.tensor(fitting, dtype, shape, name)
        found = tensor if rest is None else framework.item(tensor, rest)
        found = framework.given(found)
        given = rest is None
        return found
    finally:
        if fitting is not block or not given:
            framework.wipe(block)
        if fitting is not block and not given:
            framework.wipe(fitting)


def _fill(
    framework: Framework,
    read: Read,
    info: TensorInfo,
    rows: Iterator[tuple[int, int, int, int]],
    smallest_gap: int,
    out: Any,
) -> None:
    """Reads row by row where rows are far apart, else groups of rows with the gaps between them."""
    done = 0
    for start, count, stride, length in rows:
        group = 1 if stride - length >= smallest_gap else max(1, GROUP // stride)
        for row in range(0, count, group):
            taken = min(group, count - row)
            part = out[done : done + taken * length]
            first = info.start + start + row * stride
            if taken == 1 or stride == length:
                read(first, part)
            else:
                block = framework.block((taken - 1) * stride + length)
                try:
                    read(first, block)
                    framework.pack(part, block, taken, stride, length)
                finally:
                    framework.wipe(block)
            done += taken * length


def _rows(
    shape: tuple[int, ...], ranges: tuple[tuple[int, int], ...], item: int
) -> Iterator[tuple[int, int, int, int]]:
    """Sets of rows that are evenly apart, in the order of the result: offset of the first, their
    number, bytes from one to the next, bytes of each."""
    strides = [item] * (len(shape) + 1)
    for dimension in range(len(shape) - 1, -1, -1):
        strides[dimension] = strides[dimension + 1] * shape[dimension]
    # strides[d + 1] is the distance of neighbours in dimension d. A row runs through the last
    # dimension that is not taken whole, and all after it.
    cut = len(shape) - 1
    while cut > 0 and ranges[cut] == (0, shape[cut]):
        cut -= 1
    if not shape:
        yield 0, 1, item, item
        return
    first, end = ranges[cut]
    length = (end - first) * strides[cut + 1]
    if cut == 0:
        yield first * strides[1], 1, length, length
        return
    # Rows stay evenly apart over a dimension that is taken whole.
    over = cut - 1
    count = ranges[over][1] - ranges[over][0]
    while over > 0 and ranges[over] == (0, shape[over]):
        over -= 1
        count *= ranges[over][1] - ranges[over][0]
    begin = ranges[over][0] * strides[over + 1] + first * strides[cut + 1]
    for outer in product(*(range(*entry) for entry in ranges[:over])):
        start = sum(index * strides[d + 1] for d, index in enumerate(outer))
        yield begin + start, count, strides[cut], length

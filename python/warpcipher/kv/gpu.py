# SPDX-License-Identifier: Apache-2.0
"""Blocks on a GPU: where their bytes lie, and how sealed ones travel between it and other memory.

PyTorch is handed in: nothing here needs it before there are its tensors.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

PIECE_MULTIPLE = 64
LEAST_PIECE = 1 << 10
"""Of shorter pieces the kernels would take one at a time as slowly as longer ones."""
MOST_PIECES = 1 << 13

LAYOUT_PART = 1 << 31
"""Bytes of one call of the kernels: the host prepares one while the GPU runs another."""
FIRST_PART = 1 << 28
"""Of blocks to be opened, as nothing runs yet."""
GROWTH = 4
"""Of the next parts."""
LAYOUT_BLOCKS = 3 << 10
"""Whose arrays, up to 1 MiB, are sent without a wait for the stream."""
LAYOUT_PIECES = 1 << 20
"""Each has 80 bytes of memory in a call."""

SLOT = 1 << 25
"""Bytes that are encrypted while others are copied."""
SLOTS = 3


class Layout(NamedTuple):
    """Where blocks lie: each is so many pieces of one size.

    places: for each piece its address in block 0, and its step from each block to the next.
    owner:  of memory of other libraries than PyTorch, which itself waits for its streams; or None.
    """

    places: array[int]
    size: int
    owner: Any

    @property
    def most_blocks(self) -> int:
        """Of one call."""
        return min(LAYOUT_BLOCKS, 2 * LAYOUT_PIECES // len(self.places))


def layout_of(tensors: list[Any], axis: int, owner: Any = None) -> Layout | None:
    """None: the pieces are too short, or not whole blocks of the ciphers."""
    runs = []
    for tensor in tensors:
        size, steps = tensor.itemsize, tensor.stride()
        run, begins = size, [tensor.data_ptr()]
        outer = [(n, steps[d] * size) for d, n in enumerate(tensor.shape) if d != axis and n != 1]
        while outer and outer[-1][1] == run:
            run *= outer.pop()[0]
        if run < LEAST_PIECE or math.prod(n for n, _ in outer) > MOST_PIECES:
            return None
        for n, step in outer:
            begins = [begin + i * step for begin in begins for i in range(n)]
        runs += [(begin, steps[axis] * size, run) for begin in begins]
    size = math.gcd(*(run for _, _, run in runs))
    if size % PIECE_MULTIPLE or size < LEAST_PIECE or sum(r for *_, r in runs) > MOST_PIECES * size:
        return None
    places = array("Q")
    for begin, step, run in runs:
        for offset in range(0, run, size):
            places.extend((begin + offset, step))
    return Layout(places, size, owner)


def copied_out(torch: Any, device: Any, rows: Any) -> Iterator[Any]:
    """Yields memory for each part of rows, and enqueues its copy when the caller has filled it."""
    parts, slots = _slots(torch, device, rows)
    if len(parts) == 1:
        yield slots[0]
        rows.copy_(slots[0], non_blocking=True)
        return
    current, copies = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    copied: list[Any] = [None] * len(slots)
    try:
        for number, part in enumerate(parts):
            slot = number % len(slots)
            if copied[slot] is not None:
                current.wait_event(copied[slot])
            staged = slots[slot][: len(part)]
            yield staged
            copies.wait_stream(current)
            with torch.cuda.stream(copies):
                part.copy_(staged, non_blocking=True)
                copied[slot] = copies.record_event()
    finally:
        current.wait_stream(copies)


def copied_in(torch: Any, device: Any, rows: Any) -> Iterator[Any]:
    """Yields each part of rows in memory of the device. The caller enqueues its own work on one
    before it asks for the next."""
    parts, slots = _slots(torch, device, rows)
    if len(parts) == 1:
        yield slots[0].copy_(rows, non_blocking=True)
        return
    current, copies = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    copies.wait_stream(current)
    staged: list[Any] = []
    try:
        for number in range(len(parts)):
            if number:  # then the slot of the part before is free
                copies.wait_stream(current)
            with torch.cuda.stream(copies):
                while len(staged) < min(len(parts), number + len(slots)):
                    part = parts[len(staged)]
                    slot = slots[len(staged) % len(slots)][: len(part)]
                    slot.copy_(part, non_blocking=True)
                    staged.append((slot, copies.record_event()))
            slot, is_there = staged[number]
            current.wait_event(is_there)
            yield slot
    finally:
        current.wait_stream(copies)


def _slots(torch: Any, device: Any, rows: Any) -> tuple[list[Any], list[Any]]:
    """Parts of rows, and memory of the device for some of them."""
    count, size = rows.shape
    step = max(1, SLOT // size)
    if count <= step:
        return [rows][:count], [torch.empty((count, size), dtype=torch.uint8, device=device)]
    parts = [rows[first : first + step] for first in range(0, count, step)]
    shape = min(len(parts), SLOTS), step, size
    return parts, list(torch.empty(shape, dtype=torch.uint8, device=device))

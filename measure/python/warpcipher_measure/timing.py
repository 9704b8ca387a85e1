# SPDX-License-Identifier: Apache-2.0
"""Time: of the host by its clock, of a GPU by events on the stream; repeated, with the spread."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from . import _native
from .results import Spread

LEAST_REPETITIONS = 3
MOST_CALLS = 1024


@dataclass(frozen=True)
class Work:
    """Calls to time. call(slot): one call on the buffers of that slot. wait: until all is done.
    evict: makes the caches forget the slots; None where going round the slots does that."""

    call: Callable[[int], object]
    slots: int = 1
    wait: Callable[[], object] = lambda: None
    evict: Callable[[], object] | None = None


Clock: TypeAlias = Callable[[Work, int, int], float]
"""Seconds of so many calls in a row, from a slot on: clock(work, first, calls)."""


def host_clock(work: Work, first: int, calls: int) -> float:
    """Until all results are there."""
    slots = [(first + i) % work.slots for i in range(calls)]
    call = work.call
    start = time.perf_counter()
    for slot in slots:
        call(slot)
    work.wait()
    return time.perf_counter() - start


def device_clock(stream: _native.WorkStream) -> Clock:
    """By events before the first call and after the last."""

    def clock(work: Work, first: int, calls: int) -> float:
        slots = [(first + i) % work.slots for i in range(calls)]
        call = work.call
        stream.start()
        for slot in slots:
            call(slot)
        stream.stop()
        return stream.seconds()

    return clock


@dataclass(frozen=True)
class Timed:
    """seconds: of one call among `calls` in a row. latency: of one, by the host's clock; the
    same figures where none was asked for."""

    seconds: Spread
    latency: Spread
    calls: int


def measure(
    work: Work,
    clock: Clock,
    repetitions: int,
    least_seconds: float,
    most_seconds: float,
    *,
    least_repetitions: int = LEAST_REPETITIONS,
    latency: bool = True,
) -> Timed:
    """Repetitions of as many calls as take `least_seconds`, all on different slots where slots do
    not span the caches.

    Stops before `repetitions`, but not before `least_repetitions`, once `most_seconds` are over.
    latency: whether single calls are also timed.
    """
    end = time.perf_counter() + most_seconds
    with _no_collections():
        begin = time.perf_counter()
        work.call(0)  # what is made once: contexts, schedules, pools
        work.wait()
        # A repetition uses a slot before the calls, to warm the code, and one after them.
        most_calls = MOST_CALLS if work.evict is None else max(1, work.slots - 2)
        in_a_row: list[float] = []
        if time.perf_counter() - begin > most_seconds:
            calls = 1
        else:
            once = _repetition(work, host_clock, 1, 1)
            calls = max(1, min(math.ceil(least_seconds / max(once, 1e-9)), most_calls))
            if calls == 1 and clock is host_clock:
                in_a_row.append(once)
        slot = 2
        alone: list[float] = []
        same = not latency or (calls == 1 and clock is host_clock)
        while len(in_a_row) < repetitions:
            if len(in_a_row) >= least_repetitions and time.perf_counter() > end:
                break
            in_a_row.append(_repetition(work, clock, slot, calls) / calls)
            if not same:
                alone.append(host_clock(work, slot + calls, 1))
            slot += calls + 1
    seconds = Spread.of(in_a_row)
    return Timed(seconds, seconds if same else Spread.of(alone), calls)


def _repetition(work: Work, clock: Clock, first: int, calls: int) -> float:
    if work.evict is not None:
        work.evict()
        work.call((first - 1) % work.slots)  # the text shall be cold, not the code
    work.wait()
    return clock(work, first, calls)


@contextmanager
def _no_collections() -> Iterator[None]:
    """No garbage collection in between, as in the standard library's timeit."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

# SPDX-License-Identifier: Apache-2.0
"""The devices of a search: which there are, whether each finds a planted key, how fast each is; and
the workers of a search, a pool of them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .. import _native
from .._errors import EngineError
from ..arguments import require_int, require_items

if TYPE_CHECKING:
    from .._native import KeySpace, KeyTest, SearchTask

PLANTED_KEYS = 1 << 16


class SearcherInfo(NamedTuple):
    """One searcher.

    usable:  whether it can run here; `reason` says why not and what to do, and is empty otherwise.
    devices: a line for each device that it runs on.
    """

    name: str
    description: str
    usable: bool
    reason: str
    devices: tuple[str, ...]


def searchers() -> tuple[SearcherInfo, ...]:
    """Every searcher of this build, the fastest kind first, whether it can run here or not."""
    return tuple(SearcherInfo(**entry) for entry in _native.searchers())


@dataclass(frozen=True)
class Device:
    """A device of a searcher, by its position in SearcherInfo.devices."""

    searcher: str
    index: int
    description: str

    def __str__(self) -> str:
        return f"{self.searcher}:{self.index} ({self.description})"

    def prepare(self, space: KeySpace, test: KeyTest) -> SearchTask:
        return _native.SearchTask(self.searcher, self.index, space, test)


def choose(engine: str, indices: Sequence[int] | None) -> tuple[Device, ...]:
    """The devices of an engine, or of the fastest that can run here ("auto"). Raises EngineError,
    and ValueError for a device that it has not."""
    known = searchers()
    if engine == "auto":
        found = next(entry for entry in known if entry.usable)
    else:
        named = [entry for entry in known if entry.name == engine]
        if not named:
            names = ", ".join(entry.name for entry in known)
            raise EngineError(f"unknown searcher {engine!r}: expected auto or one of {names}")
        found = named[0]
        if not found.usable:
            raise EngineError(f"searcher {engine!r} cannot run here: {found.reason}")
    numbers: Sequence[int] = range(len(found.devices))
    if indices is not None:
        given = require_items("devices", indices, "numbers of devices")
        numbers = sorted({require_int("the number of a device", number) for number in given})
    if not numbers or numbers[0] < 0 or numbers[-1] >= len(found.devices):
        raise ValueError(
            f"devices are {list(numbers)}: searcher {found.name!r} has {len(found.devices)}, "
            "numbered from 0"
        )
    return tuple(Device(found.name, number, found.devices[number]) for number in numbers)


def check(device: Device, space: KeySpace, test: KeyTest, first: int, end: int) -> None:
    """The self-test: the device must find a key that is planted at random in a range, with the
    blocks, masks and template of the search. Raises EngineError where it does not."""
    number = first + secrets.randbelow(end - first)
    task = device.prepare(space, test.planted(space.key_at(number)))
    count = min(task.preferred_count, PLANTED_KEYS)
    low = max(first, number - number % count)
    _, hits, _ = task.run(low, min(count, end - low))
    if number not in hits:
        raise EngineError(f"{device} missed a planted key in its self-test, and must not be used")


def measure(device: Device, space: KeySpace, test: KeyTest, first: int, end: int) -> float:
    """Keys a second, from runs that grow until one takes long enough."""
    task = device.prepare(space, test)
    count = min(1 << 12, task.preferred_count)
    while True:
        taken = min(count, end - first)
        started = time.perf_counter()
        task.run(first, taken)
        seconds = time.perf_counter() - started
        if seconds > 0.3 or taken < count or count >= 1 << 62:
            return taken / max(seconds, 1e-9)
        count *= 4 if seconds > 0.02 else 16


class WorkerLostError(Exception):
    """A worker is gone, and with it the range that it was given: another must do it."""


class Worker(Protocol):
    """One device, ready for a search. One thread runs it at a time, any may cancel."""

    @property
    def preferred_count(self) -> int: ...

    def run(self, first: int, count: int) -> tuple[int, list[int], int]:
        """As SearchTask.run in the native module. Raises WorkerLostError."""
        ...

    def cancel(self) -> None: ...


class Pool(Protocol):
    """The workers of a search. waits: others may join while it runs."""

    waits: bool = False

    def describe(self) -> list[str]:
        """A line for each device known before the start."""
        ...

    def estimate(self, first: int, end: int) -> float:
        """Measures keys a second of all devices."""
        ...

    def start(self, first: int, end: int) -> Sequence[Worker]:
        """The first workers, after their self-tests. Raises EngineError."""
        ...

    def joined(self) -> Sequence[Worker]:
        """Workers that joined since the last call; does not wait. Raises EngineError."""
        return ()

    def lost(self, worker: Worker) -> None:
        """A worker raised WorkerLostError."""
        return

    def close(self) -> None:
        return


class LocalPool(Pool):
    """Devices of this machine."""

    def __init__(self, devices: Sequence[Device], space: KeySpace, test: KeyTest) -> None:
        self._devices, self._space, self._test = devices, space, test

    def describe(self) -> list[str]:
        return [str(device) for device in self._devices]

    def estimate(self, first: int, end: int) -> float:
        return sum(measure(device, self._space, self._test, first, end) for device in self._devices)

    def start(self, first: int, end: int) -> Sequence[Worker]:
        for device in self._devices:
            check(device, self._space, self._test, first, end)
        return [device.prepare(self._space, self._test) for device in self._devices]

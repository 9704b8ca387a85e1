# SPDX-License-Identifier: Apache-2.0
"""Where a search finds its workers: the devices of this machine; keysearch.cluster has others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .._native import KeySpace, KeyTest
from .devices import Device, check, measure
from .template import Template


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

    waits: bool

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
        ...

    def lost(self, worker: Worker) -> None:
        """A worker raised WorkerLostError."""
        ...

    def close(self) -> None: ...


class LocalPool:
    """Devices of this machine."""

    waits = False

    def __init__(self, devices: Sequence[Device], template: Template, test: KeyTest) -> None:
        self._devices = devices
        self._space: KeySpace = template.space
        self._test = test

    def describe(self) -> list[str]:
        return [str(device) for device in self._devices]

    def estimate(self, first: int, end: int) -> float:
        return sum(measure(device, self._space, self._test, first, end) for device in self._devices)

    def start(self, first: int, end: int) -> Sequence[Worker]:
        for device in self._devices:
            check(device, self._space, self._test, first, end)
        return [device.prepare(self._space, self._test) for device in self._devices]

    def joined(self) -> Sequence[Worker]:
        return ()

    def lost(self, worker: Worker) -> None:
        pass

    def close(self) -> None:
        pass

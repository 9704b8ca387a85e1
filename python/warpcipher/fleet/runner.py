# SPDX-License-Identifier: Apache-2.0
"""Runs the objects of a job by threads of this process."""

from __future__ import annotations

import queue
import threading
import time
from typing import NamedTuple, Protocol

from ..formats.sealed import Sealed
from ..formats.trees import Entry
from .journal import Done
from .places import Item
from .work import Outcome, Work

BIG = 48 << 20
"""The most of ROOM that a long object takes: it is read and written in pieces."""
ROOM = 192 << 20
"""Bytes that are worked on at a time: four long objects, or thousands of short ones."""
AT_A_TIME = 64
"""Objects that a thread has waiting."""
PAUSE = 0.005
"""Seconds after the first object that was waited for: more are done by then, where threads have
enough to do. A wake-up for each short object takes as much time as its encryption."""


class Todo(NamedTuple):
    """An object to do. entry: its line in the manifest, if it has one; ready: what was
    prepared of it."""

    item: Item
    entry: Entry | None
    ready: Done | None = None


class Runner(Protocol):
    """Does the work. `submit` may wait until there is room; `collect` returns what is done since
    the last call, and waits for some with `wait`, unless nothing is on its way."""

    def submit(self, todo: Todo) -> None: ...

    def flush(self) -> None:
        """Nothing more comes: objects held back start."""

    def has_room(self) -> bool: ...

    def collect(self, *, wait: bool) -> list[Outcome]: ...

    def close(self) -> None:
        """Ends objects on their way; others are left."""


class Threads:
    """Threads of this process. count: objects at a time."""

    def __init__(self, work: Work, sealed: Sealed, count: int) -> None:
        self._work, self._sealed = work, sealed
        self._most = count * AT_A_TIME
        self._todo: queue.SimpleQueue[Todo | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Outcome, int] | BaseException] = queue.SimpleQueue()
        self._running = self._bytes = 0
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=f"warpcipher-job-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, todo: Todo) -> None:
        self._running += 1
        self._bytes += min(todo.item.size, BIG)
        self._todo.put(todo)

    def flush(self) -> None:
        pass

    def has_room(self) -> bool:
        return not self._running or (self._running < self._most and self._bytes < ROOM)

    def _run(self) -> None:
        stopped = self._stopped.is_set
        while (todo := self._todo.get()) is not None and not stopped():
            try:
                done = self._work.do(self._sealed, *todo, stopped=stopped)
                self._done.put((done, min(todo.item.size, BIG)))  # its item may be another version
            except BaseException as error:
                self._done.put(error)

    def collect(self, *, wait: bool) -> list[Outcome]:
        found: list[Outcome] = []
        while self._running and ((wait and not found) or not self._done.empty()):
            done = self._done.get()
            self._running -= 1
            if isinstance(done, BaseException):
                raise done
            self._bytes -= done[1]
            found.append(done[0])
            if wait and len(found) == 1 and not self._todo.empty():
                time.sleep(PAUSE)
        return found

    def close(self) -> None:
        self._stopped.set()
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()

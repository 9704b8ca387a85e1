# SPDX-License-Identifier: Apache-2.0
"""A job over objects on the nodes of a Ray cluster: `Nodes`, a runner of `warpcipher.fleet.job`.

The driver lists, keeps the journal and the report; a task works on objects of about as many bytes
as the others have. It carries names, and where the key is: each process of a node asks for it once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import warpcipher as wc

from .._errors import EngineError
from ..fleet.runner import BIG, ROOM, Todo
from ..fleet.work import Outcome, Work
from ..formats import Options
from ..formats.registry import get, take
from ..formats.sealed import Sealed
from ..keys import KeySource
from .fleet import balanced, check_version, connect, found_keys, portable_keys

OBJECTS = 512
"""Of a task at most."""
BYTES = 256 << 20
"""Of a task, unless it has one object."""
AHEAD = 2
"""Tasks of each core that are given out at a time: one runs, and one waits."""
LOOK = 0.05  # seconds between two looks at what is done, while objects are listed
COUNT = 1.0  # seconds between two counts of the cluster's cores
ATTEMPTS = 5
"""At a task whose node or worker dies."""

_sealed: dict[Any, Sealed] = {}
"""Of this process of a node, by the task's job."""


@dataclass(frozen=True)
class ObjectTask:
    """The common data of a job's tasks. key, new: without a key in it, see `portable_keys`; new: of
    a job that changes keys, with its format and options; threads: objects at a time; job: a number
    of its own; version: of the driver's warpcipher; cpus: of the node, that it declares."""

    work: Work
    key: Any
    threads: int
    job: int
    version: str
    new: tuple[Any, str, Options] | None = None
    cpus: float = 1

    def do(self, todos: Sequence[Todo]) -> list[Outcome]:
        """Runs on a node. Raises EngineError, and what the source of the key raises."""
        check_version(self.version)
        sealed = _sealed.get(self.job)
        if sealed is None:
            _hold_threads(max(1, int(self.cpus)))
            new = None if self.new is None else _sealed_of(*self.new)
            _sealed.clear()
            sealed = _sealed_of(self.key, self.work.format, self.work.options, new)
            _sealed[self.job] = sealed
        wide = max((min(todo.item.size, BIG) for todo in todos), default=0)
        threads = max(1, min(self.threads, ROOM // max(wide, 1)))
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda todo: self.work.do(sealed, *todo), todos))


def _hold_threads(count: int) -> None:
    """Has the engine of this process, if it has not run yet, take so many threads for ever: as many
    as there are cores for the thread that uses it first."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(usable)[:count])
    try:
        wc.Cipher("aes-128-ecb", bytes(16), engine="cpu").encrypt(bytes(16))
    finally:
        os.sched_setaffinity(0, usable)


def _sealed_of(key: Any, format: str, options: Options, new: Sealed | None = None) -> Sealed:
    found = found_keys(key)
    if isinstance(found, list):  # of people
        chosen, found = get(format), [take(format, one, options)[1] for one in found]
    else:
        chosen, found = take(format, found, options)
    return Sealed(found, chosen, options, new)


class Nodes:
    """The cores of a cluster. address: as for `Fleet`; key: a source of `warpcipher.keys`, or
    several, with public keys among them; new: of another key, with its format and options, where
    keys change; threads: objects at a time of each task, which declares `cpus` of a node.

    Raises TypeError for a key that would travel, EngineError without Ray or without a cluster.
    """

    def __init__(
        self,
        address: str,
        work: Work,
        key: KeySource | Sequence[Any],
        threads: int,
        cpus: float = 1,
        new: tuple[KeySource | Sequence[Any], str, Options] | None = None,
    ) -> None:
        kept = portable_keys(key)
        new_kept = None if new is None else (portable_keys(new[0]), *new[1:])
        self._fleet = connect(address)
        self._ray = self._fleet.ray
        task = ObjectTask(work, kept, threads, time.time_ns(), wc.__version__, new_kept, cpus)
        self._task = self._ray.put(task)
        self._remote = self._ray.remote(ObjectTask.do).options(
            num_cpus=cpus, max_retries=ATTEMPTS - 1
        )
        self._cpus = cpus
        self._held: list[Todo] = []
        self._bytes = 0
        self._running: dict[Any, list[Todo]] = {}
        self._looked = 0.0
        self._count, self._counted = 1, -COUNT

    def _places(self) -> int:
        """Tasks that the cluster runs at a time, as it was a moment ago: to ask takes 0.3 ms and
        more for each of many nodes, and this is called for each object."""
        if time.monotonic() >= self._counted + COUNT:
            cores = sum(node.get("CPU", 0) for node in self._fleet.nodes().values())
            self._count = max(1, int(cores / self._cpus))
            self._counted = time.monotonic()
        return self._count

    def submit(self, todo: Todo) -> None:
        self._held.append(todo)
        self._bytes += todo.item.size
        if len(self._held) % OBJECTS == 0 or self._bytes >= BYTES:
            places = self._places()
            if len(self._held) >= places * OBJECTS or self._bytes >= places * BYTES:
                self.flush()

    def flush(self) -> None:
        sizes = [todo.item.size for todo in self._held]
        for part in balanced(sizes, max(self._places(), -(-len(sizes) // OBJECTS))):
            todos = self._held[part.start : part.stop]
            self._running[self._remote.remote(self._task, todos)] = todos
        self._held, self._bytes = [], 0

    def has_room(self) -> bool:
        return len(self._running) < 2 or len(self._running) < AHEAD * self._places()

    def collect(self, *, wait: bool) -> list[Outcome]:
        if not self._running or (not wait and time.monotonic() < self._looked + LOOK):
            return []
        self._looked = time.monotonic()
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=None if wait else 0)
        return [outcome for done in ready for outcome in self._outcomes(done)]

    def _outcomes(self, done: Any) -> list[Outcome]:
        todos = self._running.pop(done)
        try:
            found: list[Outcome] = self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise EngineError(f"a node failed: {error.cause or error}") from None
        except self._ray.exceptions.RayError as error:
            why = OSError(f"lost with its node {ATTEMPTS} times: {error}")
            return [Outcome(todo.item, None, why, ATTEMPTS, 0.0) for todo in todos]
        return found

    def close(self) -> None:
        for done in self._running:
            self._ray.cancel(done, force=True)
        self._running.clear()
        self._fleet.close()

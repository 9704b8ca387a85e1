# SPDX-License-Identifier: Apache-2.0
"""Key searches on the nodes of a Ray cluster: `RayPool`, of `search(cluster=)`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import warpcipher as wc

from .. import _native
from .._errors import EngineError
from ..keysearch.devices import LocalPool, Worker, WorkerLostError, choose
from ..keysearch.template import Template
from .fleet import MOST_DEVICES, check_version, connect

LOOK = 2.0  # seconds between two looks for nodes
MOST_STARTS = 3  # of a node whose actor dies

Blocks = Sequence[tuple[bool, bytes, bytes, bytes]]


class _Node:
    """The actor: a search on one node."""

    def __init__(
        self, version: str, parts: Any, blocks: Blocks, engine: str, first: int, end: int
    ) -> None:
        check_version(version)
        space, test = _native.KeySpace(*parts), _native.KeyTest(parts[0], list(blocks))
        self._pool = LocalPool(choose(engine, None)[:MOST_DEVICES], space, test)
        self._range = first, end
        self._tasks = self._pool.start(first, end)

    def preferred_counts(self) -> list[int]:
        return [task.preferred_count for task in self._tasks]

    def run(self, index: int, first: int, count: int) -> tuple[int, list[int], int]:
        return self._tasks[index].run(first, count)

    def estimate(self) -> float:
        return self._pool.estimate(*self._range)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


class _RemoteWorker:
    """A device of a node."""

    def __init__(self, ray: Any, actor: Any, index: int, preferred_count: int) -> None:
        self._ray = ray
        self.actor = actor
        self._index = index
        self.preferred_count = preferred_count

    def run(self, first: int, count: int) -> tuple[int, list[int], int]:
        try:
            tested, hits, wrong = self._ray.get(self.actor.run.remote(self._index, first, count))
        except self._ray.exceptions.RayTaskError as error:
            raise EngineError(f"a node failed: {error.cause or error}") from None
        except self._ray.exceptions.RayError as error:
            raise WorkerLostError(str(error)) from None
        return tested, hits, wrong

    def cancel(self) -> None:
        self.actor.cancel.remote()


class RayPool:
    """The devices of every node, as workers of a search. address: as for `Fleet`.

    Each node that is alive gets one actor, which takes the node's GPUs, or its cores if it has
    none, and gives a worker for each device. A node that dies costs the ranges that its devices
    were at, which others repeat; a node that joins is found within seconds. Actors end with the
    driver, whatever ended it.

    Raises EngineError if Ray is not installed or no cluster runs.
    """

    waits = True

    def __init__(self, address: str, template: Template, blocks: Blocks, engine: str) -> None:
        self._fleet = connect(address)
        self._ray = self._fleet.ray
        self._address = address
        self._spec = (template.parts, tuple(blocks), engine)
        self._range = (0, 1)
        self._ready: Sequence[Worker] = ()  # for the next start
        self._starting: dict[str, tuple[Any, Any]] = {}  # node: actor, and its coming answer
        self._actors: dict[str, Any] = {}
        self._starts: dict[str, int] = {}
        self._looked = 0.0

    def describe(self) -> list[str]:
        return [f"ray:{self._address} ({len(self._fleet.nodes())} nodes)"]

    def estimate(self, first: int, end: int) -> float:
        self._ready = self.start(first, end)
        return float(
            sum(self._ray.get([actor.estimate.remote() for actor in self._actors.values()]))
        )

    def start(self, first: int, end: int) -> Sequence[Worker]:
        """Waits until the first node is ready, and a moment for the others that are known now."""
        self._range = first, end
        found = [*self._ready, *self.joined()]
        self._ready = ()
        while not found and self._starting:
            answers = [answer for _, answer in self._starting.values()]
            self._ray.wait(answers, num_returns=1, timeout=LOOK)
            found += self.joined()
        return found

    def joined(self) -> Sequence[Worker]:
        if time.monotonic() - self._looked > LOOK:
            self._looked = time.monotonic()
            self._look()
        workers: list[Worker] = []
        for node, (actor, answer) in list(self._starting.items()):
            ready, _ = self._ray.wait([answer], timeout=0)
            if not ready:
                continue
            del self._starting[node]
            try:
                counts = self._ray.get(answer)
            except self._ray.exceptions.RayTaskError as error:
                raise EngineError(f"a node cannot search: {error.cause or error}") from None
            except self._ray.exceptions.RayError as error:
                if self._starts[node] >= MOST_STARTS:
                    raise EngineError(f"a node cannot search: {error}") from None
                continue  # the next look starts it again, if the node is alive
            self._actors[node] = actor
            for index, count in enumerate(counts):
                workers.append(_RemoteWorker(self._ray, actor, index, count))
        return workers

    def lost(self, worker: Worker) -> None:
        """The actor of a worker has died: its node gets another, if it is alive."""
        for node, actor in list(self._actors.items()):
            if isinstance(worker, _RemoteWorker) and worker.actor is actor:
                del self._actors[node]

    def close(self) -> None:
        for actor in (*self._actors.values(), *(actor for actor, _ in self._starting.values())):
            self._ray.kill(actor)
        self._actors.clear()
        self._starting.clear()
        self._fleet.close()

    def _look(self) -> None:
        """Starts an actor on each node that has none."""
        nodes = self._fleet.nodes()
        for node in set(self._actors) - set(nodes):
            del self._actors[node]
        for node, resources in nodes.items():
            if node in self._actors or node in self._starting:
                continue
            if self._starts.get(node, 0) >= MOST_STARTS:
                continue
            self._starts[node] = self._starts.get(node, 0) + 1
            gpus = resources.get("GPU", 0)
            cores = resources.get("CPU", 0)
            if not gpus and not cores:
                continue  # a node for other work
            actor = self._fleet.start(
                _Node, node, 0 if gpus else cores, gpus, wc.__version__, *self._spec, *self._range
            )
            self._starting[node] = actor, actor.preferred_counts.remote()

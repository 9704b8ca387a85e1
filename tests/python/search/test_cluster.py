# SPDX-License-Identifier: Apache-2.0
"""Searches whose workers come and go: with workers made up here, and on a Ray cluster of this
machine where Ray is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from cli_support import ended, run, start, wait_until
from warpcipher.keysearch import Pair, Search, Template
from warpcipher.keysearch.devices import Worker, WorkerLostError

TEMPLATE = Template("aes-128", "00{14}????")


def make_search(number: int, **options: Any) -> Search:
    key = TEMPLATE.space.key_at(number)
    pair = Pair(bytes(16), wc.Cipher("aes-128-ecb", key).encrypt(bytes(16)))
    return wc.search("aes-128", [pair], TEMPLATE, engine="reference", interval=0.001, **options)


class Mortal:
    """A worker that dies in its nth range; whoever it worked for must not count that one."""

    preferred_count = 1 << 10

    def __init__(self, task: Any, life: int) -> None:
        self.task = task
        self.life = life

    def run(self, first: int, count: int) -> tuple[int, list[int], int]:
        self.life -= 1
        if self.life < 0:
            raise WorkerLostError
        found: tuple[int, list[int], int] = self.task.run(first, count)
        return found

    def cancel(self) -> None:
        self.task.cancel()


class MortalPool:
    """Workers that die one after the other, and new ones that join."""

    waits = True

    def __init__(self, search: Search, lives: Sequence[int]) -> None:
        (self.device,) = wc.keysearch.devices.choose("reference", None)
        self.search = search
        self.lives = list(lives)
        self.buried: list[Worker] = []
        self.closed = False

    def make(self) -> list[Worker]:
        space, test = self.search.template.space, self.search.test.native
        return [Mortal(self.device.prepare(space, test), self.lives.pop(0))]

    def start(self, first: int, end: int) -> Sequence[Worker]:
        return [*self.make(), *self.make()]

    def joined(self) -> Sequence[Worker]:
        return self.make() if self.lives else []

    def lost(self, worker: Worker) -> None:
        self.buried.append(worker)

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("number", [0, 40_000, 65_535])
def test_ranges_of_lost_workers_are_repeated(number: int) -> None:
    search = make_search(number)
    search._pool = pool = MortalPool(search, [0, 1, 1, 3, 0, 10_000])  # type: ignore[assignment]
    assert search.run() == [TEMPLATE.space.key_at(number)]
    assert search.result == "found"
    assert pool.closed


def test_every_key_is_tested_although_workers_die() -> None:
    search = make_search(0, start=1)
    search._pool = pool = MortalPool(search, [1, 2, 3, 0, 1, 10_000])  # type: ignore[assignment]
    *_, last = search
    assert search.result == "exhausted"
    assert last.done == last.total == last.tested == 65_535
    assert len(pool.buried) >= 2


# --- Ray -----------------------------------------------------------------------------------------

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray, the extra `cluster`"
)
KEY = bytes(range(16))
PAIR = f"{'00' * 16}:{wc.Cipher('aes-128-ecb', KEY).encrypt(bytes(16)).hex()}"
ENDLESS = (
    "search",
    "--yes",
    "--algorithm",
    "aes-128",
    "--pair",
    PAIR,
    "--template",
    "11??{14}00",
    "--cluster",
)


class LocalCluster:
    """A head without cores and nodes of one core, as processes of this machine."""

    def __init__(self) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster  # type: ignore[import-not-found,unused-ignore]

        self.cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.add()]
        os.environ["RAY_ADDRESS"] = self.cluster.address

    def add(self) -> Any:
        return self.cluster.add_node(num_cpus=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    made = LocalCluster()
    yield made
    made.cluster.shutdown()
    del os.environ["RAY_ADDRESS"]


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def workers() -> list[int]:
    """The processes of search actors: children of the nodes, which are children of this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            process = int(folder.name)
            if b"ray::_Node" not in (folder / "cmdline").read_bytes():
                continue
            if parent(parent(process)) == os.getpid():
                found.append(process)
        except OSError:
            continue
    return found


@needs_ray
def test_key_is_found_by_the_cluster(cluster: LocalCluster, tmp_path: Path) -> None:
    arguments = ("search", "--algorithm", "aes-128", "--pair", PAIR, "--cluster", "--json")
    template = KEY.hex()[:-8] + "?" * 8
    done = run(*arguments, "--template", template, cwd=tmp_path)
    assert json.loads(done.stdout.splitlines()[-1])["keys"] == [KEY.hex()]


@needs_ray
def test_worker_node_and_driver_may_die(cluster: LocalCluster, tmp_path: Path) -> None:
    """A killed worker comes back; a killed node is replaced by one that joins; a killed driver goes
    on from the checkpoint; nothing is lost."""
    for death in ("worker", "node", "driver", "none"):
        with ended(start(*ENDLESS, "--json", cwd=tmp_path, stdout=subprocess.PIPE)) as process:
            assert process.stdout is not None
            seen = [json.loads(process.stdout.readline())]

            def advance(lines: Any = process.stdout, seen: list[Any] = seen) -> None:
                """Waits until a second more of keys is done."""
                before = seen[-1].get("done", 0)
                for line in lines:
                    seen.append(json.loads(line))
                    if seen[-1].get("done", 0) > before:
                        return
                raise AssertionError(seen)

            advance()
            if death == "worker":
                (worker,) = workers()
                os.kill(worker, signal.SIGKILL)
                wait_until(lambda old=worker: workers() not in ([], [old]), "another worker")
                advance()
                advance()
            elif death == "node":
                cluster.cluster.remove_node(cluster.nodes.pop(), allow_graceful=False)
                cluster.nodes.append(cluster.add())
                wait_until(workers, "a worker on the new node")
                advance()
                advance()
            elif death == "driver":
                advance()
                process.kill()
                wait_until(lambda: not workers(), "the end of the actors")
                continue
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 7
        (checkpoint,) = tmp_path.glob("*.json")
        done = json.loads(checkpoint.read_text())["done"]
        # The range of a worker that died may be open still: the next run does it first.
        assert done[0][0] == "0", (death, done)
        assert len(done) == 1 or death in ("worker", "node"), (death, done)
        time.sleep(1)

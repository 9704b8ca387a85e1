# SPDX-License-Identifier: Apache-2.0
"""Work on the nodes of a Ray cluster: `Fleet` for any kind of work, and on it key searches
(`RayPool`, of `search(cluster=)`) and encrypted tables (`parquet.read_ray`).

    driver   finds the files or the keys to test, and hands out parts of about equal size
    node     checks the version, asks for its keys, works on its GPUs, or without any its cores

No key travels to a node: tasks carry sources of `warpcipher.keys` and names of functions. But nodes
see what they work on, the template and pairs of a search or a table's rows: the cluster must be
trusted. Work of a node that dies is repeated by another. Ray is imported when a fleet is made.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import os
import pickle
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from . import _native
from ._errors import EngineError
from .keys import KeySource
from .keysearch import devices as device_list
from .keysearch.devices import Worker, WorkerLostError
from .keysearch.template import Template
from .parquet import metadata as md
from .parquet.keyring import Keys
from .parquet.many import Paths, find_files, name_file
from .parquet.reading import ParquetFile, open, read_table
from .parquet.storage import load_fsspec

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

LOOK = 2.0  # seconds between two looks for nodes
MOST_DEVICES = 64  # of a node
MOST_STARTS = 3  # of a node whose actor dies
GPU_SHARE = 0.25
"""The part of a GPU that a task on tables takes: decryption is a small part of its work."""
BLOCK_SIZE = 128 << 20
"""Bytes of row groups, unpacked, that become one block: Ray Data's aim."""
FIRST_DELAY = 0.5  # seconds before the second attempt; each further one waits twice as long
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


# --- any work ------------------------------------------------------------------------------------


class Fleet:
    """A Ray cluster. address: as ray.init takes it; "auto": the one of this machine; None: that
    of the environment, or else a new one on this machine. A connection that is there is used.

    Raises ImportError without Ray, and the error of ray.init without a cluster.
    """

    def __init__(self, address: str | None = None, **options: Any) -> None:
        self.ray: Any = importlib.import_module("ray")
        self._connected = not self.ray.is_initialized()
        if self._connected:
            self.ray.init(address=address, logging_level=logging.ERROR, **options)

    def nodes(self) -> dict[str, dict[str, float]]:
        """The nodes that are alive, and the resources of each."""
        return {
            node["NodeID"]: node.get("Resources", {}) for node in self.ray.nodes() if node["Alive"]
        }

    def has_gpu(self) -> bool:
        """Whether some node has one."""
        return bool(self.ray.cluster_resources().get("GPU", 0))

    def start(self, kind: type, node: str, cpus: float, gpus: float, *arguments: Any) -> Any:
        """An actor on one node, which takes these resources of it."""
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        return (
            self.ray.remote(kind)
            .options(
                num_gpus=gpus,
                num_cpus=cpus,
                max_concurrency=MOST_DEVICES + 1,
                scheduling_strategy=strategy(node, soft=False),
            )
            .remote(*arguments)
        )

    def close(self) -> None:
        """Ends the connection, if it was made here."""
        if self._connected:
            self.ray.shutdown()


def check_version(version: str) -> None:
    """Called on a node. version: of the driver's warpcipher. Raises EngineError where the node has
    another."""
    if wc.__version__ != version:
        raise EngineError(f"a node has warpcipher {wc.__version__}, and the driver {version}")


def balanced(sizes: Sequence[int | None], most: int) -> list[range]:
    """Items cut into `most` runs of about equal bytes, or into one each if they are fewer.

    sizes: None where one is not known: such an item counts as one of mean size.
    """
    count = max(1, min(most, len(sizes)))
    known = [size for size in sizes if size is not None]
    mean = sum(known) // max(len(known), 1)
    # An item without bytes is work, too.
    ends = list(accumulate((1 + (mean if s is None else s) for s in sizes), initial=0))
    edges = [0]
    for number in range(1, count):
        start = ends[edges[-1]]
        wanted = start + (ends[-1] - start) / (count - number + 1)  # an equal part of the rest
        edge = bisect_left(ends, wanted)
        if wanted - ends[edge - 1] < ends[edge] - wanted:
            edge -= 1
        edges.append(min(max(edge, edges[-1] + 1), len(sizes) - count + number))
    return [range(*edge) for edge in pairwise([*edges, len(sizes)]) if edge[0] < edge[1]]


@dataclass(frozen=True)
class _Imported:
    """A function by its name: the values in it stay where they are."""

    module: str
    name: str


def portable_keys(keys: object) -> Any:
    """Keys as tasks may carry them: sources, and the names of functions.

    Raises TypeError for keys themselves, and for objects that may hold some.
    """
    if keys is None:
        return None
    if isinstance(keys, Mapping):
        return {name: portable_keys(key) for name, key in keys.items()}
    if isinstance(keys, KeySource):
        try:
            pickle.dumps(keys)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise TypeError(f"{keys!r} cannot be sent to other nodes: {error}") from None
        return keys
    name = getattr(keys, "__qualname__", "")
    module = getattr(keys, "__module__", None) or "__main__"
    may_be_imported = callable(keys) and name.isidentifier() and module != "__main__"
    if may_be_imported and getattr(importlib.import_module(module), name, None) is keys:
        return _Imported(module, name)
    raise TypeError(
        f"keys hold {type(keys).__name__}: tasks carry no keys; give sources of warpcipher.keys, "
        "such as from_file(path), or functions of a module that the nodes import"
    )


def found_keys(keys: Any) -> Any:
    """Portable keys as a caller gave them; called on a node."""
    if isinstance(keys, Mapping):
        return {name: found_keys(key) for name, key in keys.items()}
    if isinstance(keys, _Imported):
        return getattr(importlib.import_module(keys.module), keys.name)
    return keys


# --- key search ----------------------------------------------------------------------------------

Blocks = Sequence[tuple[bool, bytes, bytes, bytes]]


class _Node:
    """The actor: a search on one node."""

    def __init__(
        self, version: str, parts: Any, blocks: Blocks, engine: str, first: int, end: int
    ) -> None:
        check_version(version)
        self._space = _native.KeySpace(*parts)
        self._test = _native.KeyTest(parts[0], list(blocks))
        self._range = first, end
        self._devices = device_list.choose(engine, None)[:MOST_DEVICES]
        for device in self._devices:
            device_list.check(device, self._space, self._test, first, end)
        self._tasks = [device.prepare(self._space, self._test) for device in self._devices]

    def preferred_counts(self) -> list[int]:
        return [task.preferred_count for task in self._tasks]

    def run(self, index: int, first: int, count: int) -> tuple[int, list[int], int]:
        return self._tasks[index].run(first, count)

    def estimate(self) -> float:
        return sum(
            device_list.measure(device, self._space, self._test, *self._range)
            for device in self._devices
        )

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
        try:
            self._fleet = Fleet(address, log_to_driver=False)
        except ImportError:
            raise EngineError("a cluster needs Ray: pip install 'warpcipher[cluster]'") from None
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EngineError(f"no Ray cluster at {address!r}: {error}") from None
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


# --- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableTask:
    """The common data of the tasks of one read; nothing else but paths travels to them.

    keys: without a key in it: see `portable_keys`. version: of the driver's warpcipher.
    """

    keys: Any
    columns: tuple[str, ...] | None
    aad_prefix: bytes | None
    retries: int
    version: str

    def read(self, paths: Iterable[str], has_gpu: bool) -> Iterator[pyarrow.Table]:
        """The rows of some files as blocks. Raises as `read_table`; errors name the path."""
        check_version(self.version)
        keys = found_keys(self.keys)
        engine = "cuda" if has_gpu and _has_cuda() else "auto"
        for path in paths:
            try:
                yield from self._read_file(path, keys, engine)
            except Exception as error:
                name_file(error, path)
                raise

    def _read_file(self, path: str, keys: Keys | None, engine: str) -> Iterator[pyarrow.Table]:
        def opened() -> ParquetFile:
            return open(path, keys, aad_prefix=self.aad_prefix, engine=engine)

        with self._retried(opened) as file:
            # A file without row groups still has a schema.
            for groups in _blocks(file) or [[]]:
                yield self._retried(
                    lambda groups=groups: read_table(file, columns=self.columns, row_groups=groups)
                )

    def _retried(self, action: Any) -> Any:
        """The action's result, after further attempts where an error of I/O may pass."""
        for attempt in range(self.retries + 1):
            try:
                return action()
            except _FINAL:
                raise
            except OSError:
                if attempt == self.retries:
                    raise
                time.sleep(FIRST_DELAY * 2**attempt)
        raise AssertionError("unreachable")


def _has_cuda() -> bool:
    return any(engine.name == "cuda" and engine.usable for engine in wc.engines())


def _blocks(file: ParquetFile) -> list[list[int]]:
    """The row groups of a file, in runs that unpack to about BLOCK_SIZE."""
    blocks: list[list[int]] = []
    size = BLOCK_SIZE
    for number, group in enumerate(file.row_groups):
        if size >= BLOCK_SIZE:
            blocks.append([])
            size = 0
        blocks[-1].append(number)
        size += md.integer(group, md.TOTAL_BYTE_SIZE, "the size of a row group", 0)
    return blocks


def _size(path: str) -> int | None:
    """Bytes of a file; None where its file system does not say."""
    if "://" not in path:
        return os.stat(path).st_size  # noqa: PTH116
    system, name = load_fsspec(path).core.url_to_fs(path)
    size = system.size(name)
    return None if size is None else int(size)


def _total(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _read(task: TableTask, paths: Sequence[str]) -> Iterator[Any]:
    """Runs on a node."""
    ray: Any = importlib.import_module("ray")
    return task.read(paths, bool(ray.get_gpu_ids()))


@functools.cache
def _source_type() -> Any:
    """The data source of Ray Data, whose class needs Ray."""
    data: Any = importlib.import_module("ray.data")
    block_metadata: Any = importlib.import_module("ray.data.block").BlockMetadata
    fields = inspect.signature(block_metadata).parameters

    def metadata_of(paths: Sequence[str], sizes: Sequence[int | None]) -> Any:
        given = {
            "num_rows": None,
            "size_bytes": _total(sizes),
            "schema": None,  # of older versions
            "input_files": list(paths),
            "exec_stats": None,
        }
        return block_metadata(**{name: value for name, value in given.items() if name in fields})

    class EncryptedTables(data.Datasource):  # type: ignore[misc]
        """Files, and the task that reads them. sizes: bytes of each; None: not known."""

        def __init__(
            self, files: Sequence[str], sizes: Sequence[int | None], task: TableTask
        ) -> None:
            super().__init__()
            self._files = list(files)
            self._sizes = list(sizes)
            self._task = task

        def get_name(self) -> str:
            """The name in Ray's progress bars."""
            return "EncryptedParquet"

        def estimate_inmemory_data_size(self) -> int | None:
            """Bytes of all files: their unpacked size is not known before they are opened."""
            return _total(self._sizes)

        def get_read_tasks(self, parallelism: int, *_: Any, **limits: Any) -> list[Any]:
            """Tasks of about equal bytes. limits: of rows, that newer versions push down."""
            limit = limits.get("per_task_row_limit")
            more = {} if limit is None else {"per_task_row_limit": limit}
            tasks = []
            for run in balanced(self._sizes, parallelism):
                paths = self._files[run.start : run.stop]
                metadata = metadata_of(paths, self._sizes[run.start : run.stop])
                read = functools.partial(_read, self._task, paths)
                tasks.append(data.ReadTask(read, metadata, **more))
            return tasks

    return EncryptedTables


def read_ray(
    paths: Paths,
    keys: Keys | None = None,
    columns: Iterable[str] | None = None,
    aad_prefix: bytes | None = None,
    *,
    cpus: float = 1,
    gpus: float | None = None,
    concurrency: int | None = None,
    tasks: int | None = None,
    retries: int = 3,
) -> Any:
    """The rows of many files as a `ray.data.Dataset`, read and decrypted by the cluster's nodes.

    paths:       as for `read_tables`: found here, read by the nodes, which must have them under
                 the same names; URLs that fsspec knows are.
    keys:        no key travels to a task: sources of `warpcipher.keys`, mappings of key metadata
                 (or column names) to them, or a function of a module that the nodes import. The
                 nodes ask: a file or an environment variable must be there.
    columns, aad_prefix: as for `read_table`.
    cpus, gpus:  the resources that each task declares. gpus=None: a quarter of a GPU if the cluster
                 has one when this is called, and then tasks run only on nodes with a GPU; 0: none.
                 A task with a GPU decrypts there, where its node's warpcipher can.
    concurrency: tasks at a time; None: as many as the cluster has room for.
    tasks:       to make, of a file each at least; None: Ray Data decides.
    retries:     further attempts after an error of I/O (OSError), with growing delays. A task whose
                 worker or node dies is repeated by Ray.

    Blocks are Arrow tables in Ray's object store, in plain: the cluster must be trusted. They come
    in any order, unless Ray Data's `preserve_order` is set. Nothing is read until the data set is
    used; its errors are Ray's, with an error of `read_table` as their cause. Raises ImportError
    without Ray, FileNotFoundError, and TypeError for keys that would travel.
    """
    if isinstance(columns, str):
        raise TypeError("columns is a str: expected a sequence of names")
    if retries < 0:
        raise ValueError(f"retries is {retries}: expected 0 or more")
    chosen = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [file for path in chosen for file in find_files(path)]
    task = TableTask(
        portable_keys(keys),
        None if columns is None else tuple(columns),
        aad_prefix,
        retries,
        wc.__version__,
    )
    sizes = [_size(path) for path in files]
    try:
        source = _source_type()(files, sizes, task)
    except ImportError as error:
        raise ImportError(
            f"read_ray needs Ray Data, whose import failed: {error}; "
            "pip install 'warpcipher[cluster,parquet]'"
        ) from error
    has_gpu = Fleet().has_gpu()
    wanted: dict[str, Any] = {
        "num_cpus": cpus,
        "num_gpus": gpus if gpus is not None else GPU_SHARE if has_gpu else 0,
    }
    read_datasource = importlib.import_module("ray.data").read_datasource
    if "num_gpus" not in inspect.signature(read_datasource).parameters:
        wanted = {"ray_remote_args": wanted}  # of older versions
    return read_datasource(source, concurrency=concurrency, override_num_blocks=tasks, **wanted)

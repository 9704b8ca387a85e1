# SPDX-License-Identifier: Apache-2.0
"""The data source of Ray Data that `read_ray` uses. This file alone imports Ray."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

from .cluster import GPU_SHARE, TableTask

ray: Any = import_module("ray")
data: Any = import_module("ray.data")
BlockMetadata: Any = import_module("ray.data.block").BlockMetadata


def _read(task: TableTask, paths: Sequence[str]) -> Iterator[Any]:
    """What a task does, on its node."""
    return task.read(paths, bool(ray.get_gpu_ids()))


class EncryptedTables(data.Datasource):  # type: ignore[misc]
    """Files, and what their tasks share. sizes: bytes of each; None: not known."""

    def __init__(self, files: Sequence[str], sizes: Sequence[int | None], task: TableTask) -> None:
        super().__init__()
        self._files = list(files)
        self._sizes = list(sizes)
        self._task = task

    def get_name(self) -> str:
        """What Ray's progress bars show."""
        return "EncryptedParquet"

    def estimate_inmemory_data_size(self) -> int | None:
        """Bytes of all files: what they unpack to is not known before they are opened."""
        known = [size for size in self._sizes if size is not None]
        return sum(known) if len(known) == len(self._sizes) else None

    def get_read_tasks(self, parallelism: int, *_: Any, **limits: Any) -> list[Any]:
        """Tasks of about as many files each. limits: of rows, that newer versions push down."""
        count = max(1, min(parallelism, len(self._files)))
        edges = [len(self._files) * number // count for number in range(count + 1)]
        limit = limits.get("per_task_row_limit")
        more = {} if limit is None else {"per_task_row_limit": limit}
        tasks = []
        for first, end in pairwise(edges):
            paths = self._files[first:end]
            if paths:
                metadata = _metadata(paths, self._sizes[first:end])
                tasks.append(data.ReadTask(partial(_read, self._task, paths), metadata, **more))
        return tasks


def _metadata(paths: Sequence[str], sizes: Sequence[int | None]) -> Any:
    known = [size for size in sizes if size is not None]
    given = {
        "num_rows": None,
        "size_bytes": sum(known) if len(known) == len(sizes) else None,
        "schema": None,  # of older versions
        "input_files": list(paths),
        "exec_stats": None,
    }
    fields = inspect.signature(BlockMetadata).parameters
    return BlockMetadata(**{name: value for name, value in given.items() if name in fields})


def read(
    files: Sequence[str],
    sizes: Sequence[int | None],
    task: TableTask,
    cpus: float,
    gpus: float | None,
    concurrency: int | None,
    tasks: int | None,
) -> Any:
    """The data set of `read_ray`."""
    if not ray.is_initialized():
        ray.init(logging_level="ERROR")
    if gpus is None:
        gpus = GPU_SHARE if ray.cluster_resources().get("GPU", 0) else 0
    source = EncryptedTables(files, sizes, task)
    wanted: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus}
    if "num_gpus" not in inspect.signature(data.read_datasource).parameters:
        wanted = {"ray_remote_args": wanted}  # of older versions
    return data.read_datasource(
        source, concurrency=concurrency, override_num_blocks=tasks, **wanted
    )

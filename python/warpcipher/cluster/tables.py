# SPDX-License-Identifier: Apache-2.0
"""Encrypted tables read by the nodes of a Ray cluster: `parquet.read_ray`."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from ..parquet import metadata as md
from ..parquet.keyring import Keys
from ..parquet.many import Paths, find_files
from ..parquet.reading import ParquetFile, open, read_table
from ..parquet.storage import load_fsspec, name_file
from .fleet import Fleet, balanced, check_version, found_keys, portable_keys

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

GPU_SHARE = 0.25
"""The part of a GPU that a task on tables takes: decryption is a small part of its work."""
BLOCK_SIZE = 128 << 20
"""Bytes of row groups, unpacked, that become one block: Ray Data's aim."""
FIRST_DELAY = 0.5  # seconds before the second attempt; each further one waits twice as long
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


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

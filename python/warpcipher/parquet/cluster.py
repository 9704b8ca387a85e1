# SPDX-License-Identifier: Apache-2.0
"""Encrypted tables read by the nodes of a Ray cluster: `read_ray`, and what its tasks do.

    driver   finds the files and makes tasks: paths, column names, where keys come from
    task     asks for its keys, decrypts, decodes; blocks go to Ray's object store in plain

This file needs no Ray; ray_source.py does.
"""

from __future__ import annotations

import importlib
import os
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from .._errors import EngineError
from ..keys import KeySource
from . import metadata as md
from .keyring import Keys
from .many import Paths, find_files, name_file
from .reading import ParquetFile, open, read_table
from .storage import load_fsspec

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

GPU_SHARE = 0.25
"""Of a GPU, that a task takes: decryption is a small part of what it does."""
BLOCK_SIZE = 128 << 20
"""Bytes of row groups, unpacked, that become one block: what Ray Data aims at."""
FIRST_DELAY = 0.5  # seconds before the second attempt; each further one waits twice as long
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


@dataclass(frozen=True)
class TableTask:
    """What the tasks of one read share, and all that travels to them in addition to paths.

    keys: without a key in it: see `portable_keys`. version: of the driver's warpcipher.
    """

    keys: Any
    columns: tuple[str, ...] | None
    aad_prefix: bytes | None
    retries: int
    version: str

    def read(self, paths: Iterable[str], has_gpu: bool) -> Iterator[pyarrow.Table]:
        """The rows of some files as blocks. Raises as `read_table`; errors name the path."""
        if wc.__version__ != self.version:
            raise EngineError(
                f"a node has warpcipher {wc.__version__}, and the driver {self.version}"
            )
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
            # A file without row groups has a schema still.
            for groups in _blocks(file) or [[]]:
                yield self._retried(
                    lambda groups=groups: read_table(file, columns=self.columns, row_groups=groups)
                )

    def _retried(self, action: Any) -> Any:
        """What the action returns; errors of I/O, which may pass, are waited out."""
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


@dataclass(frozen=True)
class _Imported:
    """A function by its name: what it holds stays where it is."""

    module: str
    name: str


def portable_keys(keys: object) -> Any:
    """Keys as tasks may carry them: sources, and the names of functions.

    Raises TypeError for keys themselves, and for what may hold some.
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
    """Portable keys as `open` takes them."""
    if isinstance(keys, Mapping):
        return {name: found_keys(key) for name, key in keys.items()}
    if isinstance(keys, _Imported):
        return getattr(importlib.import_module(keys.module), keys.name)
    return keys


def _size(path: str) -> int | None:
    """Bytes of a file; None where its file system does not say."""
    if "://" not in path:
        return os.stat(path).st_size  # noqa: PTH116
    system, name = load_fsspec(path).core.url_to_fs(path)
    size = system.size(name)
    return None if size is None else int(size)


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
    cpus, gpus:  what each task declares. gpus=None: a quarter of a GPU where the cluster has one
                 when this is called, and then tasks run on nodes with a GPU alone; 0: none. A task
                 with a GPU decrypts there, where its node's warpcipher can.
    concurrency: tasks at a time; None: as many as the cluster has room for.
    tasks:       to make, of a file each at least; None: Ray Data decides.
    retries:     further attempts after an error of I/O (OSError), with growing delays. A task whose
                 worker or node dies is repeated by Ray.

    Blocks are Arrow tables in Ray's object store, in plain: the cluster must be trusted. They come
    in any order, unless Ray Data's `preserve_order` is set. Nothing is read until the data set is
    used; its errors are Ray's, with those of `read_table` as their cause. Raises ImportError
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
        source = importlib.import_module(".ray_source", __package__)
    except ImportError as error:
        raise ImportError(
            f"read_ray needs Ray Data, whose import failed: {error}; "
            "pip install 'warpcipher[cluster,parquet]'"
        ) from error
    return source.read(files, sizes, task, cpus, gpus, concurrency, tasks)

# SPDX-License-Identifier: Apache-2.0
"""Tables of many files: a directory, or several paths. While one file is decoded, another is read
and decrypted.

A filter chooses row groups by their statistics, then rows by pyarrow. Only the chosen columns and
the filter's columns are read, and need keys.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .._types import PathLike
from ..arguments import require_items
from .decode import ArrowDecoder
from .footer import PLAIN_MAGIC
from .image import enclosed, footer_in_place
from .keyring import Keys
from .reading import ParquetFile, arranged, open, read_table
from .storage import load_fsspec, name_file

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]


class Filter:
    """filters: as `pyarrow.parquet.read_table` takes them: an expression of pyarrow.compute, or
    tuples ("column", "operator", value) in one list, or in lists of which one must hold."""

    def __init__(self, filters: Any) -> None:
        ArrowDecoder()  # which says how to install pyarrow
        self._arrow: Any = importlib.import_module("pyarrow")
        self._dataset: Any = importlib.import_module("pyarrow.dataset")
        made = importlib.import_module("pyarrow.parquet").filters_to_expression
        try:
            self._expression = made(filters)
        except (TypeError, KeyError):
            text = 'filters: expected an expression, or tuples such as [("a", "=", 1)]'
            raise TypeError(text) from None

    def read(self, file: ParquetFile, names: Sequence[str] | None) -> pyarrow.Table:
        """The rows of a file that pass. names: the columns, as for `read_table`."""
        needed = self._needed(file.schema)
        row_groups = self._row_groups(file, needed)
        table = read_table(file, columns=names, row_groups=row_groups)
        if names is None or set(needed) <= set(names):
            return table.filter(self._expression)
        asked = read_table(file, columns=needed, row_groups=row_groups)
        passed = self._dataset.dataset(asked).to_table(columns={"passed": self._expression})
        return table.filter(passed["passed"])

    def _needed(self, schema: pyarrow.Schema) -> list[str]:
        """The columns that the filter names: it cannot run without them, and an expression
        does not list them. Raises as pyarrow where the schema does not have them."""
        empty = schema.empty_table()
        empty.filter(self._expression)
        found = []
        for name in schema.names:
            try:
                empty.drop_columns([name]).filter(self._expression)
            except self._arrow.ArrowInvalid:
                found.append(name)
        return found

    def _row_groups(self, file: ParquetFile, needed: Sequence[str]) -> list[int]:
        """The row groups that may have such rows, by the statistics of these columns."""
        groups = file.choose_row_groups(None)
        footer = footer_in_place(file, groups, file.choose_columns(needed))
        reader = self._arrow.BufferReader(PLAIN_MAGIC + enclosed(footer))
        fragment = self._dataset.ParquetFileFormat().make_fragment(reader)
        chosen = fragment.subset(self._expression, schema=fragment.physical_schema)
        return [group.id for group in chosen.row_groups]


PROMOTE_OPTIONS = ("none", "default", "permissive")


class Schemas:
    """Takes the schema of one file after the other.

    promote_options: of `pyarrow.concat_tables`: "none" demands that all are equal.
    """

    def __init__(self, promote_options: str) -> None:
        if promote_options not in PROMOTE_OPTIONS:
            raise ValueError(
                f"promote_options is {promote_options!r}: expected {', '.join(PROMOTE_OPTIONS)}"
            )
        self._promote = promote_options
        self._arrow: Any = importlib.import_module("pyarrow")
        self._known: dict[str, tuple[pyarrow.Field, str]] = {}
        self._first: tuple[str, pyarrow.Schema] | None = None

    def add(self, path: str, schema: pyarrow.Schema) -> None:
        """Raises ValueError, which names two files and the column in which they differ."""
        if self._promote != "none":
            self._unify(path, schema)
        elif self._first is None:
            self._first = path, schema
        elif not schema.equals(self._first[1]):
            difference = _difference(*self._first, path, schema)
            raise ValueError(f'{difference}; promote_options="permissive" unifies schemas')

    def _unify(self, path: str, schema: pyarrow.Schema) -> None:
        for field in schema:
            known, origin = self._known.setdefault(field.name, (field, path))
            if known.equals(field):
                continue
            pair = [self._arrow.schema([known]), self._arrow.schema([field])]
            try:
                unified = self._arrow.unify_schemas(pair, promote_options=self._promote)
            except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError):
                raise ValueError(
                    f"{_types(known, origin, field, path)}, which promote_options="
                    f"{self._promote!r} does not unify"
                ) from None
            self._known[field.name] = unified[0], origin


def _types(known: pyarrow.Field, origin: str, field: pyarrow.Field, path: str) -> str:
    return f"column {field.name} is {_shown(known)} in {origin}, and {_shown(field)} in {path}"


def _shown(field: pyarrow.Field) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _difference(origin: str, known: pyarrow.Schema, path: str, schema: pyarrow.Schema) -> str:
    pair = (origin, known.names), (path, schema.names)
    for (has, names), (lacks, others) in (pair, pair[::-1]):
        for name in names:
            if name not in others:
                return f"column {name} is in {has}, and not in {lacks}"
    for before, now in zip(known, schema, strict=False):
        if before.name != now.name:
            return f"column {now.name} of {path} stands where {origin} has {before.name}"
        if not before.equals(now):
            return _types(before, origin, now, path)
    return f"{origin} and {path} do not have the same columns"


Paths: TypeAlias = "PathLike | Iterable[PathLike]"

SUFFIX = ".parquet"
AT_ONCE = 2
"""Files at a time: each uses all cores for most of its time."""


def find_files(
    path: PathLike, *, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> list[str]:
    """The Parquet files of a directory, its directories included, by name; those that a pattern
    stands for; or the file itself.

    path:            of this machine, a URL that fsspec knows, or a path in `filesystem`. With *,
                     ** and [...] it is a pattern, and ? is one sign in paths of this machine.
    filesystem:      of fsspec or pyarrow.
    storage_options: what fsspec opens URLs with.
    Names that begin with "." or "_" are left out, as readers of tables do. Raises FileNotFoundError
    where there is none.
    """
    system, root = _locate(path, filesystem, storage_options)
    is_url = isinstance(path, str) and "://" in path
    given = os.fspath(path)
    if system is None:
        found = _find_here(given)
    else:
        found = _find_there(system, root)
        if found is not None and is_url:
            found = [system.unstrip_protocol(name) for name in found]
    if found is None:
        return [given]
    if not found:
        kind = "stands for" if _pattern_start(given) is not None else "has"
        raise FileNotFoundError(f"{given} {kind} no files whose names end in {SUFFIX}")
    return sorted(found)


def _locate(
    path: PathLike, filesystem: Any, storage_options: Mapping[str, Any] | None
) -> tuple[Any, str]:
    """A file system of fsspec and the path in it; None for a path of this machine."""
    is_url = isinstance(path, str) and "://" in path
    if filesystem is not None:
        if storage_options is not None:
            raise ValueError("storage_options are for URLs, and a filesystem was given")
        if is_url:
            raise ValueError(f"{path} is a URL: with a filesystem, give a path in it")
        if hasattr(filesystem, "open_input_file"):  # pyarrow's
            load_fsspec("filesystem=")
            wrapper = importlib.import_module("fsspec.implementations.arrow").ArrowFSWrapper
            filesystem = wrapper(filesystem)
        elif not (hasattr(filesystem, "open") and hasattr(filesystem, "find")):
            raise TypeError(
                f"filesystem is {type(filesystem).__name__}: expected one of fsspec or pyarrow"
            )
        return filesystem, str(filesystem._strip_protocol(os.fspath(path)))  # as url_to_fs does
    if is_url:
        system, root = load_fsspec(str(path)).core.url_to_fs(path, **(storage_options or {}))
        return system, str(root)
    if storage_options is not None:
        raise ValueError(f"storage_options are for URLs, and {os.fspath(path)} is not one")
    return None, os.fspath(path)


def _find_here(path: str) -> list[str] | None:
    """The files of a directory or pattern; None for a path that is one file."""
    if os.path.isdir(path):  # noqa: PTH112
        below = map(str, Path(path).rglob(f"*{SUFFIX}"))
        return [name for name in below if _is_data(name, path)]
    if _pattern_start(path) is None or os.path.lexists(path):
        return None
    matches = glob.glob(path, recursive=True)  # noqa: PTH207 - pathlib has no absolute patterns
    return _of_matches(path, matches, os.path.isdir, _find_here)


def _find_there(system: Any, path: str) -> list[str] | None:
    if system.isdir(path):
        return [name for name in system.find(path) if _is_data(name, path)]
    if _pattern_start(path, "*[") is None:
        return None
    find = functools.partial(_find_there, system)
    return _of_matches(path, system.glob(path), system.isdir, find)


def _of_matches(
    pattern: str,
    matches: Iterable[str],
    is_folder: Callable[[str], bool],
    find: Callable[[str], list[str] | None],
) -> list[str]:
    start = pattern[: _pattern_start(pattern)]
    found: set[str] = set()
    for match in matches:
        if is_folder(match):
            found.update(find(match) or ())
        elif _is_data(match, start):
            found.add(match)
    return sorted(found)


def _pattern_start(path: str, signs: str = "*?[") -> int | None:
    """Where the first name with a sign of a pattern begins; None in a path without one."""
    first = next((at for at, sign in enumerate(path) if sign in signs), None)
    return None if first is None else path.rfind("/", 0, first) + 1


def _is_data(name: str, root: str) -> bool:
    """Whether the name of a file below a folder is of a table's data."""
    parts, above = ([part for part in path.split("/") if part != ""] for path in (name, root))
    return name.endswith(SUFFIX) and not any(part[0] in "._" for part in parts[len(above) :])


def _partitions(path: str) -> set[str]:
    """The columns that folders of a path name, as Hive does: "year=2020"."""
    found = (re.fullmatch(r"([^=]+)=.*", folder) for folder in path.split("/")[:-1])
    return {each[1] for each in found if each}


def read_tables(
    paths: Paths,
    keys: Keys | None = None,
    columns: Iterable[str] | None = None,
    aad_prefix: bytes | None = None,
    *,
    filters: Any = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    engine: str = "auto",
) -> Iterator[tuple[str, pyarrow.Table]]:
    """The tables of many files, each with its path, in the order of the paths.

    paths:   files, directories, patterns and URLs (see `find_files`), or one of them.
    filters: rows to keep, as for `pyarrow.parquet.read_table`: an expression of pyarrow.compute, or
             tuples ("column", ">", 7). Row groups without such rows, by their statistics, are not
             read.
    filesystem, storage_options: as for `find_files`.
    Other arguments as for `read_table`; `keys` is asked for each file. At most two files are in
    memory besides the one that was handed out. The first error ends it; its text names the path. A
    column that is only in the names of folders ("year=2020") is left out, with a UserWarning.
    """
    files = _Files(keys, aad_prefix, engine, filesystem, storage_options)
    yield from files.tables(paths, _listed(columns), filters)


def _listed(columns: Iterable[str] | None) -> list[str] | None:
    return None if columns is None else require_items("columns", columns, "a sequence of names")


class _Files:
    """Where files are found, and how they are opened."""

    def __init__(
        self,
        keys: Keys | None,
        aad_prefix: bytes | None,
        engine: str,
        filesystem: Any,
        storage_options: Mapping[str, Any] | None,
    ) -> None:
        self._keys = keys
        self._how: dict[str, Any] = {"aad_prefix": aad_prefix, "engine": engine}
        self._where: dict[str, Any] = {"filesystem": filesystem, "storage_options": storage_options}

    def _find(self, paths: Paths) -> list[str]:
        is_one = isinstance(paths, (str, os.PathLike))
        given: Any = [paths] if is_one else paths
        chosen = require_items("paths", given, "paths or URLs")
        return [file for path in chosen for file in find_files(path, **self._where)]

    @contextlib.contextmanager
    def _open(self, path: str) -> Iterator[ParquetFile]:
        system, name = _locate(path, **self._where)
        with (
            contextlib.nullcontext(path) if system is None else system.open(name, "rb") as source,
            open(_readable(source), self._keys, **self._how) as file,
        ):
            yield file

    def tables(
        self, paths: Paths, names: list[str] | None, filters: Any, lacking: set[str] | None = None
    ) -> Iterator[tuple[str, pyarrow.Table]]:
        """The files' tables of these columns, in the order of the files. lacking: names, out of
        which those are taken that a file has; then a file may lack some."""
        chosen = None if filters is None else Filter(filters)

        def read(path: str) -> pyarrow.Table:
            try:
                with self._open(path) as file:
                    there = names
                    if names is not None and lacking is not None:
                        there = [name for name in names if file.has_column(name)]
                        lacking.difference_update(there)
                    return chosen.read(file, there) if chosen else read_table(file, columns=there)
            except Exception as error:
                name_file(error, path)
                raise

        files = self._find(paths)
        with ThreadPoolExecutor(AT_ONCE, "warpcipher-tables") as pool:
            coming = [pool.submit(read, path) for path in files[:AT_ONCE]]
            lost: set[str] = set()
            try:
                for number, path in enumerate(files):
                    table = coming.pop(0).result()
                    for name in _partitions(path) - lost if names is None else ():
                        if name not in table.column_names:
                            lost.add(name)
                            warnings.warn(
                                f"{path}: the column {name} is only in the names of folders, which "
                                "are not read: it is left out",
                                stacklevel=3,
                            )
                    if number + AT_ONCE < len(files):
                        coming.append(pool.submit(read, files[number + AT_ONCE]))
                    yield path, table
            finally:
                for future in coming:
                    future.cancel()


def _readable(source: Any) -> Any:
    """An open file as one that has `readinto`: on file systems of pyarrow the files of older
    versions of fsspec have it only on what they wrap."""
    has_it = isinstance(source, (str, os.PathLike)) or hasattr(source, "readinto")
    return source if has_it else getattr(source, "stream", source)


def read_dataset(
    paths: Paths,
    keys: Keys | None = None,
    columns: Iterable[str] | None = None,
    aad_prefix: bytes | None = None,
    *,
    promote_options: str = "none",
    filters: Any = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    engine: str = "auto",
) -> pyarrow.Table:
    """The rows of many files as one table, in the order of the paths.

    promote_options: of `pyarrow.concat_tables`. "none": the files have one schema; ValueError names
                     two files and the column in which they differ. "default": columns that a file
                     lacks are null there, and the order does not count. "permissive": types are
                     also widened, int32 and int64 to int64.
    Other arguments and errors are as of `read_tables`; the columns of filters must be in all
    files. ValueError without files.
    """
    names = _listed(columns)
    schemas = Schemas(promote_options)
    files = _Files(keys, aad_prefix, engine, filesystem, storage_options)
    tables = []
    lacking = None if promote_options == "none" else set(names or ())
    for path, table in files.tables(paths, names, filters, lacking):
        schemas.add(path, table.schema)
        tables.append(table)
    if not tables:
        raise ValueError("paths is empty: a table takes at least one file")
    if lacking:
        raise ValueError(f"no file has a column {min(lacking)!r}")
    arrow = importlib.import_module("pyarrow")
    if not any(table.column_names for table in tables):  # concat_tables forgets how many rows
        return arrow.table([arrow.nulls(sum(table.num_rows for table in tables))], [""]).select([])
    return arranged(arrow.concat_tables(tables, promote_options=promote_options), names)

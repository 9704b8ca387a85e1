# SPDX-License-Identifier: Apache-2.0
"""Tables of many files: a directory, or several paths. While one file is decoded, another is read
and decrypted."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from .keyring import Keys
from .reading import read_table
from .source import load_fsspec

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

SUFFIX = ".parquet"
AT_ONCE = 2
"""Files at a time: each uses all cores for most of its time."""


def find_files(path: str | os.PathLike[str]) -> list[str]:
    """The Parquet files of a directory, its directories included, by name; or the file itself.

    path: of this machine, or a URL that fsspec knows. Names that begin with "." or "_" are left
    out, as readers of tables do. Raises FileNotFoundError where there is none.
    """
    if isinstance(path, str) and "://" in path:
        system, root = load_fsspec(path).core.url_to_fs(path)
        if not system.isdir(root):
            return [path]
        names = [name for name in system.find(root) if _is_data(name[len(root) :])]
        found = [system.unstrip_protocol(name) for name in names]
    elif not Path(path).is_dir():
        return [str(path)]
    else:
        entries = Path(path).rglob(f"*{SUFFIX}")
        found = [str(entry) for entry in entries if _is_data(str(entry.relative_to(path)))]
    if not found:
        raise FileNotFoundError(f"{path} has no files whose names end in {SUFFIX}")
    return sorted(found)


def _is_data(name: str) -> bool:
    parts = [part for part in name.split("/") if part]
    return name.endswith(SUFFIX) and not any(part[0] in "._" for part in parts)


def name_file(error: Exception, path: str) -> None:
    """Has the text of an error name the file that was being read."""
    if path in str(error):
        return
    if isinstance(error, OSError) and error.strerror is not None:
        error.strerror = f"{error.strerror} (while reading {path})"
    elif len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{path}: {error.args[0]}",)
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(f"while reading {path}")


def _partitions(path: str) -> set[str]:
    """The columns that folders of a path name, as Hive does: "year=2020"."""
    found = (re.fullmatch(r"([^=]+)=.*", folder) for folder in path.split("/")[:-1])
    return {each[1] for each in found if each}


def read_tables(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: Keys | None = None,
    columns: Iterable[str] | None = None,
    aad_prefix: bytes | None = None,
    *,
    engine: str = "auto",
) -> Iterator[tuple[str, pyarrow.Table]]:
    """The tables of many files, each with its path, in the order of the paths.

    paths: files, directories (see `find_files`) and URLs that fsspec knows, or one of them. Other
    arguments as for `read_table`; `keys` is asked for each file. At most two files are in memory
    besides the one that was handed out. The first error ends it; its text names the path. A column
    that is in the names of folders alone ("year=2020") is left out, with a UserWarning.
    """
    chosen = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [file for path in chosen for file in find_files(path)]
    names = columns if columns is None or isinstance(columns, str) else list(columns)

    def read(path: str) -> pyarrow.Table:
        try:
            return read_table(path, keys, names, aad_prefix, engine=engine)
        except Exception as error:
            name_file(error, path)
            raise

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
                            f"{path}: the column {name} is in the names of folders alone, which "
                            "are not read: it is left out",
                            stacklevel=2,
                        )
                if number + AT_ONCE < len(files):
                    coming.append(pool.submit(read, files[number + AT_ONCE]))
                yield path, table
        finally:
            for future in coming:
                future.cancel()


def read_dataset(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: Keys | None = None,
    columns: Iterable[str] | None = None,
    aad_prefix: bytes | None = None,
    *,
    engine: str = "auto",
) -> pyarrow.Table:
    """The rows of many files as one table, in the order of the paths. Arguments and errors are
    those of `read_tables`; files must have one schema. ValueError where there is no file."""
    tables = [table for _, table in read_tables(paths, keys, columns, aad_prefix, engine=engine)]
    if not tables:
        raise ValueError("paths is empty: a table takes at least one file")
    return importlib.import_module("pyarrow").concat_tables(tables)

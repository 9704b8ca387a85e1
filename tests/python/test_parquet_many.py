# SPDX-License-Identifier: Apache-2.0
"""Tables of many files: directories, URLs, order, errors."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import pytest
import warpcipher as wc
from parquet_cases import KEY, KEYS, table, write
from warpcipher import keys, parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "table"
    for number, name in enumerate(("a.parquet", "b/c.parquet", "b/d.parquet", "e.parquet")):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write(table(100).slice(25 * number, 25)))
    for name in ("_metadata.parquet", ".hidden.parquet", "notes.txt", "_tmp/x.parquet"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("no table")
    return root


def test_a_directory_is_one_table(folder: Path) -> None:
    found = parquet.find_files(folder)
    assert [Path(name).name for name in found] == [
        "a.parquet",
        "c.parquet",
        "d.parquet",
        "e.parquet",
    ]
    assert parquet.read_dataset(folder, KEY).equals(table(100))
    some = parquet.read_dataset([folder / "b", folder / "a.parquet"], KEY, ["a"])
    assert some["a"].to_pylist() == [*range(25, 75), *range(25)]
    tables = list(parquet.read_tables(str(folder), KEY))
    assert [path for path, _ in tables] == found
    assert all(each.num_rows == 25 for _, each in tables)


def test_urls(folder: Path) -> None:
    pytest.importorskip("fsspec")
    import fsspec

    assert parquet.read_dataset(f"file://{folder}", KEY).equals(table(100))
    memory = fsspec.filesystem("memory")
    for number, name in enumerate(("x/1.parquet", "x/2.parquet", "x/_no.parquet")):
        memory.pipe(f"/t/{name}", write(table(100).slice(50 * number, 50)))
    assert parquet.find_files("memory://t/x") == [
        "memory:///t/x/1.parquet",
        "memory:///t/x/2.parquet",
    ]
    assert parquet.read_dataset("memory://t/x", KEY).equals(table(100))
    assert parquet.read_dataset("memory://t/x/2.parquet", KEY).num_rows == 50
    written = parquet.to_plain("memory://t/x/1.parquet", KEY, "memory://t/plain.parquet")
    assert written == memory.size("/t/plain.parquet")
    assert parquet.read_table("memory://t/plain.parquet").num_rows == 50


def test_the_first_error_ends_it(folder: Path) -> None:
    (folder / "b/c.parquet").write_bytes(write(table(10), KEYS[32]))
    reader = parquet.read_tables(folder, KEY)
    assert next(reader)[0].endswith("a.parquet")
    with pytest.raises(wc.InvalidTag) as caught:
        next(reader)
    assert str(caught.value).startswith(f"{folder / 'b/c.parquet'}: ")
    with pytest.raises(StopIteration):
        next(reader)


def test_who_stops_early_leaves_no_thread(folder: Path) -> None:
    reader = parquet.read_tables(folder, KEY)
    next(reader)
    reader.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("warpcipher-tables")]


def test_where_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no files whose names end in \.parquet"):
        parquet.read_dataset(tmp_path, KEY)
    with pytest.raises(FileNotFoundError):
        parquet.read_dataset(tmp_path / "none.parquet", KEY)
    assert list(parquet.read_tables([], KEY)) == []
    with pytest.raises(ValueError, match="paths is empty"):
        parquet.read_dataset([], KEY)


def test_an_error_of_io_names_the_file_and_the_key(folder: Path) -> None:
    missing = folder / "no.key"
    with pytest.raises(FileNotFoundError) as caught:
        parquet.read_dataset(folder / "e.parquet", keys.from_file(missing))
    assert "e.parquet" in str(caught.value)
    assert "no.key" in str(caught.value)


def test_columns_of_folders_are_not_lost_in_silence(tmp_path: Path) -> None:
    for year in (2020, 2021):
        path = tmp_path / f"year={year}/x.parquet"
        path.parent.mkdir()
        path.write_bytes(write(table(10)))
    with pytest.warns(UserWarning, match="the column year is in the names of folders") as told:
        assert parquet.read_dataset(tmp_path, KEY).num_rows == 20
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parquet.read_dataset(tmp_path, KEY, ["a"])  # which asks for none

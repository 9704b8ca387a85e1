# SPDX-License-Identifier: Apache-2.0
"""Tables of many files: directories, URLs, order, errors."""

from __future__ import annotations

import contextlib
import io
import re
import threading
import warnings
from pathlib import Path

import pytest
import warpcipher as wc
from parquet_cases import KEY, KEYS, pa, table, write
from warpcipher import keys, parquet
from warpcipher.parquet.many import Filter

pc = pytest.importorskip("pyarrow.compute")


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
    for filters, rows in ((None, 100), ([("a", "<", 7)], 7)):
        assert parquet.read_dataset(folder, KEY, [], filters=filters).shape == (rows, 0)
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
    with pytest.warns(UserWarning, match="the column year is only in the names of folders") as told:
        assert parquet.read_dataset(tmp_path, KEY).num_rows == 20
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parquet.read_dataset(tmp_path, KEY, ["a"])  # which asks for none


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three files of one table that grew."""
    contents = [
        pa.table({"id": pa.array([0, 1], pa.int32()), "name": ["a", "b"]}),
        pa.table({"name": ["c"], "id": pa.array([2], pa.int64())}),
        pa.table({"id": pa.array([3, 4], pa.int32()), "name": ["d", "e"], "more": [0.5, 1.5]}),
    ]
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(write(content))
    return list(map(str, paths))


def test_schemas_that_differ_are_told_of_by_file_and_column(files: list[str]) -> None:
    for wrong, says in (
        (files[:2], f"column name of {files[1]} stands where {files[0]} has id; promote_options="),
        (files[::2], f"column more is in {files[2]}, and not in {files[0]}"),
        (files[2:0:-1], f"column more is in {files[2]}, and not in {files[1]}"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            parquet.read_dataset(wrong, KEY)
    says = f"column id is int32 in {files[0]}, and int64 in {files[1]}"
    with pytest.raises(ValueError, match=re.escape(says)):
        parquet.read_dataset(files, KEY, ["id"])
    with pytest.raises(ValueError, match=re.escape(f"{says}, which promote_options='default'")):
        parquet.read_dataset(files, KEY, promote_options="default")
    with pytest.raises(ValueError, match="'all': expected none, default, permissive"):
        parquet.read_dataset(files, KEY, promote_options="all")
    Path(files[1]).write_bytes(write(pa.table({"id": ["x"]})))
    with pytest.raises(ValueError, match=re.escape(f"and string in {files[1]}")):
        parquet.read_dataset(files, KEY, promote_options="permissive")


def test_schemas_are_unified_on_request(files: list[str]) -> None:
    options = {"promote_options": "permissive"}
    assert parquet.read_dataset(files, KEY, **options).equals(
        pa.table(
            {
                "id": pa.array(range(5), pa.int64()),
                "name": list("abcde"),
                "more": [None, None, None, 0.5, 1.5],
            }
        )
    )
    some = parquet.read_dataset(files, KEY, ["more", "id"], **options)
    assert some.column_names == ["more", "id"]
    assert some["more"].to_pylist() == [None, None, None, 0.5, 1.5]
    assert parquet.read_dataset(files[::2], KEY, promote_options="default").num_rows == 4
    with pytest.raises(ValueError, match="no file has a column 'least'"):
        parquet.read_dataset(files, KEY, ["id", "least"], **options)


def test_patterns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [f"{folder}/b/c.parquet", f"{folder}/b/d.parquet"]
    assert parquet.find_files(folder / "b/*.parquet") == found
    assert parquet.find_files(folder / "b/[c-d].par*") == found
    assert parquet.find_files(folder / "b*") == found  # a folder
    assert parquet.find_files(f"{folder}/**/*.parquet") == [
        f"{folder}/a.parquet",
        *found,
        f"{folder}/e.parquet",
    ]
    assert parquet.read_dataset(folder / "?.parquet", KEY)["a"].to_pylist() == [
        *range(25),
        *range(75, 100),
    ]
    with pytest.raises(FileNotFoundError, match=r"z\* stands for no files whose names end in"):
        parquet.find_files(folder / "z*")
    strange = folder / "[1]?.parquet"  # it is there, so it is not a pattern
    strange.write_bytes(write(table(3)))
    assert parquet.read_dataset(strange, KEY).num_rows == 3
    monkeypatch.chdir(folder)
    assert parquet.find_files("b/*") == ["b/c.parquet", "b/d.parquet"]


def test_file_systems_and_what_opens_urls(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = pytest.importorskip("pyarrow.fs")
    for system in (fsspec.filesystem("file"), fs.LocalFileSystem()):
        found = parquet.read_dataset(str(folder), KEY, filesystem=system)
        assert found.equals(table(100))
        path = f"{folder}/b/*.parquet"
        assert parquet.read_dataset(path, KEY, filesystem=system).num_rows == 50
        one = [f"{folder}/e.parquet"]
        assert parquet.read_dataset(one, KEY, filesystem=system).num_rows == 25
    root = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    assert parquet.find_files("b", filesystem=root) == ["b/c.parquet", "b/d.parquet"]
    assert parquet.read_dataset(["b", "a.parquet"], KEY, filesystem=root).num_rows == 75
    with pytest.raises(wc.InvalidTag, match=r"a\.parquet"):
        parquet.read_dataset("a.parquet", KEYS[32], filesystem=root)

    class Locked(fsspec.get_filesystem_class("file")):  # type: ignore[misc]
        protocol = "locked"

        def __init__(self, token: str = "", **options: object) -> None:
            if token != "of the test":
                raise PermissionError("no token")
            super().__init__(**options)

    fsspec.register_implementation("locked", Locked, clobber=True)
    options = {"token": "of the test"}
    with pytest.raises(PermissionError, match="no token"):
        parquet.read_dataset(f"locked://{folder}", KEY)
    for path, rows in (("", 100), ("/b/*", 50), ("/e.parquet", 25)):
        found = parquet.read_dataset(f"locked://{folder}{path}", KEY, storage_options=options)
        assert found.num_rows == rows
    for wrong, says in (
        ({"storage_options": options}, "storage_options are for URLs"),
        ({"storage_options": options, "filesystem": root}, "and a filesystem was given"),
    ):
        with pytest.raises(ValueError, match=says):
            parquet.read_dataset(folder, KEY, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give a path in it"):
        parquet.read_dataset("file:///x", KEY, filesystem=root)
    with pytest.raises(TypeError, match="filesystem is int: expected one of fsspec or pyarrow"):
        parquet.read_dataset("x", KEY, filesystem=3)


def test_filters(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for filters in (
        [("a", ">=", 40), ("a", "<", 60)],
        (pc.field("a") >= 40) & (pc.field("a") < 60),
    ):
        assert parquet.read_dataset(folder, KEY, filters=filters).equals(table(100).slice(40, 20))
        some = parquet.read_dataset(folder, KEY, ["s", "t.u"], filters=filters)
        assert some["s"].equals(table(100).slice(40, 20)["s"])
        assert some["t"].to_pylist() == [{"u": each / 2} for each in range(40, 60)]
    for wrong in (("a", "=", 1), 3, {"a": 1}):
        with pytest.raises(TypeError, match=r'filters: .* such as \[\("a", "=", 1\)\]'):
            parquet.read_dataset(folder, KEY, filters=wrong)
    nested = parquet.read_dataset(folder, KEY, ["a"], filters=pc.field("t", "u") == 3.5)
    assert nested["a"].to_pylist() == [7]
    both = parquet.read_dataset(folder, KEY, ["t.v"], filters=pc.field("t", "u") == 3.5)
    assert both["t"].to_pylist() == [{"v": {"w": "7"}}]
    with pytest.raises(ValueError, match=r"a\.parquet: No match for FieldRef\.Name\(zz\)"):
        parquet.read_dataset(folder, KEY, filters=[("zz", "=", 1)])


def test_filters_pass_over_row_groups_and_ask_for_no_other_keys() -> None:
    own = {"a": KEYS[24], "s": KEYS[32]}
    sink = io.BytesIO()
    parquet.encrypt(write(table(), None), sink, parquet.EncryptionConfig(KEY, column_keys=own))
    asked = []
    keys: dict[bytes | str, object] = {b"": KEY, "a": lambda _: asked.append("a") or KEYS[24]}
    with parquet.open(sink.getvalue(), keys) as file:  # type: ignore[arg-type]
        assert file.schema.equals(table().schema)
        assert asked == []
        read: list[object] = []
        chunks = file.chunks
        file.chunks = lambda *which: read.append(which) or chunks(*which)  # type: ignore[method-assign,func-returns-value]
        found = Filter([("a", ">", 390)]).read(file, ["a"])
    assert found["a"].to_pylist() == list(range(391, 500))
    assert read == [([1, 2], [0])]
    assert asked == ["a"]


def test_a_file_that_wraps_what_reads_is_unwrapped(folder: Path) -> None:
    """As fsspec 2024's files on pyarrow's file systems."""

    class Wrapper(contextlib.ExitStack):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.stream = self.enter_context(io.FileIO(path))
            self.seek = self.stream.seek

    local = pytest.importorskip("fsspec.implementations.local", reason="fsspec is not installed")
    system = local.LocalFileSystem(skip_instance_cache=True)
    system.open = lambda path, _mode: Wrapper(path)
    expected = parquet.read_dataset(str(folder), KEY)
    assert parquet.read_dataset(str(folder), KEY, filesystem=system).equals(expected)

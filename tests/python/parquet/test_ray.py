# SPDX-License-Identifier: Apache-2.0
"""Tables read by a Ray cluster of this machine, where Ray Data is installed; and, without one, what
its tasks do."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import ray_keys
import warpcipher as wc
from parquet_cases import KEYS, pa, table, write
from warpcipher import keys, parquet
from warpcipher.cluster import fleet, tables

FILES = 7
KEY = secrets.token_bytes(16)  # that is in no program by chance


def fill(folder: Path) -> None:
    """A key, and a table of some files."""
    (folder / "table").mkdir()
    (folder / "key").touch(0o600)
    (folder / "key").write_text(KEY.hex())
    for number in range(FILES):
        part = table(10 * FILES).slice(10 * number, 10)
        (folder / "table" / f"{number}.parquet").write_bytes(write(part, KEY, row_group_size=4))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def seen() -> Iterator[dict[str, Any]]:
    """The program's report about its cluster."""
    for name in ("ray", "pandas"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}: the extra `cluster`")
    # Sockets of Ray have names of 107 bytes at most: not in a folder of pytest's.
    with tempfile.TemporaryDirectory(prefix="wc-ray-") as name:
        fill(Path(name))
        here = Path(__file__).parents[1] / "support"
        package = Path(wc.__file__).parent.parent
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(here), str(package))),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": name,
            "RAY_worker_niceness": "0",  # of 15, which starves next to other programs
        }
        environment.pop("RAY_ADDRESS", None)
        done = subprocess.run(
            [sys.executable, here / "ray_program.py", name],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=1800,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        for form in (KEY.hex(), KEY.hex().upper()):
            assert form not in done.stdout + done.stderr
        yield json.loads(done.stdout.splitlines()[-1])


def test_the_cluster_reads_what_one_process_reads(seen: dict[str, Any]) -> None:
    assert seen["columns"] == ["s", "a"]
    assert seen["rows"] == list(range(10 * FILES))


def test_a_worker_that_is_killed_loses_nothing(seen: dict[str, Any]) -> None:
    assert seen["died"]
    assert seen["after death"] == list(range(10 * FILES))


def test_no_key_is_in_tasks_logs_or_the_object_store(seen: dict[str, Any]) -> None:
    assert seen["leaks"] == []
    assert {"tasks", "memory of raylet", "memory of gcs_server"} <= set(seen["places"])
    assert any(place.endswith(".log") for place in seen["places"])
    assert "memory of raylet" in seen["control"]  # so the search sees the object store


def test_resources_and_sizes_are_declared(seen: dict[str, Any]) -> None:
    assert seen["declared"] == [
        {"num_cpus": 1, "num_gpus": 0, "concurrency": None},
        {"num_cpus": 2, "num_gpus": tables.GPU_SHARE, "concurrency": 5},
        {"num_cpus": 1, "num_gpus": 1, "concurrency": None},
    ]
    assert seen["tasks"] == 3 * 4
    names = [Path(path).name for paths in seen["paths"] for path in paths]
    assert names == [f"{number}.parquet" for number in range(FILES)]
    whole, parts = seen["sizes"]
    assert whole == parts > 1000


def test_errors_of_tasks_say_what_and_where(seen: dict[str, Any]) -> None:
    assert "the footer: failed authentication" in seen["error"]


# --- without a cluster ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "most", "counts"),
    [
        ([], 4, []),
        ([5, 5, 5], 4, [1, 1, 1]),
        ([1] * 10, 1, [10]),
        ([1000, 1, 1, 1, 1000], 2, [3, 2]),
        ([1, 1, 1, 1, 900], 2, [4, 1]),
        ([900, 1, 1, 1, 1], 3, [1, 2, 2]),
        ([None] * 6, 3, [2, 2, 2]),
        ([100, None, 100, 100], 2, [2, 2]),
        ([0] * 4, 2, [2, 2]),
    ],
)
def test_parts_have_about_equal_bytes(
    sizes: list[int | None], most: int, counts: list[int]
) -> None:
    parts = fleet.balanced(sizes, most)
    assert [number for part in parts for number in part] == list(range(len(sizes)))
    assert list(map(len, parts)) == counts


def task(given: Any, **options: Any) -> tables.TableTask:
    values = {"columns": None, "aad_prefix": None, "retries": 2, "version": wc.__version__}
    return tables.TableTask(fleet.portable_keys(given), **{**values, **options})


def test_blocks_are_runs_of_row_groups(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = parquet.find_files(folder / "table")
    monkeypatch.setattr(tables, "BLOCK_SIZE", 1)
    blocks = list(task(keys.from_file(folder / "key")).read(paths, False))
    assert [block.num_rows for block in blocks] == [4, 4, 2] * FILES
    assert pa.concat_tables(blocks).equals(table(10 * FILES))
    monkeypatch.setattr(tables, "BLOCK_SIZE", 1 << 30)
    blocks = list(task(keys.from_file(folder / "key"), columns=("a",)).read(paths, True))
    assert [block.num_rows for block in blocks] == [10] * FILES
    assert blocks[0].column_names == ["a"]


def test_a_file_without_rows_has_a_schema(folder: Path) -> None:
    path = folder / "empty.parquet"
    path.write_bytes(write(table(0), KEY))
    (block,) = task(keys.from_file(folder / "key")).read([str(path)], False)
    assert block.equals(table(0))


class Flaky(keys.KeySource):
    """Cannot be reached that many times; then it is the key."""

    def __init__(self, failures: list[Exception]) -> None:
        super().__init__("flaky")
        self.failures = failures

    def read(self, key_id: Any) -> bytes:
        if self.failures:
            raise self.failures.pop(0)
        return KEY


@pytest.mark.parametrize(
    ("failures", "error", "left"),
    [
        ([OSError("away"), TimeoutError("away")], None, 0),
        ([OSError("away")] * 4, OSError, 1),
        ([FileNotFoundError("none"), OSError("away")], FileNotFoundError, 1),
        ([PermissionError("no"), OSError("away")], PermissionError, 1),
        ([ValueError("bad"), OSError("away")], ValueError, 1),
    ],
)
def test_errors_of_io_are_waited_out(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    failures: list[Exception],
    error: type[Exception] | None,
    left: int,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(tables.time, "sleep", waits.append)
    path = parquet.find_files(folder / "table")[0]
    source = Flaky(list(failures))
    made = tables.TableTask(source, None, None, 2, wc.__version__)
    if error is None:
        assert sum(block.num_rows for block in made.read([path], False)) == 10
        assert waits == [0.5, 1.0]
    else:
        with pytest.raises(error) as caught:
            list(made.read([path], False))
        assert path in str(caught.value)
    assert len(source.failures) == left


def test_what_is_not_authentic_is_not_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables.time, "sleep", lambda _: pytest.fail("waited"))
    (folder / "key").write_text(KEYS[32].hex())
    paths = parquet.find_files(folder / "table")
    with pytest.raises(wc.InvalidTag, match="the footer"):
        list(task(keys.from_file(folder / "key")).read(paths, False))


def test_another_version_of_the_library_is_refused(folder: Path) -> None:
    with pytest.raises(wc.EngineError, match=r"a node has warpcipher .*, and the driver 0\.0\.1"):
        list(task(None, version="0.0.1").read([], False))


@pytest.mark.parametrize(
    "given",
    [
        KEY,
        bytearray(KEY),
        {b"": KEY},
        {b"x": keys.from_env("X"), "a": bytes(16)},
        lambda _: KEY,
        parquet.KmsKeys(Mock()),
        "key",
    ],
    ids=["bytes", "bytearray", "mapping", "one of a mapping", "lambda", "instance", "text"],
)
def test_keys_that_would_travel_are_refused(folder: Path, given: Any) -> None:
    with pytest.raises(TypeError, match="tasks carry no keys") as caught:
        parquet.read_ray(folder / "table", given)
    assert KEY.hex() not in str(caught.value)
    assert repr(KEY) not in str(caught.value)


def test_a_descriptor_of_this_process_is_refused(folder: Path) -> None:
    with pytest.raises(TypeError, match="cannot be sent to other nodes"):
        parquet.read_ray(folder / "table", keys.from_descriptor(0))


def test_sources_and_functions_travel_by_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ray_keys.FOLDER, str(folder))
    given = {b"": keys.from_file(folder / "key"), "a": ray_keys.find_key}
    sent = pickle.dumps(fleet.portable_keys(given))
    assert b"find_key" in sent
    assert KEY not in sent
    there = fleet.found_keys(pickle.loads(sent))  # noqa: S301
    assert there["a"] is ray_keys.find_key
    assert parquet.read_dataset(folder / "table", there).num_rows == 10 * FILES


def test_without_ray(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    tables._source_type.cache_clear()
    with pytest.raises(ImportError, match=r"read_ray needs Ray Data.*warpcipher\[cluster,parquet"):
        parquet.read_ray(folder / "table", keys.from_file(folder / "key"))


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"columns": "a"}, TypeError, "columns is a str"),
        ({"retries": -1}, ValueError, "retries is -1"),
        ({"paths": "/nowhere/at/all/"}, FileNotFoundError, "/nowhere"),
    ],
)
def test_arguments_that_cannot_be(
    folder: Path, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        parquet.read_ray(**{"paths": folder / "table", **options})

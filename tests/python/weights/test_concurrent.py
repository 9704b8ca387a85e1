# SPDX-License-Identifier: Apache-2.0
"""Models that are read by several threads and processes, and files that change under the reader."""

from __future__ import annotations

import multiprocessing
import os
import threading
from pathlib import Path

import pytest
from test_weights import KEY, every_key
from warpcipher import InvalidTag, _memory, weights
from warpcipher.formats import FormatError
from weights_cases import sum_of_file

np = pytest.importorskip("numpy", reason="NumPy is not installed")


@every_key
def test_a_file_that_shrinks_while_it_is_read(key: object, tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file({"a": np.ones(1 << 18), "b": np.ones(4)}, path, key)
    with weights.safe_open(path, "np", key=key) as model:
        os.truncate(path, 1 << 17)
        with pytest.raises(FormatError, match="while it was read"):
            model.get_tensor("a")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file({"a": np.ones(1 << 18)}, path, KEY)
    with weights.safe_open(path, "np", key=KEY) as model:
        weights.save_file({"a": np.zeros(1 << 18)}, tmp_path / "y", KEY)
        path.write_bytes((tmp_path / "y").read_bytes())
        with pytest.raises(InvalidTag):
            model.get_tensor("a")


@every_key
def test_several_threads_read_one_model(key: object, tmp_path: Path) -> None:
    model = {f"t{i}": np.full(30_000, i, np.float32) for i in range(16)}
    weights.save_file(model, tmp_path / "x", key)
    failed: list[BaseException] = []

    def work(start: int) -> None:
        try:
            for i in range(64):
                name = f"t{(start + i) % 16}"
                assert np.array_equal(opened.get_tensor(name), model[name])
                assert np.array_equal(opened.get_slice(name)[5000:6000], model[name][5000:6000])
        except BaseException as error:
            failed.append(error)

    with weights.safe_open(tmp_path / "x", "np", key=key) as opened:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []


@every_key
def test_a_model_that_is_replaced_while_others_load_it(key: object, tmp_path: Path) -> None:
    """Each of them gets the old one or the new one, whole."""
    path = tmp_path / "x"
    models = [{f"t{i}": np.full(30_000, 10 * m + i, np.float32) for i in range(4)} for m in (0, 1)]
    weights.save_file(models[0], path, key)
    failed: list[BaseException] = []
    seen: set[int] = set()
    is_done = threading.Event()

    def work() -> None:
        try:
            while not is_done.is_set():
                found = weights.load_file(path, key, framework="np")
                which = int(found["t0"][0]) // 10
                assert all(np.array_equal(found[name], models[which][name]) for name in models[0])
                seen.add(which)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(1, 2000):
        weights.save_file(models[i % 2], path, key)
        if i >= 20 and (failed or seen == {0, 1}):
            break
    is_done.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert seen == {0, 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


def test_memory_that_cannot_be_had() -> None:
    with pytest.raises(MemoryError, match="bytes of memory"):
        _memory.allocate(1 << 60)


@every_key
def test_a_read_of_a_closed_model_is_refused(key: object, tmp_path: Path) -> None:
    weights.save_file({"a": np.ones(3)}, tmp_path / "x", key)
    with weights.safe_open(tmp_path / "x", "np", key=key) as model:
        part = model.get_slice("a")
    with pytest.raises(ValueError, match="closed"):
        part[1:]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_several_processes_read_one_file(method: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file({f"t{i}": np.full(30_000, i, np.float64) for i in range(8)}, path, KEY)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(sum_of_file, [(str(path), KEY)] * 4) == [28 * 30_000.0] * 4

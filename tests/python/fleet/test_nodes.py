# SPDX-License-Identifier: Apache-2.0
"""A job on a Ray cluster of this machine, one node of which is killed in the middle."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from cli_support import ended, run, wait_until
from warpcipher.cluster import objects

COUNT = 300


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray, the extra `cluster`"
)
def test_a_node_that_dies_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    # Ray gives tasks to a node that was killed until its health checks have failed, and those tasks
    # wait: 10 to 17 s with its defaults, and longer where nothing answers in time.
    for name, value in (("initial_delay", 0), ("period", 500), ("timeout", 5000)):
        monkeypatch.setenv(f"RAY_health_check_{name}_ms", str(value))
    here, package = Path(__file__).parents[1] / "support", Path(wc.__file__).parent.parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(here), str(package))))
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(secrets.token_bytes(32))
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    for number in range(COUNT):
        name = f"{number}" if number % 2 else f"deep/{number}"
        (tmp_path / "in" / name).write_bytes(secrets.token_bytes(number * 100))
    from ray.cluster_utils import Cluster  # type: ignore[import-not-found,unused-ignore]

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        _do_paths(tmp_path, cluster.address)
        node = cluster.add_node(num_cpus=1)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        program = [sys.executable, here / "fleet_program.py", tmp_path]
        with ended(subprocess.Popen(program, stdout=-1, stderr=-1)) as driver:
            wait_until(
                lambda: (
                    len(list((tmp_path / "out").rglob("*.cobblestone"))) > COUNT // 10
                    or driver.poll() is not None
                ),
                "the first outputs",
            )
            assert driver.poll() is None
            cluster.remove_node(node, allow_graceful=False)
            output, errors = driver.communicate(timeout=120)
        assert driver.returncode == 0, errors.decode()[-3000:]
    finally:
        cluster.shutdown()
    seen = json.loads(output.splitlines()[-1])
    names = {str(path.relative_to(tmp_path / "in")) for path in (tmp_path / "in").rglob("*[0-9]")}
    assert len(names) == COUNT
    assert sorted(seen["done"]) == sorted(names)
    assert not seen["leaks"]
    run("decrypt", "--key", "key", "out", "-o", "back", cwd=tmp_path)
    for name in names:
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "in" / name).read_bytes()


def _do_paths(folder: Path, address: str) -> None:
    """The command on local paths, which are relative to a folder that no node works in."""
    (folder / "new").touch(0o600)
    (folder / "new").write_bytes(secrets.token_bytes(32))
    how = ("--cluster", address, "--jobs", "2", "--key", "key")
    run("encrypt", *how, "in", "-o", "a", "--include", "deep/*", "--report", "r", cwd=folder)
    assert len((folder / "r").read_text().splitlines()) == COUNT // 2
    run("rekey", *how, "a", "--new-key", "new", "-o", "b", cwd=folder)
    done = run("check", "--cluster", address, "--key", "new", "-v", "b", cwd=folder)
    assert b"150 objects done" in done.stderr
    run("rekey", *how, "b", "--new-key", "new", "--in-place", cwd=folder, expect=3)
    back = ("rekey", "--key", "new", "--new-key", "key", "--in-place", "b")
    run(*back, "--cluster", address, cwd=folder)
    run("check", "--key", "key", "b", cwd=folder)
    assert [path.name for path in (folder / "b").iterdir()].count(".warpcipher-journal-rekey") == 0
    run("rekey", *how, "b", "--new-key", "new", "--in-place", cwd=folder)
    run("decrypt", "--key", "new", "b/deep/8.cobblestone", "-o", "8", cwd=folder)
    assert (folder / "8").read_bytes() == (folder / "in" / "deep" / "8").read_bytes()


def test_cores_are_not_counted_for_each_object() -> None:
    asked = []

    class Fleet:
        def nodes(self) -> dict[str, dict[str, float]]:
            asked.append(1)
            return {"a": {"CPU": 3.0}, "b": {"CPU": 1.0}}

    nodes = objects.Nodes.__new__(objects.Nodes)
    nodes._fleet, nodes._cpus = Fleet(), 2  # type: ignore[assignment]
    nodes._count, nodes._counted = 1, -objects.COUNT
    nodes._running = {number: [] for number in range(4)}
    assert {nodes.has_room() for _ in range(200)} == {False}
    assert nodes._places() == 2
    assert len(asked) < 100


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_an_engine_takes_the_cores_of_its_task() -> None:
    program = """
import os, warpcipher
from warpcipher.cluster import objects
usable = os.sched_getaffinity(0)
objects._hold_threads(1)
assert os.sched_getaffinity(0) == usable
cipher = warpcipher.Cipher("aes-128-ctr", bytes(16), engine="cpu")
cipher.encrypt(bytes(1 << 26), iv=bytes(16))
print(len(os.listdir("/proc/self/task")))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=-1, text=True)
    assert done.stdout == "1\n"


def test_a_cluster_takes_no_pipe(tmp_path: Path) -> None:
    for inputs in (("-",), ("in", "-o", "-")):
        done = run("encrypt", "--key", "key", "--cluster", "x", *inputs, cwd=tmp_path, expect=2)
        assert b"not standard input or output" in done.stderr


def test_no_key_travels(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="tasks carry no keys"):
        objects.Nodes("auto", None, bytes(32), 1)  # type: ignore[arg-type]
    for option in ("--key", "--key-fd"):
        done = run(
            *("encrypt", option, "-" if option == "--key" else "0", "--cluster", "auto"),
            *("memory://x/", "-o", "memory://y/"),
            cwd=tmp_path,
            stdin=bytes(32),
            expect=2,
        )
        assert b"needs a key that nodes find" in done.stderr

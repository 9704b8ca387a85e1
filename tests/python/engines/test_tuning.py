# SPDX-License-Identifier: Apache-2.0
"""The basis of `auto`, as a user sees it. The decision itself: tests/unit/test_select.cpp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warpcipher as wc
from cli_support import run, run_json

CUDA = {entry.name: entry for entry in wc.engines()}["cuda"]


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": os.fspath(cache)}


def test_without_a_measurement_a_rule_of_thumb_holds(tmp_path: Path) -> None:
    script = (
        "import warpcipher as wc; now = wc.tuning.current(); "
        "print(now.rates, repr(now.warning), 'tune' in now.origin)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(tmp_path), capture_output=True, check=True
    )
    assert done.stdout.decode() == "() '' True\n"


def cache_file(cache: Path) -> Path:
    """The file of this machine in a cache folder, kept by a process of its own."""
    script = "from warpcipher import _native; print(_native.save_tuning())"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(cache), capture_output=True, check=True
    )
    return Path(done.stdout.decode().rstrip("\n"))


def state(cache: Path) -> tuple[str, str]:
    """Origin and warning, as a process finds them that must not wait for ever."""
    script = "import warpcipher as wc; t = wc.tuning.current(); print(t.origin); print(t.warning)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(cache),
        capture_output=True,
        check=True,
        timeout=120,
    )
    origin, warning = done.stdout.decode().splitlines()
    return origin, warning


def test_cache_file_is_read(tmp_path: Path) -> None:
    path = cache_file(tmp_path)
    assert state(tmp_path) == (f"measured on this machine, kept in {path}", "")


@pytest.mark.parametrize("what", ["fifo", "folder", "device", "endless"])
def test_cache_that_is_no_file_of_a_tuning_is_ignored(tmp_path: Path, what: str) -> None:
    path = cache_file(tmp_path)
    path.unlink()
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)  # without a byte on the disk
    origin, warning = state(tmp_path)
    assert "shipped defaults" in origin
    problem = "it has more than 1048576 bytes" if what == "endless" else "it is not a regular file"
    assert f"{path} is ignored: {problem}" in warning


def test_info_shows_what_auto_decides_by(tmp_path: Path) -> None:
    report = run_json("info", "--engines", cwd=tmp_path)["tuning"]
    assert set(report) == {"origin", "warning", "policies", "rates"}
    assert f"auto: {report['origin']}" in run("info", "--engines", cwd=tmp_path).stdout.decode()


def test_nothing_to_forget(tmp_path: Path) -> None:
    done = run("tune", "--forget", cwd=tmp_path, env=environment(tmp_path / "cache"))
    assert done.stdout == b"nothing was kept for this machine\n"
    run("tune", "--forget", "--quick", cwd=tmp_path, expect=2)


@pytest.mark.skipif(CUDA.usable, reason="for machines without a GPU")
def test_without_a_gpu_there_is_nothing_to_measure(tmp_path: Path) -> None:
    with pytest.raises(wc.EngineError, match="cuda"):
        wc.tuning.measure(quick=True)
    cache = tmp_path / "cache"
    done = run("tune", cwd=tmp_path, env=environment(cache), expect=5)
    assert b"cuda" in done.stderr
    assert not cache.exists()


@pytest.mark.skipif(not CUDA.usable, reason="needs a GPU")
def test_quick_measurement(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    done = run("tune", "--quick", "--json", cwd=tmp_path, env=environment(cache))
    report = json.loads(done.stdout)
    assert {entry["algorithm"] for entry in report["rates"]} >= {"aes-128-ctr", "des-ede3-ecb"}
    assert {entry["name"] for entry in report["policies"]} >= {"tables", "ghash", "slots"}
    for policy in report["policies"]:
        assert policy["value"] in policy["values"]
        assert policy["rate"] >= policy["rate_of_default"] > 0
    assert not cache.exists()  # rough figures are not kept

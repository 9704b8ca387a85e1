# SPDX-License-Identifier: Apache-2.0
"""The lab's profiler, with a stand-in for ncu that prints what a GPU made the true one print."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from warpcipher_measure import profiler
from warpcipher_measure.papers import quirem2013

LAUNCH = profiler.Launch("quirem2013", "thread", 32, {"threads": 256}, 4112, 4096, 0)
FORMS = {"warp-shared": ({"threads": 256}, 4112), "thread": ({"threads": 256}, 4112)}


def _output(values: list[dict[str, str]]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_ALL)
    writer.writerow(("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"))
    for number, metrics in enumerate(values):
        for name, value in metrics.items():
            writer.writerow((number, "decrypt_thread(unsigned int *, RoundKeys)", name, "", value))
    return f"==PROF== Connected to process 1\n{target.getvalue()}"


def _put(monkeypatch: pytest.MonkeyPatch, folder: Path, output: str, status: int = 0) -> Path:
    """From now on ncu prints `output` and writes its arguments to the file that is returned."""
    (folder / "output").write_text(output)
    program = folder / "ncu"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/arguments"\n'
        f'cat "{folder}/output"\nexit {status}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder / "arguments"


def test_counters_are_those_of_each_launch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arguments = _put(monkeypatch, tmp_path, _output([{"a": "1,024", "b": "0.5"}] * 2))
    assert profiler.profile([LAUNCH] * 2, "decrypt_", ["a", "b"]) == [{"a": 1024, "b": 0.5}] * 2
    told = arguments.read_text().splitlines()
    assert told[told.index("--metrics") + 1] == "a,b"
    assert told[told.index("--kernel-name") + 1] == "regex:decrypt_"
    assert json.loads(told[-1])[1]["variant"] == "thread"


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        (_output([{"a": "n/a"}]), 0, "reported 0 kernels"),
        (_output([{"a": "1"}, {"a": "1"}]), 0, "reported 2 kernels"),
        ("==ERROR== ERR_NVGPUCTRPERM\n", 1, "ended with 1: ==ERROR== ERR_NVGPUCTRPERM"),
    ],
)
def test_what_tells_nothing_says_why(
    output: str, status: int, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _put(monkeypatch, tmp_path, output, status)
    with pytest.raises(profiler.UnavailableError, match=text):
        profiler.profile([LAUNCH], "decrypt_", ["a"])


def test_there_may_be_no_profiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert quirem2013.counters(0, FORMS) == "ncu is not on PATH"


def test_the_properties_of_quirem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile = quirem2013
    values = {
        profile.INSTRUCTIONS: "1,000",
        profile.THREAD_INSTRUCTIONS: "24,000",
        profile.EFFICIENCY["load"]: "15.5",
        profile.EFFICIENCY["store"]: "100",
        profile.SHARED_CONFLICTS[0]: "20",
        profile.SHARED_CONFLICTS[1]: "5",
        profile.WAVEFRONTS["global"]: "300",
        profile.REQUESTS["global"]: "100",
        profile.WAVEFRONTS["local"]: "0",
        profile.REQUESTS["local"]: "0",
        profile.OCCUPANCY: "90",
    }
    assert set(values) == set(profile.METRICS)
    _put(monkeypatch, tmp_path, _output([values] * 2))
    found = profile.counters(0, FORMS)
    assert isinstance(found, dict)
    assert list(found) == list(FORMS)
    assert found["thread"] == pytest.approx(
        {
            "global load efficiency": 0.155,
            "global store efficiency": 1,
            "branch divergence overhead": 0.25,
            "shared memory replay overhead": 0.025,
            "global memory replay overhead": 0.2,
            "local cache replay overhead": 0,
            "achieved occupancy": 0.9,
        }
    )

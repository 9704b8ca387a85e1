# SPDX-License-Identifier: Apache-2.0
"""Hardware counters of a paper's kernels, where NVIDIA's profiler `ncu` is installed and may read
them. It runs this module in a process of its own: the jobs of its argument, once each."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from . import _native
from .memory import DeviceMemory, fill

SECONDS = 120  # that it may take


class UnavailableError(RuntimeError):
    """No counters, for the reason that the text gives."""


@dataclass(frozen=True)
class Launch:
    """A job that is run once, on a random text under a random key. Sizes are bytes."""

    paper: str
    variant: str
    key_size: int
    parameters: Mapping[str, int]
    in_size: int
    out_size: int
    device: int


def profile(
    launches: Sequence[Launch], kernels: str, metrics: Sequence[str]
) -> list[dict[str, float]]:
    """The metrics of each launch. kernels: a regular expression for the names of those looked at,
    of which each launch starts one. UnavailableError: no profiler, or it says nothing."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise UnavailableError("ncu is not on PATH")
    command = [ncu, "--csv", "--metrics", ",".join(metrics), "--kernel-name", f"regex:{kernels}"]
    job = [
        sys.executable,
        "-m",
        __name__,
        json.dumps([*map(asdict, launches)]),
    ]
    try:
        done = subprocess.run([*command, *job], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"ncu took more than {SECONDS} s") from error
    lines = (done.stdout + done.stderr).splitlines()
    if done.returncode != 0:
        said = [line for line in lines if line.startswith("==ERROR==")] or lines[-1:]
        raise UnavailableError(f"ncu ended with {done.returncode}: {' '.join(said)}")
    found = _values(line for line in lines if line.startswith('"'))
    if [sorted(entry) for entry in found] != [sorted(metrics)] * len(launches):
        raise UnavailableError(f"ncu reported {len(found)} kernels, or not all metrics of each")
    return found


def _values(lines: Iterable[str]) -> list[dict[str, float]]:
    """Metrics by name, of each kernel in turn."""
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(lines):
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:  # "n/a"
            continue
        found.setdefault(row["ID"], {})[row["Metric Name"]] = value
    return list(found.values())


def main(launches: list[dict[str, Any]]) -> None:
    for entry in launches:
        device, in_size, out_size = (entry[name] for name in ("device", "in_size", "out_size"))
        stream = _native.WorkStream(device)
        source, target = (DeviceMemory(size, stream) for size in (in_size, out_size))
        fill(source, stream)
        key, parameters = os.urandom(entry["key_size"]), entry["parameters"]
        job = _native.Job(entry["paper"], entry["variant"], key, b"", parameters, device)
        job.run(source.pointer, in_size, target.pointer, out_size, stream.pointer)
        stream.wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

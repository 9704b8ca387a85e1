# SPDX-License-Identifier: Apache-2.0
"""Hardware counters of kernels, where NVIDIA's profiler `ncu` is installed and may read them. For a
paper's kernels it runs this module in a process of its own: the jobs of its argument, once each."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from . import _native
from .memory import DeviceMemory, fill

SECONDS = 600  # that it may take


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


class Counted(NamedTuple):
    """A launch that ncu looked at: the kernel's name, and its metrics."""

    kernel: str
    metrics: dict[str, float]


def count(
    command: Sequence[str], metrics: Sequence[str], *options: str
) -> tuple[list[Counted], list[str]]:
    """The metrics of every kernel that a command starts, and the lines that it printed. options: of
    ncu. UnavailableError: no profiler, or it says nothing."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise UnavailableError("ncu is not on PATH")
    profile = [ncu, "--csv", "--metrics", ",".join(metrics), *options, *command]
    try:
        done = subprocess.run(profile, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"ncu took more than {SECONDS} s") from error
    lines = (done.stdout + done.stderr).splitlines()
    if done.returncode != 0:
        said = [line for line in lines if line.startswith("==ERROR==")] or lines[-1:]
        raise UnavailableError(f"ncu ended with {done.returncode}: {' '.join(said)}")
    return _values(line for line in lines if line.startswith('"')), lines


def profile(
    launches: Sequence[Launch], kernels: str, metrics: Sequence[str]
) -> list[dict[str, float]]:
    """The metrics of each launch. kernels: a regular expression for the names of those looked at,
    of which each launch starts one. UnavailableError: no profiler, or it says nothing."""
    job = [sys.executable, "-m", __name__, json.dumps([*map(asdict, launches)])]
    counted, _ = count(job, metrics, "--kernel-name", f"regex:{kernels}")
    found = [entry.metrics for entry in counted]
    if [sorted(entry) for entry in found] != [sorted(metrics)] * len(launches):
        raise UnavailableError(f"ncu reported {len(found)} kernels, or not all metrics of each")
    return found


def _values(lines: Iterable[str]) -> list[Counted]:
    """The kernels in turn."""
    found: dict[str, Counted] = {}
    for row in csv.DictReader(lines):
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:  # "n/a"
            continue
        entry = found.setdefault(row["ID"], Counted(row["Kernel Name"], {}))
        entry.metrics[row["Metric Name"]] = value
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

# SPDX-License-Identifier: Apache-2.0
"""Hardware counters of a paper's kernels, where NVIDIA's profiler `ncu` is installed and may read
them. It runs profiled.py in a process of its own."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

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
    of which each launch starts one. UnavailableError: there is no profiler, or it tells nothing."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise UnavailableError("ncu is not on PATH")
    command = [ncu, "--csv", "--metrics", ",".join(metrics), "--kernel-name", f"regex:{kernels}"]
    job = [
        sys.executable,
        "-m",
        "warpcipher_measure.lab.profiled",
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
        raise UnavailableError(f"ncu told of {len(found)} kernels, or not all metrics of each")
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

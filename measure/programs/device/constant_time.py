# SPDX-License-Identifier: Apache-2.0
"""Do the kernels of AES and ChaCha20 on a GPU tell anything of keys or data by their time?

Runs `device_constant_time` (built with the GPU tests): its timing test, Welch's t of launches with
a fixed key and text against random ones; then, under ncu, each kernel on zeros, equal bytes, random
bytes and under another key. There the loads from shared memory must take as many wavefronts as
there are loads where nothing else uses that pipe, and everywhere as many for all data; the kernels
must execute as many instructions. Classic tables of 4 KiB are the control, which must fail.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

from warpcipher_measure.machine import look

LOADS = "smsp__inst_executed_op_shared_ld.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
MOST_SPREAD = 0.03  # of wavefronts between data, where loads of the text wait for the same pipe
MOST_EXTRA = 1e-5  # wavefronts a load, where nothing else uses the pipe
CONTROL = "control-4-KiB-tables"
OWN = ("fill_kernel", "spin_kernel")  # the benchmark's, not measured


@dataclass
class Kernel:
    """What was found of one kernel. counts: of each kind of data, by launch and metric."""

    name: str
    timing: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    def values(self, metric: str) -> list[list[float]]:
        return [[count[metric] for count in launches] for launches in self.counts.values()]

    def spread(self, metric: str) -> float:
        values = [value for launches in self.values(metric) for value in launches]
        return max(values) / max(min(values), 1) - 1  # ChaCha20 by itself loads nothing

    def data_show(self, metric: str) -> bool:
        """Whether data differ by more than launches with the same data."""
        values = self.values(metric)
        means = [fmean(launches) for launches in values]
        return max(means) - min(means) > max(max(launches) - min(launches) for launches in values)

    def failures(self) -> list[str]:
        leaks = self.name == CONTROL
        found = [
            f"t of {text} is {row['t']:.1f}" for text, row in self.timing.items() if row["failed"]
        ]
        if self.counts:
            if self.data_show(INSTRUCTIONS):
                found.append("executes more instructions for some data")
            if (self.spread(WAVEFRONTS) > MOST_SPREAD) != leaks:
                found.append(f"wavefronts differ by {100 * self.spread(WAVEFRONTS):.2f}%")
            if self.name.startswith("lookups-alone"):
                launches = [count for of_data in self.counts.values() for count in of_data]
                extra = [count[WAVEFRONTS] - count[LOADS] for count in launches]
                if max(extra) > MOST_EXTRA * max(count[LOADS] for count in launches):
                    found.append(f"takes up to {max(extra):.0f} wavefronts more than loads")
        return found


def run_timing(program: Path, launches: int) -> dict[str, Kernel]:
    command: list[str | Path] = [program, "--launches", str(launches)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    kernels: dict[str, Kernel] = {}
    for line in output.splitlines():
        if not line.startswith("timing "):
            continue
        _, name, text, count, t, difference, mean, verdict = line.split()
        kernels.setdefault(name, Kernel(name)).timing[text] = {
            "launches": int(count),
            "t": float(t),
            "difference_percent": float(difference.rstrip("%")),
            "microseconds": float(mean),
            "failed": float(verdict != "ok"),
        }
    return kernels or sys.exit(f"{program} measured nothing")


def run_counts(program: Path, ncu: str, kernels: dict[str, Kernel]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        metrics = ",".join((LOADS, WAVEFRONTS, INSTRUCTIONS))
        profile: list[str | Path] = [
            ncu,
            "--clock-control",
            "none",
            "--csv",
            "--page",
            "raw",
            "--log-file",
            log,
        ]
        command = [*profile, "--metrics", metrics, program, "--count"]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        lines = log.read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith('"ID"'))
    launches = list(csv.DictReader(lines[start:]))[1:]  # the first row has the units
    cases = iter(line.split()[1:] for line in output.splitlines() if line.startswith("case "))
    counts: dict[str, float] = {}
    for launch in launches:
        kernel = launch["Kernel Name"]
        if "fill_kernel" in kernel:
            name, data = next(cases)
            counts = {}
            kernels.setdefault(name, Kernel(name)).counts.setdefault(data, []).append(counts)
        elif not any(own in kernel for own in OWN):
            for metric in (LOADS, WAVEFRONTS, INSTRUCTIONS):
                counts[metric] = counts.get(metric, 0) + float(launch[metric].replace(",", ""))


def print_table(kernels: dict[str, Kernel]) -> None:
    for name, kernel in kernels.items():
        print(name)
        for text, row in kernel.timing.items():
            print(
                f"  {text:14} t {row['t']:9.2f}   {row['difference_percent']:8.3f}% of "
                f"{row['microseconds']:.1f} us, {row['launches']:.0f} launches"
            )
        for data, launches in kernel.counts.items():
            for count in launches:
                print(
                    f"  {data:14} {count[LOADS]:12.0f} loads {count[WAVEFRONTS]:12.0f} wavefronts "
                    f"({count[WAVEFRONTS] / max(count[LOADS], 1):.4f}) "
                    f"{count[INSTRUCTIONS]:12.0f} instructions"
                )
        print(f"  {'; '.join(kernel.failures()) or 'as it should be'}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments.add_argument("--program", type=Path, required=True, help="device_constant_time")
    arguments.add_argument("--launches", type=int, default=2000, help="of each timing test")
    arguments.add_argument("--no-ncu", action="store_true", help="only the timing test")
    options = arguments.parse_args()
    ncu = shutil.which("ncu")
    if ncu is None and not options.no_ncu:
        sys.exit("ncu is not on PATH (Nsight Compute); --no-ncu runs only the timing test")
    kernels = run_timing(options.program, options.launches)
    if ncu is not None and not options.no_ncu:
        run_counts(options.program, ncu, kernels)
    if options.json:
        found = {
            name: {"timing": k.timing, "counts": k.counts, "failures": k.failures()}
            for name, k in kernels.items()
        }
        print(json.dumps({"facts": asdict(look(0)), "kernels": found}, indent=1))
    else:
        print_table(kernels)
    if any(kernel.failures() for kernel in kernels.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Do the kernels of AES and ChaCha20 on a GPU do other work for other keys or data?

Runs `device_constant_time --count` (constant_time.cu; without --count it is the test of
times) under ncu: each kernel on zeros, equal bytes, random bytes and under another key. There the
loads from shared memory must take as many wavefronts as there are loads where nothing else uses
that pipe, and everywhere as many for all data; the kernels must execute as many instructions.
Classic tables of 4 KiB are the control, which must fail.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from statistics import fmean

from warpcipher_measure.machine import look

LOADS = "smsp__inst_executed_op_shared_ld.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
METRICS = (LOADS, WAVEFRONTS, INSTRUCTIONS)
MOST_SPREAD = 0.03  # of wavefronts between data, where loads of the text wait for the same pipe
MOST_EXTRA = 1e-5  # wavefronts a load, where nothing else uses the pipe
CONTROL = "control-4-KiB-tables"
OWN = ("fill_kernel", "spin_kernel")  # the benchmark's, not measured

Counts = dict[str, list[dict[str, float]]]
"""Of one kernel: metrics, by the kind of data and the launch."""


def count(program: str) -> dict[str, Counts]:
    """Of each kernel and kind of data. A line of ncu has one metric of a launch."""
    ncu = shutil.which("ncu") or sys.exit("ncu (Nsight Compute) is not on PATH")
    command = [ncu, "--csv", "--clock-control", "none", "--metrics", ",".join(METRICS)]
    command += [program, "--count"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = output.splitlines()
    cases = iter(line.split()[1:] for line in lines if line.startswith("case "))
    found: dict[str, Counts] = {}
    counts: dict[str, float] = {}
    filled = ""
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        kernel = row["Kernel Name"]
        if "fill_kernel" in kernel and row["ID"] != filled:
            filled = row["ID"]
            name, data = next(cases)
            counts = dict.fromkeys(METRICS, 0.0)
            found.setdefault(name, {}).setdefault(data, []).append(counts)
        elif not any(own in kernel for own in OWN):
            counts[row["Metric Name"]] += float(row["Metric Value"].replace(",", ""))
    return found


def failures(name: str, counts: Counts) -> list[str]:
    found = []
    executed = [[launch[INSTRUCTIONS] for launch in launches] for launches in counts.values()]
    means = [fmean(launches) for launches in executed]
    # Kinds of data may differ by no more than launches with the same data.
    if max(means) - min(means) > max(max(launches) - min(launches) for launches in executed):
        found.append("executes more instructions for some data")
    every = [launch for launches in counts.values() for launch in launches]
    wavefronts = [launch[WAVEFRONTS] for launch in every]
    spread = max(wavefronts) / max(min(wavefronts), 1) - 1  # ChaCha20 by itself loads nothing
    if (spread > MOST_SPREAD) != (name == CONTROL):
        found.append(f"wavefronts differ by {100 * spread:.2f}%")
    extra = max(launch[WAVEFRONTS] - launch[LOADS] for launch in every)
    if name.startswith("lookups-alone") and extra > MOST_EXTRA * max(n[LOADS] for n in every):
        found.append(f"takes up to {extra:.0f} wavefronts more than loads")
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments.add_argument("--program", required=True, help="device_constant_time")
    options = arguments.parse_args()
    kernels = count(options.program)
    failed = {name: failures(name, counts) for name, counts in kernels.items()}
    if options.json:
        facts = {"facts": asdict(look(0)), "kernels": kernels, "failures": failed}
        print(json.dumps(facts, indent=1))
    for name, counts in {} if options.json else kernels.items():
        print(f"{name}: {'; '.join(failed[name]) or 'as it should be'}")
        for data, launches in counts.items():
            for launch in launches:
                share = launch[WAVEFRONTS] / max(launch[LOADS], 1)
                shown = ", ".join(f"{launch[metric]:.0f} {metric}" for metric in METRICS)
                print(f"  {data:14} {share:.4f} wavefronts a load; {shown}")
    sys.exit(any(failed.values()))


if __name__ == "__main__":
    main()

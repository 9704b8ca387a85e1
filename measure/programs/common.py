# SPDX-License-Identifier: Apache-2.0
"""What every benchmark needs: repeated timing, the state of the machine, and a table or JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Row:
    """One measured thing. `values` are in `unit`; the median is reported with the extremes."""

    name: str
    unit: str
    values: list[float]
    note: str = ""
    median: float = field(init=False)

    def __post_init__(self) -> None:
        self.median = statistics.median(self.values)

    @property
    def spread(self) -> str:
        return f"{min(self.values):.4g} to {max(self.values):.4g}"


def seconds(action: Callable[[], object], repetitions: int) -> list[float]:
    """Wall-clock seconds of each of `repetitions` calls, after one call that is not counted."""
    action()
    taken = []
    for _ in range(repetitions):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return taken


def gpu_state() -> dict[str, str]:
    """Name, driver, SM and memory clock in MHz of the first GPU; empty where there is none."""
    query = "name,driver_version,clocks.sm,clocks.mem"
    try:
        line = subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {}
    return dict(zip(query.split(","), (part.strip() for part in line.split(",")), strict=True))


def machine() -> dict[str, object]:
    cpu = platform.processor() or platform.machine()
    try:
        with Path("/proc/cpuinfo").open() as info:
            cpu = next(line.split(":")[1].strip() for line in info if "model name" in line)
    except (OSError, StopIteration):
        pass
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "gpu": gpu_state()}


def parser(description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.add_argument("--repetitions", type=int, default=5, help="timed runs of each row")
    return made


def show(row: Row, width: int) -> None:
    """Prints a row of the table."""
    print(
        f"{row.name:{width}}  {row.median:10.4g} {row.unit:5}  ({row.spread})  {row.note}",
        flush=True,
    )


def report(
    rows: list[Row], arguments: argparse.Namespace, *, shown: bool = False, **facts: object
) -> None:
    """Prints the rows with the machine and whatever else a reader needs to repeat them. shown: a
    table's rows were printed as they came."""
    facts = {**machine(), "repetitions": arguments.repetitions, **facts}
    if arguments.json:
        print(json.dumps({"facts": facts, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    for name, value in facts.items():
        print(f"{name}: {value}")
    if not shown:
        width = max(len(row.name) for row in rows)
        for row in rows:
            show(row, width)

# SPDX-License-Identifier: Apache-2.0
"""The common part of measure/programs: times by turns, the machine, and a table or JSON."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from .machine import look

Action = Callable[[], object]
Actions = dict[str, Action]
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6}
"""Of times, by what seconds are multiplied with."""


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

    def __str__(self) -> str:
        spread = f"{min(self.values):.4g} to {max(self.values):.4g}"
        return f"{self.name:52}  {self.median:10.4g} {self.unit:5}  ({spread})  {self.note}"


class Times(NamedTuple):
    """Seconds of each call: by the clock, and of all cores, also in child processes."""

    wall: list[float]
    cpu: list[float]


def by_turns(
    actions: Actions,
    repetitions: int,
    *,
    calls: int = 1,
    wait: Callable[[], object] = lambda: None,
    before: Callable[[], object] = lambda: None,
    after: Callable[[str], object] = lambda name: None,
    warm: float = 0,
) -> dict[str, Times]:
    """Each action once a turn, so that all see the same machine; the first turn is not counted.

    calls: so many in a row, of which one time is taken. wait: for enqueued work. before, after:
    not timed. warm: actions that take fewer seconds are done once before they are timed, so that
    the memory that another left, such as pages of another size, is not measured.
    """
    taken = {name: Times([], []) for name in actions}
    for turn in range(repetitions + 1):
        for name, action in actions.items():
            for timed in (False, True) if warm else (True,):
                before()
                wait()
                cpu, wall = _cpu_seconds(), time.perf_counter()
                for _ in range(calls):
                    result = action()
                wait()
                wall, cpu = time.perf_counter() - wall, _cpu_seconds() - cpu
                del result
                after(name)
                if timed or wall > warm:
                    break
            if turn:
                taken[name].wall.append(wall / calls)
                taken[name].cpu.append(cpu / calls)
    return taken


def _cpu_seconds() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def ratio(taken: Mapping[str, Times], name: str, other: str) -> None:
    """Prints how many times as fast as another an action is: the median of the turns."""
    pairs = zip(taken[other].wall, taken[name].wall, strict=True)
    found = statistics.median(theirs / own for theirs, own in pairs)
    print(f"{name}: {found:.2f} times the rate of {other}", file=sys.stderr)


@contextmanager
def named(name: str) -> Iterator[None]:
    """A library whose rows are left out where it is not installed."""
    try:
        yield
    except ImportError:
        print(f"{name} is not installed: left out", file=sys.stderr)


class Arrays:
    """NumPy's in host memory ("cpu"), or PyTorch's on a GPU."""

    def __init__(self, device: str) -> None:
        self.on_host = device == "cpu"
        self.library: Any = import_module("numpy" if self.on_host else "torch")
        self.options = {} if self.on_host else {"device": device}

    def zeros(self, count: int, dtype: str = "uint8") -> Any:
        return self.library.zeros(count, dtype=getattr(self.library, dtype), **self.options)

    def wait(self) -> None:
        """For what is enqueued."""
        if not self.on_host:
            self.library.cuda.synchronize()


class Program:
    """A program's options, and its rows, which are printed as they are measured."""

    def __init__(self, description: str | None, repetitions: int = 5) -> None:
        self.parser = argparse.ArgumentParser(description=description)
        self.option = self.parser.add_argument
        self.option("--json", action="store_true", help="print JSON instead of a table")
        self.option("--repetitions", type=int, default=repetitions, help="timed runs of each row")
        self.options = argparse.Namespace()
        self.rows: list[Row] = []

    def parse(self) -> argparse.Namespace:
        self.options = self.parser.parse_args()
        return self.options

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder in the one that --folder names, which goes in the end."""
        with tempfile.TemporaryDirectory(dir=self.options.folder) as folder:
            yield Path(folder)

    def add(self, name: str, unit: str, values: list[float], note: str = "") -> Row:
        row = Row(name, unit, values, note)
        self.rows.append(row)
        if not self.options.json:
            print(row, flush=True)
        return row

    def rates(self, taken: Mapping[str, Times], size: float, unit: str = "GB/s") -> None:
        """size: in the rate's unit. Each row says what its CPU time would give, too."""
        for name, times in taken.items():
            used = size / max(statistics.median(times.cpu), 1e-9)
            note = f"{used:.3g} {unit.removesuffix('/s')} a second of CPU time"
            self.add(name, unit, [size / each for each in times.wall], note)

    def times(self, taken: Mapping[str, Times], unit: str = "ms") -> None:
        factor = UNITS[unit]
        for name, times in taken.items():
            used = f"{factor * statistics.median(times.cpu):.3g} {unit} of CPU time"
            self.add(name, unit, [factor * each for each in times.wall], used)

    def finish(self, **facts: object) -> None:
        """Prints the machine and whatever else a reader needs to repeat the rows."""
        facts = {**asdict(look(0)), "repetitions": self.options.repetitions, **facts}
        if self.options.json:
            rows = [asdict(row) for row in self.rows]
            print(json.dumps({"facts": facts, "rows": rows}, indent=1))
        else:
            print(*(f"{name}: {value}" for name, value in facts.items()), sep="\n")

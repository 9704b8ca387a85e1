# SPDX-License-Identifier: Apache-2.0
"""The common part of measure/programs: times by turns, the machine, and a table or JSON."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from .machine import look


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


class Times(NamedTuple):
    """Seconds of each call: by the clock, and of all cores, those of child processes too."""

    wall: list[float]
    cpu: list[float]


def by_turns(
    actions: Mapping[str, Callable[[], object]],
    repetitions: int,
    *,
    calls: int = 1,
    wait: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
    after: Callable[[str], None] = lambda name: None,
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
                wall, cpu = time.perf_counter(), _cpu_seconds()
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


def rates(taken: Mapping[str, Times], size: float, unit: str = "GB/s") -> list[Row]:
    """size: in the rate's unit."""
    return [Row(name, unit, [size / each for each in times.wall]) for name, times in taken.items()]


def ratio(taken: Mapping[str, Times], name: str, other: str) -> None:
    """Prints how many times as fast as another an action is: the median of the turns."""
    pairs = zip(taken[other].wall, taken[name].wall, strict=True)
    found = statistics.median(theirs / own for theirs, own in pairs)
    print(f"{name}: {found:.2f} times the rate of {other}", file=sys.stderr)


class named:  # noqa: N801
    """A library whose rows are left out where it is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        if kind is None or not issubclass(kind, ImportError):
            return False
        print(f"{self._name} is not installed: left out", file=sys.stderr)
        return True


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
    facts = {**asdict(look(0)), "repetitions": arguments.repetitions, **facts}
    if arguments.json:
        print(json.dumps({"facts": facts, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    for name, value in facts.items():
        print(f"{name}: {value}")
    if not shown:
        width = max(len(row.name) for row in rows)
        for row in rows:
            show(row, width)

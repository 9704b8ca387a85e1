# SPDX-License-Identifier: Apache-2.0
"""What a run yields, as plain dataclasses: `asdict` of a Report is the JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from ..bench.results import Machine, Spread

Cell: TypeAlias = "str | int | float | Spread | None"
"""Of a table. None: neither published nor measured."""


def shown(value: float) -> str:
    """A figure in a sentence: whole from 1000 on, else with three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Measurement:
    """One figure: a variant over `amount` of `unit` (bytes, keys, reads).

    residence:     where the data lay and what the time holds: "device" is the kernel alone.
    checked:       what its result was compared with before it was timed.
    constant_time: False for kernels whose time depends on keys or data.
    """

    variant: str
    parameters: Mapping[str, int | str]
    amount: int
    unit: str
    residence: str
    seconds: Spread
    checked: str
    constant_time: bool

    @property
    def rate(self) -> Spread:
        """`unit` a second."""
        return self.seconds.rate(self.amount)

    @property
    def gigabytes(self) -> float:
        """GB/s of a measurement in bytes: the median."""
        return self.amount / self.seconds.median / 1e9


@dataclass(frozen=True)
class Skipped:
    """What belongs to the paper and was not measured."""

    what: str
    reason: str


@dataclass(frozen=True)
class Table:
    """source: which of the paper's tables it stands for, and where it is found there."""

    title: str
    source: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Series:
    """A line or a row of bars. published: the paper's own figures, not measured here. names: of
    kind "points", written beside them, where there are any."""

    label: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    published: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """A picture shaped like one of the paper's. kind: "lines", "bars" (x are names) or "points"."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: str = "lines"
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Conclusion:
    """What the paper concludes, and whether it holds here. holds: None where not measured."""

    paper: str
    here: str
    holds: bool | None


@dataclass(frozen=True)
class Point:
    """One kernel on the timeline. published: said by `source`, not measured here."""

    year: int
    label: str
    gigabytes: float
    device: str
    source: str
    published: bool


@dataclass
class Report:
    """One run of one paper. started: UTC, ISO 8601. values: the paper's parameters."""

    paper: str
    title: str
    citation: str
    version: str
    started: str
    quick: bool
    repetitions: int
    values: Mapping[str, int]
    machine: Machine
    measurements: list[Measurement] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    conclusions: list[Conclusion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers: what `--json` prints."""
        return asdict(self)

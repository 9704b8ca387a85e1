# SPDX-License-Identifier: Apache-2.0
"""The results of a run, as plain dataclasses: `asdict` of a Report is the JSON document."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeAlias

import warpcipher as wc

from .settings import Effective


@dataclass(frozen=True)
class Spread:
    """Measurements of one thing: the median, and how far they lie apart."""

    median: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of these measurements, in their unit. StatisticsError: there are none."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def rate(self, amount: float) -> Spread:
        """`amount` over each of these times."""
        return Spread(amount / self.median, amount / self.most, amount / self.least, self.count)

    def times(self, factor: float) -> Spread:
        """In another unit."""
        return Spread(self.median * factor, self.least * factor, self.most * factor, self.count)


@dataclass(frozen=True)
class Cpu:
    """cache_bytes: of the largest cache that one core reaches."""

    model: str
    cores: int
    cache_bytes: int
    memory_bytes: int
    clock_mhz: float | None
    libcrypto: str


@dataclass(frozen=True)
class Gpu:
    """state_before, state_after: what nvidia-smi says (clocks, power, temperature, reasons for
    throttling), around the run; empty where it cannot be run."""

    name: str
    compute_capability: str
    multiprocessors: int
    l2_bytes: int
    memory_bytes: int
    free_bytes: int
    bus_id: str
    driver_cuda: str
    runtime_cuda: str
    state_before: dict[str, str] = field(default_factory=dict)
    state_after: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """gpu: None where the cuda engine cannot run; `without_gpu` then says why."""

    system: str
    python: str
    cpu: Cpu
    gpu: Gpu | None
    without_gpu: str

    @property
    def device(self) -> str:
        """The GPU, else the CPU."""
        return self.cpu.model if self.gpu is None else self.gpu.name


@dataclass(frozen=True)
class Bound:
    """A rate of memory, link or a pipe that no engine can exceed, measured in this run. unit: of
    `rate`."""

    name: str
    rate: Spread
    unit: str
    measured: str


@dataclass(frozen=True)
class Row:
    """One figure: an algorithm in one direction over `size` bytes of text.

    message:   bytes of each message (the last may be shorter), `messages` of them.
    calls:     calls in a row that one repetition times; they go round so many `slots`.
    seconds:   of one call among calls in a row. latency: of a single one until its result is there.
    gigabytes_per_second: of text, 10^9 bytes.
    clock_mhz: of the GPU's multiprocessors right after the row, or of the CPU as Linux gives it.
    blocks_per_clock: cipher blocks a clock and multiprocessor; None for a CPU.
    percent_of: the rate in percent of what each bound allows. `tables` and `logic` are comparisons
               with kernels that use only tables, `memmove` and `file` with plain copies.
    limit:     of `percent_of`, what allows the least; never a comparison above 100%; "" if all are.
    """

    algorithm: str
    direction: str
    size: int
    message: int
    messages: int
    residence: str
    engine: str
    calls: int
    slots: int
    seconds: Spread
    latency: Spread
    gigabytes_per_second: Spread
    clock_mhz: float | None
    blocks_per_clock: float | None
    percent_of: dict[str, float]
    limit: str


@dataclass(frozen=True)
class LeftOut:
    """A case that was asked for, or is a default or a paper's, and was not measured."""

    what: str
    reason: str


@dataclass(frozen=True)
class PeerRow:
    """A peer on the same machine; `command` is what was run, on `size` bytes of all messages.

    openssl: a program, on all cores, over messages in its cache.
    pyca:    a library in this process, on one core, over the texts of a row, by turns with this
             library. ratio: this library's rate over the peer's in each pair of turns, else None.
    """

    peer: str
    version: str
    algorithm: str
    direction: str
    message: int
    processes: int
    gigabytes_per_second: Spread
    command: str
    size: int
    ratio: Spread | None = None


@dataclass(kw_only=True)
class _Run:
    """The common part of reports. started: UTC, ISO 8601."""

    machine: Machine
    version: str = wc.__version__
    started: str = field(
        default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="seconds")
    )
    seconds: float = 0.0
    skipped: list[LeftOut] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers: what `--json` prints."""
        return asdict(self)


@dataclass(kw_only=True)
class Report(_Run):
    """One run of `warpcipher bench`."""

    settings: Effective
    bounds: list[Bound] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    peers: list[PeerRow] = field(default_factory=list)


# --- papers ---------------------------------------------------------------------------------------

Cell: TypeAlias = "str | int | float | Spread | None"
"""Of a table. None: neither published nor measured."""


def shown(value: float) -> str:
    """A figure in a sentence: whole from 1000 on, else with three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Measurement:
    """One figure: a variant over `amount` of `unit` (bytes, keys, reads).

    residence:     where the data lay and what the time holds: "device" is only the kernel.
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
class Table:
    """source: which of the paper's tables it stands for, and where it is found there."""

    title: str
    source: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Series:
    """A line or a row of bars. published: the paper's own figures, not measured here."""

    label: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    published: bool = False

    @classmethod
    def of(cls, label: str, line: Mapping[Any, float], published: bool = False) -> Series:
        """The values of a mapping over its keys."""
        return cls(label, tuple(line), tuple(line.values()), published)

    @classmethod
    def level(cls, label: str, ends: Sequence[float], value: float, published: bool) -> Series:
        """One value from the least to the greatest of `ends`."""
        return cls(label, (float(min(ends)), float(max(ends))), (value, value), published)


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
    """A conclusion of the paper, and whether it holds here. holds: None where not measured."""

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


@dataclass(kw_only=True)
class PaperReport(_Run):
    """One run of one paper. values: the paper's parameters."""

    paper: str
    title: str
    citation: str
    quick: bool
    repetitions: int
    values: Mapping[str, int]
    measurements: list[Measurement] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    conclusions: list[Conclusion] = field(default_factory=list)

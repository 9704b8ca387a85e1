# SPDX-License-Identifier: Apache-2.0
"""A paper, and its means of measuring: its variants as jobs, memory, checks against
`reference`, time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import warpcipher as wc

from . import _native, results, timing
from .cases import any_iv
from .memory import DeviceMemory, HostMemory, Memory, fill
from .results import Cell, Machine, Measurement, Plot, Point, Series, Spread, Table
from .settings import LabSettings, repetitions_of

if TYPE_CHECKING:
    from warpcipher._types import AlgorithmName

Rows: TypeAlias = Iterable[tuple[Cell, ...]]
Lines: TypeAlias = Mapping[str, Mapping[int, float]]
Labels: TypeAlias = tuple[str, str]
"""Of a plot's axes: x and y."""

CHECKED = "the reference engine"
REFERENCE_MOST = 1 << 16
LEAST_REPETITIONS = 2
"""Of calls that take seconds, as a job of yang2007 does."""


@dataclass(frozen=True)
class Variant:
    """One way to do a paper's work. absent: why this build lacks it; empty where it does not."""

    name: str
    description: str
    needs_gpu: bool
    constant_time: bool
    absent: str


def variants(paper: str) -> dict[str, Variant]:
    """A paper's variants by name, with those that cannot run here."""
    return {entry["name"]: Variant(**entry) for entry in _native.variants(paper)}


def fresh(algorithm: str) -> tuple[bytes, bytes]:
    """A random key for an algorithm, and a random IV where it takes one."""
    known = wc.find_algorithm(algorithm)
    return os.urandom(known.key_size), any_iv(known)


class Session:
    """One run of one paper on one machine.

    values:  of its parameters, by name.
    observe: called with each measurement and omission.
    multiprocessors: of the GPU; 1 without one.
    """

    def __init__(
        self,
        paper: Paper,
        settings: LabSettings,
        machine: Machine,
        observe: Callable[[object], object] = lambda _: None,
    ) -> None:
        self.values = paper.values(settings)
        self.quick = settings.quick
        self.settings, self.paper, self.machine = settings, paper, machine
        self.variants = variants(paper.name) if paper.name in _native.papers() else {}
        known: Any = {"paper": paper.name, "title": paper.title, "citation": paper.citation}
        known |= {"quick": settings.quick, "values": self.values, "machine": machine}
        repetitions = repetitions_of(settings.repetitions, settings.quick)
        self.report = results.PaperReport(repetitions=repetitions, **known)
        self._least_seconds = 0.0005 if settings.quick else 0.003
        self._most_seconds = 0.1 if settings.quick else 0.7
        self.multiprocessors = machine.gpu.multiprocessors if machine.gpu is not None else 1
        self.observe = observe
        self._checked: set[tuple[object, ...]] = set()
        self.stream = _native.WorkStream(settings.device) if machine.gpu is not None else None

    # --- what can run -----------------------------------------------------------------------------

    def missing(self, variant: str) -> str:
        """Why a variant cannot run here; empty when it can."""
        entry = self.variants[variant]
        if entry.absent:
            return entry.absent
        return self.machine.without_gpu if entry.needs_gpu and self.stream is None else ""

    def can_run(self, variant: str) -> bool:
        """Whether a variant can run here; one that cannot is reported, once."""
        reason = self.missing(variant)
        if reason:
            needs = "needs a GPU: " if self.variants[variant].needs_gpu else ""
            self.skip(f"variant {variant}", needs + reason)
        return not reason

    def all_can_run(self, names: Iterable[str]) -> bool:
        """Whether all can run here; each that cannot is reported."""
        return not [name for name in names if not self.can_run(name)]

    def skip(self, what: str, reason: str) -> None:
        entry = results.LeftOut(what, reason)
        if entry not in self.report.skipped:
            self.report.skipped.append(entry)
            self.observe(entry)

    # --- the report -------------------------------------------------------------------------------

    def table(self, title: str, source: str, header: tuple[str, ...], rows: Rows) -> None:
        self.report.tables.append(Table(title, source, header, tuple(rows)))

    def lines(self, name: str, title: str, labels: Labels, lines: Lines, *levels: Series) -> None:
        """A plot of lines over logarithmic axes."""
        series = (*(Series.of(label, line) for label, line in lines.items()), *levels)
        self.report.plots.append(Plot(name, title, *labels, series, log_x=True, log_y=True))

    def bars(
        self, name: str, title: str, labels: Labels, *series: Series, log_y: bool = False
    ) -> None:
        self.report.plots.append(Plot(name, title, *labels, series, kind="bars", log_y=log_y))

    def conclude(self, said: str, here: str, holds: bool | None) -> None:
        self.report.conclusions.append(results.Conclusion(said, here, holds))

    def judge(self, claims: Iterable[str], verdicts: Iterable[tuple[str, bool]]) -> None:
        """A conclusion for each claim: the result here, and whether it holds."""
        for said, (here, holds) in zip(claims, verdicts, strict=True):
            self.conclude(said, here, holds)

    def not_measured(self, claims: Iterable[str]) -> None:
        for said in claims:
            self.conclude(said, "not measured: no GPU", None)

    # --- jobs and memory --------------------------------------------------------------------------

    def job(self, variant: str, key: bytes, iv: bytes = b"", **parameters: int) -> _native.Job:
        """A variant made ready. ValueError: what it does not take. EngineError: not here."""
        return _native.Job(self.paper.name, variant, key, iv, parameters, self.settings.device)

    def memory(self, variant: str, size: int) -> Memory:
        """Random bytes, one at least, where a variant wants them; for the product on the GPU."""
        known = self.variants.get(variant)
        if known is None or known.needs_gpu:
            found: Memory = DeviceMemory(max(size, 1), self.need_stream())
        else:
            found = HostMemory(max(size, 1))
        fill(found, self.stream)
        return found

    def buffers(self, variant: str, size: int) -> tuple[Memory, Memory]:
        """For a text and for its result."""
        return self.memory(variant, size), self.memory(variant, size)

    def writer(self, variant: str, job: _native.Job, size: int) -> Callable[[], None]:
        """A call of a job that takes no text and writes `size` bytes."""
        target = self.memory(variant, size)
        return lambda: self.run(job, target, 0, target, size)

    def need_stream(self) -> _native.WorkStream:
        """The session's stream. EngineError: no GPU."""
        if self.stream is None:
            raise wc.EngineError(f"{self.paper.name} needs a GPU: {self.machine.without_gpu}")
        return self.stream

    def run(
        self, job: _native.Job, source: Memory, size: int, target: Memory, out_size: int
    ) -> None:
        """Enqueues on the session's stream, or runs on the CPU."""
        pointer = self.stream.pointer if self.stream is not None else 0
        job.run(source.pointer, size, target.pointer, out_size, pointer)

    def wait(self) -> None:
        if self.stream is not None:
            self.stream.wait()

    def result(self, variant: str, job: _native.Job, data: bytes, out_size: int) -> bytes:
        """A job's result for `data`."""
        source, target = self.memory(variant, len(data)), self.memory(variant, out_size)
        source.write(data)
        self.run(job, source, len(data), target, out_size)
        self.wait()
        return target.read(out_size)

    # --- checks -----------------------------------------------------------------------------------

    def expect(
        self, variant: str, job: _native.Job, text: bytes, expected: bytes, what: str = ""
    ) -> None:
        """EngineError: a job makes something else of a text."""
        if self.result(variant, job, text, len(expected)) != expected:
            raise self.wrong(variant, what)

    def wrong(self, variant: str, what: str = "") -> wc.EngineError:
        return wc.EngineError(f"variant {variant!r} of {self.paper.name} is wrong{what}")

    def check_cipher(
        self, variant: str, algorithm: str, sizes: tuple[int, ...], **parameters: int
    ) -> None:
        """Compares a variant that is a cipher with the reference engine, on random texts; texts of
        more than REFERENCE_MOST bytes, for which that is too slow, with the cpu engine."""
        done = (variant, algorithm, sizes, tuple(sorted(parameters.items())))
        for size in () if done in self._checked else sizes:
            key, iv = fresh(algorithm)
            text = os.urandom(size)
            engine = "reference" if size <= REFERENCE_MOST else "cpu"
            cipher = wc.Cipher(cast("AlgorithmName", algorithm), key, engine=engine)
            expected = getattr(cipher, self.paper.direction)(text, iv=iv or None)
            job = self.job(variant, key, iv, **parameters)
            what = f" for {size} bytes of {algorithm}: it differs from the {engine} engine"
            self.expect(variant, job, text, expected, what)
        self._checked.add(done)

    # --- time -------------------------------------------------------------------------------------

    def time(self, call: Callable[[], object], *, on_device: bool) -> Spread:
        """Of one call among calls in a row: by events on the stream, or by the host's clock until
        all work on the stream is done. The calls go over the same buffers."""
        clock = timing.device_clock(self.need_stream()) if on_device else timing.host_clock
        work = timing.Work(lambda _: call(), wait=self.wait)
        limits = self.report.repetitions, self._least_seconds, self._most_seconds
        least = LEAST_REPETITIONS
        return timing.measure(work, clock, *limits, least_repetitions=least, latency=False).seconds

    def measure(
        self,
        variant: str,
        call: Callable[[], object] | Spread,
        amount: int,
        checked: str = CHECKED,
        *,
        residence: str = "",
        unit: str = "bytes",
        **parameters: int | str,
    ) -> Measurement:
        """Times a call, unless it is a time, and keeps and reports it as a figure. residence:
        "device" and by events for what needs a GPU, "host" for what does not, unless it is given;
        then by the host's clock. A name that is not a variant is the product's."""
        known = self.variants.get(variant)
        on_device = not residence and (known is None or known.needs_gpu)
        seconds = call if isinstance(call, Spread) else self.time(call, on_device=on_device)
        where = residence or ("device" if on_device else "host")
        what = variant, dict(parameters), amount, unit, where
        constant_time = known is None or known.constant_time
        found = Measurement(*what, seconds, checked, constant_time)
        self.report.measurements.append(found)
        self.observe(found)
        return found

    def measure_cipher(
        self,
        variant: str,
        size: int,
        buffers: tuple[Memory, Memory] | None = None,
        *,
        algorithm: str | None = None,
        check_sizes: tuple[int, ...] | None = None,
        **parameters: int,
    ) -> Measurement:
        """Checks a cipher, then times it from the first buffer into the second."""
        algorithm = algorithm or self.paper.algorithm
        self.check_cipher(variant, algorithm, check_sizes or self.paper.check_sizes, **parameters)
        key, iv = fresh(algorithm)
        job = self.job(variant, key, iv, **parameters)
        source, target = buffers or self.buffers(variant, size)
        shown: Mapping[str, Any] = {"algorithm": algorithm, **parameters}
        call = partial(self.run, job, source, size, target, size)
        return self.measure(variant, call, size, **shown)

    def rates(self, names: Iterable[str], size: int, **parameters: Any) -> dict[str, float]:
        """GB/s of ciphers that work on the same memory."""
        names = list(names)
        buffers = self.buffers(names[0], size)
        return {
            name: self.measure_cipher(name, size, buffers, **parameters).gigabytes for name in names
        }

    def up_to(
        self, limit: str, what: str, sizes: Iterable[int], measure: Callable[[int], Measurement]
    ) -> dict[int, Measurement]:
        """Measures at sizes that rise, up to where a call would take more milliseconds than the
        parameter `limit` says, judged by the size before."""
        most = self.values[limit] / 1e3
        found: dict[int, Measurement] = {}
        for size in sizes:
            expected = in_proportion(found, size) if found else 0
            if expected > most:
                reason = f"would take about {expected:.2g} s a call: {limit} is {most * 1e3:g}"
                self.skip(f"{what}, {size} and more", reason)
                break
            found[size] = measure(size)
        return found

    def points(self, names: Iterable[str], size: int, **parameters: int) -> list[Point]:
        """Ciphers for the timeline; none where one of them cannot run."""
        names = list(names)
        if not self.all_can_run(names):
            return []
        start = len(self.report.measurements)
        self.rates(names, size, **parameters)
        return [self.point(entry.variant, entry) for entry in self.report.measurements[start:]]

    def point(self, label: str, found: Measurement, gigabytes: float | None = None) -> Point:
        """A measurement, for the timeline. gigabytes: where it is not in bytes."""
        year = datetime.now(timezone.utc).year
        rate = found.gigabytes if gigabytes is None else gigabytes
        name = f"{self.paper.name}: {label}"
        return Point(year, name, rate, self.machine.device, "measured here", published=False)


def in_proportion(found: Mapping[int, Measurement], size: int) -> float:
    """Seconds of a size: as measured, or in proportion to the largest that was."""
    if size in found:
        return found[size].seconds.median
    last = max(found)
    return found[last].seconds.median * size / last


class RoundTrip:
    """Memory of `size` bytes on both sides, twice: for a text and for its result. Page-locked on
    the host, as only that can be copied while a kernel runs, unless it is to be pageable."""

    def __init__(self, session: Session, size: int, *, pinned: bool = True) -> None:
        self._session = session
        self._stream = session.need_stream()
        self.host_source, self.host_target = (HostMemory(size, pinned=pinned) for _ in range(2))
        self.buffers = DeviceMemory(size, self._stream), DeviceMemory(size, self._stream)
        self.source, self.target = self.buffers
        fill(self.host_source, None)
        fill(self.source, self._stream)

    def to_device(self, size: int) -> None:
        """Enqueues the copy of the text."""
        self._stream.copy(self.source.pointer, self.host_source.pointer, size)

    def to_host(self, size: int) -> None:
        """Enqueues the copy of the result."""
        self._stream.copy(self.host_target.pointer, self.target.pointer, size)

    def run(self, job: _native.Job, size: int, out_size: int) -> None:
        """Enqueues the kernel."""
        self._session.run(job, self.source, size, self.target, out_size)

    def whole(self, job: _native.Job, size: int, head: int = 0, covered: int = 0) -> None:
        """Enqueues the copy of the text, the kernel, the copy of the result. head: bytes in front
        of the text. covered: by the kernel, where that is more than the text."""
        covered = max(size, covered)
        self.to_device(size + head)
        self.run(job, covered + head, covered)
        self.to_host(size)

    def overlapped(
        self, job: _native.Job, size: int, streams: list[_native.WorkStream], unit: int
    ) -> None:
        """The same in as many parts as there are streams, each on its own; waits for all. Parts
        start at multiples of `unit` bytes, and must not depend on each other."""
        part = -(-size // (len(streams) * unit)) * unit
        for stream, start in zip(streams, range(0, size, part), strict=False):
            length = min(part, size - start)
            source, target = self.source.pointer + start, self.target.pointer + start
            stream.copy(source, self.host_source.pointer + start, length)
            job.run(source, length, target, length, stream.pointer)
            stream.copy(self.host_target.pointer + start, target, length)
        for stream in streams:
            stream.wait()


@dataclass(frozen=True)
class Parameter:
    """Something of a paper that can be set. quick: the default of a quick run."""

    name: str
    default: int
    quick: int
    least: int
    most: int
    text: str


@dataclass(frozen=True)
class Paper:
    """One paper.

    run:         measures with a session, and gives it tables, plots and conclusions.
    timeline:    measures the paper's AES-128 kernels for `warpcipher lab timeline`.
    algorithm:   and direction of its kernels that are ciphers.
    check_sizes: bytes of the texts that these are checked with.
    """

    name: str
    title: str
    citation: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Session], None]
    timeline: Callable[[Session], list[Point]] = lambda _: []
    algorithm: str = ""
    direction: str = "encrypt"
    check_sizes: tuple[int, ...] = (16, 4112, 65536)

    def values(self, settings: LabSettings) -> dict[str, int]:
        """Every parameter's value. ValueError: unknown, or outside of its limits."""
        known = {entry.name: entry for entry in self.parameters}
        for name, value in settings.values.items():
            if name not in known:
                names = ", ".join(known) or "none"
                raise ValueError(f"no parameter {name!r} of {self.name}: there are {names}")
            least, most = known[name].least, known[name].most
            if not least <= value <= most:
                raise ValueError(f"{name} is {value}: {self.name} takes {least} to {most}")
        defaults = {it.name: it.quick if settings.quick else it.default for it in self.parameters}
        return {**defaults, **settings.values}

# SPDX-License-Identifier: Apache-2.0
"""What a paper is, and what it measures with: its variants as jobs, memory, checks against
`reference`, time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

import warpcipher as wc

from . import _native, timing
from .memory import DeviceMemory, HostMemory, Memory, fill
from .results import Cell, Conclusion, LeftOut, Machine, Measurement, Plot, Point, Spread, Table
from .settings import LabSettings, repetitions_of

if TYPE_CHECKING:
    from warpcipher._types import AlgorithmName

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
    known = next(entry for entry in wc.algorithms() if entry.name == algorithm)
    iv_size = 0 if known.iv == "none" else known.block_size
    return os.urandom(known.key_size), os.urandom(iv_size)


class Session:
    """One run of one paper on one machine.

    paper:   its name.
    values:  of its parameters, by name.
    observe: called with each measurement and omission.
    """

    def __init__(
        self,
        paper: str,
        values: Mapping[str, int],
        settings: LabSettings,
        machine: Machine,
        observe: Callable[[object], object] = lambda _: None,
    ) -> None:
        self.paper = paper
        self.quick = settings.quick
        self.values = dict(values)
        self.repetitions = repetitions_of(settings.repetitions, settings.quick)
        self.machine = machine
        self.device = settings.device
        self.variants = variants(paper)
        self.measurements: list[Measurement] = []
        self.tables: list[Table] = []
        self.plots: list[Plot] = []
        self.conclusions: list[Conclusion] = []
        self.notes: list[str] = []
        self.skipped: list[LeftOut] = []
        self._least_seconds = 0.0005 if settings.quick else 0.003
        self._most_seconds = 0.1 if settings.quick else 0.7
        self._observe = observe
        self._checked: dict[tuple[object, ...], str] = {}
        self.stream = _native.WorkStream(settings.device) if machine.gpu is not None else None

    # --- what can run -----------------------------------------------------------------------------

    def missing(self, variant: str) -> str:
        """Why a variant cannot run here; empty when it can."""
        entry = self.variants[variant]
        if entry.absent:
            return entry.absent
        return self.machine.without_gpu if entry.needs_gpu and self.stream is None else ""

    def can_run(self, variant: str) -> bool:
        """Whether a variant can run here; what cannot is reported, once."""
        reason = self.missing(variant)
        if reason:
            needs = "needs a GPU: " if self.variants[variant].needs_gpu else ""
            self.skip(f"variant {variant}", needs + reason)
        return not reason

    def skip(self, what: str, reason: str) -> None:
        entry = LeftOut(what, reason)
        if entry not in self.skipped:
            self.skipped.append(entry)
            self._observe(entry)

    # --- the report -------------------------------------------------------------------------------

    def table(
        self, title: str, source: str, header: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]
    ) -> None:
        self.tables.append(Table(title, source, header, tuple(rows)))

    def plot(self, *what: Any, **how: Any) -> None:
        self.plots.append(Plot(*what, **how))

    def conclude(self, said: str, here: str, holds: bool | None) -> None:
        self.conclusions.append(Conclusion(said, here, holds))

    def judge(self, claims: Iterable[str], verdicts: Iterable[tuple[str, bool]]) -> None:
        """A conclusion for each claim: what is found here, and whether it holds."""
        for said, (here, holds) in zip(claims, verdicts, strict=True):
            self.conclude(said, here, holds)

    def not_measured(self, claims: Iterable[str]) -> None:
        for said in claims:
            self.conclude(said, "not measured: no GPU", None)

    # --- jobs and memory --------------------------------------------------------------------------

    def job(self, variant: str, key: bytes, iv: bytes = b"", **parameters: int) -> _native.Job:
        """A variant made ready. ValueError: what it does not take. EngineError: not here."""
        return _native.Job(self.paper, variant, key, iv, parameters, self.device)

    def memory(self, variant: str, size: int) -> Memory:
        """Random bytes where a variant wants them. A size of 0 takes one byte."""
        if self.variants[variant].needs_gpu:
            return self.device_memory(size)
        found = HostMemory(max(size, 1), pinned=False)
        fill(found, self.stream)
        return found

    def device_memory(self, size: int) -> Memory:
        """Random bytes on the GPU."""
        found = DeviceMemory(max(size, 1), self.need_stream())
        fill(found, self.stream)
        return found

    def write(self, target: Memory, data: bytes) -> None:
        """Bytes into memory of either kind."""
        if target.device is None:
            target.view(0, len(data))[:] = data
            return
        source = HostMemory(max(len(data), 1), pinned=False)
        source.view(0, len(data))[:] = data
        self.need_stream().copy(target.pointer, source.pointer, len(data))
        self.need_stream().wait()

    def read(self, source: Memory, size: int) -> bytes:
        """The first `size` bytes of memory of either kind, after all work on it."""
        if source.device is None:
            return bytes(source.view(0, size))
        target = HostMemory(max(size, 1), pinned=False)
        self.need_stream().copy(target.pointer, source.pointer, size)
        self.need_stream().wait()
        return bytes(target.view(0, size))

    def need_stream(self) -> _native.WorkStream:
        """The session's stream. EngineError: no GPU."""
        if self.stream is None:
            raise wc.EngineError(f"{self.paper} needs a GPU: {self.machine.without_gpu}")
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
        """What a job makes of `data`."""
        source, target = self.memory(variant, len(data)), self.memory(variant, out_size)
        self.write(source, data)
        self.run(job, source, len(data), target, out_size)
        self.wait()
        return self.read(target, out_size)

    # --- checks -----------------------------------------------------------------------------------

    def check_cipher(
        self,
        variant: str,
        algorithm: str,
        sizes: tuple[int, ...],
        direction: str = "encrypt",
        **parameters: int,
    ) -> str:
        """Compares a variant that is a cipher with the reference engine, on random texts under
        random keys; texts of more than REFERENCE_MOST bytes, for which that is too slow, with the
        cpu engine. Returns what it was compared with. EngineError: it differs."""
        done = (variant, algorithm, direction, sizes, tuple(sorted(parameters.items())))
        if done not in self._checked:
            for size in sizes:
                key, iv = fresh(algorithm)
                text = os.urandom(size)
                engine = "reference" if size <= REFERENCE_MOST else "cpu"
                cipher = wc.Cipher(cast("AlgorithmName", algorithm), key, engine=engine)
                expected = getattr(cipher, direction)(text, iv=iv if iv else None)
                got = self.result(variant, self.job(variant, key, iv, **parameters), text, size)
                if got != expected:
                    raise wc.EngineError(
                        f"variant {variant!r} of {self.paper} is wrong for {size} bytes of "
                        f"{algorithm}: its result differs from that of the {engine} engine"
                    )
            self._checked[done] = CHECKED
        return self._checked[done]

    # --- time -------------------------------------------------------------------------------------

    def time(self, call: Callable[[], object], *, on_device: bool) -> Spread:
        """Of one call among calls in a row: by events on the stream, or by the host's clock until
        all work on the stream is done. The calls go over the same buffers."""
        clock = timing.device_clock(self.need_stream()) if on_device else timing.host_clock
        work = timing.Work(lambda _slot: call(), 1, self.wait, None)
        return timing.measure(
            work,
            clock,
            self.repetitions,
            self._least_seconds,
            self._most_seconds,
            least_repetitions=LEAST_REPETITIONS,
            latency=False,
        ).seconds

    def add(
        self,
        variant: str,
        amount: int,
        seconds: Spread,
        checked: str,
        *,
        residence: str,
        unit: str = "bytes",
        **parameters: int | str,
    ) -> Measurement:
        """Keeps a figure, and reports it."""
        found = Measurement(
            variant=variant,
            parameters=dict(parameters),
            amount=amount,
            unit=unit,
            residence=residence,
            seconds=seconds,
            checked=checked,
            constant_time=self.variants[variant].constant_time
            if variant in self.variants
            else True,
        )
        self.measurements.append(found)
        self._observe(found)
        return found

    def measure_cipher(
        self,
        variant: str,
        algorithm: str,
        size: int,
        check_sizes: tuple[int, ...],
        buffers: tuple[Memory, Memory],
        direction: str = "encrypt",
        **parameters: int,
    ) -> Measurement:
        """Checks a cipher, then times it from the first buffer into the second."""
        checked = self.check_cipher(variant, algorithm, check_sizes, direction, **parameters)
        key, iv = fresh(algorithm)
        job = self.job(variant, key, iv, **parameters)
        source, target = buffers
        on_device = self.variants[variant].needs_gpu
        seconds = self.time(lambda: self.run(job, source, size, target, size), on_device=on_device)
        shown: Mapping[str, Any] = {"algorithm": algorithm, **parameters}
        return self.add(
            variant, size, seconds, checked, residence="device" if on_device else "host", **shown
        )

    def point(self, label: str, found: Measurement, gigabytes: float | None = None) -> Point:
        """A measurement, for the timeline. gigabytes: where it is not in bytes."""
        gpu = self.machine.gpu
        return Point(
            year=datetime.now(timezone.utc).year,
            label=f"{self.paper}: {label}",
            gigabytes=found.gigabytes if gigabytes is None else gigabytes,
            device=gpu.name if gpu is not None else self.machine.cpu.model,
            source="measured here",
            published=False,
        )


class RoundTrip:
    """Memory of `size` bytes on both sides, twice: for a text and for its result. Page-locked on
    the host, as only that can be copied while a kernel runs.

    `extra`: bytes of device memory after each.
    """

    def __init__(self, session: Session, size: int, *, extra: int = 0) -> None:
        self._stream = session.need_stream()
        self.size = size
        self.host_source = HostMemory(size, pinned=True)
        self.host_target = HostMemory(size, pinned=True)
        self.source = DeviceMemory(size + extra, self._stream)
        self.target = DeviceMemory(size + extra, self._stream)
        fill(self.host_source, None)
        fill(self.source, self._stream)

    def to_device(self, size: int) -> None:
        """Enqueues the copy of the text."""
        self._stream.copy(self.source.pointer, self.host_source.pointer, size)

    def to_host(self, size: int) -> None:
        """Enqueues the copy of the result."""
        self._stream.copy(self.host_target.pointer, self.target.pointer, size)

    def one_after_another(self, job: _native.Job, size: int) -> None:
        """Enqueues the copy of the text, the kernel, the copy of the result."""
        self.to_device(size)
        job.run(self.source.pointer, size, self.target.pointer, size, self._stream.pointer)
        self.to_host(size)

    def overlapped(
        self, job: _native.Job, size: int, streams: list[_native.WorkStream], unit: int
    ) -> None:
        """The same in as many parts as there are streams, each on its own; waits for all. Parts
        start at multiples of `unit` bytes, and must not depend on each other."""
        part = -(-size // (len(streams) * unit)) * unit
        for index, stream in enumerate(streams):
            start = min(index * part, size)
            length = min(part, size - start)
            if length == 0:
                continue
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

    run:      measures with a session, and gives it tables, plots and conclusions.
    timeline: measures the paper's AES-128 kernels for `warpcipher lab timeline`.
    """

    name: str
    title: str
    citation: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Session], None]
    timeline: Callable[[Session], list[Point]]

    def session(
        self,
        settings: LabSettings,
        machine: Machine,
        observe: Callable[[object], object] = lambda _: None,
    ) -> Session:
        """A run of this paper. ValueError: a setting that it does not take."""
        return Session(self.name, self.values(settings), settings, machine, observe)

    def values(self, settings: LabSettings) -> dict[str, int]:
        """Every parameter's value. ValueError: unknown, or outside of its limits."""
        known = {entry.name: entry for entry in self.parameters}
        for name, value in settings.values.items():
            if name not in known:
                raise ValueError(
                    f"no parameter {name!r} of {self.name}: there are {', '.join(known) or 'none'}"
                )
            entry = known[name]
            if not entry.least <= value <= entry.most:
                raise ValueError(
                    f"{name} is {value}: {self.name} takes {entry.least} to {entry.most}"
                )
        defaults = {
            name: entry.quick if settings.quick else entry.default for name, entry in known.items()
        }
        return {**defaults, **settings.values}

# SPDX-License-Identifier: Apache-2.0
"""What a paper measures with: its variants as jobs, memory, checks against `reference`, time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

import warpcipher as wc

from .. import _native
from ..bench import timing
from ..bench.memory import DeviceMemory, HostMemory, Memory, fill
from ..bench.results import Machine, Spread
from .results import Conclusion, Measurement, Plot, Point, Skipped, Table
from .settings import Settings

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
    observe: is told each measurement and omission.
    """

    def __init__(
        self,
        paper: str,
        values: Mapping[str, int],
        settings: Settings,
        machine: Machine,
        observe: Callable[[object], object] = lambda _: None,
    ) -> None:
        self.paper = paper
        self.quick = settings.quick
        self.values = dict(values)
        self.repetitions = settings.repetitions or (3 if settings.quick else 7)
        self.machine = machine
        self.device = settings.device
        self.variants = variants(paper)
        self.measurements: list[Measurement] = []
        self.tables: list[Table] = []
        self.plots: list[Plot] = []
        self.conclusions: list[Conclusion] = []
        self.notes: list[str] = []
        self.skipped: list[Skipped] = []
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
        entry = Skipped(what, reason)
        if entry not in self.skipped:
            self.skipped.append(entry)
            self._observe(entry)

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
        """Keeps a figure, and tells it."""
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

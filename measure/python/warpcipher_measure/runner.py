# SPDX-License-Identifier: Apache-2.0
"""Runs from beginning to end: of `bench` the machine, its bounds, the rows, the peers; of a
paper the machine and what the paper measures."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypeVar

import warpcipher as wc

from . import _native, bounds, cases, machine, memory, peers, timeline, timing
from .papers import PAPERS
from .results import Bound, LeftOut, Machine, PaperReport, PeerRow, Report, Row
from .session import Paper, Session
from .settings import LabSettings, Settings, shown_size

News: TypeAlias = "Machine | Bound | Row | PeerRow | LeftOut"
CALLS_OF_A_ROW = 5
"""A row runs its call at least so often: to warm up, to judge, and three times for the spread."""
AnyReport = TypeVar("AnyReport", Report, PaperReport)


def run(settings: Settings, observe: Callable[[News], object] = lambda _: None) -> Report:
    """Measures, and calls `observe` with each thing when it is known.

    ValueError: a setting is wrong. EngineError: an engine that was asked for cannot run, or gave a
    wrong result, or nothing is left to measure. OSError: the folder for files cannot be used.
    """
    return _Run(settings, observe).run()


class _Run:
    def __init__(self, settings: Settings, observe: Callable[[News], object]) -> None:
        self._start = time.perf_counter()
        self._settings = settings.effective()
        self._observe = observe
        self._openssl = peers.openssl_program() if settings.against == "openssl" else None
        self._pyca = peers.pyca_library() if settings.against == "pyca" else None
        self._repetitions_of_peer = 1 if settings.quick else 3
        if not Path(self._settings.folder).is_dir():
            raise ValueError(f"folder is {self._settings.folder!r}, which is not a directory")
        found = machine.look(self._settings.device)
        self._groups, skipped = cases.make(self._settings, found)
        if not self._groups:
            reasons = "; ".join(dict.fromkeys(entry.reason for entry in skipped))
            raise wc.EngineError(f"nothing of this can be measured here: {reasons}")
        self._report = Report(settings=self._settings, machine=found)
        self._bounds: dict[str, Bound] = {}
        first = (group[0] for group in self._groups)
        needed = any(it.engine.memory == "device" or it.residence == "pinned" for it in first)
        self._stream = _native.WorkStream(self._settings.device) if needed else None
        observe(found)
        for entry in skipped:
            self._skip(entry)

    def run(self) -> Report:
        self._measure_bounds()
        places: dict[str, list[cases.Group]] = {}
        for group in self._groups:
            places.setdefault(group[0].residence, []).append(group)
        for residence, groups in places.items():
            if residence == "file":
                self._run_files(groups)
            else:
                self._run_memory(residence, groups)
        if self._openssl is not None:
            self._run_openssl(self._openssl)
        return finish(self._report, self._start)

    def _measure_bounds(self) -> None:
        first = [group[0] for group in self._groups]
        on_gpu = [case for case in first if cases.works_on_gpu(case.engine, case.residence)]
        if self._stream is not None and on_gpu:
            self._know(*bounds.of_device(self._settings, self._stream))
            if any(case.residence != "device" for case in on_gpu):
                self._know(*bounds.of_link(self._settings, self._stream))
        if any(case.residence != "file" and case not in on_gpu for case in first):
            self._know(bounds.of_host(self._settings, self._report.machine.cpu.cache_bytes))
        if any(case.residence == "file" for case in first):
            self._know(bounds.of_files(self._settings))

    def _run_memory(self, residence: str, groups: list[cases.Group]) -> None:
        cache = cases.cache_bytes(residence, self._report.machine)
        sizes = (case.sealed_size for group in groups for case in group)
        largest = max(memory.capacity_of(size, cache) for size in sizes)
        stream = self._stream

        def make(size: int) -> memory.Memory:
            if residence == "device" and stream is not None:
                return memory.DeviceMemory(size, stream)
            return memory.HostMemory(size, pinned=residence == "pinned")

        arena = memory.Arena(largest, cache, make, stream)
        for group in groups:
            cases.check(group[-1], arena, stream)
            self._run_group(group, lambda case: self._on_memory(case, arena))

    def _run_files(self, groups: list[cases.Group]) -> None:
        folder = self._settings.folder
        with tempfile.TemporaryDirectory(prefix="warpcipher-", dir=folder) as made:
            for group in groups:
                self._run_group(group, lambda case: self._on_files(case, made))

    def _on_memory(self, case: cases.Case, arena: memory.Arena) -> Row:
        slots = arena.slots(case.sealed_size)
        call, evict = cases.Call(case, slots, self._stream).run, arena.evict
        work = timing.Work(call, slots.count, evict=None if slots.spans_caches else evict)
        clock: timing.Clock = timing.host_clock
        if self._stream is not None and case.residence == "device":
            work, clock = replace(work, wait=self._stream.wait), timing.device_clock(self._stream)
        return self._row(case, work, clock, self._settings.least_seconds)

    def _on_files(self, case: cases.Case, folder: str) -> Row:
        call = cases.on_files(case, folder)
        return self._row(case, timing.Work(lambda _: call()), timing.host_clock, 0.0)

    def _row(
        self, case: cases.Case, work: timing.Work, clock: timing.Clock, least_seconds: float
    ) -> Row:
        settings, gpu = self._settings, self._report.machine.gpu
        limits = settings.repetitions, least_seconds, settings.row_seconds
        timed = timing.measure(work, clock, *limits)
        rate = timed.seconds.rate(case.size / bounds.GIGA)
        clock_mhz, blocks, clocks = machine.cpu_clock_mhz(), None, 0.0
        if cases.works_on_gpu(case.engine, case.residence) and self._stream and gpu is not None:
            clock_hz = bounds.clock_now(self._stream)
            clock_mhz, clocks = clock_hz / 1e6, clock_hz * gpu.multiprocessors
            blocks = rate.median * bounds.GIGA / case.algorithm.block_size / clocks
        percent = bounds.percentages(rate.median, case, self._bounds, clocks)
        what = case.algorithm.name, case.direction, case.size, case.message, len(case.lengths)
        how = case.residence, case.engine.name, timed.calls, work.slots, timed.seconds
        limit = bounds.limit_of(percent)
        return Row(*what, *how, timed.latency, rate, clock_mhz, blocks, percent, limit)

    def _run_group(self, group: cases.Group, row_of: Callable[[cases.Case], Row]) -> None:
        """The sizes of a group, but those that would take too long."""
        known: list[tuple[int, float]] = []  # size and seconds of a call
        for case in group:
            expected = CALLS_OF_A_ROW * expected_seconds(known, case.size)
            limit = self._settings.row_seconds
            if expected > limit:
                reason = f"would take about {expected:.2g} s: --row-seconds is {limit:g}"
                self._skip(case.left_out(reason))
                continue
            row = row_of(case)
            known.append((case.size, row.seconds.median))
            self._report.rows.append(row)
            self._observe(row)
            if self._pyca is not None:
                self._run_pyca(self._pyca, case)

    def _run_pyca(self, peer: peers.Library, case: cases.Case) -> None:
        refusal = peers.pyca_refusal(case)
        if refusal:
            self._skip(LeftOut(f"{case.shown} pyca", refusal))
            return
        settings = self._settings
        for found in peers.measure_pyca(peer, case, settings.row_seconds, settings.repetitions):
            self._report.peers.append(found)
            self._observe(found)

    def _run_openssl(self, path: str) -> None:
        its_version = peers.openssl_version(path)
        wanted = {
            (row.algorithm, row.direction, min(row.message, peers.LARGEST_MESSAGE)): None
            for row in self._report.rows
        }
        for what in wanted:
            count = self._repetitions_of_peer
            found = peers.measure_openssl(path, its_version, *what, count)
            if isinstance(found, str):
                algorithm, direction, message = what
                left_out = f"{algorithm} {direction} {shown_size(message)} openssl"
                self._skip(LeftOut(left_out, found))
            else:
                self._report.peers.append(found)
                self._observe(found)

    def _know(self, *found: Bound) -> None:
        for bound in found:
            self._bounds[bound.name] = bound
            self._report.bounds.append(bound)
            self._observe(bound)

    def _skip(self, entry: LeftOut) -> None:
        self._report.skipped.append(entry)
        self._observe(entry)


def expected_seconds(known: list[tuple[int, float]], size: int) -> float:
    """Seconds of a call on `size` bytes: on the line through the last two that were measured. A
    single one may be all fixed cost and says nothing."""
    if len(known) < 2:
        return 0.0
    (size_before, seconds_before), (size_last, seconds_last) = known[-2:]
    per_byte = max(0.0, (seconds_last - seconds_before) / (size_last - size_before))
    return seconds_last + per_byte * (size - size_last)


def find_paper(name: str) -> Paper:
    """ValueError: no paper of that name."""
    if name == timeline.NAME:
        return timeline.PAPER
    if name not in PAPERS:
        known = ", ".join(PAPERS)
        raise ValueError(f"no paper {name!r}: there are {known} and {timeline.NAME}")
    return PAPERS[name]


def run_paper(
    name: str,
    settings: LabSettings | None = None,
    observe: Callable[[object], object] = lambda _: None,
) -> PaperReport:
    """Runs one paper, and calls `observe` with the machine, each measurement and each omission.

    ValueError: an unknown paper, or a wrong setting. EngineError: a variant gave a wrong result, or
    nothing of the paper can run here; the text says what it needs.
    """
    start = time.perf_counter()
    settings = settings or LabSettings()
    paper = find_paper(name)
    paper.values(settings)  # refuses before anything is measured
    found = machine.look(settings.device)
    observe(found)
    session = Session(paper, settings, found, observe)
    reasons = [session.missing(entry) for entry in session.variants]
    if reasons and all(reasons):
        raise wc.EngineError(f"{name} needs a GPU: {found.without_gpu or reasons[0]}")
    paper.run(session)
    return finish(session.report, start)


def finish(report: AnyReport, start: float) -> AnyReport:
    """With the state that the run left the GPU in, and how long it took."""
    gpu = report.machine.gpu
    if gpu is not None:
        after = replace(gpu, state_after=machine.gpu_state(gpu.bus_id))
        report.machine = replace(report.machine, gpu=after)
    report.seconds = time.perf_counter() - start
    return report

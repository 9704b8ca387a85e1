# SPDX-License-Identifier: Apache-2.0
"""A paper's run from beginning to end: the machine, the session, the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import warpcipher as wc

from ..bench import machine
from .papers import find_paper
from .results import Report
from .settings import Settings


@dataclass(frozen=True)
class Start:
    """When a run began. text: UTC, ISO 8601."""

    text: str
    clock: float


def started_now() -> Start:
    return Start(datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter())


def finish(report: Report, start: Start) -> Report:
    """With the state that the run left the GPU in, and how long it took."""
    found = report.machine
    if found.gpu is not None:
        after = replace(found.gpu, state_after=machine.gpu_state(found.gpu.bus_id))
        found = replace(found, gpu=after)
    return replace(report, machine=found, seconds=time.perf_counter() - start.clock)


def run(
    name: str,
    settings: Settings | None = None,
    observe: Callable[[object], object] = lambda _: None,
) -> Report:
    """Runs one paper, and tells `observe` the machine, each measurement and each omission.

    ValueError: an unknown paper, or a wrong setting. EngineError: a variant gave a wrong result, or
    nothing of the paper can run here; the text says what it needs.
    """
    start = started_now()
    settings = settings or Settings()
    paper = find_paper(name)
    paper.values(settings)  # refuses before anything is measured
    found = machine.look(settings.device)
    observe(found)
    session = paper.session(settings, found, observe)
    reasons = {entry: session.missing(entry) for entry in session.variants}
    if all(reasons.values()):
        raise wc.EngineError(f"{name} needs a GPU: {found.without_gpu or reasons.popitem()[1]}")
    paper.run(session)
    report = Report(
        paper=paper.name,
        title=paper.title,
        citation=paper.citation,
        version=wc.__version__,
        started=start.text,
        quick=session.quick,
        repetitions=session.repetitions,
        values=session.values,
        machine=found,
        measurements=session.measurements,
        tables=session.tables,
        plots=session.plots,
        conclusions=session.conclusions,
        notes=session.notes,
        skipped=session.skipped,
    )
    return finish(report, start)

# SPDX-License-Identifier: Apache-2.0
"""A paper's run from beginning to end: the machine, the session, the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

import warpcipher as wc

from ..bench import machine
from .papers import find_paper
from .results import Report
from .session import Session
from .settings import Settings


def run(
    name: str,
    settings: Settings | None = None,
    observe: Callable[[object], object] = lambda _: None,
) -> Report:
    """Runs one paper, and tells `observe` the machine, each measurement and each omission.

    ValueError: an unknown paper, or a wrong setting. EngineError: a variant gave a wrong result, or
    nothing of the paper can run here; the text says what it needs.
    """
    start = time.perf_counter()
    settings = settings or Settings()
    paper = find_paper(name)
    paper.values(settings)  # refuses before anything is looked at
    found = machine.look(settings.device)
    observe(found)
    session = Session(paper, settings, found, observe)
    reasons = {entry: session.missing(entry) for entry in session.variants}
    if all(reasons.values()):
        raise wc.EngineError(f"{name} needs a GPU: {found.without_gpu or reasons.popitem()[1]}")
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    paper.run(session)
    if found.gpu is not None:
        after = replace(found.gpu, state_after=machine.gpu_state(found.gpu.bus_id))
        found = replace(found, gpu=after)
    return Report(
        paper=paper.name,
        title=paper.title,
        citation=paper.citation,
        version=wc.__version__,
        started=started,
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
        seconds=time.perf_counter() - start,
    )

# SPDX-License-Identifier: Apache-2.0
"""`warpcipher lab timeline`: AES-128 on GPUs from 2005 on, as published, and every kernel of the
lab and of the product on the GPU at hand."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import warpcipher as wc

from . import machine, published
from .papers import PAPERS
from .results import Measurement, PaperReport, Plot, Point, Series, Table, shown
from .runner import finish, now
from .session import CHECKED, Session
from .settings import LabSettings

if TYPE_CHECKING:
    from warpcipher._types import AlgorithmName

NAME = "timeline"
TITLE = "AES-128 on GPUs, from 2005 to here"
ENGINE = "cuda"
ALGORITHMS: tuple[AlgorithmName, ...] = ("aes-128-ecb", "aes-128-ctr")
SIZE, CHECK_SIZE = 1 << 32, 4112  # that of docs/performance.md


def timeline(
    settings: LabSettings | None = None, observe: Callable[[object], object] = lambda _: None
) -> PaperReport:
    """The papers' own figures, and on a GPU those of every AES-128 kernel here.

    ValueError: a wrong setting; there are no parameters. EngineError: a kernel gave a wrong result.
    """
    settings = settings or LabSettings()
    if settings.values:
        raise ValueError(f"no parameter {next(iter(settings.values))!r} of {NAME}: there are none")
    start, started = time.perf_counter(), now()
    found = machine.look(settings.device)
    observe(found)
    points = _published()
    sessions = [paper.session(settings, found, observe) for paper in PAPERS.values()]
    measurements: list[Measurement] = []
    if found.gpu is None:
        sessions[0].skip(
            "the kernels of the lab and of the product", f"no GPU: {found.without_gpu}"
        )
    else:
        for session, paper in zip(sessions, PAPERS.values(), strict=True):
            points += paper.timeline(session)
            measurements += [
                replace(entry, variant=f"{session.paper}: {entry.variant}")
                for entry in session.measurements
            ]
        product = next(iter(PAPERS.values())).session(settings, found, observe)
        points += _product(product)
        measurements += product.measurements
    report = PaperReport(
        paper=NAME,
        title=TITLE,
        citation="Published values are hollow in the plot; the others were measured here. "
        "What papers give in Gbit/s is shown in GB/s: an eighth of the number.",
        version=wc.__version__,
        started=started,
        quick=settings.quick,
        repetitions=sessions[0].repetitions,
        values={},
        machine=found,
        measurements=measurements,
        tables=[_table(points)],
        plots=[_plot(points)],
        skipped=[entry for session in sessions for entry in session.skipped],
    )
    for point in points:
        observe(point)
    return finish(report, start)


def _published() -> list[Point]:
    return [
        Point(
            year=entry["year"],
            label=entry["label"],
            gigabytes=entry["gb_per_s"],
            device=entry["device"],
            source=entry["source"],
            published=True,
        )
        for entry in published.load(NAME)["points"]
    ]


def _product(session: Session) -> list[Point]:
    """The product's kernels, in device memory."""
    points = []
    source, target = (session.device_memory(SIZE) for _ in range(2))
    stream = session.need_stream().pointer
    for algorithm in ALGORITHMS:
        key, iv = os.urandom(16), None if algorithm.endswith("ecb") else os.urandom(16)
        cipher = wc.Cipher(algorithm, key, engine=ENGINE)
        text = os.urandom(CHECK_SIZE)
        if cipher.encrypt(text, iv=iv) != wc.Cipher(algorithm, key, engine="reference").encrypt(
            text, iv=iv
        ):
            raise wc.EngineError(f"the {ENGINE} engine is wrong for {algorithm}")
        text_there, result_there = source.view(0, SIZE), target.view(0, SIZE)
        seconds = session.time(
            lambda: cipher.encrypt(text_there, iv=iv, out=result_there, stream=stream or None),  # noqa: B023
            on_device=True,
        )
        entry = session.add(
            f"warpcipher: {algorithm}",
            SIZE,
            seconds,
            CHECKED,
            residence="device",
            algorithm=algorithm,
        )
        points.append(replace(session.point(algorithm, entry), label=f"warpcipher: {algorithm}"))
    return points


def _table(points: list[Point]) -> Table:
    ordered = sorted(points, key=lambda point: (point.year, point.gigabytes))
    return Table(
        TITLE,
        "published values, where it says so; the rest was measured here, kernels alone",
        ("year", "what", "device", "GB/s", "source"),
        tuple(
            (
                point.year,
                point.label,
                point.device,
                point.gigabytes,
                f"published: {point.source}" if point.published else point.source,
            )
            for point in ordered
        ),
    )


def _plot(points: list[Point]) -> Plot:
    """With the names of what was published, and of the fastest of each group that was measured."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        name = "published" if point.published else f"{point.label.partition(':')[0]}, here"
        groups.setdefault(name, []).append(point)

    def name_of(point: Point, group: list[Point]) -> str:
        if point.published:
            return f"{point.label}: {shown(point.gigabytes)}"
        best = max(group, key=lambda other: other.gigabytes)
        return f"{point.label}: {shown(point.gigabytes)}" if point is best else ""

    return Plot(
        NAME,
        TITLE,
        "year",
        "GB/s",
        tuple(
            Series(
                name,
                tuple(float(point.year) for point in group),
                tuple(point.gigabytes for point in group),
                published=name == "published",
                names=tuple(name_of(point, group) for point in group),
            )
            for name, group in groups.items()
        ),
        kind="points",
        log_y=True,
    )

# SPDX-License-Identifier: Apache-2.0
"""`warpcipher lab timeline`: AES-128 on GPUs from 2005 on, as published, and every kernel of the
lab and of the product on the GPU at hand."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import warpcipher as wc

from . import published
from .papers import PAPERS
from .results import Plot, Point, Series, Table, shown
from .session import Paper, Session

if TYPE_CHECKING:
    from warpcipher._types import AlgorithmName

NAME = "timeline"
TITLE = "AES-128 on GPUs, from 2005 to here"
ENGINE = "cuda"
ALGORITHMS: tuple[AlgorithmName, ...] = ("aes-128-ecb", "aes-128-ctr")
KNOWN = ("year", "label", "device", "source")
SIZE, CHECK_SIZE = 1 << 32, 4112  # as in docs/performance.md


def run(session: Session) -> None:
    """The papers' own figures, and on a GPU figures of every AES-128 kernel here."""
    points = [
        Point(gigabytes=entry["gb_per_s"], published=True, **{name: entry[name] for name in KNOWN})
        for entry in published.load(NAME)["points"]
    ]
    if session.machine.gpu is None:
        reason = f"no GPU: {session.machine.without_gpu}"
        session.skip("the kernels of the lab and of the product", reason)
    else:
        for paper in PAPERS.values():
            its_session = Session(paper, session.settings, session.machine, session.observe)
            points += paper.timeline(its_session)
            session.report.skipped += its_session.report.skipped
            session.report.measurements += [
                replace(entry, variant=f"{paper.name}: {entry.variant}")
                for entry in its_session.report.measurements
            ]
        points += _product(session)
    session.report.tables.append(_table(points))
    session.report.plots.append(_plot(points))
    for point in points:
        session.observe(point)


def _product(session: Session) -> list[Point]:
    """The product's kernels, in device memory."""
    points = []
    source, target = (found.view(0, SIZE) for found in session.buffers("warpcipher", SIZE))
    stream = session.need_stream().pointer or None
    for algorithm in ALGORITHMS:
        key, iv = os.urandom(16), None if algorithm.endswith("ecb") else os.urandom(16)
        cipher = wc.Cipher(algorithm, key, engine=ENGINE)
        text = os.urandom(CHECK_SIZE)
        reference = wc.Cipher(algorithm, key, engine="reference")
        if cipher.encrypt(text, iv=iv) != reference.encrypt(text, iv=iv):
            raise wc.EngineError(f"the {ENGINE} engine is wrong for {algorithm}")
        call = partial(cipher.encrypt, source, iv=iv, out=target, stream=stream)
        label = f"warpcipher: {algorithm}"
        entry = session.measure(label, call, SIZE, algorithm=algorithm)
        points.append(replace(session.point(label, entry), label=label))
    return points


def _table(points: list[Point]) -> Table:
    ordered = sorted(points, key=lambda point: (point.year, point.gigabytes))
    what = "published values, where it says so; the rest was measured here, only kernels"
    rows = (
        (it.year, it.label, it.device, it.gigabytes, "published: " * it.published + it.source)
        for it in ordered
    )
    return Table(TITLE, what, ("year", "what", "device", "GB/s", "source"), tuple(rows))


def _plot(points: list[Point]) -> Plot:
    """A series for each published value, and for each group that was measured here."""
    series = [
        Series(f"{it.label}: {shown(it.gigabytes)}", (it.year,), (it.gigabytes,), published=True)
        for it in points
        if it.published
    ]
    groups: dict[str, list[Point]] = {}
    for point in points:
        if not point.published:
            groups.setdefault(point.label.partition(":")[0], []).append(point)
    for name, group in groups.items():
        rates = tuple(point.gigabytes for point in group)
        label = f"{name}, here: up to {shown(max(rates))}"
        series.append(Series(label, tuple(point.year for point in group), rates))
    return Plot(NAME, TITLE, "year", "GB/s", tuple(series), kind="points", log_y=True)


CITATION = (
    "Published values are hollow in the plot; the others were measured here. Values in "
    "Gbit/s are shown in GB/s: an eighth of the number."
)
PAPER = Paper(NAME, TITLE, CITATION, (), run)

# SPDX-License-Identifier: Apache-2.0
"""Pictures shaped like the papers', by matplotlib (the extra `warpcipher[bench]`), as PNG.
Published values are hollow or dashed; everything else was measured in the run."""

from __future__ import annotations

import importlib
import io
import math
from statistics import fmean
from typing import Any

from ..bench.plots import COLOURS, MARKERS, require
from ..bench.settings import shown_size
from .results import Plot, Report

__all__ = ["as_png", "require", "spread"]

WIDTH, HEIGHT = 9.0, 5.0  # inches
MOST_BELOW = 5
"""Entries of a legend that stands below the axes; more stand beside them."""

MOST_LABELS = 10
"""On an axis of powers of two."""


DASHES = ("--", ":", "-.")
COLUMN = 0.5
"""Of a plot of points, between series that were measured here."""

NAME_LINES = 34
"""That stand above each other in a plot of points."""


def as_png(plot: Plot, subtitle: str) -> bytes:
    """One picture. subtitle: what it was measured on."""
    figures: Any = importlib.import_module("matplotlib.figure")
    figure = figures.Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots()
    {"lines": _lines, "bars": _bars, "points": _points}[plot.kind](plot, axes)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    if plot.log_x:
        axes.set_xscale("log", base=2)
        _label_powers(plot, axes)
    if plot.log_y:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    if len(plot.series) > MOST_BELOW:
        figure.legend(loc="outside right center", fontsize=7, frameon=False)
    else:
        figure.legend(loc="outside lower center", ncols=len(plot.series), fontsize=8, frameon=False)
    axes.set_title(f"{plot.title}\n{subtitle}", fontsize=9)
    target = io.BytesIO()
    # Without a date the same report gives the same bytes.
    figure.savefig(target, format="png", dpi=150, metadata={"Software": None})
    return target.getvalue()


def _label_powers(plot: Plot, axes: Any) -> None:
    """Powers of two as people read them: bytes with their unit, numbers as numbers."""
    numbers = [x for series in plot.series for x in series.x if isinstance(x, (int, float))]
    first, last = (round(math.log2(edge)) for edge in (min(numbers), max(numbers)))
    step = max(1, -(-(last - first) // MOST_LABELS))
    places = range(first, last + 1, step)
    shown = shown_size if plot.x_label == "bytes" else lambda n: f"{n:,}"
    axes.set_xticks([2.0**n for n in places], [shown(1 << n) for n in places])
    axes.minorticks_off()


def subtitle_of(report: Report) -> str:
    """The device and when: what stands under a picture's title."""
    gpu = report.machine.gpu
    device = gpu.name if gpu is not None else report.machine.cpu.model
    quick = ", a quick run" if report.quick else ""
    return f"{report.paper} on {device}, {report.started[:10]}{quick}"


def _lines(plot: Plot, axes: Any) -> None:
    """What stands in front of a label's comma has a colour, what stands behind it a marker."""
    drawn: dict[str, int] = {}
    for series in plot.series:
        name = series.label.partition(", ")[0]
        colour = [*drawn, name].index(name)
        variation = drawn[name] = drawn.get(name, -1) + 1
        axes.plot(
            series.x,
            series.y,
            label=series.label,
            color=COLOURS[colour % len(COLOURS)],
            marker=None if series.published else MARKERS[variation % len(MARKERS)],
            markerfacecolor="white" if variation else None,
            markersize=4,
            linewidth=1.2,
            linestyle=DASHES[variation % len(DASHES)] if series.published else "-",
        )


def _bars(plot: Plot, axes: Any) -> None:
    """Groups of bars over names that all series share, each with its figure above it."""
    names = list(dict.fromkeys(name for series in plot.series for name in series.x))
    width = 0.8 / len(plot.series)
    for index, series in enumerate(plot.series):
        places = [names.index(name) + (index + 0.5) * width - 0.4 for name in series.x]
        colour = COLOURS[index % len(COLOURS)]
        bars = axes.bar(
            places,
            series.y,
            width * 0.9,
            label=series.label,
            edgecolor=colour,
            color="none" if series.published else colour,
        )
        axes.bar_label(
            bars, [f"{y:.3g}" if y < 1000 else f"{y:,.0f}" for y in series.y], fontsize=6
        )
    axes.set_xticks(range(len(names)), names)
    axes.margins(y=0.1)


def _points(plot: Plot, axes: Any) -> None:
    """Published ones have their names to the right of them all. Those measured here have one x:
    each series gets a column of its own there, and names to the left of them all."""
    here = [float(x) for series in plot.series for x in series.x if not series.published]
    heights = [math.log10(y) for series in plot.series for y in series.y]
    gap = (max(heights) - min(heights)) / NAME_LINES
    named: dict[bool, list[tuple[float, float, str]]] = {True: [], False: []}
    for index, series in enumerate(plot.series):
        colour = COLOURS[index % len(COLOURS)]
        column = 0 if series.published else COLUMN * index
        years = [float(x) + column for x in series.x]
        axes.scatter(
            years,
            series.y,
            s=28,
            label=series.label,
            edgecolors=colour,
            facecolors="none" if series.published else colour,
            zorder=3,
        )
        names = zip(years, series.y, series.names, strict=False)
        named[series.published] += [entry for entry in names if entry[2]]
    for published, entries in named.items():
        entries.sort(key=lambda entry: entry[1])
        places = spread([math.log10(y) for _, y, _ in entries], gap)
        edge = max((x for x, _, _ in entries), default=0) + 1 if published else min(here, default=0)
        for (x, y, name), place in zip(entries, places, strict=True):
            axes.annotate(
                name,
                (x, y),
                xytext=(edge, 10**place),
                ha="left" if published else "right",
                va="center",
                fontsize=7,
                arrowprops={
                    "arrowstyle": "-",
                    "color": "0.7",
                    "linewidth": 0.6,
                    "shrinkB": 3,
                    "relpos": (0 if published else 1, 0.5),
                },
            )


def spread(heights: list[float], gap: float) -> list[float]:
    """Ascending heights, moved as little as a gap between them asks for (isotonic regression)."""
    blocks: list[list[float]] = []  # neighbours that are moved as one
    for index, height in enumerate(heights):
        block = [height - index * gap]
        while blocks and fmean(blocks[-1]) > fmean(block):
            block = blocks.pop() + block
        blocks.append(block)
    bases = [fmean(together) for together in blocks for _ in together]
    return [base + index * gap for index, base in enumerate(bases)]

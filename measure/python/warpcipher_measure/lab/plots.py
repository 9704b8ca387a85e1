# SPDX-License-Identifier: Apache-2.0
"""Pictures shaped like the papers', by matplotlib (the extra `warpcipher[measure]`), as PNG.
Published values are hollow or dashed; everything else was measured in the run."""

from __future__ import annotations

import importlib
import io
import math
from statistics import fmean
from typing import Any

from ..bench.axes import label_decades, shown_figure
from ..bench.plots import COLOURS, MARKERS, require
from ..bench.settings import shown_size
from .results import Plot, Report, Series

__all__ = ["as_png", "require", "spread"]

WIDTH, HEIGHT = 9.0, 5.0  # inches
MOST_BELOW = 5
"""Entries of a legend that stands below the axes; more stand beside them."""

MOST_LABELS = 10
"""On an axis of powers of two."""


DASHES = ("--", ":", "-.")
COLUMN = 0.12
"""Years between series that were measured here, around the year that they were measured in: so
little that each stands at that year."""

YEARS = 5
"""Between labels of a plot of points over many."""

NAME_LINES = 26
"""That stand above each other in a plot of points."""


def as_png(plot: Plot, subtitle: str) -> bytes:
    """One picture. subtitle: what it was measured on."""
    target = io.BytesIO()
    # Without a date the same report gives the same bytes.
    figure_of(plot, subtitle).savefig(target, format="png", dpi=150, metadata={"Software": None})
    return target.getvalue()


def figure_of(plot: Plot, subtitle: str) -> Any:
    """The picture as matplotlib's Figure."""
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
        label_decades(axes.yaxis)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    if len(plot.series) > MOST_BELOW:
        figure.legend(loc="outside right center", fontsize=8, frameon=False)
    else:
        figure.legend(loc="outside lower center", ncols=len(plot.series), fontsize=9, frameon=False)
    axes.set_title(f"{plot.title}\n{subtitle}", fontsize=11)
    return figure


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
    """What stands under a picture's title: the device and when, where anything was measured."""
    if not report.measurements:
        return "published values alone: nothing was measured"
    gpu = report.machine.gpu
    device = gpu.name if gpu is not None else report.machine.cpu.model
    quick = ", a quick run" if report.quick else ""
    return f"{report.paper} on {device}, {report.started[:10]}{quick}"


def _lines(plot: Plot, axes: Any) -> None:
    """What precedes a label's comma has a colour, what follows it a marker."""
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
    """Groups of bars over names that all series share, each with its figure above it. Dots stand
    for them on a logarithmic axis, where a bar would begin nowhere."""
    names = list(dict.fromkeys(name for series in plot.series for name in series.x))
    width = 0.8 / len(plot.series)
    for index, series in enumerate(plot.series):
        places = [names.index(name) + (index + 0.5) * width - 0.4 for name in series.x]
        if plot.log_y:
            _scatter(axes, series, places, index, 40)
        else:
            colour = COLOURS[index % len(COLOURS)]
            inside = "none" if series.published else colour
            axes.bar(
                places, series.y, width * 0.9, label=series.label, edgecolor=colour, color=inside
            )
        for place, y in zip(places, series.y, strict=True):
            axes.annotate(
                shown_figure(y),
                (place, y),
                xytext=(0, 6 if plot.log_y else 2),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    axes.set_xticks(range(len(names)), names)
    axes.margins(x=0.1 if plot.log_y else None, y=0.15)


def _scatter(axes: Any, series: Series, places: list[float], index: int, size: int) -> None:
    """Marks: hollow what was published. Where colours come again, their marks are others."""
    colour = COLOURS[index % len(COLOURS)]
    axes.scatter(
        places,
        series.y,
        marker=MARKERS[index // len(COLOURS) % len(MARKERS)],
        s=size,
        label=series.label,
        edgecolors=colour,
        facecolors="none" if series.published else colour,
        zorder=3,
    )


def _points(plot: Plot, axes: Any) -> None:
    """Published ones have their names to the right of them all. Those measured here have one x,
    where each series gets a narrow column, and names to the left of them all."""
    here = [float(x) for series in plot.series for x in series.x if not series.published]
    columns = [series.label for series in plot.series if not series.published]
    heights = [math.log10(y) for series in plot.series for y in series.y]
    gap = (max(heights) - min(heights)) / NAME_LINES
    named: dict[bool, list[tuple[float, float, str]]] = {True: [], False: []}
    for index, series in enumerate(plot.series):
        place = 0.0 if series.published else columns.index(series.label) - (len(columns) - 1) / 2
        column = COLUMN * place
        years = [float(x) + column for x in series.x]
        _scatter(axes, series, years, index, 28)
        names = zip(years, series.y, series.names, strict=False)
        named[series.published] += [entry for entry in names if entry[2]]
    _label_years(plot, axes)
    for published, entries in named.items():
        entries.sort(key=lambda entry: entry[1])
        places = spread([math.log10(y) for _, y, _ in entries], gap)
        edge = (
            max((x for x, _, _ in entries), default=0) + 1
            if published
            else min(here, default=0) - 1
        )
        for (x, y, name), place in zip(entries, places, strict=True):
            axes.annotate(
                name,
                (x, y),
                xytext=(edge, 10**place),
                ha="left" if published else "right",
                va="center",
                fontsize=8,
                arrowprops={
                    "arrowstyle": "-",
                    "color": "0.7",
                    "linewidth": 0.6,
                    "shrinkB": 3,
                    "relpos": (0 if published else 1, 0.5),
                },
            )


def _label_years(plot: Plot, axes: Any) -> None:
    """The last year, and of a long time before it every fifth that is not close to it."""
    years = [round(float(x)) for series in plot.series for x in series.x]
    first, last = min(years), max(years)
    step = YEARS if last - first > 2 * YEARS else 1
    shown = [year for year in range(first, last) if year % step == 0 and last - year >= step / 2]
    axes.set_xticks([*shown, last])
    axes.minorticks_off()


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

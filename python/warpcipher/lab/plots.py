# SPDX-License-Identifier: Apache-2.0
"""Pictures shaped like the papers', by matplotlib (the extra `warpcipher[bench]`), as PNG.
Published values are hollow or dashed; everything else was measured in the run."""

from __future__ import annotations

import importlib
import io
from typing import Any

from ..bench.plots import COLOURS, MARKERS, require
from .results import Plot, Report

__all__ = ["as_png", "require"]

WIDTH, HEIGHT = 9.0, 5.0  # inches


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
    if plot.log_y:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    axes.set_title(f"{plot.title}\n{subtitle}", fontsize=9)
    target = io.BytesIO()
    # Without a date the same report gives the same bytes.
    figure.savefig(target, format="png", dpi=150, metadata={"Software": None})
    return target.getvalue()


def subtitle_of(report: Report) -> str:
    """The device and when: what stands under a picture's title."""
    gpu = report.machine.gpu
    device = gpu.name if gpu is not None else report.machine.cpu.model
    quick = ", a quick run" if report.quick else ""
    return f"{report.paper} rerun on {device}, {report.started}{quick}"


def _lines(plot: Plot, axes: Any) -> None:
    for index, series in enumerate(plot.series):
        axes.plot(
            series.x,
            series.y,
            label=series.label,
            color=COLOURS[index % len(COLOURS)],
            marker=None if series.published else MARKERS[index // len(COLOURS) % len(MARKERS)],
            markersize=4,
            linewidth=1.2,
            linestyle="--" if series.published else "-",
        )


def _bars(plot: Plot, axes: Any) -> None:
    """Groups of bars over names that all series share."""
    names = list(dict.fromkeys(name for series in plot.series for name in series.x))
    width = 0.8 / len(plot.series)
    for index, series in enumerate(plot.series):
        places = [names.index(name) + (index + 0.5) * width - 0.4 for name in series.x]
        colour = COLOURS[index % len(COLOURS)]
        axes.bar(
            places,
            series.y,
            width,
            label=series.label,
            edgecolor=colour,
            color="none" if series.published else colour,
        )
    axes.set_xticks(range(len(names)), names)


def _points(plot: Plot, axes: Any) -> None:
    for index, series in enumerate(plot.series):
        colour = COLOURS[index % len(COLOURS)]
        axes.scatter(
            series.x,
            series.y,
            label=series.label,
            edgecolors=colour,
            facecolors="none" if series.published else colour,
        )

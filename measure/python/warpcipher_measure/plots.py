# SPDX-License-Identifier: Apache-2.0
"""Plots as pictures, by matplotlib: of a paper, shaped like its own, and of a run of `bench`.
Published values and bounds are hollow or dashed, everything else was measured in the run."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

from .bounds import COPIED, COUNTED
from .machine import device_of
from .results import PaperReport, Plot, Report, Row, Series, shown
from .settings import shown_size

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^v<>P"
DASHES = ("--", ":", "-.")
WIDTH, HEIGHT = 9.0, 5.0  # inches
MOST_BELOW = 5
"""Entries of a legend that stands below the axes; more stand beside them."""
MOST_LABELS = 10
"""On an axis of powers of two."""
LONG_NAME = 12
"""Letters. Longer names below bars are turned."""
YEARS = 5
"""Between labels of a plot of points over many."""


def drawn(plots: Sequence[Plot], subtitle: str) -> bytes:
    """A picture of the plots, one below the other, as PNG."""
    target = io.BytesIO()
    # Without a version the same report gives the same bytes.
    figure_of(plots, subtitle).savefig(target, format="png", dpi=150, metadata={"Software": None})
    return target.getvalue()


def figure_of(plots: Sequence[Plot], subtitle: str) -> Any:
    """The picture as matplotlib's Figure. subtitle: what it was measured on."""
    from matplotlib import ticker
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(WIDTH, HEIGHT * len(plots)), layout="constrained")
    for plot, part in zip(plots, figure.subfigures(len(plots), squeeze=False)[:, 0], strict=True):
        axes = part.subplots()
        {"lines": _lines, "bars": _bars, "points": _points}[plot.kind](plot, axes)
        axes.set_xlabel(plot.x_label)
        axes.set_ylabel(plot.y_label)
        if plot.log_x:
            axes.set_xscale("log", base=2)
            _label_powers(plot, axes)
        if plot.log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:,g}")
            axes.yaxis.set_minor_formatter(ticker.LogFormatter(labelOnlyBase=False))
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        loc, columns = "outside right center", 1
        if len(plot.series) <= MOST_BELOW:
            loc, columns = "outside lower center", len(plot.series)
        part.legend(loc=loc, ncols=columns, fontsize=8, frameon=False)
        axes.set_title(f"{plot.title}\n{subtitle}", fontsize=11)
    return figure


# --- of a run of `bench` --------------------------------------------------------------------------

PLACES = {
    "device": "GPU memory",
    "pinned": "page-locked host memory",
    "pageable": "host memory",
    "file": "files",
}


def subtitle_of_run(report: Report) -> str:
    """The version, when, and the devices."""
    engines = dict.fromkeys(row.engine for row in report.rows)
    devices = "; ".join(device_of(report.machine, engine)[0] for engine in engines)
    return f"warpcipher {report.version}, {report.started[:10]}: {devices}"


def of_run(report: Report) -> list[Plot]:
    """For each place of the data, and what works on them: rates over sizes, with the best of each
    peer dashed; and the largest text of each kind beside its bounds."""
    places: dict[str, list[Row]] = {}
    for row in report.rows:
        places.setdefault(f"{PLACES[row.residence]}, {row.engine}", []).append(row)
    return [make(report, *place) for place in places.items() for make in (_rates, _bounds)]


def _rates(report: Report, place: str, rows: list[Row]) -> Plot:
    works: dict[str, dict[float, float]] = {}
    for row in rows:
        name = f"{row.algorithm} {row.direction}"
        works.setdefault(name, {})[row.size] = row.gigabytes_per_second.median
    peers: dict[str, float] = {}
    if rows[0].residence in ("pageable", "pinned"):
        for peer in report.peers:
            name = f"{peer.algorithm} {peer.direction}, {peer.peer}"
            peers[name] = max(peers.get(name, 0.0), peer.gigabytes_per_second.median)
    ends = [row.size for row in rows]
    series = [
        *(Series.of(name, line) for name, line in works.items()),
        *(Series.level(name, ends, rate, published=True) for name, rate in peers.items()),
    ]
    return Plot("rates", place, "bytes", "GB/s", tuple(series), log_x=True, log_y=True)


def _bounds(_report: Report, place: str, rows: list[Row]) -> Plot:
    largest = {(row.algorithm, row.direction): row for row in rows}
    lines: dict[str, dict[str, float]] = {"measured": {}}
    for row in largest.values():
        what = f"{row.algorithm} {row.direction}, {shown_size(row.size)}"
        rate = lines["measured"][what] = row.gigabytes_per_second.median
        for name, percent in row.percent_of.items():
            kind = "counted" if name in COUNTED else "plain copy" if name in COPIED else "bound"
            lines.setdefault(f"{kind}: {name}", {})[what] = 100 * rate / percent
    series = (Series.of(name, line, name != "measured") for name, line in lines.items())
    title = f"{place}: the largest texts and their bounds"
    return Plot("bounds", title, "", "GB/s", tuple(series), kind="bars", log_y=True)


# --- of a paper -----------------------------------------------------------------------------------


def subtitle_of(report: PaperReport) -> str:
    """The line under a picture's title: the device and when, where anything was measured."""
    if not report.measurements:
        return "only published values: nothing was measured"
    quick = ", a quick run" if report.quick else ""
    return f"{report.paper} on {report.machine.device}, {report.started[:10]}{quick}"


# --- kinds of plots -------------------------------------------------------------------------------


def _label_powers(plot: Plot, axes: Any) -> None:
    """Powers of two as people read them: bytes with their unit, numbers as numbers."""
    numbers = [x for series in plot.series for x in series.x if isinstance(x, (int, float))]
    first, last = (round(math.log2(edge)) for edge in (min(numbers), max(numbers)))
    step = max(1, -(-(last - first) // MOST_LABELS))
    places = range(first, last + 1, step)
    label = shown_size if plot.x_label == "bytes" else "{:,}".format
    axes.set_xticks([2.0**n for n in places], [label(1 << n) for n in places])
    axes.minorticks_off()


def _lines(plot: Plot, axes: Any) -> None:
    """Text before a label's comma gets a colour, text after it a marker."""
    drawn: dict[str, int] = {}
    for series in plot.series:
        name = series.label.partition(", ")[0]
        colour = [*drawn, name].index(name)
        variation = drawn[name] = drawn.get(name, -1) + 1
        how: dict[str, Any] = {"marker": MARKERS[variation % len(MARKERS)], "linestyle": "-"}
        if series.published:
            how = {"marker": None, "linestyle": DASHES[variation % len(DASHES)]}
        how |= {"color": COLOURS[colour % len(COLOURS)], "markersize": 4, "linewidth": 1.2}
        how |= {"markerfacecolor": "white" if variation else None}
        axes.plot(series.x, series.y, label=series.label, **how)


def _bars(plot: Plot, axes: Any) -> None:
    """Groups of bars over names that all series share, each with its figure above it. Dots stand
    for them on a logarithmic axis, where a bar would begin nowhere."""
    names = list(dict.fromkeys(str(name) for series in plot.series for name in series.x))
    width = 0.8 / len(plot.series)
    for index, series in enumerate(plot.series):
        places = [names.index(str(name)) + (index + 0.5) * width - 0.4 for name in series.x]
        if plot.log_y:
            _scatter(axes, series, places, index, 40)
        else:
            colour = COLOURS[index % len(COLOURS)]
            inside = "none" if series.published else colour
            colours = {"edgecolor": colour, "color": inside}
            axes.bar(places, series.y, width * 0.9, label=series.label, **colours)
        above = {"xytext": (0, 6 if plot.log_y else 2), "textcoords": "offset points"}
        for place, y in zip(places, series.y, strict=True):
            axes.annotate(shown(y), (place, y), ha="center", fontsize=8, **above)
    turned = {"rotation": 20, "ha": "right"} if max(map(len, names)) > LONG_NAME else {}
    axes.set_xticks(range(len(names)), names, **turned)
    axes.margins(x=0.1 if plot.log_y else None, y=0.15)


def _scatter(axes: Any, series: Series, places: list[float], index: int, size: int) -> None:
    """Marks: hollow what was published. Where colours come again, their marks are others."""
    colour = COLOURS[index % len(COLOURS)]
    marker = MARKERS[index // len(COLOURS) % len(MARKERS)]
    colours = {"edgecolors": colour, "facecolors": "none" if series.published else colour}
    axes.scatter(places, series.y, size, marker=marker, label=series.label, zorder=3, **colours)


def _points(plot: Plot, axes: Any) -> None:
    """Over years, of which the last and every fifth are named."""
    for index, series in enumerate(plot.series):
        _scatter(axes, series, [float(x) for x in series.x], index, 28)
    years = [round(float(x)) for series in plot.series for x in series.x]
    first, last = min(years), max(years)
    named = [year for year in range(first, last - YEARS // 2) if year % YEARS == 0]
    axes.set_xticks([*named, last])
    axes.minorticks_off()

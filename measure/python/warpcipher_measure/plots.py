# SPDX-License-Identifier: Apache-2.0
"""Reports as pictures, by matplotlib. Of `bench`: rate over size, and the largest texts beside
their bounds. Of a paper: plots shaped like its own, in which published values are hollow or dashed
and everything else was measured in the run."""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from .bounds import COPIED, COUNTED
from .machine import device_of
from .results import PaperReport, PeerRow, Plot, Report, Row, Series
from .settings import shown_size

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^v<>P"
WIDTH = 12.0  # inches, as are those below
PANEL_HEIGHT = 4.0
ROW_HEIGHT = 0.42
LEGEND_HEIGHT = 0.2  # of one line
FONT, SMALL = 11, 9
PANELS, COLUMNS = 2, 4
"""Beside each other: panels, and entries of a legend."""

RESIDENCES = {
    "device": "GPU memory",
    "pinned": "page-locked host memory",
    "pageable": "host memory",
    "file": "files",
}


def as_png(report: Report) -> bytes:
    """Both plots in one picture."""
    return _saved(figure_of(report, KINDS), "png")


def as_svgs(report: Report) -> list[str]:
    """Each plot by itself, as an element of HTML."""
    svgs = [_saved(figure_of(report, (kind,)), "svg").decode() for kind in KINDS]
    return [svg[svg.index("<svg") :] for svg in svgs]


def figure_of(report: Report, kinds: Sequence[Any]) -> Any:
    """Pictures above each other, as matplotlib's Figure."""
    lines = -(-len(_largest(report)) // COLUMNS)
    heights = [
        PANEL_HEIGHT * -(-len(_places(report)) // PANELS) + LEGEND_HEIGHT * lines
        if kind is _draw_rates
        else 1.6 + ROW_HEIGHT * len(_largest(report))
        for kind in kinds
    ]
    figure = _figure(WIDTH, sum(heights))
    parts = figure.subfigures(len(kinds), 1, squeeze=False, height_ratios=heights)
    for kind, (part,) in zip(kinds, parts, strict=True):
        kind(report, part)
    figure.suptitle("\n".join(title(report)), fontsize=FONT)
    return figure


def title(report: Report) -> tuple[str, str]:
    """What a report is of, and what it was measured on."""
    engines = dict.fromkeys(row.engine for row in report.rows)
    devices = "; ".join(f"{engine}: {device_of(report.machine, engine)[0]}" for engine in engines)
    return f"warpcipher {report.version}, {report.started[:10]}", devices


def _places(report: Report) -> dict[str, list[Row]]:
    """The rows by where their data lie and what works on them, as a panel's title says it."""
    places: dict[str, list[Row]] = {}
    for row in report.rows:
        places.setdefault(_place(row), []).append(row)
    return places


def _place(row: Row) -> str:
    return f"{RESIDENCES[row.residence]}, {row.engine}"


def _work(row: Row | PeerRow) -> str:
    return f"{row.algorithm} {row.direction}"


def _draw_rates(report: Report, part: Any) -> None:
    """A panel for each place, so that data of the host and of the device stand apart; in it a line
    over sizes for each algorithm and direction. The best of each peer is dashed."""
    places = _places(report)
    works = list(dict.fromkeys(_work(row) for row in report.rows))
    styles = {
        work: {
            "color": COLOURS[index % len(COLOURS)],
            "marker": MARKERS[index // len(COLOURS) % len(MARKERS)],
        }
        for index, work in enumerate(works)
    }
    columns = min(PANELS, len(places))
    grid = part.subplots(
        -(-len(places) // columns), columns, squeeze=False, sharex=True, sharey=True
    )
    panels = [axes for line in grid for axes in line]
    for axes in panels[len(places) :]:
        axes.remove()
    sizes = sorted({row.size for row in report.rows})
    drawn: dict[str, Any] = {}
    for axes, (name, rows) in zip(panels, places.items(), strict=False):
        for work in works:
            chosen = [row for row in rows if _work(row) == work]
            if chosen:
                drawn.setdefault(work, _draw_line(axes, chosen, styles[work]))
        if rows[0].residence in ("pageable", "pinned"):
            drawn |= _draw_peers(report, axes, styles)
        axes.set_title(name, fontsize=FONT)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [shown_size(size) for size in sizes], fontsize=SMALL)
        axes.minorticks_off()
        label_decades(axes.yaxis)
        axes.tick_params(labelbottom=True)
        axes.grid(alpha=0.3)
    for axes in panels[: len(places)][-columns:]:
        axes.set_xlabel("text")
    part.supylabel("GB/s: median, least and most", fontsize=FONT)
    part.legend(
        drawn.values(),
        drawn,
        fontsize=SMALL,
        loc="outside lower center",
        ncols=COLUMNS,
        frameon=False,
    )


def _draw_line(axes: Any, rows: Sequence[Row], style: dict[str, str]) -> Any:
    rates = [row.gigabytes_per_second for row in rows]
    return axes.errorbar(
        [row.size for row in rows],
        [rate.median for rate in rates],
        yerr=[
            [rate.median - rate.least for rate in rates],
            [rate.most - rate.median for rate in rates],
        ],
        markersize=4,
        linewidth=1.2,
        **style,
    )


def _draw_peers(report: Report, axes: Any, styles: dict[str, dict[str, str]]) -> dict[str, Any]:
    best: dict[tuple[str, str], float] = {}
    for peer in report.peers:
        name = peer.peer, _work(peer)
        best[name] = max(best.get(name, 0.0), peer.gigabytes_per_second.median)
    drawn: dict[str, Any] = {}
    for (peer_name, work), rate in best.items():
        line = axes.axhline(
            rate, linestyle="--", linewidth=1, color=styles.get(work, {}).get("color", "0.5")
        )
        drawn.setdefault(f"dashed: the best of {peer_name}", line)
    return drawn


def _largest(report: Report) -> list[Row]:
    """The row of the largest text of each kind, by place."""
    found: dict[tuple[str, ...], Row] = {}
    for rows in _places(report).values():
        for row in rows:
            found[row.algorithm, row.direction, row.residence, row.engine] = row
    return list(found.values())


def _kind(name: str) -> str:
    """What a mark is: only a bound is never exceeded."""
    if name in COUNTED:
        return "counted"
    return "plain copy" if name in COPIED else "bound"


def _draw_bounds(report: Report, part: Any) -> None:
    """For the largest text of each kind: the rate as a dot with its figure, each bound as a mark.
    On a logarithmic axis, as rates of host and device lie far apart."""
    axes = part.subplots()
    rows = _largest(report)
    names = list(dict.fromkeys(name for row in rows for name in row.percent_of))
    rates = [row.gigabytes_per_second for row in rows]
    axes.errorbar(
        [rate.median for rate in rates],
        range(len(rows)),
        xerr=[
            [rate.median - rate.least for rate in rates],
            [rate.most - rate.median for rate in rates],
        ],
        fmt="o",
        markersize=8,
        color=COLOURS[0],
        label="measured: median, least and most",
    )
    for place, rate in enumerate(rates):
        axes.annotate(
            shown_figure(rate.median),
            (rate.median, place),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=SMALL,
        )
    for index, name in enumerate(names):
        marks = [
            (100 * row.gigabytes_per_second.median / row.percent_of[name], place)
            for place, row in enumerate(rows)
            if row.percent_of.get(name)
        ]
        axes.scatter(
            [rate for rate, _ in marks],
            [place for _, place in marks],
            marker="|",
            s=220,
            linewidths=2.5,
            color=COLOURS[1 + index % (len(COLOURS) - 1)],
            label=f"{_kind(name)}: {name}",
        )
    axes.set_xscale("log")
    label_decades(axes.xaxis)
    labels = [
        f"{_work(row)}, {shown_size(row.size)}"
        + ("" if row.messages == 1 else f" in {shown_size(row.message)}")
        for row in rows
    ]
    axes.set_yticks(range(len(rows)), labels, fontsize=SMALL)
    for place, row in enumerate(rows):
        if place == 0 or _place(row) != _place(rows[place - 1]):
            axes.text(
                1.01,
                place,
                _place(row),
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=SMALL,
                fontweight="bold",
            )
            if place:
                axes.axhline(place - 0.5, color="0.7", linewidth=0.8)
    axes.set_ylim(len(rows) - 0.4, -0.7)
    axes.margins(x=0.08)
    axes.set_xlabel("GB/s of text")
    axes.grid(alpha=0.3, axis="x")
    part.legend(fontsize=SMALL, loc="outside lower center", ncols=COLUMNS, frameon=False)


KINDS = _draw_rates, _draw_bounds
"""The pictures of a report."""


# --- papers ---------------------------------------------------------------------------------------

PLOT_WIDTH, PLOT_HEIGHT = 9.0, 5.0  # inches
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


def plot_as_png(plot: Plot, subtitle: str) -> bytes:
    """A plot of a paper. subtitle: what it was measured on."""
    return _saved(figure_of_plot(plot, subtitle), "png")


def figure_of_plot(plot: Plot, subtitle: str) -> Any:
    """The picture as matplotlib's Figure."""
    figure = _figure(PLOT_WIDTH, PLOT_HEIGHT)
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


def subtitle_of(report: PaperReport) -> str:
    """What stands under a picture's title: the device and when, where anything was measured."""
    if not report.measurements:
        return "only published values: nothing was measured"
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


# --- both -----------------------------------------------------------------------------------------

FEW = 100
"""Times the low end of a logarithmic axis: up to there, labels only at decades would be few."""


def label_decades(axis: Any) -> None:
    """Writes the decades of a logarithmic axis (`axes.xaxis` or `axes.yaxis`) as numbers, and where
    there are few of them twice and five times each."""
    ticker: Any = importlib.import_module("matplotlib.ticker")

    def between(value: float, _place: int) -> str:
        low, high = axis.get_view_interval()
        digit = round(value / 10 ** math.floor(math.log10(value)))
        return shown_decade(value) if high < low * FEW and digit in (2, 5) else ""

    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _place: shown_decade(value)))
    axis.set_minor_formatter(ticker.FuncFormatter(between))


def shown_decade(value: float) -> str:
    """A power of ten, or a multiple, without an exponent: 0.001, 0.1, 1, 20, 1,000."""
    return f"{value:,.{max(0, -math.floor(math.log10(value) + 1e-6))}f}"


def shown_figure(value: float) -> str:
    """A figure beside a bar or a mark: whole from 100 on, else with three digits, never with an
    exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def _figure(width: float, height: float) -> Any:
    figures: Any = importlib.import_module("matplotlib.figure")
    return figures.Figure(figsize=(width, height), layout="constrained")


def _saved(figure: Any, form: str) -> bytes:
    target = io.BytesIO()
    # Without a date the same report gives the same bytes.
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    figure.savefig(target, format=form, dpi=150, metadata=metadata)
    return target.getvalue()

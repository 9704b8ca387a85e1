# SPDX-License-Identifier: Apache-2.0
"""A report as pictures, by matplotlib (the extra `warpcipher[measure]`): rate over size, and the
largest texts beside their bounds."""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from typing import Any

from .axes import label_decades, shown_figure
from .bounds import COPIED, COUNTED
from .report import device_of
from .results import PeerRow, Report, Row
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


class MissingError(ValueError):
    """matplotlib is not installed."""


def require() -> None:
    """MissingError where there is no matplotlib: to be asked before measuring."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise MissingError(
            "plots need matplotlib, which is not installed: pip install 'warpcipher[measure]'"
        ) from error


def as_png(report: Report) -> bytes:
    """Both plots in one picture."""
    return _draw(report, KINDS, "png")


def as_svgs(report: Report) -> list[str]:
    """Each plot by itself, as an element of HTML."""
    svgs = [_draw(report, (kind,), "svg").decode() for kind in KINDS]
    return [svg[svg.index("<svg") :] for svg in svgs]


def _draw(report: Report, kinds: Sequence[Any], form: str) -> bytes:
    figure = figure_of(report, kinds)
    target = io.BytesIO()
    # Without a date the same report gives the same bytes.
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    figure.savefig(target, format=form, dpi=150, metadata=metadata)
    return target.getvalue()


def figure_of(report: Report, kinds: Sequence[Any]) -> Any:
    """Pictures above each other, as matplotlib's Figure."""
    figures: Any = importlib.import_module("matplotlib.figure")
    lines = -(-len(_largest(report)) // COLUMNS)
    heights = [
        PANEL_HEIGHT * -(-len(_places(report)) // PANELS) + LEGEND_HEIGHT * lines
        if kind is _draw_rates
        else 1.6 + ROW_HEIGHT * len(_largest(report))
        for kind in kinds
    ]
    figure = figures.Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
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

# SPDX-License-Identifier: Apache-2.0
"""A report as pictures, by matplotlib (the extra `warpcipher[bench]`): rate over size, and the
largest texts beside their bounds. As PNG, or as a page of HTML that needs nothing else."""

from __future__ import annotations

import csv
import html
import importlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .bounds import COUNTED
from .report import as_csv, device_of, line
from .results import Report, Row
from .settings import shown_size

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^v<>P"
PANEL_WIDTH = 12.0  # inches, as are those below
PANEL_HEIGHT = 5.0
BAR_HEIGHT = 0.3
LEGEND_HEIGHT = 0.14  # of one line


class MissingError(ValueError):
    """matplotlib is not installed."""


def require() -> None:
    """MissingError where there is no matplotlib: to be asked before measuring."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise MissingError(
            "plots need matplotlib, which is not installed: pip install 'warpcipher[bench]'"
        ) from error


def as_png(report: Report) -> bytes:
    """Both plots in one picture."""
    return _draw(report, (_draw_rates, _draw_bounds), "png")


def as_html(report: Report) -> str:
    """A page with the plots, what was measured on, the bounds, and every row."""
    svgs = [_draw(report, (kind,), "svg").decode() for kind in (_draw_rates, _draw_bounds)]
    header, *rows = csv.reader(io.StringIO(as_csv(report)))
    bounds = [
        (
            bound.name,
            f"{bound.rate.median:.5g}",
            f"{bound.rate.least:.5g} to {bound.rate.most:.5g}",
            bound.unit,
            bound.measured,
        )
        for bound in report.bounds
    ]
    facts = f"{line(report.machine)}\n\nsettings: {json.dumps(asdict(report.settings), indent=1)}"
    return _PAGE.format(
        title=html.escape(_title(report)),
        pictures="\n".join(svg[svg.index("<svg") :] for svg in svgs),
        facts=html.escape(facts),
        bounds=_table(("bound", "median", "range", "unit", "measured by"), bounds),
        rows=_table(header, rows),
        skipped=html.escape("\n".join(line(entry) for entry in report.skipped) or "nothing"),
    )


def _draw(report: Report, kinds: Sequence[Any], form: str) -> bytes:
    figures: Any = importlib.import_module("matplotlib.figure")
    kinds_of_rows = len(_largest(report))
    heights = [
        max(PANEL_HEIGHT, 1.5 + LEGEND_HEIGHT * (kinds_of_rows + len(report.peers)))
        if kind is _draw_rates
        else 2.0 + BAR_HEIGHT * kinds_of_rows
        for kind in kinds
    ]
    figure = figures.Figure(figsize=(PANEL_WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(kinds), 1, squeeze=False, height_ratios=heights)
    for kind, (place,) in zip(kinds, axes, strict=True):
        kind(report, place)
    figure.suptitle(_title(report), fontsize=9)
    target = io.BytesIO()
    # Without a date the same report gives the same bytes.
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    figure.savefig(target, format=form, dpi=150, metadata=metadata)
    return target.getvalue()


def _title(report: Report) -> str:
    engines = dict.fromkeys(row.engine for row in report.rows)
    devices = "; ".join(
        f"{engine}: {', '.join(device_of(report.machine, engine))}" for engine in engines
    )
    return f"warpcipher {report.version}, {report.started}\n{devices}"


def _label(row: Row) -> str:
    message = "" if row.messages == 1 else f" in {shown_size(row.message)}"
    return f"{row.algorithm} {row.direction}{message}, {row.residence}, {row.engine}"


def _draw_rates(report: Report, axes: Any) -> None:
    """A line over sizes for each algorithm, direction, residence and engine; peers dashed."""
    lines: dict[tuple[str, ...], list[Row]] = {}
    for row in report.rows:
        key = (row.algorithm, row.direction, row.residence, row.engine)
        lines.setdefault(key, []).append(row)
    for index, rows in enumerate(lines.values()):
        rates = [row.gigabytes_per_second for row in rows]
        axes.errorbar(
            [row.size for row in rows],
            [rate.median for rate in rates],
            yerr=[
                [rate.median - rate.least for rate in rates],
                [rate.most - rate.median for rate in rates],
            ],
            label=_label(rows[-1]),
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index // len(COLOURS) % len(MARKERS)],
            markersize=4,
            linewidth=1.2,
        )
    best: dict[tuple[str, str, str], float] = {}
    for peer in report.peers:
        name = peer.peer, peer.algorithm, peer.direction
        best[name] = max(best.get(name, 0.0), peer.gigabytes_per_second.median)
    for index, (name, rate) in enumerate(best.items()):
        colour = COLOURS[index % len(COLOURS)]
        axes.axhline(
            rate, linestyle="--", linewidth=0.8, color=colour, label=f"{' '.join(name)}, best"
        )
    sizes = sorted({row.size for row in report.rows})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [shown_size(size) for size in sizes], rotation=45, fontsize=7)
    axes.minorticks_off()
    axes.set_xlabel("text")
    axes.set_ylabel("GB/s, median, least and most")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _largest(report: Report) -> list[Row]:
    """The row of the largest text of each kind."""
    found: dict[tuple[str, ...], Row] = {}
    for row in report.rows:
        found[row.algorithm, row.direction, row.residence, row.engine] = row
    return list(found.values())


def _draw_bounds(report: Report, axes: Any) -> None:
    """For the largest text of each kind: the rate as a bar, each bound as a mark."""
    rows = _largest(report)
    names = list(dict.fromkeys(name for row in rows for name in row.percent_of))
    rates = [row.gigabytes_per_second for row in rows]
    axes.barh(
        range(len(rows)),
        [rate.median for rate in rates],
        xerr=[
            [rate.median - rate.least for rate in rates],
            [rate.most - rate.median for rate in rates],
        ],
        height=0.6,
        color=COLOURS[5],
        label="measured",
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
            s=120,
            linewidths=2,
            color=COLOURS[index % 5],
            label=f"{'counted' if name in COUNTED else 'bound'}: {name}",
        )
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_yticks(
        range(len(rows)), [f"{_label(row)}, {shown_size(row.size)}" for row in rows], fontsize=7
    )
    axes.invert_yaxis()
    axes.set_xlabel("GB/s of text")
    axes.grid(alpha=0.3, axis="x")
    axes.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def cells(kind: str, values: Sequence[str]) -> str:
        inside = "".join(f"<{kind}>{html.escape(value)}</{kind}>" for value in values)
        return f"<tr>{inside}</tr>"

    lines = [cells("th", header), *(cells("td", row) for row in rows)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px sans-serif; margin: 2em; }}
svg {{ max-width: 100%; height: auto; display: block; }}
table {{ border-collapse: collapse; font-size: 12px; }}
th, td {{ border: 1px solid #ccc; padding: 2px 6px; text-align: left; white-space: nowrap; }}
div {{ overflow-x: auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
{pictures}
<h2>Measured on</h2>
<pre>{facts}</pre>
<h2>Bounds</h2>
<div>{bounds}</div>
<h2>Rows</h2>
<div>{rows}</div>
<h2>Left out</h2>
<pre>{skipped}</pre>
</body>
</html>
"""

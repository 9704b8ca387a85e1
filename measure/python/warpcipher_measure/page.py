# SPDX-License-Identifier: Apache-2.0
"""A report as a page of HTML that needs nothing else: the pictures, and tables for people, with
units in words. `--csv` and `--json` have every field."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict

from . import plots
from .plots import shown_figure
from .report import line, shown_time
from .results import Bound, PeerRow, Report, Row, Spread
from .settings import shown_size

LATENCY = "one call alone"
RATE = "gigabytes of text a second, median (least to most)"


def as_html(report: Report) -> str:
    """A page with the plots, what was measured, the bounds, and what it was measured on."""
    parts = [
        _table(
            ("algorithm", "text", "data in", "engine", RATE, LATENCY, "compared with bounds"),
            [_row(row) for row in report.rows],
        ),
        "<h2>Bounds</h2>",
        _table(
            ("bound or plain copy", "median (least to most)", "measured by"),
            [_bound(bound) for bound in report.bounds],
        ),
    ]
    if report.peers:
        parts[1:1] = [
            "<h2>Peers</h2>",
            _table(
                ("peer", "algorithm", "text", RATE, "warpcipher is this many times as fast"),
                [_peer(peer) for peer in report.peers],
            ),
        ]
    settings = [(name, _value(value)) for name, value in asdict(report.settings).items()]
    return _PAGE.format(
        title=html.escape(plots.title(report)[0]),
        device=html.escape(plots.title(report)[1]),
        pictures="\n".join(plots.as_svgs(report)),
        tables="\n".join(parts),
        machine=html.escape(line(report.machine)),
        settings=_table(("setting", "value"), settings),
        skipped=html.escape("\n".join(line(entry) for entry in report.skipped) or "nothing"),
    )


def _row(row: Row) -> tuple[str, ...]:
    cut = "" if row.messages == 1 else f" in messages of {shown_size(row.message)}"
    shares = [f"{_percent(value)} of {name}" for name, value in row.percent_of.items()]
    return (
        f"{row.algorithm} {row.direction}",
        shown_size(row.size) + cut,
        plots.RESIDENCES[row.residence],
        row.engine,
        _spread(row.gigabytes_per_second),
        shown_time(row.latency.median).replace("us", "µs"),
        ", ".join(shares),
    )


def _peer(peer: PeerRow) -> tuple[str, ...]:
    cut = "" if peer.message >= peer.size else f" in messages of {shown_size(peer.message)}"
    return (
        f"{peer.peer}: {peer.command}",
        f"{peer.algorithm} {peer.direction}",
        shown_size(peer.size) + cut,
        _spread(peer.gigabytes_per_second),
        "" if peer.ratio is None else shown_figure(peer.ratio.median),
    )


def _bound(bound: Bound) -> tuple[str, ...]:
    unit = bound.unit.replace("GB/s", "gigabytes a second,", 1).rstrip(",")
    return bound.name, f"{_spread(bound.rate)} {unit}", bound.measured


def _spread(spread: Spread) -> str:
    median, least, most = map(shown_figure, (spread.median, spread.least, spread.most))
    return f"{median} ({least} to {most})"


def _percent(value: float) -> str:
    return f"{value:.0f}%" if value >= 1 else "less than 1%"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "the defaults"
    return "none" if value is None else str(value)


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
body {{ font: 16px sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }}
svg {{ max-width: 100%; height: auto; display: block; margin: 1em 0; }}
table {{ border-collapse: collapse; font-size: 14px; }}
th, td {{ border-bottom: 1px solid #ccc; padding: 4px 12px 4px 0; text-align: left; }}
th, td {{ vertical-align: top; }}
pre {{ white-space: pre-wrap; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{device}</p>
{pictures}
<h2>Results</h2>
{tables}
<h2>Measured on</h2>
<pre>{machine}</pre>
{settings}
<h2>Left out</h2>
<pre>{skipped}</pre>
</body>
</html>
"""

# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown, and a line for each thing that a run tells."""

from __future__ import annotations

from collections.abc import Sequence

from ..bench import report as bench_report
from ..bench.report import shown_time
from ..bench.results import Machine, Spread
from .results import Cell, Conclusion, Measurement, Point, Report, Skipped, Table

NOT_QUOTABLE = "A quick run: to try the command, not to quote."
LEAKS = (
    "The time of the variants below depends on keys and data: they are for measuring, "
    "never for secrets."
)


def markdown(report: Report) -> str:
    """The whole report: what it was measured on, tables, conclusions, what was left out."""
    parts = [
        f"# {report.paper}: {report.title}",
        report.citation,
        *([NOT_QUOTABLE] if report.quick else []),
        "## Measured on",
        "\n".join(f"- {line}" for line in _facts(report)),
    ]
    for table in report.tables:
        parts += [f"## {table.title}", f"Of the paper: {table.source}.", as_table(table)]
    if report.conclusions:
        rows = tuple((entry.paper, entry.here, _verdict(entry)) for entry in report.conclusions)
        parts += [
            "## Conclusions",
            as_table(Table("", "", ("the paper says", "here", "holds"), rows)),
        ]
    parts += report.notes
    leaking = dict.fromkeys(
        entry.variant for entry in report.measurements if not entry.constant_time
    )
    if leaking:
        parts += ["## Not constant time", LEAKS, "\n".join(f"- {name}" for name in leaking)]
    if report.skipped:
        parts += [
            "## Left out",
            "\n".join(f"- {entry.what}: {entry.reason}" for entry in report.skipped),
        ]
    return "\n\n".join(parts) + "\n"


def as_table(table: Table) -> str:
    """The rows of a table in Markdown."""
    lines = [_row(table.header), _row(["---"] * len(table.header))]
    lines += [_row([cell_text(cell) for cell in row]) for row in table.rows]
    return "\n".join(lines)


def cell_text(cell: Cell) -> str:
    """A figure with four digits, or whole; seconds with their ends; "-" for what there is not."""
    if cell is None:
        return "-"
    if isinstance(cell, Spread):
        median, least, most = map(shown_time, (cell.median, cell.least, cell.most))
        return f"{median} ({least} to {most})"
    if isinstance(cell, float):
        return f"{cell:.0f}" if abs(cell) >= 1e4 else f"{cell:.4g}"
    return str(cell)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _verdict(entry: Conclusion) -> str:
    return "-" if entry.holds is None else "yes" if entry.holds else "no"


def _facts(report: Report) -> list[str]:
    facts = bench_report.line(report.machine).splitlines()
    gpu = report.machine.gpu
    if gpu is None:
        facts.append(f"no GPU: {report.machine.without_gpu}")
    elif gpu.state_after:
        after = "; ".join(f"{name} {value}" for name, value in gpu.state_after.items())
        facts.append(f"after the run: {after}")
    values = ", ".join(f"{name} {value}" for name, value in report.values.items())
    facts.append(
        f"median (least to most) of up to {report.repetitions} repetitions; {values or 'no values'}"
    )
    checks = dict.fromkeys(entry.checked for entry in report.measurements)
    if checks:
        facts.append(f"each variant checked before it was timed, against {', '.join(checks)}")
    facts.append(f"warpcipher {report.version}, {report.started}, {report.seconds:.3g} s in all")
    return facts


def line(news: object) -> str:
    """One line for people about something that a run tells."""
    if isinstance(news, Machine):
        return bench_report.line(news)
    if isinstance(news, Measurement):
        parameters = ", ".join(f"{name} {value}" for name, value in news.parameters.items())
        time = bench_report.shown_time(news.seconds.median)
        rate = (
            f"{news.gigabytes:.4g} GB/s"
            if news.unit == "bytes"
            else f"{news.rate.median:.4g} {news.unit}/s"
        )
        return f"{news.variant:12} {news.amount:>11} {news.unit}  {news.residence:9} " + (
            f"{time:>8}  {rate:>16}  {parameters}"
        )
    if isinstance(news, Point):
        return f"{news.year} {news.gigabytes:12.5g} GB/s  {news.label}, {news.device}"
    if isinstance(news, Skipped):
        return f"left out: {news.what}: {news.reason}"
    raise TypeError(f"no line for {type(news).__name__}")

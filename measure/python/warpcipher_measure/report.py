# SPDX-License-Identifier: Apache-2.0
"""A report as text: a line for each thing that a run reports, and Markdown of a paper."""

from __future__ import annotations

from collections.abc import Sequence

from . import results
from .bounds import COPIED
from .results import Cell, Machine, Measurement, PaperReport, Row, Spread, Table
from .settings import shown_size


def line(news: object) -> str:
    """One line for people about something that a run reports."""
    if isinstance(news, Machine):
        return _machine_lines(news)
    if isinstance(news, results.Bound):
        kind = "copy " if news.name in COPIED else "bound"
        return f"{kind} {news.name:10} {_shown_spread(news.rate)} {news.unit}"
    if isinstance(news, Row):
        return _row_line(news)
    if isinstance(news, results.PeerRow):
        what = f"{news.algorithm:14} {news.direction} {shown_size(news.size):>8}"
        rate = f"{_shown_spread(news.gigabytes_per_second)} GB/s"
        ratio = "" if news.ratio is None else f"ours {news.ratio.median:.2f} times that  "
        return f"{what} {'':8} {'cache':8} {news.peer:9} {rate}  {ratio}{news.command}"
    if isinstance(news, Measurement):
        return _measurement_line(news)
    if isinstance(news, results.Point):
        return f"{news.year} {news.gigabytes:12.5g} GB/s  {news.label}, {news.device}"
    if isinstance(news, results.LeftOut):
        return f"left out: {news.what}: {news.reason}"
    raise TypeError(f"no line for {type(news).__name__}")


def _machine_lines(machine: Machine) -> str:
    cpu = machine.cpu
    clock = "" if cpu.clock_mhz is None else f", {cpu.clock_mhz:.0f} MHz"
    lines = [f"cpu: {cpu.model}, {cpu.cores} cores{clock}; {cpu.libcrypto}"]
    gpu = machine.gpu
    if gpu is not None:
        state = "; ".join(f"{name} {value}" for name, value in gpu.state_before.items())
        cuda = f"CUDA {gpu.driver_cuda} (built with {gpu.runtime_cuda})"
        lines.append(f"gpu: {gpu.name}, {gpu.multiprocessors} multiprocessors, {cuda}; {state}")
    return "\n".join([*lines, f"system: {machine.system}, Python {machine.python}"])


def _row_line(row: Row) -> str:
    cut = f"in {shown_size(row.message)}" if row.messages > 1 else ""
    what = (
        f"{row.algorithm:14} {row.direction} {shown_size(row.size):>8} {cut:8} "
        f"{row.residence:8} {row.engine:9}"
    )
    percent = ", ".join(f"{value:.3g}% {name}" for name, value in row.percent_of.items())
    blocks = "" if row.blocks_per_clock is None else f"  {row.blocks_per_clock:.3g} blocks/clock/SM"
    clock = "" if row.clock_mhz is None else f"  {row.clock_mhz:.0f} MHz"
    latency = f"  alone {shown_time(row.latency.median)}"
    rate = f"{what} {_shown_spread(row.gigabytes_per_second)} GB/s x{row.seconds.count}"
    return f"{rate}{latency}{blocks}{clock}  {percent}"


def _measurement_line(found: Measurement) -> str:
    parameters = ", ".join(f"{name} {value}" for name, value in found.parameters.items())
    in_bytes = found.unit == "bytes"
    rate = f"{found.gigabytes:.4g} GB/s" if in_bytes else f"{found.rate.median:.4g} {found.unit}/s"
    return f"{found.variant:12} {found.amount:>11} {found.unit}  {found.residence:9} " + (
        f"{shown_time(found.seconds.median):>8}  {rate:>16}  {parameters}"
    )


def _shown_spread(spread: Spread) -> str:
    return f"{spread.median:8.4g} ({spread.least:.4g} to {spread.most:.4g})"


def shown_time(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


# --- papers ---------------------------------------------------------------------------------------

NOT_QUOTABLE = "A quick run: to try the command, not to quote."
VERDICTS = {None: "-", True: "yes", False: "no"}
LEAKS = (
    "The time of the variants below depends on keys and data: they are for measuring, "
    "never for secrets."
)


def markdown(report: PaperReport) -> str:
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
        rows = tuple((it.paper, it.here, VERDICTS[it.holds]) for it in report.conclusions)
        table = Table("", "", ("the paper says", "here", "holds"), rows)
        parts += ["## Conclusions", as_table(table)]
    leaking = dict.fromkeys(it.variant for it in report.measurements if not it.constant_time)
    if leaking:
        parts += ["## Not constant time", LEAKS, "\n".join(f"- {name}" for name in leaking)]
    if report.skipped:
        left_out = (f"- {entry.what}: {entry.reason}" for entry in report.skipped)
        parts += ["## Left out", "\n".join(left_out)]
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


def _facts(report: PaperReport) -> list[str]:
    facts = line(report.machine).splitlines()
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

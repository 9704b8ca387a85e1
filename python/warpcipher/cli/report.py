# SPDX-License-Identifier: Apache-2.0
"""The output of a run: a progress bar on a terminal, one line for many files of one error, a
summary, a JSON document."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import click

from warpcipher._uncopied import Closed

from .errors import CliError, Failures, counted, shown, warn, withheld

DAY = 86400.0


class Progress(Closed):
    """A bar over all files of a run. total: bytes (or `unit`), None if unknown."""

    def __init__(self, total: int | None, *, visible: bool, unit: str = "B") -> None:
        self._update: Callable[[int], object] = lambda count: None
        self._write: Callable[[str], object] = lambda text: click.echo(text, err=True)
        self._bar: Any = None
        self._done = 0
        self._before = 0
        if visible:
            # Imported only where it shows: it takes as long as all of click.
            from tqdm import tqdm  # type: ignore[import-untyped]

            class Bar(tqdm):  # type: ignore[misc]
                """Hours count up to 99; then the time that is left is said as people say it."""

                @property
                def format_dict(self) -> dict[str, Any]:
                    known: dict[str, Any] = super().format_dict
                    rate = known["rate"] or (self.n - self.initial) / (known["elapsed"] or 1)
                    left = (self.total - self.n) / rate if self.total and rate else 0
                    if left >= DAY:
                        known["bar_format"] = (
                            "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<"
                            f"{show_time(left)}, {{rate_fmt}}]"
                        )
                    return known

            # A terminal that says it has no columns (a serial line) gets a bar too.
            size: dict[str, Any] = {"dynamic_ncols": True}
            if 0 in os.get_terminal_size(sys.stderr.fileno()):
                columns, lines = shutil.get_terminal_size()
                size = {"ncols": columns, "nrows": lines}
            how = {"unit_scale": True, "leave": False, "file": sys.stderr, "mininterval": 0.2}
            bar = self._bar = Bar(total=total, unit=unit, **how, **size)
            self._update = bar.update
            self._write = lambda text: tqdm.write(text, file=sys.stderr)

    def begin_at(self, count: int) -> None:
        """An earlier run has done that much, which no rate counts."""
        if self._bar is not None and self._bar.initial != count:
            self._bar.initial = self._bar.n = self._bar.last_print_n = count
            self._done = count

    def grow(self, total: int) -> None:
        """So much is known by now."""
        if self._bar is not None:
            self._bar.total = total

    def at(self, count: int) -> None:
        """The current file has come to byte `count`."""
        position = self._before + count
        self._update(position - self._done)
        self._done = position

    def next_file(self, size: int | None) -> None:
        """The current file is over; `size` is what the total counted for it."""
        if size is not None:
            self.at(size)
        self._before = self._done

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._write(text)


def on_terminal() -> bool:
    """Whether somebody may be watching. Standard error is None where the caller closed it."""
    return sys.stderr is not None and sys.stderr.isatty()


def show_time(seconds: float) -> str:
    """A duration for people, from less than a second to the age of the universe and beyond."""
    for size, unit in ((365.25 * DAY, "years"), (DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"


def readable_size(count: int) -> str:
    """A size for people: 999 B, 1.2 MB, 3.4 GB (powers of 1000, as disks and rates are given)."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} PB"


MOMENT = 0.05
"""Seconds, which a summary shows as 0.0."""

SHOWN = 3
"""Files of one error that have their own line."""


@dataclass
class Result:
    """One file. Sizes in bytes; the rate counts plaintext. output: None where none is written."""

    input: str
    output: str | None
    format: str
    input_bytes: int
    output_bytes: int
    seconds: float
    bytes_per_second: float | None

    def summary(self) -> str:
        rate = self.bytes_per_second
        # A rate over a short moment measures how files are opened.
        speed = f" ({readable_size(int(rate))}/s)" if rate and self.seconds >= MOMENT else ""
        into = f" -> {shown(self.output)}" if self.output is not None else ""
        return (
            f"{shown(self.input)}{into}: {readable_size(self.output_bytes)} "
            f"in {self.seconds:.1f} s{speed}"
        )


@dataclass
class Report:
    """All that happened to the files of a run, or to its objects.

    most:    entries that each list keeps; None: all. The counts have all.
    since:   of a run over objects: the time at its start, as `time.perf_counter` gives it.
    done:    by this run; before: by an earlier one; size: bytes of inputs that this run has done.
    planned: input and output of what a dry run would do; None in other runs.
    """

    most: int | None = None
    since: float | None = None
    results: list[Result] = field(default_factory=list)
    failures: Failures = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    done: int = 0
    before: int = 0
    size: int = 0
    planned: list[tuple[str, str]] | None = None
    _alike: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, size: int, result: Result | None = None) -> None:
        """Notes a file that is done, of so many bytes."""
        self.done += 1
        self.size += size
        if result is not None:
            self.results.append(result)

    def fail(self, path: str, failure: CliError, say: Callable[[str], None], *others: str) -> None:
        """Notes a failure and prints it, while few are of its kind. others: further paths
        that its text may name."""
        self._keep(self.failures, (path, failure))
        text = failure.message
        for name in sorted((shown(name) for name in (path, *others)), key=len, reverse=True):
            text = text.replace(name, "...") if name else text
        self._tell(("failed", text), failure.message, say)

    def skip(self, path: str, reason: str) -> None:
        """Notes a file that is left out, and warns of it."""
        self._keep(self.skipped, (path, reason))
        self._tell(("skipped", reason), f"{shown(path)}: skipped: {reason}", warn)

    def plan(self, source: str, target: str, *, show: bool) -> None:
        """Notes what a run would do, or shows it."""
        self.done += 1
        if show:
            click.echo(f"{shown(source)} -> {shown(target)}")
        elif self.planned is not None:
            self.planned.append((source, target))

    def _keep(self, noted: list[Any], entry: tuple[str, Any]) -> None:
        if self.most is None or len(noted) < self.most:
            noted.append(entry)

    def _tell(self, kind: tuple[str, ...], text: str, say: Callable[[str], None]) -> None:
        count = self._alike[kind] = self._alike.get(kind, 0) + 1
        if count <= SHOWN:
            say(text)

    def _count(self, verdict: str) -> int:
        return sum(count for (kind, _), count in self._alike.items() if kind == verdict)

    def end(self, *, always: bool) -> None:
        """Prints how many more are of each kind; then numbers, if something failed or `always`."""
        for (verdict, text), count in self._alike.items():
            if count > SHOWN:
                more = counted(count - SHOWN, "more file")
                click.echo(f"warpcipher: {more} {verdict} alike: {text}", err=True)
        failed, skipped = self._count("failed"), self._count("skipped")
        several = self.done + self.before + failed + skipped > 1
        if (several or self.since is not None) and (failed or self.before or always):
            verb = "done" if self.planned is None else "to do, nothing was written"
            parts = [f"{counted(self.done, 'file' if self.since is None else 'object')} {verb}"]
            parts += [f"{self.before} complete before"] if self.before else []
            parts += [f"{skipped} skipped"] if skipped else []
            parts += [f"{failed} failed"] if failed else []
            if self.since is not None and self.planned is None:
                seconds = time.perf_counter() - self.since
                rate = readable_size(int(self.size / max(seconds, 1e-9)))
                parts.append(f"in {show_time(seconds)} ({rate}/s)")
            click.echo(f"warpcipher: {', '.join(parts)}", err=True)

    def to_json(self) -> str:
        import json

        planned = [{"input": source, "output": target} for source, target in self.planned or []]
        return json.dumps(
            {
                **({} if self.planned is None else {"planned": planned}),
                "ok": not self.failures,
                **(
                    {"results": [asdict(result) for result in self.results]}
                    if self.since is None or self.planned is not None
                    else {"objects": self.done, "bytes": self.size, "failed": self._count("failed")}
                ),
                "failures": [
                    {"input": withheld(path), "error": error.message, "exit_code": error.exit_code}
                    for path, error in self.failures
                ],
                "skipped": [
                    {"input": withheld(path), "reason": reason} for path, reason in self.skipped
                ],
                "complete": self.before,
            },
            indent=2,
        )

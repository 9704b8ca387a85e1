# SPDX-License-Identifier: Apache-2.0
"""What a run over files tells: one line for many files of one error, a summary, a JSON document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import click

from .errors import CliError, counted, shown, warn, withheld
from .progress import readable_size

SHOWN = 3
"""Files of one error that have a line of their own."""


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
        speed = f" ({readable_size(int(rate))}/s)" if rate else ""
        into = f" -> {shown(self.output)}" if self.output is not None else ""
        return (
            f"{shown(self.input)}{into}: {readable_size(self.output_bytes)} "
            f"in {self.seconds:.1f} s{speed}"
        )


@dataclass
class Report:
    """All that happened to the files of a run. done: what an earlier run has done; planned: input
    and output of what a dry run would do, None in other runs."""

    results: list[Result] = field(default_factory=list)
    failures: list[tuple[str, CliError]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    done: int = 0
    planned: list[tuple[str, str]] | None = None
    _alike: dict[tuple[str, ...], int] = field(default_factory=dict)

    def fail(self, path: str, failure: CliError, say: Callable[[str], None], *others: str) -> None:
        """Notes a failure and tells of it, while there are few of its kind. others: further paths
        that its text may name."""
        self.failures.append((path, failure))
        text = failure.message
        for name in sorted((shown(name) for name in (path, *others)), key=len, reverse=True):
            text = text.replace(name, "...") if name else text
        self._tell(("failed", text), failure.message, say)

    def skip(self, path: str, reason: str) -> None:
        """Notes a file that is left out, and warns of it."""
        self.skipped.append((path, reason))
        self._tell(("skipped", reason), f"{shown(path)}: skipped: {reason}", warn)

    def _tell(self, kind: tuple[str, ...], text: str, say: Callable[[str], None]) -> None:
        count = self._alike[kind] = self._alike.get(kind, 0) + 1
        if count <= SHOWN:
            say(text)

    def end(self, *, always: bool) -> None:
        """Tells of the rest of each kind; then the numbers, where something failed or `always`."""
        for (verdict, text), count in self._alike.items():
            if count > SHOWN:
                more = counted(count - SHOWN, "more file")
                click.echo(f"warpcipher: {more} {verdict} alike: {text}", err=True)
        planned = self.planned or []
        good = len(planned) + len(self.results)
        total = good + len(self.failures) + len(self.skipped) + self.done
        if total > 1 and (self.failures or always):
            verb = "done" if self.planned is None else "to do, nothing was written"
            parts = [f"{counted(good, 'file')} {verb}"]
            parts += [f"{self.done} complete before"] if self.done else []
            parts += [f"{len(self.skipped)} skipped"] if self.skipped else []
            parts += [f"{len(self.failures)} failed"] if self.failures else []
            click.echo(f"warpcipher: {', '.join(parts)}", err=True)

    def show_plan(self) -> None:
        for source, target in self.planned or []:
            click.echo(f"{shown(source)} -> {shown(target)}")

    def to_json(self) -> str:
        import json

        planned = [{"input": source, "output": target} for source, target in self.planned or []]
        return json.dumps(
            {
                **({} if self.planned is None else {"planned": planned}),
                "ok": not self.failures,
                "results": [asdict(result) for result in self.results],
                "failures": [
                    {"input": withheld(path), "error": error.message, "exit_code": error.exit_code}
                    for path, error in self.failures
                ],
                "skipped": [{"input": path, "reason": reason} for path, reason in self.skipped],
                "complete": self.done,
            },
            indent=2,
        )

# SPDX-License-Identifier: Apache-2.0
"""What the commands of `warpcipher parquet` share: keys, the run over all files, the report."""

from __future__ import annotations

import io
import os
import signal
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import cleanup, completion, conflicts, files, folders, jobs, keys
from .errors import CliError, complain, counted, shown, translate, usage
from .outputs import Kept, OutputFile
from .progress import Progress, on_terminal
from .report import Report, Result
from .settings import DRY_RUN, TELLING

if TYPE_CHECKING:
    from warpcipher.parquet import ColumnInfo

SUFFIX = ".parquet"
KEY_SIZES = (16, 24, 32)
Function = TypeVar("Function", bound=Callable[..., Any])
Work = Callable[[Any, Any, Callable[[int], object]], Any]

_OUTPUT = "Output file or directory; - is standard output."
_OPTIONS = (
    click.option("-f", "--force", is_flag=True, help="Replace outputs that exist."),
    click.option(
        "--engine",
        metavar="NAME",
        default="auto",
        shell_complete=completion.engines,
        help="What computes: auto (default) or a name from `warpcipher info --engines`.",
    ),
    DRY_RUN,
    *TELLING,
)


def file_options(function: Function) -> Function:
    """Adds the options of a command that writes files."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return click.option("-o", "--output", metavar="PATH", required=True, help=_OUTPUT)(function)


def in_place_options(function: Function) -> Function:
    """The same, where inputs without an output are replaced."""
    for option in reversed(_OPTIONS):
        function = option(function)
    help_text = f"{_OUTPUT} Without it each FILE is replaced when all of it is written."
    return click.option("-o", "--output", metavar="PATH", help=help_text)(function)


def encoded(text: str | None) -> bytes | None:
    """An option's text as bytes."""
    return None if text is None else os.fsencode(text)


def needed(choice: keys.Choice) -> keys.Choice:
    """The choice of a key, which must be there."""
    if not choice:
        raise usage("give the key, with --key FILE")
    return choice


def key_bytes(choice: keys.Choice) -> bytes:
    """An AES key. Raises CliError, OSError."""
    return bytes(choice.resolve(KEY_SIZES, "an AES key"))


def column_keys(given: tuple[str, ...], option: str = "--column-key") -> dict[str, bytes]:
    """The keys of COLUMN=FILE options."""
    found = {}
    for entry in given:
        name, equals, path = entry.rpartition("=")
        if not equals or not name:
            raise usage(f"{option} takes COLUMN=FILE")
        found[name] = key_bytes(keys.Choice(file=path, option=option))
    return found


def reading_keys(choice: keys.Choice, given: tuple[str, ...]) -> Any:
    """Keys as `warpcipher.parquet.open` takes them."""
    footer = key_bytes(choice)
    own = column_keys(given)
    return {b"": footer, **own} if own else footer


class _Naming(jobs.Naming):
    """Outputs have the names of their inputs, in another folder."""

    def __init__(self) -> None:
        super().__init__(SUFFIX, encrypt=False)

    def __call__(self, name: str) -> str | None:
        return name if name.endswith(SUFFIX) else None

    def of_input(self, path: str) -> str:
        return os.path.basename(path)  # noqa: PTH119 - text that the user gave


@dataclass
class Run:
    """One run over files."""

    paths: tuple[str, ...]
    output: str | None
    force: bool
    engine: str
    quiet: bool
    verbose: bool
    dry_run: bool
    as_json: bool
    key_files: tuple[str | None, ...]

    @classmethod
    def take(
        cls,
        paths: tuple[str, ...],
        given: dict[str, Any],
        choice: keys.Choice,
        named: tuple[str, ...],
    ) -> Run:
        """Takes the options of `file_options`. named: COLUMN=FILE options, whose files are keys."""
        if jobs.STANDARD in paths:
            raise usage("a Parquet file is read from its end: standard input (-) cannot be one")
        if given["quiet"] and given["verbose"]:
            raise usage("--quiet and --verbose contradict each other: give one")
        if given["as_json"] and given["output"] == jobs.STANDARD:
            raise usage("--json and the output both want standard output: name a file with -o")
        if given["force"] and given["output"] is None:
            raise usage("--force is for --output: each FILE is replaced without it")
        others = tuple(entry.rpartition("=")[2] for entry in named)
        return cls(paths, **given, key_files=(choice.path, *others))

    @property
    def _tells(self) -> bool:
        return self.verbose or (on_terminal() and not self.quiet)

    @property
    def _in_place(self) -> bool:
        return self.output is None

    def each(self, work: Work) -> None:
        """Does every file, whichever fails. Exits with the code of the first that failed.

        work: (source, target, progress) of one file.
        """
        report = Report()
        try:
            plan = jobs.make_plan(self.paths, self.output, _Naming())
            kept = Kept()
            secrets = [path for path in self.key_files if path]
            conflicts.refuse(plan, secrets, kept, in_place=self._in_place)
            for path, failure in plan.failures:
                report.fail(path, failure, complain)
            for path, reason in plan.skipped:
                report.skip(path, reason)
            _tell_left_out(plan, report)
            if self.dry_run:
                force, made = self.force or self._in_place, plan.folder is not None
                jobs.rehearse(plan.jobs, report, lambda _: force, kept, made)
            else:
                _make_folders(plan)
                self._run_all(plan, work, kept, report)
            for tree in [] if self.dry_run else plan.trees:
                for name, (mode, _) in sorted(tree.folders.items(), reverse=True):
                    parts = tuple(name.split("/")) if name else ()
                    folders.finish(tree.target, parts, mode, None, always=False)
        except BaseException:
            cleanup.remove_unfinished()
            raise
        finally:
            folders.forget()
        report.end(always=self._tells)
        if self.dry_run and not self.as_json:
            report.show_plan()
        if self.as_json:
            click.echo(report.to_json())
        if report.failures:
            raise click.exceptions.Exit(report.failures[0][1].exit_code)

    def _run_all(self, plan: jobs.Plan, work: Work, kept: Kept, report: Report) -> None:
        watched = on_terminal() and not self.quiet
        sizes = [_size(job) for job in plan.jobs]
        with Progress(sum(sizes), visible=watched) as progress:
            for job, size in zip(plan.jobs, sizes, strict=True):
                try:
                    result = self._one(job, work, kept, progress)
                except Exception as error:
                    if job.target is None and isinstance(error, BrokenPipeError):
                        cleanup.die(signal.SIGPIPE)
                    failure = failure_of(error, job.path)
                    if failure is None:
                        raise
                    report.fail(job.path, failure, lambda text: progress.say(f"warpcipher: {text}"))
                else:
                    report.results.append(result)
                    if self._tells:
                        progress.say(result.summary())
                progress.next_file(size)

    def _one(self, job: jobs.Job, work: Work, kept: Kept, progress: Progress) -> Result:
        start = time.perf_counter()
        with jobs.open_source(job.source) as source:
            file = io.FileIO(source.descriptor, closefd=False)
            with (
                files.StandardOutput()
                if job.target is None
                else jobs.open_target(job.target, force=self.force or self._in_place, kept=kept)
            ) as target:
                work(file, target, progress.at)
                target.commit(source.mode)
            if isinstance(target, OutputFile):
                kept.add(target.identity, "an output of this run", target.path)
            size = os.fstat(source.descriptor).st_size
            seconds = time.perf_counter() - start
            return Result(
                input=source.path,
                output=jobs.STANDARD if job.target is None else target.path,
                format="parquet",
                input_bytes=size,
                output_bytes=target.count,
                seconds=round(seconds, 6),
                bytes_per_second=round(size / seconds, 1),
            )


def _make_folders(plan: jobs.Plan) -> None:
    """Makes the folder of -o for several inputs and those of the output trees."""
    if plan.folder is not None:
        folders.make_folder(plan.folder)
    for tree in plan.trees:
        folders.make_folder(tree.target)


def _tell_left_out(plan: jobs.Plan, report: Report) -> None:
    """Of trees."""
    for tree in plan.trees:
        left_out = {**dict.fromkeys(tree.links, "a symbolic link"), **tree.others}
        for name, reason in sorted(left_out.items()):
            report.skip(f"{tree.source}/{name}", reason)


def _size(job: jobs.Job) -> int:
    try:
        status = os.stat("" if job.source is None else job.source.path)  # noqa: PTH116
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def failure_of(error: Exception, path: str) -> CliError | None:
    """`translate` for a Parquet file: a key that is missing is named by its option."""
    from warpcipher.parquet import MissingKeyError

    if isinstance(error, MissingKeyError) and error.column is not None:
        metadata = _shown(error.key_metadata)
        says = f", of which the file says {shown(metadata)}" if metadata else ""
        column = shown(error.column)
        return usage(
            f"{shown(path)}: column {column} has a key of its own{says}: give it with "
            f"--column-key {column}=FILE"
        )
    return translate(error, shown(path))


def files_of(path: str) -> list[str]:
    """The file of this name, or the Parquet files of a directory. Raises FileNotFoundError."""
    from warpcipher.parquet import find_files

    return find_files(path) if os.path.isdir(path) else [path]  # noqa: PTH112


def describe(path: str, found: Any, prefix: bytes | None) -> dict[str, Any]:
    """What can be said of a file, with or without its keys."""
    from warpcipher import parquet as tables

    seen = tables.inspect(path)
    entry: dict[str, Any] = {
        "path": path,
        "encryption": seen.encryption,
        "algorithm": seen.algorithm or None,
        "key_metadata": _shown(seen.key_metadata),
        "aad_prefix": _shown(seen.aad_prefix),
        "needs_aad_prefix": seen.needs_prefix,
    }
    if found is None and seen.encryption != "none":
        return entry
    plain = seen.encryption == "none"
    with tables.open(path, None if plain else found, aad_prefix=None if plain else prefix) as file:
        entry["rows"] = file.num_rows
        entry["row_groups"] = file.num_row_groups
        entry["columns"] = [_column(column) for column in file.columns()]
    return entry


def _column(column: ColumnInfo) -> dict[str, Any]:
    return {
        "name": column.name,
        "encryption": column.encryption,
        "key_metadata": _shown(column.key_metadata),
    }


def _shown(data: bytes) -> str | None:
    """Bytes that may be text."""
    return data.decode("utf-8", "backslashreplace") if data else None


def print_entry(entry: dict[str, Any]) -> None:
    """What `describe` found, for people."""
    algorithm = f", {entry['algorithm']}" if entry["algorithm"] else ""
    click.echo(f"{shown(entry['path'])}: encryption: {entry['encryption']}{algorithm}")
    if entry["key_metadata"]:
        click.echo(f"  key metadata  {shown(entry['key_metadata'])}")
    if entry["aad_prefix"]:
        click.echo(f"  AAD prefix    {shown(entry['aad_prefix'])}")
    if entry["needs_aad_prefix"]:
        click.echo("  AAD prefix    not in the file: give it")
    if "rows" in entry:
        click.echo(
            f"  rows          {entry['rows']} in {counted(entry['row_groups'], 'row group')}"
        )
        for column in entry["columns"]:
            metadata = f" ({shown(column['key_metadata'])})" if column["key_metadata"] else ""
            click.echo(f"  column        {shown(column['name'])}: {column['encryption']}{metadata}")

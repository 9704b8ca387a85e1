# SPDX-License-Identifier: Apache-2.0
"""One run over files, of any command: its plan, work and report.

A command says in a `Run` which inputs become which outputs, and what it does with one file.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from warpcipher._descriptors import closing

from . import files, folders, jobs, names, process
from .errors import CliError, complain, shown, translate, usage
from .files import InputFile, Kept, OutputFile, Target, check_target
from .options import option
from .report import Progress, Report, Result, on_terminal

T = TypeVar("T")

ENGINE = option(
    "--engine NAME",
    "The engine: auto, or a name from `warpcipher info --engines`.  [default: auto]",
    default="auto",
    shell_complete=names.engines,
)
DRY_RUN = option("-n --dry-run", "Show what would be written, and write nothing.")
TELLING = (
    option("-q --quiet", "No progress bar and no summary."),
    option("-v --verbose", "Print the summary even without a terminal."),
    option("--json as_json", "Print results as JSON on standard output."),
)


@dataclass(kw_only=True)
class RunOptions:
    """The options that every run has, as given."""

    paths: tuple[str, ...]
    quiet: bool
    verbose: bool
    as_json: bool
    dry_run: bool = False
    output: str | None = None
    force: bool = False

    def check_telling(self) -> None:
        """Raises CliError for options that contradict each other."""
        if self.quiet and self.verbose:
            raise usage("--quiet and --verbose contradict each other: give one")
        if self.as_json and not self.dry_run and self._to_standard:
            raise usage("--json and the output both want standard output: name a file with -o")

    @property
    def _to_standard(self) -> bool:
        return jobs.STANDARD in ((self.output,) if self.output else self.paths)

    @property
    def watched(self) -> bool:
        """Whether somebody sees a bar and a summary, and not the output's own text there."""
        return on_terminal() and not self.quiet and not (self._to_standard and os.isatty(1))

    @property
    def tells(self) -> bool:
        """Whether the run says what it has done."""
        return self.verbose or self.watched


class Run:
    """One run over files."""

    def __init__(self, options: RunOptions, format_name: str) -> None:
        self._options = options
        self._format_name = format_name
        self._report = Report()
        self._kept = Kept()

    def _make_plan(self) -> jobs.Plan:
        """All that is to do. Raises CliError for a run that is refused before its first file."""
        raise NotImplementedError

    def _choose(self, plan: jobs.Plan) -> list[jobs.Job]:
        """The files to do now; reports those that are left out."""
        raise NotImplementedError

    def _make_folders(self, plan: jobs.Plan) -> None:
        """Makes the folder of -o and the folders of trees."""

    def _work(self, job: jobs.Job, source: InputFile, target: Target, progress: Progress) -> None:
        """Writes one output, all of it, and commits it."""
        raise NotImplementedError

    def _finish(self, plan: jobs.Plan) -> None:
        """After the last file: for trees."""

    def _save(self) -> None:
        """Keeps the finished part of a run that an error ends."""

    def _close(self) -> None:
        """After everything: wipes keys."""

    def _may_replace(self, job: jobs.Job) -> bool:
        return self._options.force

    def _open_target(self, job: jobs.Job) -> Target:
        if job.target is None:
            return files.StandardOutput()
        return jobs.open_target(job.target, force=self._may_replace(job), kept=self._kept)

    def _translated(self, job: jobs.Job, error: Exception) -> CliError:
        """The failure that an error is to the user. Raises CliError for one that all other files
        would meet too, and the error itself where it is a bug."""
        return translate(error, shown(job.path))

    def run(self) -> None:
        """Does every file, whichever fails. Exits with the code of the first that failed."""
        options, report = self._options, self._report
        report.planned = [] if options.dry_run else None
        try:
            self._do_all()
        except BaseException:
            process.remove_unfinished()
            if not options.dry_run:
                self._save()
            raise
        finally:
            folders.forget()
            self._close()
        report.end(always=options.tells)
        if options.as_json:
            try:
                click.echo(report.to_json())
            except OSError as error:
                if not report.failures:
                    raise
                complain(f"{error.filename}: {error.strerror}")  # the first failure decides
        if report.failures:
            raise click.exceptions.Exit(report.failures[0][1].exit_code)

    def _do_all(self) -> None:
        options = self._options
        plan = self._make_plan()
        for path, failure in plan.failures:
            self._report.fail(path, failure, complain)
        waiting = self._choose(plan)
        if options.dry_run:
            self._rehearse(waiting, plan.folder is not None)
            return
        self._make_folders(plan)
        sizes = [_size(job) for job in waiting]
        total = sum(size or 0 for size in sizes) if None not in sizes else None
        with Progress(total, visible=options.watched) as progress:
            for job, size in zip(waiting, sizes, strict=True):
                self._do(job, progress)
                progress.next_file(size)
        self._finish(plan)

    def _do(self, job: jobs.Job, progress: Progress) -> None:
        """Does one file, and notes how it went."""
        start = time.perf_counter()
        try:
            with jobs.open_source(job.source) as source:
                with self._open_target(job) as target:
                    self._work(job, source, target, progress)
                if isinstance(target, OutputFile):
                    # Where a file system ignores case, another name may be this file's, too.
                    self._kept.add(target.identity, "an output of this run", target.path)
                self._done(job, source, target)
                seconds = time.perf_counter() - start
                plain = self._plain_bytes(source, target)
                outputs: dict[type, str | None]
                outputs = {files.StandardOutput: jobs.STANDARD, files.Nowhere: None}
                result = Result(
                    input=jobs.STANDARD if job.source is None else source.path,
                    output=outputs.get(type(target), target.path),
                    format=self._format_name,
                    input_bytes=source.count,
                    output_bytes=target.count,
                    seconds=round(seconds, 6),
                    bytes_per_second=round(plain / seconds, 1) if plain else None,
                )
        except Exception as error:
            self._note_failure(job, error, progress)
            return
        self._report.add(source.count, result)
        if self._options.tells:
            progress.say(result.summary())

    def _done(self, job: jobs.Job, source: InputFile, target: Target) -> None:
        """A file is done, and its output has its name."""

    def _plain_bytes(self, source: InputFile, target: Target) -> int:
        """Bytes of plaintext of a file, for its rate."""
        return source.count

    def _note_failure(self, job: jobs.Job, error: Exception, progress: Progress) -> CliError:
        if job.target is None and isinstance(error, BrokenPipeError):
            process.die(signal.SIGPIPE)
        failure = self._translated(job, error)
        target = "" if job.target is None else job.target.path
        self._report.fail(
            job.path, failure, lambda text: progress.say(f"warpcipher: {text}"), target
        )
        return failure

    def _rehearse(self, waiting: list[jobs.Job], folder_is_made: bool) -> None:
        """Notes the planned work, and which inputs and outputs would fail, without doing it.

        folder_is_made: the run makes the folder of outputs outside of trees where it is missing.
        """
        for job in waiting:
            try:
                source, target = self._rehearse_one(job, folder_is_made)
                self._report.plan(source, target, show=not self._options.as_json)
            except (OSError, CliError) as error:
                self._report.fail(job.path, translate(error, shown(job.path)), complain)

    def _rehearse_one(self, job: jobs.Job, folder_is_made: bool) -> tuple[str, str]:
        """Input and output."""
        if job.source is not None:
            path = job.source.path
            os.stat(path, follow_symlinks=not job.source.beneath)  # noqa: PTH116
            if not os.access(path, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        place = job.target
        if place is None:
            return job.path, "standard output"
        try:
            folder = folders.open_folder(place.base, place.parts[:-1])
        except FileNotFoundError:
            if not (folder_is_made or place.beneath):
                raise
        else:
            with closing(folder):
                how: Any = {"force": self._may_replace(job), "kept": self._kept}
                check_target(folder, place.parts[-1], place.path, beneath=place.beneath, **how)
        return job.path, place.path


def _size(job: jobs.Job) -> int | None:
    """Bytes of an input for the progress bar; None where they cannot be known before."""
    if job.status is not None:
        return job.status.st_size
    try:
        status = os.stat(0 if job.source is None else job.source.path)  # noqa: PTH116
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class Looks:
    """Looks at files one by one, whichever fails, for commands that only read.

    code: the exit code of the first that failed.
    """

    def __init__(self) -> None:
        self.code = 0

    def at(self, path: str, look: Callable[[str], T]) -> T | None:
        """The result of `look`; None if it failed, which is printed."""
        try:
            return look(path)
        except Exception as error:
            failure = translate(error, shown(path))
            complain(failure.message)
            self.code = self.code or failure.exit_code
        return None

    def end(self) -> None:
        """Exits with the code."""
        if self.code:
            raise click.exceptions.Exit(self.code)

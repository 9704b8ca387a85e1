# SPDX-License-Identifier: Apache-2.0
"""What `encrypt` and `decrypt` share: their options, the run over all files, what is reported."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import cleanup, completion, conflicts, folders, jobs, keys
from .errors import (
    ENGINE,
    NOT_AUTHENTIC,
    USAGE,
    CliError,
    complain,
    shown,
    translate,
    usage,
    warn,
)
from .outputs import OutputFile
from .progress import Progress, on_terminal, readable_size

if TYPE_CHECKING:
    from warpcipher.formats import Options

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS = (
    click.argument(
        "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(readable=False)
    ),
    *keys.OPTIONS,
    click.option(
        "-o", "--output", metavar="PATH", help="Output file or directory; - is standard output."
    ),
    click.option("-f", "--force", is_flag=True, help="Replace outputs that exist."),
    click.option(
        "--format",
        "format_name",
        metavar="NAME",
        default="auto",
        shell_complete=completion.formats,
        help="File format; by default the one the key is for.",
    ),
    click.option(
        "--engine",
        metavar="NAME",
        default="auto",
        shell_complete=completion.engines,
        help="What computes: auto (default) or a name from `warpcipher info --engines`.",
    ),
    click.option(
        "--context", metavar="TEXT", help="Bound to the file and not stored in it; UTF-8."
    ),
    click.option("--context-hex", metavar="HEX", help="The same in hex digits."),
    click.option(
        "--algorithm",
        metavar="NAME",
        shell_complete=completion.algorithms,
        help="Format raw: such as aes-256-ctr.",
    ),
    click.option(
        "--key-hex",
        metavar="HEX",
        help="Format raw: the key. Others can see it in the process list.",
    ),
    click.option("--iv-hex", metavar="HEX", help="Format raw: the IV or nonce."),
    click.option("--no-padding", is_flag=True, help="Format raw, ECB and CBC: no PKCS#7 padding."),
    click.option("-q", "--quiet", is_flag=True, help="No progress bar and no summary."),
    click.option(
        "--json", "as_json", is_flag=True, help="Print results as JSON on standard output."
    ),
)


def transfer_options(function: Function) -> Function:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@dataclass
class Settings:
    """The options of a run, as given."""

    paths: tuple[str, ...]
    key: keys.Choice
    output: str | None
    force: bool
    format_name: str
    engine: str
    context: str | None
    context_hex: str | None
    algorithm: str | None
    key_hex: str | None
    iv_hex: str | None
    no_padding: bool
    quiet: bool
    as_json: bool

    @classmethod
    def of(cls, given: dict[str, Any]) -> Settings:
        """From the arguments of a command."""
        return cls(key=keys.Choice.take(given), **given)


@dataclass
class Result:
    """One file. Sizes in bytes; the rate counts plaintext."""

    input: str
    output: str
    format: str
    input_bytes: int
    output_bytes: int
    seconds: float
    bytes_per_second: float | None


class Transfer:
    """One run of `encrypt` or `decrypt`."""

    def __init__(self, settings: Settings, *, encrypt: bool) -> None:
        from warpcipher import formats

        self._settings = settings
        self._encrypt = encrypt
        self._stream = formats.encrypt_stream if encrypt else formats.decrypt_stream
        self._check()
        self._options = self._make_options()
        self._key = self._read_key()
        self._check_iv()
        self._format = formats.resolve(settings.format_name, self._key)
        self._results: list[Result] = []
        self._failures: list[tuple[str, CliError]] = []
        self._kept: dict[folders.Identity, str] = {}

    def _check(self) -> None:
        """Refuses options that do not go together, before anything is read."""
        given = self._settings
        if given.as_json and (
            given.output == jobs.STANDARD or (not given.output and jobs.STANDARD in given.paths)
        ):
            raise usage("--json and the output both want standard output: name a file with -o")
        if given.format_name != "raw":
            for option, value in (
                ("--algorithm", given.algorithm),
                ("--key-hex", given.key_hex),
                ("--iv-hex", given.iv_hex),
                ("--no-padding", given.no_padding or None),
            ):
                if value is not None:
                    raise usage(f"{option} belongs to --format raw")
        if bool(given.key) == (given.key_hex is not None):
            hint = " or, for format raw, --key-hex HEX" if given.format_name == "raw" else ""
            raise usage(f"give one key, with --key FILE{hint}")
        if given.key.takes_standard_input and jobs.STANDARD in given.paths:
            raise usage("the key and the input both want standard input: name a file for one")
        if given.format_name == "raw" and given.algorithm is None:
            raise usage(
                "format raw needs --algorithm NAME: `warpcipher info --algorithms` lists them"
            )

    def _make_options(self) -> Options:
        from warpcipher.formats import Options

        given = self._settings
        return Options(
            context=keys.read_context(given.context, given.context_hex),
            engine=given.engine,
            algorithm=given.algorithm,
            iv=None if given.iv_hex is None else keys.parse_hex("--iv-hex", given.iv_hex),
            padding="none" if given.no_padding else "auto",
        )

    def _read_key(self) -> keys.Key:
        given = self._settings
        if given.format_name != "auto":
            from warpcipher.formats import get

            get(given.format_name)
        if given.key_hex is not None:
            return bytearray(keys.parse_hex("--key-hex", given.key_hex))
        return given.key.read(given.format_name, given.algorithm)

    def _check_iv(self) -> None:
        """Names the option where an IV is missing: the library knows no options."""
        given = self._settings
        if given.format_name != "raw" or given.iv_hex is not None:
            return
        from warpcipher import algorithms

        size = {entry.name: entry.iv_size for entry in algorithms()}.get(given.algorithm or "", 0)
        if size:
            raise usage(f"{given.algorithm} takes an IV of {size} bytes: give it with --iv-hex HEX")

    def run(self) -> None:
        """Does every file, whichever fails. Exits with the code of the first that failed."""
        settings = self._settings
        naming = jobs.Naming(self._format.extension, encrypt=self._encrypt)
        try:
            plan = jobs.make_plan(settings.paths, settings.output, naming)
            self._refuse_one_iv_for_many(plan)
            self._refuse_terminal(plan)
            self._kept = conflicts.refuse(plan, settings.key.path)
            self._warn_unauthenticated()
            for _, failure in plan.failures:
                complain(failure.message)
            self._failures += plan.failures
            for path, reason in plan.skipped:
                warn(f"{shown(path)}: skipped: {reason}")
            jobs.make_folders(plan)
            self._run_all(plan)
            jobs.finish_folders(plan)
        except BaseException:
            cleanup.remove_unfinished()
            raise
        finally:
            folders.forget()
            self._wipe_key()
        if settings.as_json:
            try:
                self._print_json(plan)
            except OSError as error:
                if not self._failures:
                    raise
                complain(f"{error.filename}: {error.strerror}")  # the first failure decides
        if self._failures:
            raise click.exceptions.Exit(self._failures[0][1].exit_code)

    def _warn_unauthenticated(self) -> None:
        algorithm = self._settings.algorithm
        if not self._format.authenticated and not (algorithm or "").endswith("-gcm"):
            warn(
                f"format {self._format.name} with {algorithm} authenticates nothing: a change "
                "goes unnoticed; prefer cobblestone-256"
            )

    def _refuse_one_iv_for_many(self, plan: jobs.Plan) -> None:
        """Decryption is free to: it is encryption that makes texts which share a key stream."""
        count = len(plan.jobs)
        if self._encrypt and self._options.iv is not None and count > 1:
            raise usage(
                f"{count} files cannot be encrypted with one --iv-hex: under one key and IV, "
                f"files of {self._settings.algorithm} give away what they have in common, or all "
                "of their text. Run `encrypt` once for each file with an IV of its own, or take "
                "--format cobblestone-256, which needs none"
            )

    def _refuse_terminal(self, plan: jobs.Plan) -> None:
        to_terminal = any(job.target is None for job in plan.jobs) and os.isatty(1)
        if self._encrypt and to_terminal and not self._settings.force:
            raise usage(
                "standard output is a terminal: redirect it, name a file with -o, or use --force"
            )

    def _run_all(self, plan: jobs.Plan) -> None:
        watched = on_terminal() and not self._settings.quiet
        sizes = [_size(job) for job in plan.jobs]
        total = sum(size or 0 for size in sizes) if None not in sizes else None
        with Progress(total, visible=watched) as progress:
            for job, size in zip(plan.jobs, sizes, strict=True):
                try:
                    result = self._transfer(job, progress)
                except Exception as error:
                    self._note_failure(job, error, progress)
                else:
                    self._results.append(result)
                    if watched:
                        progress.say(_summary(result))
                progress.next_file(size)

    def _transfer(self, job: jobs.Job, progress: Progress) -> Result:
        start = time.perf_counter()
        with jobs.open_source(job.source) as source:
            target = jobs.open_target(job.target, force=self._settings.force, kept=self._kept)
            with target:
                self._stream(
                    source,
                    target,
                    self._key,
                    format=self._format.name,
                    options=self._options,
                    progress=progress.at,
                )
                target.commit(source.mode)
            if isinstance(target, OutputFile):
                # Where names are not told apart by their case, another may be this file's, too.
                self._kept[target.identity] = "an output of this run"
            if change := source.change():
                progress.say(
                    f"warpcipher: warning: {shown(source.path)}: changed while it was read "
                    f"({change}): its output holds what was read"
                )
            seconds = time.perf_counter() - start
            plain = source.count if self._encrypt else target.count
            return Result(
                input=jobs.STANDARD if job.source is None else source.path,
                output=jobs.STANDARD if job.target is None else target.path,
                format=self._format.name,
                input_bytes=source.count,
                output_bytes=target.count,
                seconds=round(seconds, 6),
                bytes_per_second=round(plain / seconds, 1) if plain else None,
            )

    def _note_failure(self, job: jobs.Job, error: Exception, progress: Progress) -> None:
        """Tells of a failed file. What every other file would fail with too ends the run."""
        from warpcipher.formats import FormatError

        path = "standard input" if job.source is None else job.source.path
        if job.target is None and isinstance(error, BrokenPipeError):
            cleanup.die(signal.SIGPIPE)
        if self._encrypt and isinstance(error, FormatError):
            # Nothing is wrong with what was read, but with asking for this of a file of its size.
            error = usage(f"{shown(path)}: {error}")
        failure = translate(error, shown(path))
        if failure is None:
            raise error
        if (
            failure.exit_code in (USAGE, ENGINE)
            and not self._results
            and not isinstance(error, CliError)
        ):
            raise failure from error
        progress.say(f"warpcipher: {failure.message}")
        if job.target is None and not self._encrypt and failure.exit_code == NOT_AUTHENTIC:
            progress.say(
                "warpcipher: the output is authentic but incomplete: discard it"
                if self._format.authenticated
                else "warpcipher: discard the output"
            )
        self._failures.append((path, failure))

    def _wipe_key(self) -> None:
        from warpcipher.formats.base import wipe

        if isinstance(self._key, bytearray):
            wipe(self._key)

    def _print_json(self, plan: jobs.Plan) -> None:
        click.echo(
            json.dumps(
                {
                    "ok": not self._failures,
                    "results": [asdict(result) for result in self._results],
                    "failures": [
                        {"input": path, "error": error.message, "exit_code": error.exit_code}
                        for path, error in self._failures
                    ],
                    "skipped": [{"input": path, "reason": reason} for path, reason in plan.skipped],
                },
                indent=2,
            )
        )


def _size(job: jobs.Job) -> int | None:
    """Bytes of an input for the progress bar; None where they cannot be known before."""
    try:
        status = os.stat(0 if job.source is None else job.source.path)  # noqa: PTH116
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _summary(result: Result) -> str:
    rate = result.bytes_per_second
    speed = f" ({readable_size(int(rate))}/s)" if rate else ""
    return (
        f"{shown(result.input)} -> {shown(result.output)}: {readable_size(result.output_bytes)} "
        f"in {result.seconds:.1f} s{speed}"
    )

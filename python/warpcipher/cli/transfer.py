# SPDX-License-Identifier: Apache-2.0
"""What `encrypt`, `decrypt` and `check` share: the run over all files."""

from __future__ import annotations

import os
import signal
import stat
import time
from typing import TYPE_CHECKING, Literal

import click

from . import cleanup, conflicts, files, folders, jobs, keys, recipients
from .errors import (
    ENGINE,
    NOT_AUTHENTIC,
    USAGE,
    CliError,
    NotAuthenticError,
    complain,
    shown,
    translate,
    usage,
    warn,
)
from .files import InputFile
from .outputs import Kept, OutputFile
from .progress import Progress, on_terminal
from .recipients import HEAD_SIZE, Holder, head_of, what_opens
from .report import Report, Result
from .sealed import Sealed
from .settings import Settings
from .tree_run import Trees

if TYPE_CHECKING:
    from warpcipher.formats import Options
    from warpcipher.formats.openssl import Password


class Transfer:
    """One run of `encrypt`, `decrypt` or `check`."""

    def __init__(self, settings: Settings, task: Literal["encrypt", "decrypt", "check"]) -> None:
        from warpcipher import formats

        self._settings = settings
        self._encrypt = task == "encrypt"
        self._check = task == "check"
        self._stream = formats.encrypt_stream if self._encrypt else formats.decrypt_stream
        self._options = self._make_options()
        self._key = self._read_key()
        self._check_iv()
        self._format = formats.resolve(settings.format_name, self._key)
        self._sealed = Sealed(self._key, self._format, self._options)
        self._report = Report()
        self._kept = Kept()
        self._trees = Trees(settings, self._sealed, self._report, self._kept, task)
        self._replace: set[jobs.Job] = set()
        self._came_out = False

    def _make_options(self) -> Options:
        from warpcipher.formats import Options

        given = self._settings
        return Options(
            context=keys.read_context(given.context, given.context_hex),
            engine=given.engine,
            algorithm=given.algorithm,
            iv=None if given.iv_hex is None else keys.parse_hex("--iv-hex", given.iv_hex),
            padding="none" if given.no_padding else "auto",
            armor=given.armor,
        )

    def _read_key(self) -> keys.Key | Password | list[Holder]:
        given = self._settings
        given.people.check(encrypts=self._encrypt)
        if given.people.passphrase and len(given.paths) == 1 and given.paths[0] != keys.STANDARD:
            os.stat(given.paths[0])  # noqa: PTH116 - what is missing is said before one is asked for
        if given.armor and not self._encrypt:
            raise usage("--armor is for encrypt: decrypt finds out by itself")
        if given.format_name != "auto":
            from warpcipher.formats import get

            get(given.format_name)
        if given.key_hex is not None:
            return bytearray(keys.parse_hex("--key-hex", given.key_hex))
        if given.people and given.format_name == "raw":
            return self._read_password()
        if given.people:
            holders = given.people.read(encrypts=self._encrypt)
            self._check_format_of(holders)
            return holders
        return given.key.read(given.format_name, given.algorithm)

    def _read_password(self) -> Password:
        from warpcipher.formats import openssl

        given = self._settings
        text = recipients.read_passphrase(given.people, "Password", twice=self._encrypt)
        return openssl.Password(
            text,
            openssl.DIGEST if given.digest is None else given.digest,
            openssl.ITERATIONS if given.iterations is None else given.iterations,
        )

    def _check_format_of(self, holders: list[Holder]) -> None:
        from warpcipher import formats

        named, fits = self._settings.format_name, formats.resolve("auto", holders).name
        if named not in ("auto", fits):
            raise usage(f"these keys are those of format {fits}, not of {named}")

    def _check_iv(self) -> None:
        """Names the option where an IV is missing: the library knows no options."""
        given = self._settings
        if given.format_name != "raw" or given.iv_hex is not None or given.people:
            return
        from warpcipher import algorithms

        size = next((entry.iv_size for entry in algorithms() if entry.name == given.algorithm), 0)
        if size:
            raise usage(f"{given.algorithm} takes an IV of {size} bytes: give it with --iv-hex HEX")

    def run(self) -> None:
        """Does every file, whichever fails. Exits with the code of the first that failed."""
        settings = self._settings
        report = self._report
        try:
            plan = self._make_plan()
            for path, failure in plan.failures:
                report.fail(path, failure, complain)
            self._trees.open(plan)
            for path, reason in plan.skipped:
                report.skip(path, reason)
            waiting = self._choose(plan)
            if settings.dry_run:
                made = plan.folder is not None
                jobs.rehearse(waiting, report, self._may_replace, self._kept, made)
            else:
                self._trees.make_roots(plan)
                self._run_all(waiting)
                self._trees.finish(plan)
        except BaseException:
            cleanup.remove_unfinished()
            if not settings.dry_run:
                self._trees.save()
            raise
        finally:
            folders.forget()
            self._wipe_key()
        report.end(always=bool(report.done) or self._tells)
        if settings.dry_run and not settings.as_json:
            report.show_plan()
        if settings.as_json:
            try:
                click.echo(report.to_json())
            except OSError as error:
                if not report.failures:
                    raise
                complain(f"{error.filename}: {error.strerror}")  # the first failure decides
        if report.failures:
            raise click.exceptions.Exit(report.failures[0][1].exit_code)

    @property
    def _tells(self) -> bool:
        return self._settings.verbose or (on_terminal() and not self._settings.quiet)

    def _make_plan(self) -> jobs.Plan:
        settings = self._settings
        naming = jobs.Naming(self._format.extension, encrypt=self._encrypt, nowhere=self._check)
        try:
            plan = jobs.make_plan(settings.paths, settings.output, naming)
        except CliError:
            if not self._encrypt:  # a name may be refused because the file is of another format
                for path in settings.paths:
                    self._refuse_format_of(path, head_of(path))
            raise
        self._refuse_one_iv_for_many(plan)
        if self._encrypt:
            secrets = (settings.key.path, *settings.people.identities)
            conflicts.leave_out_keys(plan, [path for path in secrets if path])
        if not self._check:
            self._refuse_terminal(plan)
            conflicts.refuse_in_trees(plan, encrypt=self._encrypt)
            secrets = (settings.key.path, *settings.people.paths)
            conflicts.refuse(plan, [path for path in secrets if path], self._kept)
        if self._encrypt:
            conflicts.warn_of_encrypted(plan, self._format.extension)
        self._warn_unauthenticated()
        return plan

    def _warn_unauthenticated(self) -> None:
        from warpcipher import algorithms

        algorithm = self._settings.algorithm
        aeads = {entry.name for entry in algorithms() if entry.is_aead}
        if not self._format.authenticated and algorithm not in aeads:
            warn(
                f"format {self._format.name} with {algorithm} authenticates nothing: a change "
                "goes unnoticed; prefer cobblestone-256"
            )
        elif not self._format.binds_order and not self._encrypt:
            warn(
                f"format {self._format.name} does not authenticate the order and number of its "
                "chunks: compare the file with a digest that you trust"
            )
        elif self._format.authenticated and not self._format.binds_chunks and not self._encrypt:
            warn(
                f"format {self._format.name} does not authenticate the end of a file: one that was "
                "cut at the edge of a block passes; compare its length with one that you trust"
            )

    def _refuse_one_iv_for_many(self, plan: jobs.Plan) -> None:
        """Decryption is free to: it is encryption that makes texts which share a key stream."""
        count = len(plan.jobs)
        if self._encrypt and self._options.iv is not None and count > 1:
            raise usage(
                f"{count} files cannot be encrypted with one --iv-hex: under one key and IV, "
                f"files of {self._settings.algorithm} give away what they have in common, or all "
                "of their text. Run it once for each file with an IV of its own, or take "
                "--format cobblestone-256, which needs none"
            )

    def _refuse_terminal(self, plan: jobs.Plan) -> None:
        to_terminal = any(job.target is None for job in plan.jobs) and os.isatty(1)
        if self._encrypt and to_terminal and not self._settings.force:
            raise usage(
                "standard output is a terminal: redirect it, name a file with -o, or use --force"
            )

    def _choose(self, plan: jobs.Plan) -> list[jobs.Job]:
        """The files that an earlier run has left to do."""
        if not self._settings.goes_on:
            return plan.jobs
        waiting = []
        for job in plan.jobs:
            replace, reason = self._trees.decide(job)
            if replace:
                self._replace.add(job)
            if not reason:
                waiting.append(job)
            elif reason == "complete":
                self._report.done += 1
            else:
                self._report.skip(job.path, reason)
        return waiting

    def _run_all(self, waiting: list[jobs.Job]) -> None:
        watched = on_terminal() and not self._settings.quiet
        tells = self._tells
        sizes = [_size(job) for job in waiting]
        total = sum(size or 0 for size in sizes) if None not in sizes else None
        with Progress(total, visible=watched) as progress:
            for job, size in zip(waiting, sizes, strict=True):
                try:
                    result = self._transfer(job, progress)
                except Exception as error:
                    self._note_failure(job, error, progress)
                else:
                    self._report.results.append(result)
                    if tells:
                        progress.say(result.summary())
                progress.next_file(size)

    def _open_target(self, job: jobs.Job) -> OutputFile | files.StandardOutput | files.Nowhere:
        if self._check:
            return files.Nowhere()
        if job.target is None:
            return files.StandardOutput()
        return jobs.open_target(job.target, force=self._may_replace(job), kept=self._kept)

    def _may_replace(self, job: jobs.Job) -> bool:
        return self._settings.force or job in self._replace

    def _transfer(self, job: jobs.Job, progress: Progress) -> Result:
        start = time.perf_counter()
        with jobs.open_source(job.source) as source:
            with self._open_target(job) as target:
                try:
                    self._stream(
                        source,
                        self._trees.sink(job, target),
                        self._key,
                        format=self._format.name,
                        options=self._trees.options_of(job, source),
                        progress=progress.at,
                    )
                except Exception as error:
                    self._came_out = target.count > 0
                    self._hint(error, source)
                    raise
                self._trees.check_size(job, target.count)
                target.commit(*self._trees.attributes(job, source))
            if isinstance(target, OutputFile):
                # Where names are not told apart by their case, another may be this file's, too.
                self._kept.add(target.identity, "an output of this run", target.path)
                self._trees.add(job, source, target)
            if change := source.change():
                progress.say(
                    f"warpcipher: warning: {shown(source.path)}: changed while it was read "
                    f"({change}): its output holds what was read"
                )
            seconds = time.perf_counter() - start
            plain = source.count if self._encrypt else target.count
            output = jobs.STANDARD if job.target is None else target.path
            return Result(
                input=jobs.STANDARD if job.source is None else source.path,
                output=None if self._check else output,
                format=self._format.name,
                input_bytes=source.count,
                output_bytes=target.count,
                seconds=round(seconds, 6),
                bytes_per_second=round(plain / seconds, 1) if plain else None,
            )

    def _hint(self, error: Exception, source: InputFile) -> None:
        """Raises a CliError for a file that says itself that it has another format."""
        from warpcipher import InvalidTag

        if (
            self._encrypt
            or not source.is_regular
            or not isinstance(error, (InvalidTag, ValueError))
        ):
            return
        self._refuse_format_of(source.path, os.pread(source.descriptor, HEAD_SIZE, 0))

    def _refuse_format_of(self, path: str, head: bytes) -> None:
        """Raises a CliError for a file of another format than the key's, from its beginning."""
        from warpcipher.formats.registry import by_magic

        named = by_magic(head)
        if named is not None and named is not self._format:
            raise NotAuthenticError(
                f"{shown(path)} is a file of format {named.name}, and the key is one of "
                f"{self._format.name}: give {what_opens(named.name, head)}"
            ) from None

    def _note_failure(self, job: jobs.Job, error: Exception, progress: Progress) -> None:
        """Tells of a failed file. What every other file would fail with too ends the run."""
        from warpcipher.formats import FormatError

        to_stdout = job.target is None and not self._check
        if to_stdout and isinstance(error, BrokenPipeError):
            cleanup.die(signal.SIGPIPE)
        if self._encrypt and isinstance(error, FormatError):
            # Nothing is wrong with what was read, but with asking for this of a file of its size.
            error = usage(f"{shown(job.path)}: {error}")
        failure = translate(error, shown(job.path))
        if failure is None:
            raise error
        if (
            failure.exit_code in (USAGE, ENGINE)
            and not self._report.results
            and not isinstance(error, CliError)
        ):
            raise failure from error
        target = "" if job.target is None else job.target.path
        self._report.fail(
            job.path, failure, lambda text: progress.say(f"warpcipher: {text}"), target
        )
        is_out = self._came_out and to_stdout and not self._encrypt
        if is_out and failure.exit_code == NOT_AUTHENTIC:
            progress.say(
                "warpcipher: the output is authentic but incomplete: discard it"
                if self._format.authenticated
                else "warpcipher: discard the output"
            )

    def _wipe_key(self) -> None:
        from warpcipher.formats.base import wipe

        if isinstance(self._key, bytearray):
            wipe(self._key)


def _size(job: jobs.Job) -> int | None:
    """Bytes of an input for the progress bar; None where they cannot be known before."""
    if job.status is not None:
        return job.status.st_size
    try:
        status = os.stat(0 if job.source is None else job.source.path)  # noqa: PTH116
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else None

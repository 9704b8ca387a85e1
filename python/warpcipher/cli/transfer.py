# SPDX-License-Identifier: Apache-2.0
"""One run of `encrypt`, `decrypt` or `check` over files."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Literal

import warpcipher as wc
from warpcipher.formats.sealed import Sealed

from . import conflicts, errors, files, jobs, keys
from .errors import ENGINE, NOT_AUTHENTIC, CliError, NotAuthenticError, as_usage, shown, usage, warn
from .files import InputFile, Target
from .recipients import HEAD_SIZE, head_of
from .report import Progress
from .settings import Settings
from .tree_run import TreeRun


class Transfer(TreeRun):
    """One run of `encrypt`, `decrypt` or `check`."""

    def __init__(self, settings: Settings, task: Literal["encrypt", "decrypt", "check"]) -> None:
        self._settings = settings
        self._encrypt = task == "encrypt"
        self._check = task == "check"
        options, key = self._make_options(), self._read_key()
        self._format = wc.formats.resolve(settings.format_name, key)
        self._sealed = Sealed(key, self._format, options)
        super().__init__(settings, self._format.name)
        self._replace: set[jobs.Job] = set()
        self._came_out = False

    def _make_options(self) -> wc.formats.Options:
        given = self._settings
        context = keys.read_context(given.context, given.context_hex)
        chosen = wc.formats.Options(context=context, engine=given.engine, armor=given.armor)
        more = given.suite, given.frame_length, given.required_context
        if not (given.encryption_context or any(more)):
            return chosen
        pairs = [text.split("=", 1) for text in given.encryption_context]
        if any(len(pair) != 2 for pair in pairs):
            raise usage("--encryption-context takes KEY=VALUE")
        if len({key for key, _ in pairs}) != len(pairs):
            raise usage("--encryption-context has a key more than once")
        with as_usage():
            return wc.formats.awsesdk.Options(
                **vars(chosen) | {"algorithm": given.suite},
                encryption_context=dict(pairs),
                required_context=given.required_context,
                frame_length=given.frame_length or wc.formats.awsesdk.FRAME_LENGTH,
            )

    def _read_key(self) -> object:
        given = self._settings
        given.people.check(encrypts=self._encrypt)
        if given.armor and not self._encrypt:
            raise usage("--armor is for encrypt: decrypt finds out by itself")
        if given.people:
            given.people.expect(given.paths)
            holders = given.people.read(encrypts=self._encrypt)
            self._check_format_of(holders)
            return holders
        return given.key.read(given.format_name, None)

    def _check_format_of(self, holders: list[Any]) -> None:
        named, fits = self._settings.format_name, wc.formats.resolve("auto", holders).name
        if named != "auto" and not wc.formats.get(named).knows(holders):
            raise usage(f"these are keys of format {fits}, not of {named}")

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
        self._check_plan(plan)
        if self._encrypt:
            conflicts.leave_out_keys(plan, conflicts.secret_files(settings))
        if not self._check:
            self._refuse_terminal(to_standard=any(job.target is None for job in plan.jobs))
            conflicts.refuse_in_trees(plan, encrypt=self._encrypt)
            conflicts.refuse(plan, settings.key_files, self._kept)
        if self._encrypt:
            conflicts.warn_of_encrypted(plan, self._format.extension)
        self._warn_unauthenticated()
        return plan

    def _check_plan(self, plan: jobs.Plan) -> None:
        """Raises CliError for files that the key and options are not to be used for."""

    def _warn_unauthenticated(self) -> None:
        if not self._format.authenticated:
            self._warn_of(self._format.name)
        elif not self._format.binds_order and not self._encrypt:
            warn(
                f"format {self._format.name} does not authenticate the order and number of its "
                "chunks: compare the file with a digest that you trust"
            )
        elif not self._format.binds_chunks and not self._encrypt:
            warn(
                f"format {self._format.name} does not authenticate the end of a file: one that was "
                "cut at the edge of a block passes; compare its length with one that you trust"
            )

    def _warn_of(self, what: str) -> None:
        warn(
            f"format {what} authenticates nothing: a change goes unnoticed; prefer cobblestone-256"
        )

    def _refuse_terminal(self, *, to_standard: bool) -> None:
        if self._encrypt and to_standard and os.isatty(1) and not self._settings.force:
            raise usage(
                "standard output is a terminal: redirect it, name a file with -o, or use --force"
            )

    def _choose(self, plan: jobs.Plan) -> list[jobs.Job]:
        """The files that an earlier run has left to do."""
        self._open_trees(plan)
        if not self._settings.goes_on:
            return plan.jobs
        waiting = []
        for job in plan.jobs:
            replace, reason = self._decide(job)
            if replace:
                self._replace.add(job)
            if not reason:
                waiting.append(job)
            elif reason == "complete":
                self._report.before += 1
            else:
                self._report.skip(job.path, reason)
        return waiting

    def _close(self) -> None:
        self._sealed.wipe()

    def _may_replace(self, job: jobs.Job) -> bool:
        return super()._may_replace(job) or job in self._replace

    def _open_target(self, job: jobs.Job) -> Target:
        return files.Nowhere() if self._check else super()._open_target(job)

    def _work(self, job: jobs.Job, source: InputFile, target: Target, progress: Progress) -> None:
        try:
            do = self._sealed.encrypt if self._encrypt else self._sealed.decrypt
            options = self._options_of(job, source)
            do(source, self._sink(job, target), options, progress.at)
        except Exception as error:
            self._came_out = target.count > 0
            self._hint(error, source)
            raise
        self._check_size(job, target.count)
        target.commit(*self._attributes(job, source))
        if change := source.change():
            progress.say(
                f"warpcipher: warning: {shown(source.path)}: changed while it was read "
                f"({change}): its output holds the bytes that were read"
            )

    def _plain_bytes(self, source: InputFile, target: Target) -> int:
        return source.count if self._encrypt else target.count

    def _hint(self, error: Exception, source: InputFile) -> None:
        """Raises a CliError for a file that says itself that it has another format."""
        if (
            self._encrypt
            or not source.is_regular
            or not isinstance(error, (wc.InvalidTag, ValueError))
        ):
            return
        self._refuse_format_of(source.path, os.pread(source.descriptor, HEAD_SIZE, 0))

    def _refuse_format_of(self, path: str, head: bytes) -> None:
        """Raises a CliError for a file of another format than the key's, from its beginning."""
        from warpcipher.formats.registry import by_magic

        named = by_magic(head)
        if named is not None and named is not self._format:
            is_of_both = named.knows(self._sealed.key)  # an SSH key
            wanted = f"--format {named.name}, too" if is_of_both else named.opened_by(head)
            raise NotAuthenticError(
                f"{shown(path)} is a file of format {named.name}, and the key is one of "
                f"{self._format.name}: give {wanted}"
            ) from None

    def _translated(self, job: jobs.Job, error: Exception) -> CliError:
        if self._encrypt and isinstance(error, wc.formats.FormatError):
            # Nothing is wrong with the input, but with encrypting a file of its size like this.
            error = usage(f"{shown(job.path)}: {error}")
        elif (
            job.source is not None
            and self._format.authenticated  # raw names them itself
            and isinstance(error, (wc.InvalidTag, wc.formats.FormatError))
        ):
            with contextlib.suppress(OSError):
                foreign = wc.formats.info(job.path).foreign
                if foreign is not None and foreign.certain:
                    says = f"the key does not open it; it is {foreign.description}: {foreign.hint}"
                    error = type(error)(says)
        failure = super()._translated(job, error)
        if (
            failure.exit_code in (errors.USAGE, ENGINE)
            and not self._report.done
            and not isinstance(error, CliError)
        ):
            raise failure from error
        return failure

    def _note_failure(self, job: jobs.Job, error: Exception, progress: Progress) -> CliError:
        failure = super()._note_failure(job, error, progress)
        to_standard = job.target is None and not self._check and not self._encrypt
        if to_standard and self._came_out and failure.exit_code == NOT_AUTHENTIC:
            progress.say(
                "warpcipher: the output is authentic but incomplete: discard it"
                if self._format.authenticated
                else "warpcipher: discard the output"
            )
        return failure

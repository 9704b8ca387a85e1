# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH112, PTH120
"""A run of `encrypt`, `decrypt` or `check` that takes or makes objects at URLs: many at a time,
with a journal and a report. `warpcipher.fleet` does the work."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import warpcipher as wc
from warpcipher import InvalidTag, stores
from warpcipher._tree_names import NAME
from warpcipher.fleet.filters import Filter, parse_age, parse_size, pattern
from warpcipher.fleet.job import Counts, Job, Problems
from warpcipher.fleet.journal import Journal
from warpcipher.fleet.places import (
    Item,
    Items,
    Skipped,
    Target,
    is_prefix,
    join,
    real,
    split,
)
from warpcipher.fleet.runner import Runner, Threads
from warpcipher.fleet.work import Work
from warpcipher.formats.sealed import Sealed
from warpcipher.formats.source import created, open_source

from . import conflicts, files, folders, process
from .errors import (
    ENGINE,
    USAGE,
    CliError,
    NotAuthenticError,
    complain,
    listed,
    shown,
    translate,
    usage,
    warn,
    withheld,
)
from .jobs import STANDARD
from .report import Progress
from .transfer import Transfer

if TYPE_CHECKING:
    from .keys import Choice
    from .recipients import People

MOST = 1000
"""Failures that the results keep; the report has all."""
JOURNAL = ".warpcipher-journal"
JOBS = 16
RETRIES = 3


@dataclass
class Plan:
    """One job. output: of one object; tree: it has a manifest; journal: its place."""

    items: Items
    target: str | None
    output: str = ""
    tree: bool = False
    journal: str | None = None


class ObjectRun(Transfer):
    """One run over objects."""

    _doing: Work
    _output: Any = None  # what --report writes to

    def _do_all(self) -> None:
        settings = self._settings
        self._refuse_options()
        self._report.most, self._report.since = MOST, time.perf_counter()
        self._warn_unauthenticated()
        with process.asking(), self._report_file():
            if STANDARD in (*settings.paths, settings.output):
                self._pipe()
                return
            plans = list(self._plans())
            if settings.journal is not None and len(plans) > 1:
                raise usage(
                    f"--journal is for one job, and these are {len(plans)}: name one input, or "
                    "leave the journals in the outputs"
                )
            for plan in plans:
                self._do_job(plan)

    def _refuse_options(self) -> None:
        given = self._settings
        if STANDARD in (*given.paths, given.output) and len(given.paths) > 1:
            raise usage("standard input and output take one object")
        if given.as_json and given.report == STANDARD:
            raise usage("--json and --report - both write to standard output: give --report a file")

    # --- which objects ----------------------------------------------------------------------------

    def _pipe(self) -> None:
        """One object, from standard input or to standard output."""
        sealed, given = self._sealed, self._settings
        (path,), output = given.paths, given.output
        self._refuse_terminal(to_standard=output == STANDARD)
        try:
            with contextlib.ExitStack() as stack:
                options = sealed.options
                source: Any = files.InputFile(0, "standard input")
                target: Any = files.StandardOutput()
                if path != STANDARD:
                    source = stack.enter_context(open_source(path))
                    if not self._encrypt:
                        options = sealed.options_at(path, source, listed=not given.no_manifest)
                if self._check:
                    target = files.Nowhere()
                elif output is None or output.endswith("/"):
                    raise usage("name the object that standard input becomes with -o")
                elif output != STANDARD:
                    _split_output(output)
                    target = stack.enter_context(created(output, given.force, None))
                change = sealed.encrypt if self._encrypt else sealed.decrypt
                change(source, target, options)
            self._report.add(source.size or 0)
        except Exception as error:
            self._fail(path, error)

    def _plans(self) -> Iterator[Plan]:
        """The jobs of the run, one after another. Raises CliError, OSError."""
        settings, output = self._settings, self._settings.output
        kinds = {path: is_prefix(path) for path in settings.paths}
        several = len(settings.paths) > 1
        into = output is not None and (
            several or output.endswith("/") or (not stores.is_url(output) and os.path.isdir(output))
        )
        if output is not None and into and several and (self._encrypt or not any(kinds.values())):
            yield self._together(kinds, output)
            return
        for path, prefix in kinds.items():
            base, name = split(path)
            if prefix:
                target = None
                if not self._check:
                    target = output if output is not None and not several else None
                    target = target or self._named(path, join(output, name) if output else path)
                items = Items({"": path}, frozenset({""}), self._left_out())
                yield self._planned(items, target, tree=True)
                continue
            items = Items({name: path}, frozenset())
            if self._check:
                yield self._planned(items, None, "checked")
            elif output is not None and not into:
                yield self._planned(items, *_split_output(output))
            else:
                folder = output if output is not None else base
                yield self._planned(items, folder, self._named(path, name))

    def _together(self, kinds: dict[str, bool], output: str) -> Plan:
        """Several inputs, under their last names, in one place: encrypted they are one tree."""
        roots: dict[str, str] = {}
        for path in kinds:
            name = split(path)[1]
            if name in ("", ".", "..") or name in roots:
                other = f", as {shown(roots[name])} does" if name in roots else ""
                raise usage(f"{shown(path)} gives its output the name {shown(name)!r}{other}")
            roots[name] = path
        prefixes = frozenset(split(path)[1] for path, prefix in kinds.items() if prefix)
        return self._planned(Items(roots, prefixes, self._left_out()), output, tree=self._encrypt)

    def _left_out(self) -> frozenset[tuple[int, int]]:
        """The key files: one that is encrypted under itself is lost with its plain file."""
        return conflicts.secret_files(self._settings) if self._encrypt else frozenset()

    def _named(self, path: str, name: str) -> str:
        """The default name of an output."""
        name, extension = name.rstrip("/"), self._format.extension
        if self._encrypt:
            return name + extension
        if not name.endswith(extension) or name.endswith("/" + extension):
            raise usage(f"{shown(path)} does not end in {extension}: name the output with -o")
        return name.removesuffix(extension)

    def _planned(
        self, items: Items, target: str | None, output: str = "", *, tree: bool = False
    ) -> Plan:
        for place in items.roots.values():
            if not stores.is_url(place):
                conflicts.refuse_key_file(place, self._left_out())
            self._refuse_overlap(place, target, output)
        journal = self._settings.journal
        if journal is None and target is not None and not output:
            journal = join(target, JOURNAL)
        bound = tree and self._format.authenticated and not self._settings.no_manifest
        if bound:
            self._require_bound(self._sealed)
        if self._settings.delete and (self._settings.force or not bound):
            raise usage("--delete of objects goes with --update, and is for trees with a manifest")
        return Plan(items, target, output, bound, journal)

    def _refuse_overlap(self, place: str, target: str | None, output: str) -> None:
        """Raises CliError where an output could be an input, or the other way round."""
        if target is None:
            return
        source, made = real(place), real(join(target, output) if output else target)
        ends = [text.rstrip("/") + "/" for text in (source, made)]
        if ends[0] == ends[1] or (not output and (ends[0].startswith(ends[1]))):
            raise usage(f"{shown(place)} lies in the output {shown(target)}: name another")
        if ends[1].startswith(ends[0]):
            raise usage(f"the output {shown(made)} lies in {shown(place)}: name another")
        for path in self._settings.key_files:
            if f"{real(path)}/".startswith(ends[1]):
                raise usage(f"the key file {shown(path)} lies in the output {shown(made)}")

    # --- one job ----------------------------------------------------------------------------------

    def _work_of(self, plan: Plan) -> Work:
        given = self._settings
        return Work(
            "encrypt" if self._encrypt else "check" if self._check else "decrypt",
            plan.items,
            None if plan.target is None else Target(plan.target),
            self._format.name,
            self._format.extension,
            self._sealed.options,
            plan.tree,
            replace=given.force or given.update or not plan.output,
            output=plan.output,
            preserves=not given.no_preserve,
            retries=RETRIES if given.retry is None else given.retry,
            checks_place=not given.no_manifest,
        )

    def _filter(self) -> Filter:
        given = self._settings
        try:
            return Filter(
                tuple(map(pattern, given.include)),
                tuple(map(pattern, given.exclude)),
                None if given.min_size is None else parse_size(given.min_size),
                None if given.max_size is None else parse_size(given.max_size),
                None if given.min_age is None else parse_age(given.min_age),
                None if given.max_age is None else parse_age(given.max_age),
            )
        except ValueError as error:
            raise usage(str(error)) from None

    def _do_job(self, plan: Plan) -> None:
        settings, work, sealed = self._settings, self._work_of(plan), self._sealed
        target = real(plan.target) if plan.target else ""
        name = "\0".join([work.task, *sorted(map(real, plan.items.roots.values())), target])
        place = None if settings.dry_run else plan.journal
        if plan.target and not (plan.output or settings.dry_run) and os.path.isdir(plan.target):
            folders.lock(plan.target)
        journal = Journal(place, sealed, name, fresh=settings.force)
        try:
            there = None
            goes_on = journal.found or settings.goes_on
            is_new = not (goes_on or plan.output or settings.force or work.in_place)
            if work.target and is_new:
                there = next(work.target.listed(), None)
            if there is not None and not settings.dry_run:
                raise usage(
                    f"{shown(str(plan.target))} holds objects already, such as "
                    f"{shown(there.name)}, and no journal of this job: name another output, the "
                    "journal with --journal, or replace them with --force"
                )
            job = Job(work, sealed, journal, self._filter(), plan.tree, self._say)
            if settings.goes_on:
                job.known = "newer" if settings.update else "existing"
            job.deletes = settings.delete
            self._doing = work
            self._run_job(job)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error counts more
                journal.save()
            raise
        finally:
            journal.close()

    def _run_job(self, job: Job) -> None:
        if self._settings.dry_run:
            self._rehearse_job(job)
            return
        runner = self._runner(job)
        with Progress(None, visible=self._settings.watched) as progress:

            def watch(counts: Counts) -> None:
                progress.grow(max(counts.listed_bytes, counts.done_bytes))
                progress.at(counts.done_bytes)

            try:
                counts = job.run(runner, watch)
            except FileNotFoundError as error:
                if not str(error.filename).endswith(NAME):
                    raise
                raise NotAuthenticError(
                    f"{shown(os.path.dirname(error.filename))} has no manifest ({NAME}): it was "
                    "removed, or the run that encrypted it did not end: then do that again; "
                    "--no-manifest decrypts the present objects, unchecked"
                ) from None
            except Problems as error:
                parts = (f"{what}: {listed(*found)}" for what, found in error.faults.items())
                raise NotAuthenticError(
                    f"{shown(job.work.items.place('').rstrip('/'))} does not match its manifest: "
                    + "; ".join(parts)
                    + "; --no-manifest decrypts the present objects, unchecked"
                ) from None
        if not counts.listed:
            places = ", ".join(map(shown, job.work.items.roots.values()))
            warn(f"{places}: no objects: the place is empty, or the filters match none")

    def _runner(self, job: Job) -> Runner:
        settings = self._settings
        count = settings.jobs or JOBS
        if settings.cluster is None:
            return Threads(job.work, job.sealed, count)
        from warpcipher.cluster.objects import Nodes

        key = portable(job.sealed, settings.people, settings.key)
        return Nodes(settings.cluster, job.work, key, count, new=self._new_source(job.sealed))

    def _new_source(self, sealed: Sealed) -> Any:
        """Where the nodes of a cluster find the new key, with its format and options."""
        return None

    def _rehearse_job(self, job: Job) -> None:
        for item in job.listed():
            if isinstance(item, Item) and job.takes(item):
                made, place = self._place_of(item), job.work.items.place(item.name)
                self._report.plan(place, str(made), show=not self._settings.as_json)

    def _place_of(self, item: Any) -> str | None:
        target = self._doing.target
        return None if target is None else target.place(self._doing.output_of(item.name))

    # --- what is said -----------------------------------------------------------------------------

    def _say(self, state: str, about: Any) -> None:
        if state == "strange":
            self._report.skip(
                str(self._place_of(about)), "it does not belong to the tree, and `check` names it"
            )
            return
        if state == "complete":
            self._report.before += 1
        elif state == "done":
            self._report.add(about.item.size)
        if self._output is None and state in ("done", "complete"):
            return
        item = about if isinstance(about, Skipped) else about.item
        place = self._doing.items.place(item.name)
        output = self._place_of(item)
        line: dict[str, Any] = {"input": withheld(place), "output": output, "state": state}
        if output is not None:
            line["output"] = withheld(output)
        if isinstance(about, Skipped):
            self._report.skip(place, about.reason)
            line["reason"] = about.reason
        elif state != "complete":
            line |= {"seconds": round(about.seconds, 6), "attempts": about.attempts}
            if about.error is not None:
                failure = self._fail(place, about.error, str(output))
                line |= {"error": failure.message, "exit_code": failure.exit_code}
        done = None if isinstance(about, Skipped) else about.done
        if done is not None:
            made = done.sealed if self._doing.makes_trees else done.size
            line |= {"input_bytes": about.item.size, "output_bytes": made}
        if self._output is not None:
            self._output.write(json.dumps(line) + "\n")

    def _fail(self, place: str, error: Exception, *others: str) -> CliError:
        """Notes a failure. Raises CliError for one that all other objects would meet too."""
        failure = translate(error, shown(place))
        if isinstance(error, FileExistsError):
            error = failure = files.exists(str(error.filename))
        if failure.exit_code in (USAGE, ENGINE) and not isinstance(error, (InvalidTag, CliError)):
            raise failure from error
        self._report.fail(place, failure, complain, *others)
        return failure

    @contextlib.contextmanager
    def _report_file(self) -> Iterator[None]:
        """The report per object, in JSON lines."""
        place = self._settings.report
        with contextlib.ExitStack() as stack:
            if place == STANDARD:
                self._output = sys.stdout
            elif place is not None and stores.is_url(place):
                upload: Any = stack.enter_context(stores.writing(place))
                self._output = codecs.getwriter("ascii")(upload)
            elif place is not None:
                self._output = stack.enter_context(open(place, "w", buffering=1))  # noqa: PTH123
            yield


def portable(sealed: Sealed, people: People, key: Choice) -> Any:
    """Where the nodes of a cluster find a key: public keys travel. Raises CliError."""
    if not people:
        return key.source()
    if people.has_passphrase or people.takes_standard_input:
        raise usage("--cluster takes files of keys, which the nodes have too, and no passphrase")
    opening = sealed.format.opening
    public = [one for one in cast("list[Any]", sealed.key) if opening([one]) == []]
    files = [os.path.abspath(path) for path in people.identities]  # noqa: PTH100
    return [*map(wc.keys.from_file, files), *public]


def _split_output(output: str) -> tuple[str, str]:
    """Where an object is written, and its name there. Raises CliError."""
    folder, name = split(output)
    if stores.is_url(output) and not stores.is_url(folder):
        raise usage(f"{shown(output)} names no object: end a bucket or folder in /")
    return folder, name


__all__ = ["ObjectRun"]

# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH116, PTH119
"""`warpcipher rekey`."""

from __future__ import annotations

import io
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import click

from . import conflicts, jobs, names, new_keys, recipients
from .errors import (
    ENGINE,
    NOT_AUTHENTIC,
    Command,
    add_options,
    epilog,
    in_section,
    shown,
    translate,
    usage,
)
from .files import InputFile, OutputFile, Target, exists
from .new_keys import NewKeys
from .report import Progress, Result
from .run import DRY_RUN, TELLING
from .settings import COMPUTING, EARLIER, NO_MANIFEST, PATHS, Settings
from .transfer import Transfer
from .tree_run import Trees

if TYPE_CHECKING:
    from warpcipher.formats import Options

_OPTIONS = (
    *PATHS,
    *in_section("Key: keys of people", *recipients.READING),
    *in_section(
        "New key",
        *new_keys.KEY,
        *new_keys.PEOPLE,
        click.option(
            "--new-format",
            metavar="NAME",
            default="auto",
            shell_complete=names.formats,
            help="Format of the new files.  [default: the format that the new key is for]",
        ),
        click.option(
            "--new-context",
            metavar="TEXT",
            help="Context of the new files.  [default: that of --context]",
        ),
        click.option("-a", "--armor", "new_armor", is_flag=True, help="Write ASCII text (age)."),
    ),
    *in_section("Format", names.FORMAT, *COMPUTING),
    *in_section(
        "Output",
        click.option("-o", "--output", metavar="PATH", help="The new file, tree or directory."),
        click.option("--in-place", is_flag=True, help="Replace each file by its new one."),
        click.option("-f", "--force", is_flag=True, help="Replace outputs that exist."),
        click.option("--no-preserve", is_flag=True, help="Do not keep times and permissions."),
        DRY_RUN,
    ),
    *in_section("Trees, and outputs of earlier runs", NO_MANIFEST, *EARLIER),
    *TELLING,
)


@dataclass(kw_only=True)
class RekeySettings(Settings):
    """The options of a run, as given."""

    new: NewKeys
    new_format: str
    new_context: str | None
    new_armor: bool
    in_place: bool

    def _check(self) -> None:
        super()._check()
        if not self.new:
            raise usage("give the new key: --new-key FILE, or age's: -r, -R, --new-passphrase")
        if jobs.STANDARD in self.paths or self.output == jobs.STANDARD:
            raise usage("new files are read back before they appear: name files, not -")
        if (self.output is not None) == self.in_place:
            raise usage("give one of -o PATH, for new files, and --in-place")
        if self.in_place and (self.force or self.goes_on):
            raise usage("--force, --skip-existing and --update are for --output")
        if self.in_place and (tree := next(filter(os.path.isdir, self.paths), None)):
            raise usage(
                f"{shown(tree)} is a directory: name the new tree with -o, and remove the old one "
                "when it is there"
            )
        keys_from_input = self.key.takes_standard_input or self.people.takes_standard_input
        if keys_from_input and self.new.takes_standard_input:
            raise usage("both keys are to come from standard input: name a file for one")
        self._check_format(self.new_format)


class _Naming(jobs.Naming):
    """Names of new files: the suffix of their format takes the place of the old one."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, encrypt=False)
        self.new = new

    def __call__(self, name: str) -> str | None:
        bare = super().__call__(name)
        return None if bare is None else bare + self.new


class _InPlace(jobs.Naming):
    """Outputs have the names of their inputs."""

    def of_input(self, path: str) -> str:
        return os.path.basename(path)


@dataclass(frozen=True)
class _Text:
    """The text of a file, as `Trees.add` looks at an input. See `InputFile`."""

    mode: int | None
    times: tuple[int, int] | None
    count: int
    has_holes: bool


class Rekey(Transfer):
    """One run: files are decrypted as `decrypt` does, and encrypted as `encrypt` does, at once."""

    def __init__(self, settings: RekeySettings) -> None:
        from warpcipher import formats

        super().__init__(settings, "decrypt")
        self._how = settings
        new = self._new_key = settings.new.read(settings.new_format)
        chosen = self._new = formats.resolve(settings.new_format, new)
        if settings.new.people and formats.resolve("auto", new) is not chosen:
            raise usage(f"the new keys are not of format {chosen.name}")
        self._format_name = chosen.name
        old = self._key, self._format, self._extra
        self._old_trees = Trees(settings, *old, self._report, self._kept, "check")
        how = new, chosen, self._new_options()
        self._trees = Trees(settings, *how, self._report, self._kept, "encrypt")
        self._old: dict[jobs.Job, jobs.Job] = {}
        self._texts: dict[jobs.Job, _Text] = {}
        self._plan = jobs.Plan()

    def _new_options(self) -> Options:
        from warpcipher.formats import Options

        given = self._how.new_context
        context = self._extra.context if given is None else os.fsencode(given)
        options = Options(context, engine=self._how.engine, armor=self._how.new_armor)
        try:
            options.check(self._new)
        except ValueError as error:
            raise usage(str(error)) from None
        return options

    def run_object(self) -> None:
        """Does one object at a URL, or a file that becomes one."""
        from warpcipher import formats, stores

        how = self._how
        if len(how.paths) != 1 or how.paths[0].endswith("/") or (how.output or "").endswith("/"):
            raise usage("at URLs rekey takes one object at a time: name it, and the new one")
        if how.goes_on or how.dry_run or how.no_manifest:
            raise usage("--skip-existing, --update, --no-manifest and --dry-run are for files")
        (path,), start = how.paths, time.perf_counter()
        self._warn_unauthenticated()
        try:
            before = stores.stat(path).size if stores.is_url(path) else os.stat(path).st_size
            size = formats.rekey_file(
                *(path, how.output, self._key, self._new_key),
                format=self._format.name,
                new_format=self._new.name,
                options=self._extra,
                new_options=self._new_options(),
                replace=how.force,
            )
        except FileExistsError:
            raise exists(str(how.output)) from None
        except Exception as error:
            raise translate(error, shown(path)) or error from None
        finally:
            self._close()
        seconds = time.perf_counter() - start
        result = Result(
            input=path,
            output=how.output or path,
            format=self._new.name,
            input_bytes=before,
            output_bytes=size,
            seconds=round(seconds, 6),
            bytes_per_second=round(size / seconds, 1),
        )
        self._report.results.append(result)
        if how.as_json:
            click.echo(self._report.to_json())
        elif how.tells:
            click.echo(result.summary(), err=True)

    def _make_plan(self) -> jobs.Plan:
        how, old, new = self._how, self._format.extension, self._new.extension
        naming = _InPlace(old, encrypt=False) if how.in_place else _Naming(old, new)
        plan = jobs.make_plan(how.paths, how.output, naming)
        for job in plan.jobs:  # names in trees have no suffix
            job.name = job.name.removesuffix(new)
        if how.in_place and old != new:
            for job in plan.jobs:
                if job.path.endswith(old):
                    raise usage(
                        f"{shown(job.path)} has the suffix of {self._format.name}, and would be of "
                        f"{self._new.name}: name the new file with -o"
                    )
        secrets = (how.key.path, *how.people.paths, *how.new.paths)
        conflicts.refuse_in_trees(plan, encrypt=True)
        conflicts.refuse(
            plan, [path for path in secrets if path], self._kept, in_place=how.in_place
        )
        self._warn_unauthenticated()
        return plan

    def _choose(self, plan: jobs.Plan) -> list[jobs.Job]:
        self._old_trees.open(plan)
        self._plan = jobs.Plan(plan.folder)
        trees = {tree: self._new_tree(tree) for tree in plan.trees}
        for job in plan.jobs:
            tree = None if job.tree is None else trees[job.tree]
            status = self._old_trees.status_of(job) or job.status
            new = jobs.Job(job.source, job.target, tree, job.name, status)
            self._old[new] = job
            self._plan.jobs.append(new)
            if tree is not None:
                tree.jobs.append(new)
        self._plan.trees = [
            new for old, new in trees.items() if not self._old_trees.is_left_out(old)
        ]
        return super()._choose(self._plan)

    def _new_tree(self, tree: jobs.Tree) -> jobs.Tree:
        found = self._old_trees.content_of(tree)
        if found is None:
            return jobs.Tree(tree.source, tree.target, folders=tree.folders, failed=tree.failed)
        return jobs.Tree(tree.source, tree.target, folders=found[0], links=found[1])

    def _make_folders(self, plan: jobs.Plan) -> None:
        super()._make_folders(self._plan)

    def _finish(self, plan: jobs.Plan) -> None:
        super()._finish(self._plan)

    def _close(self) -> None:
        from warpcipher.formats.base import wipe

        super()._close()
        if isinstance(self._new_key, bytearray):
            wipe(self._new_key)

    def _may_replace(self, job: jobs.Job) -> bool:
        return self._how.in_place or super()._may_replace(job)

    def _work(self, job: jobs.Job, source: InputFile, target: Target, progress: Progress) -> None:
        from warpcipher._descriptors import steady
        from warpcipher.formats.reader import DecryptedFile, DecryptingReader
        from warpcipher.formats.rekey import Rekeyed, from_disk

        output = cast("OutputFile", target)
        old = self._old[job]
        options = self._old_trees.options_of(old, source)
        new_options = self._trees.options_of(job, source)
        with steady(source.descriptor, os.fstat(source.descriptor)):
            file = io.FileIO(source.descriptor, closefd=False)
            try:
                raw = DecryptingReader(file, self._format, self._key, options, close_source=False)
            except Exception as error:
                self._hint(error, source)
                raise
            with DecryptedFile(raw) as text:
                made = Rekeyed(text, output, self._new_key, self._new, new_options, progress.at)
            self._old_trees.check_size(old, made.size)
            with from_disk(output.fileno()) as written:
                made.prove(written)
        source.count = source.size or 0  # read at many places, in any order
        mode, times = self._old_trees.attributes(old, source)
        self._texts[job] = _Text(mode, times, made.size, self._old_trees.has_holes(old))
        output.commit(mode, times)

    def _done(self, job: jobs.Job, source: InputFile, target: Target) -> None:
        text = cast("InputFile", self._texts.pop(job))
        self._trees.add(job, text, cast("OutputFile", target))

    def _plain_bytes(self, source: InputFile, target: Target) -> int:
        return target.count


@click.command(cls=Command, epilog=epilog(NOT_AUTHENTIC, ENGINE))
@lambda function: add_options(_OPTIONS, function)
def rekey(**given: Any) -> None:
    """Encrypt encrypted files and trees again, under another key or in another format.

    The plaintext is only in memory. Each new file is read back and decrypted before it appears (to
    recipients, who only can decrypt: compared with what was written), and with --in-place before it
    replaces the old one. A tree becomes a tree, with a manifest of its own.
    PATH and -o may be URLs of single objects.

    \b
    warpcipher rekey --key old.key --new-key new.key --in-place report.pdf.cobblestone
    warpcipher rekey --key old.key -R team.txt -o photos.age photos.cobblestone
    """
    from warpcipher import stores

    new = NewKeys.take(given)
    places = [stores.local_path(place) for place in given["paths"]]
    given = {**given, "paths": tuple(places), "output": stores.local_path(given["output"])}
    if any(map(stores.is_url, (*places, given["output"]))):
        Rekey(RekeySettings.of({**given, "new": new}, decrypts=True)).run_object()
        return
    Rekey(RekeySettings.of({**given, "new": new}, decrypts=True)).run()

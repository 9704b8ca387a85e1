# SPDX-License-Identifier: Apache-2.0
"""`warpcipher rekey`."""

from __future__ import annotations

import io
import os
from typing import Any, cast

from . import conflicts, jobs, names, new_keys, recipients
from .errors import ENGINE, NOT_AUTHENTIC, command, shown, usage
from .files import InputFile, OutputFile, Target
from .new_keys import NewKeys, RekeySettings
from .options import FORCE, in_section, option, with_options
from .report import Progress
from .run import DRY_RUN, TELLING
from .settings import COMPUTING, EARLIER, MANY, NO_MANIFEST, PATHS
from .transfer import Transfer

_options = with_options(
    *PATHS,
    *in_section("Key: keys of people", *recipients.READING),
    *in_section(
        "New key",
        *new_keys.KEY,
        *new_keys.PEOPLE,
        option(
            "--new-format NAME",
            "Format of the new files.  [default: the format that the new key is for]",
            default="auto",
            shell_complete=names.formats,
        ),
        option("--new-context TEXT", "Context of the new files.  [default: as --context]"),
        option("-a --armor new_armor", "Write ASCII text (age)."),
    ),
    *in_section("Format", names.FORMAT, *COMPUTING),
    *in_section(
        "Output",
        option("-o --output PATH", "The new file, tree or directory."),
        option("--in-place", "Replace each file by its new one."),
        FORCE,
        option("--no-preserve", "Do not keep times and permissions."),
        DRY_RUN,
    ),
    *in_section("Trees, and outputs of earlier runs", NO_MANIFEST, *EARLIER),
    *in_section("Many objects, at URLs or in a tree", *MANY),
    *TELLING,
)


class _Naming(jobs.Naming):
    """Names of new files: the suffix of their format takes the place of the old one."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, encrypt=False)
        self.new = new

    def __call__(self, name: str) -> str | None:
        bare = super().__call__(name)
        return None if bare is None else bare + self.new


class Rekey(Transfer):
    """One run over files, each decrypted as `decrypt` does, and encrypted as `encrypt` does, at
    once. Trees are jobs: `ObjectKeys`."""

    def __init__(self, settings: RekeySettings) -> None:
        super().__init__(settings, "decrypt")
        self._how = settings
        self._new = settings.new_sealed(self._sealed.options.context)
        self._format_name = self._new.format.name

    def _make_plan(self) -> jobs.Plan:
        how, old, new = self._how, self._format.extension, self._new.format.extension
        naming = jobs.SameNames(old) if how.in_place else _Naming(old, new)
        plan = jobs.make_plan(how.paths, how.output, naming)
        if how.in_place and old != new:
            for job in plan.jobs:
                if job.path.endswith(old):
                    raise usage(
                        f"{shown(job.path)} has the suffix of {self._format.name}, and would be of "
                        f"{self._new.format.name}: name the new file with -o"
                    )
        conflicts.refuse_in_trees(plan, encrypt=True)
        conflicts.refuse(plan, how.key_files, self._kept, in_place=how.in_place)
        self._warn_unauthenticated()
        return plan

    def _close(self) -> None:
        super()._close()
        self._new.wipe()

    def _may_replace(self, job: jobs.Job) -> bool:
        return self._how.in_place or super()._may_replace(job)

    def _work(self, job: jobs.Job, source: InputFile, target: Target, progress: Progress) -> None:
        from warpcipher._descriptors import steady
        from warpcipher.formats.rekey import Rekeyed, from_disk

        output, new = cast("OutputFile", target), self._new
        options = self._options_of(job, source)
        with steady(source.descriptor, os.fstat(source.descriptor)):
            file = io.FileIO(source.descriptor, closefd=False)
            try:
                text = self._sealed.opened(file, options)
            except Exception as error:
                self._hint(error, source)
                raise
            with text:
                made = Rekeyed(text, output, new.key, new.format, new.options, progress.at)
            with from_disk(output.fileno()) as written:
                made.prove(written)
        source.count = source.size or 0  # read at many places, in any order
        mode, times = self._attributes(job, source)
        of = source.descriptor if self._how.in_place else -1
        if of >= 0:
            mode = output.take_over(os.fstat(of))
        output.commit(mode, times, of)


@command(NOT_AUTHENTIC, ENGINE)
@_options
def rekey(**given: Any) -> None:
    """Encrypt encrypted files and trees again, under another key or in another format.

    The plaintext is only in memory. Each new file is read back and decrypted before it appears (to
    recipients, who only can decrypt: compared with what was written), and with --in-place before it
    replaces the old one. A tree becomes a tree, with a manifest of its own.
    PATH and -o may be URLs, of an object or of a prefix.

    \b
    warpcipher rekey --key old.key --new-key new.key --in-place report.pdf.cobblestone
    warpcipher rekey --key old.key -R team.txt -o photos.age photos.cobblestone
    warpcipher rekey --key old.key --new-key new.key -o s3://bucket/new/ s3://bucket/old/
    """
    new = NewKeys.take(given)
    settings = RekeySettings.of({**given, "new": new}, decrypts=True)
    if settings.is_job:
        from .object_keys import ObjectKeys

        ObjectKeys(settings, "rekey").run()
        return
    Rekey(settings).run()

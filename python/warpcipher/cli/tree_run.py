# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH112, PTH116, PTH118
"""The trees of a run: opened before the first file, asked for each, finished after the last."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import warpcipher as wc
from warpcipher._new_file import KEPT_ATTRIBUTES
from warpcipher._tree_names import NAME, is_own, root_above
from warpcipher.formats.source import Regular

from . import errors, files, folders, jobs
from .errors import CliError, complain, counted, shown, translate, usage, warn
from .files import OutputFile, Target, WithHoles, exists
from .run import Run
from .settings import Settings

# Most runs have no tree: imports that only trees need wait for one.
if TYPE_CHECKING:
    from warpcipher.formats.sealed import Sealed
    from warpcipher.formats.trees import Entry

    from .trees import Growing, Whole


DEFAULT_FOLDER_MODE = 0o777
DIFFERS = "its output exists and differs"


def _tell_what_is_lost(tree: jobs.Tree) -> None:
    """Warns once of the properties of files that an encrypted tree does not keep."""
    linked = owned = extended = 0
    for job in tree.jobs:
        if job.status is None or job.source is None:
            continue
        linked += job.status.st_nlink > 1
        owned += job.status.st_uid != os.geteuid()
        with contextlib.suppress(OSError):
            names = os.listxattr(job.source.path, follow_symlinks=False)
            extended += any(name.startswith(KEPT_ATTRIBUTES) for name in names)
    found = {
        "hard links": linked, "owners": owned, "extended attributes and access lists": extended
    }  # fmt: skip
    parts = [f"{what} of {counted(count, 'file')}" for what, count in found.items() if count]
    if parts:
        name = shown(tree.source or tree.target)
        warn(f"{name}: its encrypted tree does not keep {', '.join(parts)}: a tar archive does")


class TreeRun(Run):
    """A run of `encrypt`, `decrypt` or `check`, as far as its trees go."""

    _settings: Settings
    _sealed: Sealed
    _encrypt: bool
    _check: bool

    def __init__(self, settings: Settings, format_name: str) -> None:
        super().__init__(settings, format_name)
        self._locked: set[str] = set()
        self._growing: dict[jobs.Tree | None, Growing] = {}
        self._whole: dict[jobs.Tree | None, Whole] = {}

    def _entry(self, job: jobs.Job) -> Entry | None:
        """The manifest's entry of a file of a tree that is decrypted or checked."""
        whole = self._whole.get(job.tree)
        return None if whole is None else whole.files[job.name]

    def _binds(self, tree: jobs.Tree) -> bool:
        """Whether a tree has a manifest. Several files are encrypted without one where their format
        has none."""
        chosen = self._sealed.format
        if self._settings.no_manifest or not chosen.authenticated:
            return False
        return chosen.binds_chunks or bool(tree.source) or len(tree.folders) > 1

    def _done(self, job: jobs.Job, source: files.InputFile, target: Target) -> None:
        if job.tree in self._growing and isinstance(target, OutputFile):
            self._growing[job.tree].add(job, source, target)

    def _save(self) -> None:
        with contextlib.suppress(Exception):  # the error that ends the run counts more
            for growing in self._growing.values():
                growing.save()

    def _open_trees(self, plan: jobs.Plan) -> None:
        """Finds the manifests of trees. One that does not match is left out of the run."""
        if not plan.trees:
            return
        for tree in plan.trees:
            if not self._check and os.path.isdir(tree.target):
                folders.lock(tree.target)
                self._locked.add(tree.target)
        from .trees import Growing, Whole

        for tree in list(plan.trees):
            if not self._binds(tree):
                self._refuse_links(tree)
                self._refuse_bound(tree)
                self._skip_others(tree)
                continue
            self._require_bound(self._sealed)
            if self._encrypt:
                _tell_what_is_lost(tree)
                growing = Growing(tree, self._sealed, self._kept, goes_on=self._settings.goes_on)
                growing.check_target(
                    replaces=self._settings.force or self._settings.goes_on,
                    deletes=self._settings.delete and not self._settings.dry_run,
                )
                self._growing[tree] = growing
                self._skip_others(tree)
            else:
                try:
                    self._whole[tree] = whole = Whole(tree, self._sealed)
                    tree.folders = {
                        entry.name: jobs.Attributes(entry.mode, (entry.mtime, entry.mtime))
                        for entry in whole.manifest.of_kind("folder")
                    }
                except CliError as error:
                    self._report.fail(tree.source, error, complain)
                    plan.trees.remove(tree)
                    plan.jobs = [job for job in plan.jobs if job.tree is not tree]

    def _require_bound(self, sealed: Sealed) -> None:
        """Raises CliError for a format that makes no tree with a manifest."""
        if not sealed.format.binds_chunks:
            raise usage(
                f"format {sealed.format.name} does not bind its blocks to their file, and a "
                "manifest could not show which blocks are of an older version: take --no-manifest, "
                "another format, or encrypt a tar archive"
            )

    def _skip_others(self, tree: jobs.Tree) -> None:
        for name, reason in tree.others.items():
            if self._encrypt or not is_own(name):
                self._report.skip(tree.path_of(name), reason)

    def _refuse_links(self, tree: jobs.Tree) -> None:
        why = "only a manifest keeps symbolic links, and this tree has none"
        for name in tree.links:
            path = tree.path_of(name)
            self._report.fail(path, usage(f"{shown(path)} is a symbolic link: {why}"), complain)

    def _refuse_bound(self, tree: jobs.Tree) -> None:
        if self._encrypt and os.path.lexists(os.path.join(tree.target, NAME)):
            raise usage(
                f"{shown(tree.target)} has a manifest, which files without one would not match: "
                "name another output, or leave --no-manifest out"
            )

    def _decide(self, job: jobs.Job) -> tuple[bool, str]:
        """Whether the output may be replaced, and why there is nothing to do ("": there is)."""
        update = self._settings.update
        if job.tree in self._growing:
            return self._growing[job.tree].decide(job, update=update)
        if job.target is None or job.source is None:
            return False, ""
        try:
            there = os.stat(job.target.path, follow_symlinks=False)
        except OSError:
            return False, ""
        if (entry := self._entry(job)) is not None:
            same_time = self._settings.no_preserve or there.st_mtime_ns == entry.mtime
            if there.st_size == entry.size and same_time:
                return False, "complete"
            changed = entry.mtime
        else:
            if not update:
                return False, "complete"
            changed = os.stat(job.source.path).st_mtime_ns
        if update and there.st_mtime_ns < changed:
            return True, ""
        return False, "complete" if update else DIFFERS

    def _make_folders(self, plan: jobs.Plan) -> None:
        if self._check:
            return
        if plan.folder is not None:
            folders.make_folder(plan.folder)
        for tree in plan.trees:
            self._make_root(tree.target)

    def _make_root(self, path: str) -> None:
        if path not in self._locked:
            folders.make_folder(path)
            folders.lock(path)
            if not folders.made(path):  # it was not there when the run began
                raise errors.SystemRefusedError(
                    f"another run made {shown(path)} meanwhile: run this again"
                )
        os.close(folders.open_folder(path, (), create=True))

    def _options_of(self, job: jobs.Job, source: files.InputFile) -> wc.formats.Options:
        """The options of a file: its name is in the context where its tree has a manifest."""
        if job.tree in self._whole:
            self._whole[job.tree].look_again(job, source.descriptor)
        if job.tree in self._growing or job.tree in self._whole:
            return self._sealed.options_of(job.name)
        if self._encrypt or job.source is None or not source.is_regular:
            return self._sealed.options
        # One file of a tree, or a tree that lost its manifest.
        listed, name = not self._settings.no_manifest, None
        if not listed and job.tree is not None and root_above(source.path) is None:
            name = job.name
        file = Regular(source.descriptor, closefd=False)
        return self._sealed.options_at(source.path, file, listed=listed, name=name)

    def _attributes(
        self, job: jobs.Job, source: files.InputFile
    ) -> tuple[int | None, tuple[int, int] | None]:
        """The mode and times that the output gets."""
        if self._settings.no_preserve:
            return None, None
        if (entry := self._entry(job)) is not None:
            return entry.mode, (entry.mtime, entry.mtime)
        return source.mode, source.times

    def _sink(self, job: jobs.Job, target: Target) -> Target | WithHoles:
        """The target of the plaintext of a file: holes stay holes."""
        entry = self._entry(job)
        holes = entry is not None and entry.holes and isinstance(target, OutputFile)
        return WithHoles(target) if holes else target  # type: ignore[arg-type]

    def _check_size(self, job: jobs.Job, count: int) -> None:
        """Compares the bytes of plaintext of a file of a tree with its manifest's. Raises
        CliError."""
        entry = self._entry(job)
        if entry is not None and count != entry.size:
            raise errors.NotAuthenticError(
                f"{shown(job.path)} has {counted(count, 'byte')} of plaintext, and the manifest of "
                f"its tree says {entry.size}: a holder of the key changed one of the two"
            )

    def _finish(self, plan: jobs.Plan) -> None:
        """Trees get their empty folders, links and manifest; folders their modes and times."""
        if self._check:
            return
        if self._report.failures:
            folders.remove_empty()
        for tree in plan.trees:
            if not os.path.isdir(tree.target):
                continue
            for name in tree.folders:
                os.close(folders.open_folder(tree.target, folders.parts_of(name), create=True))
            if tree in self._whole:
                self._make_links(tree)
            if tree in self._growing:
                failed = bool(self._report.failures)
                self._growing[tree].finish(deletes=self._settings.delete and not failed)
        for tree in plan.trees:
            self._finish_folders(tree)

    def _finish_folders(self, tree: jobs.Tree) -> None:
        preserve = not self._settings.no_preserve
        for name, (mode, times) in reversed(tree.folders.items()):
            folders.finish(
                tree.target,
                folders.parts_of(name),
                mode if preserve else files.default_mode(DEFAULT_FOLDER_MODE),
                times if preserve else None,
                always=self._settings.goes_on or self._settings.force,
            )

    def _make_links(self, tree: jobs.Tree) -> None:
        from . import trees

        for entry in self._whole[tree].manifest.of_kind("link"):
            place = jobs.Place(tree.target, folders.parts_of(entry.name), beneath=True)
            try:
                given = {"force": self._settings.force, "update": self._settings.update}
                trees.make_link(place, entry.target, **given, kept=self._kept)
            except FileExistsError:
                if self._settings.goes_on:
                    self._report.skip(place.path, DIFFERS)
                else:
                    self._report.fail(place.path, exists(place.path), complain)
            except (OSError, CliError) as error:
                self._report.fail(place.path, translate(error, shown(place.path)), complain)

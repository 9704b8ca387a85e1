# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH112, PTH116, PTH118
"""The trees of a run: opened before the first file, asked for each, finished after the last."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING, Literal

from warpcipher._tree_names import JOURNAL, NAME, is_own, names_of, root_above

from . import files, folders, jobs
from .errors import (
    CliError,
    NotAuthenticError,
    SystemRefusedError,
    complain,
    counted,
    shown,
    translate,
    usage,
    warn,
)
from .files import Kept, OutputFile, Target, WithHoles, exists
from .report import Report
from .settings import Settings

# Most runs have no tree: what only trees need is imported where one is.
if TYPE_CHECKING:
    from warpcipher.formats import Format, Options
    from warpcipher.formats.trees import Manifest

    from .trees import Growing, Whole


class Sealed:
    """The key, format and options of a run, as far as trees need them."""

    def __init__(self, key: object, chosen: Format, options: Options) -> None:
        self.format = chosen
        self._key = key
        self.options = options
        # A public key encrypts, and opens nothing.
        opening = [one for one in key if hasattr(one, "unwrap")] if isinstance(key, list) else key
        self._opening = opening if chosen.name == "age" else key

    @property
    def can_open(self) -> bool:
        """Whether the key opens what it encrypts."""
        return self._opening != []

    def options_of(self, name: str) -> Options:
        """Those of a file of a tree that has a manifest."""
        if not self.format.takes_context:
            return self.options
        from warpcipher.formats.trees import options_of

        return options_of(self.options, name)

    def opens(self, descriptor: int, options: Options) -> bool:
        """Whether the key opens the beginning of a file, which stays where it is."""
        from warpcipher.formats.trees import opens

        return self.can_open and opens(descriptor, self._opening, self.format, options)

    def options_in_place(
        self, path: str, descriptor: int, names: list[str] | None
    ) -> Options | None:
        """Those of a file that does not open by itself, where it is that of a tree: one of these
        names opens it; None: its manifest lists it. Raises InvalidTag."""
        chosen = self.format
        if not (chosen.takes_context and chosen.binds_chunks):
            return None
        if self.opens(descriptor, self.options):
            return None
        from warpcipher.formats.trees import options_in_place

        if names is None:
            return options_in_place(path, self._opening, chosen, self.options)
        named = (self.options_of(name) for name in names)
        return next((options for options in named if self.opens(descriptor, options)), None)

    def read(self, root: str, kind: str) -> Manifest | None:
        """The manifest (kind "manifest") or journal ("journal") of a tree; None: it has none."""
        from warpcipher import InvalidTag
        from warpcipher.formats import FormatError
        from warpcipher.formats.trees import Manifest, ManifestError, read_text

        path = os.path.join(root, NAME if kind == "manifest" else JOURNAL)
        try:
            text = read_text(root, kind, self._opening, self.format, self.options)
            return None if text is None else Manifest.from_bytes(text)
        except ManifestError as error:
            raise NotAuthenticError(f"{shown(path)}: {error}") from None
        except (InvalidTag, FormatError):
            raise NotAuthenticError(
                f"{shown(path)} is not the {kind} of a tree with this key and context, or was "
                "changed: nothing of the tree is trusted"
            ) from None

    def write(self, root: str, manifest: Manifest, kind: str, kept: Kept) -> None:
        """Gives a tree its manifest or journal, in the place of the one that it has."""
        from warpcipher.formats import encrypt_stream
        from warpcipher.formats.trees import options_of_manifest

        name = NAME if kind == "manifest" else JOURNAL
        folder = folders.open_folder(root, ())
        path = os.path.join(root, name)
        with OutputFile(folder, name, path, force=True, kept=kept, beneath=True) as output:
            encrypt_stream(
                io.BytesIO(manifest.to_bytes()),
                output,
                self._key,
                format=self.format.name,
                options=options_of_manifest(self.format, self.options, kind),
            )
            output.commit(None)


DEFAULT_FOLDER_MODE = 0o777
KEPT_BY_COPIES = ("user.", "system.posix_acl_")
"""Extended attributes that users set, unlike attributes of the system such as security.selinux."""
DIFFERS = "its output exists and differs"


def _tell_what_is_lost(tree: jobs.Tree) -> None:
    """Says once what an encrypted tree does not keep of its files."""
    linked = owned = extended = 0
    for job in tree.jobs:
        if job.status is None or job.source is None:
            continue
        linked += job.status.st_nlink > 1
        owned += job.status.st_uid != os.geteuid()
        with contextlib.suppress(OSError):
            names = os.listxattr(job.source.path, follow_symlinks=False)
            extended += any(name.startswith(KEPT_BY_COPIES) for name in names)
    parts = [
        f"{what} of {counted(count, 'file')}"
        for what, count in (
            ("hard links", linked),
            ("owners", owned),
            ("extended attributes and access lists", extended),
        )
        if count
    ]
    if parts:
        name = shown(tree.source or tree.target)
        warn(f"{name}: its encrypted tree does not keep {', '.join(parts)}: a tar archive does")


class Trees:
    """The trees of one run of `encrypt`, `decrypt` or `check`; what it finds wrong is reported."""

    def __init__(
        self,
        settings: Settings,
        sealed: Sealed,
        report: Report,
        kept: Kept,
        task: Literal["encrypt", "decrypt", "check"],
    ) -> None:
        self._settings = settings
        self._sealed = sealed
        self._report = report
        self._kept = kept
        self._encrypt = task == "encrypt"
        self._check = task == "check"
        self._locked: set[str] = set()
        self._growing: dict[jobs.Tree | None, Growing] = {}
        self._whole: dict[jobs.Tree | None, Whole] = {}

    def _binds(self, tree: jobs.Tree) -> bool:
        """Whether a tree has a manifest. Several files are encrypted without one where their format
        has none."""
        chosen = self._sealed.format
        if self._settings.no_manifest or not chosen.authenticated:
            return False
        return chosen.binds_chunks or bool(tree.source) or len(tree.folders) > 1

    def add(self, job: jobs.Job, source: files.InputFile, output: OutputFile) -> None:
        """A file is done."""
        if job.tree in self._growing:
            self._growing[job.tree].add(job, source, output)

    def save(self) -> None:
        """Keeps what is done of a run that ends with an error, which counts more than one here."""
        with contextlib.suppress(Exception):
            for growing in self._growing.values():
                growing.save()

    def open(self, plan: jobs.Plan) -> None:
        """Finds what trees have of a manifest. One that does not match is left out of the run."""
        if not plan.trees:
            return
        for tree in plan.trees:
            if not self._check and os.path.isdir(tree.target):
                folders.lock(tree.target)
                self._locked.add(tree.target)
        from .trees import Growing, Whole

        for tree in plan.trees:
            name = shown(tree.source or tree.target)
            if not self._binds(tree):
                self._refuse_links(tree)
                self._refuse_bound(tree)
                self._skip_others(tree)
            elif not self._sealed.format.binds_chunks:
                raise usage(
                    f"{name}: format {self._sealed.format.name} does not bind its "
                    "blocks to their file, and a manifest could not show which blocks are of an "
                    "older version: take --no-manifest, another format, or encrypt a tar archive"
                )
            elif self._encrypt:
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
                    self._whole[tree] = Whole(tree, self._sealed)
                except CliError as error:
                    self._report.fail(tree.source, error, complain)
                    plan.jobs = [job for job in plan.jobs if job.tree is not tree]

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

    def decide(self, job: jobs.Job) -> tuple[bool, str]:
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
        if job.tree in self._whole:
            entry = self._whole[job.tree].files[job.name]
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

    def make_roots(self, plan: jobs.Plan) -> None:
        if self._check:
            return
        if plan.folder is not None:
            folders.make_folder(plan.folder)
        for tree in plan.trees:
            if not self._is_left_out(tree):
                self._make_root(tree.target)

    def _make_root(self, path: str) -> None:
        if path not in self._locked:
            folders.make_folder(path)
            folders.lock(path)
            if not folders.made(path):  # it was not there when the run began
                raise SystemRefusedError(
                    f"another run made {shown(path)} meanwhile: run this again"
                )
        os.close(folders.open_folder(path, (), create=True))

    def _is_left_out(self, tree: jobs.Tree) -> bool:
        return self._binds(tree) and tree not in self._growing and tree not in self._whole

    def options_of(self, job: jobs.Job, source: files.InputFile) -> Options:
        """The options of a file: its name is in the context where its tree has a manifest."""
        if job.tree in self._whole:
            self._whole[job.tree].look_again(job, source.descriptor)
        if job.tree in self._growing or job.tree in self._whole:
            return self._sealed.options_of(job.name)
        if self._encrypt or job.source is None or not source.is_regular:
            return self._sealed.options
        # One file of a tree, or a tree that lost its manifest.
        names = None
        if self._settings.no_manifest:
            whole = job.tree is not None and root_above(source.path) is None
            extension = self._sealed.format.extension
            names = [job.name] if whole else names_of(source.path, extension)
        found = self._sealed.options_in_place(source.path, source.descriptor, names)
        return found or self._sealed.options

    def attributes(
        self, job: jobs.Job, source: files.InputFile
    ) -> tuple[int | None, tuple[int, int] | None]:
        """The mode and times that the output gets."""
        if self._settings.no_preserve:
            return None, None
        if job.tree in self._whole:
            entry = self._whole[job.tree].files[job.name]
            return entry.mode, (entry.mtime, entry.mtime)
        return source.mode, source.times

    def sink(self, job: jobs.Job, target: Target) -> Target | WithHoles:
        """What the plaintext of a file is written to: holes stay holes."""
        if (
            job.tree in self._whole
            and isinstance(target, OutputFile)
            and self._whole[job.tree].files[job.name].holes
        ):
            return WithHoles(target)
        return target

    def check_size(self, job: jobs.Job, count: int) -> None:
        """Compares the bytes of plaintext of a file of a tree with its manifest's. Raises
        CliError."""
        if job.tree in self._whole and count != (
            size := self._whole[job.tree].files[job.name].size
        ):
            raise NotAuthenticError(
                f"{shown(job.path)} has {counted(count, 'byte')} of plaintext, and the manifest of "
                f"its tree says {size}: a holder of the key changed one of the two"
            )

    def finish(self, plan: jobs.Plan) -> None:
        """Trees get their empty folders, links and manifest; folders their modes and times."""
        if self._check:
            return
        if self._report.failures:
            folders.remove_empty()
        for tree in plan.trees:
            if self._is_left_out(tree) or not os.path.isdir(tree.target):
                continue
            for name in self._folders_of(tree):
                parts = tuple(name.split("/")) if name else ()
                os.close(folders.open_folder(tree.target, parts, create=True))
            if tree in self._whole:
                self._make_links(tree)
            if tree in self._growing:
                failed = bool(self._report.failures)
                self._growing[tree].finish(deletes=self._settings.delete and not failed)
        for tree in plan.trees:
            if not self._is_left_out(tree):
                self._finish_folders(tree)

    def _folders_of(self, tree: jobs.Tree) -> dict[str, jobs.Attributes]:
        """Of each folder, by name, outer ones first."""
        if tree not in self._whole:
            return tree.folders
        return {
            entry.name: jobs.Attributes(entry.mode, (entry.mtime, entry.mtime))
            for entry in self._whole[tree].manifest.of_kind("folder")
        }

    def _finish_folders(self, tree: jobs.Tree) -> None:
        preserve = not self._settings.no_preserve
        for name, (mode, times) in reversed(self._folders_of(tree).items()):
            folders.finish(
                tree.target,
                tuple(name.split("/")) if name else (),
                mode if preserve else files.default_mode(DEFAULT_FOLDER_MODE),
                times if preserve else None,
                always=self._settings.goes_on or self._settings.force,
            )

    def _make_links(self, tree: jobs.Tree) -> None:
        from . import trees

        for entry in self._whole[tree].manifest.of_kind("link"):
            place = jobs.Place(tree.target, tuple(entry.name.split("/")), beneath=True)
            try:
                trees.make_link(
                    place,
                    entry.target,
                    force=self._settings.force,
                    update=self._settings.update,
                    kept=self._kept,
                )
            except FileExistsError:
                if self._settings.goes_on:
                    self._report.skip(place.path, DIFFERS)
                else:
                    self._report.fail(place.path, exists(place.path), complain)
            except (OSError, CliError) as error:
                failure = translate(error, shown(place.path))
                if failure is None:
                    raise
                self._report.fail(place.path, failure, complain)

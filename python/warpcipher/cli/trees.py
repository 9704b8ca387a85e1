# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH112, PTH118
"""Trees with a manifest: an encryption adds to it, and a tree must match it to be decrypted.

Growing  a tree while it is encrypted: the files of an earlier run, and of this one
Whole    a tree that is decrypted or checked, against its manifest
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import replace
from typing import Any

from warpcipher import InvalidTag
from warpcipher._descriptors import closing, naming
from warpcipher._new_file import unfinished
from warpcipher._tree_names import HEAD_SIZE, JOURNAL, NAME, is_own, root_above
from warpcipher.formats import FormatError
from warpcipher.formats.sealed import Sealed, open_regular
from warpcipher.formats.trees import (
    NAMES,
    Entry,
    Manifest,
    ManifestError,
    foreign_manifest,
    head_of,
)

from . import folders
from .errors import CliError, NotAuthenticError, counted, listed, shown, translate, usage, warn
from .files import Kept, OutputFile, check_target
from .jobs import Attributes, Job, Naming, Place, Tree, find_tree
from .process import remove

LEAST_SECONDS = 1.0
"""Between two writes of a journal, and at least SHARE times the time of the last one."""
SHARE = 20


def read(sealed: Sealed, root: str, kind: str) -> Manifest | None:
    """The manifest (kind "manifest") or journal ("journal") of a tree; None: it has none."""
    path = os.path.join(root, NAMES[kind])
    try:
        return sealed.read(root, kind)
    except ManifestError as error:
        raise NotAuthenticError(f"{shown(path)}: {error}") from None
    except (InvalidTag, FormatError):
        raise NotAuthenticError(foreign_manifest(shown(path), kind)) from None


class Growing:
    """A tree while it is encrypted."""

    def __init__(self, tree: Tree, sealed: Sealed, kept: Kept, *, goes_on: bool) -> None:
        """Raises CliError where the manifest that is there cannot be read: with public keys only a
        run that continues needs to."""
        self.tree = tree
        self._sealed = sealed
        self._kept = kept
        self._there: dict[str, Job] = {}
        self._gone: list[Entry] = []
        if goes_on and not sealed.can_open:
            raise usage(
                "public keys cannot open the manifest of an earlier run: add -i FILE of one of its "
                "recipients, or do everything again with --force"
            )
        before, journal = None, None
        if sealed.can_open:
            before, journal = (read(sealed, tree.target, kind) for kind in ("manifest", "journal"))
        self._before = before
        self._has_journal = os.path.lexists(os.path.join(tree.target, JOURNAL))
        self._known: dict[str, Entry] = dict(before.entries) if before else {}
        base = before.id if before else None
        if journal is not None and journal.base == base:
            self._known.update(journal.entries)
        self._made = Manifest(sealed.format.name, dict(self._known), base=base)
        self._add_folders_and_links()
        self._next_write = time.monotonic() + LEAST_SECONDS
        self._added = 0

    def check_target(self, *, replaces: bool, deletes: bool) -> None:
        """Looks at the output's place. Raises CliError if it is a tree already, which
        may not be replaced or gone on with, or has what would not belong to the tree. Warns of what
        is in the tree and not in the source any more (deletes: it will be removed)."""
        target = self.tree.target
        for name in (NAME, JOURNAL):
            if name in self.tree.folders:
                raise usage(
                    f"{shown(self.tree.path_of(name))} has the name of the tree's own {name}: "
                    "rename it, or encrypt a tar archive"
                )
        if os.path.lexists(os.path.join(target, NAME)) and not replaces:
            raise usage(
                f"{shown(target)} exists: use --update to encrypt changed files, --force "
                "to replace its files, or name another output"
            )
        if not os.path.isdir(target):
            return
        naming = Naming(self._sealed.format.extension, encrypt=False, nowhere=True)
        found = find_tree(target, target, naming, [])
        self._there = {job.name: job for job in found.jobs}
        ours = self._known.keys() | {job.name for job in self.tree.jobs}
        strange = [
            *(job.path for name, job in self._there.items() if name not in ours),
            *(
                os.path.join(target, name)
                for name in (*found.links, *found.others)
                if not is_own(name)
            ),
            *(
                os.path.join(target, name)
                for name in found.folders
                if name not in self.tree.folders and name not in self._known
            ),
        ]
        if strange:
            raise usage(
                f"{shown(target)} holds files that would not belong to the tree: "
                f"{listed(strange)}: name a new folder, or take --no-manifest"
            )
        files = {job.name for job in self.tree.jobs}
        self._find_gone(files)
        if deletes:
            return
        if self._gone:
            warn(
                f"{shown(target)} keeps files that the source does not have any more: "
                f"{listed([entry.name for entry in self._gone])}: --delete removes "
                f"{'it' if len(self._gone) == 1 else 'them'}"
            )
        for names, kind in (
            (self.tree.folders.keys() | self.tree.links.keys(), "file"),
            (files | self.tree.links.keys(), "folder"),
        ):
            for name in sorted(names):
                if name in self._known and self._known[name].kind == kind:
                    raise usage(
                        f"{shown(self.tree.path_of(name))} was a {kind} when the tree "
                        "was encrypted, and its entry stays: add --delete, or name a new folder"
                    )

    def _find_gone(self, files: set[str]) -> None:
        """Finds files that earlier runs encrypted of these inputs, and that are gone from them."""
        if self.tree.failed:
            return  # an unreadable folder may hold them
        now = {"file": files, "folder": self.tree.folders.keys(), "link": self.tree.links.keys()}
        named = self.tree.inputs
        self._gone = [
            entry
            for entry in self._known.values()
            if entry.name not in now[entry.kind]
            and not (entry.kind == "link" and entry.name in files)  # which takes its place
            and (not named or entry.name.partition("/")[0] in named)
        ]

    def _delete(self) -> None:
        """Removes from the tree files that are gone from the source, before the manifest says so: a
        run that is interrupted here is done again."""
        root, extension = self.tree.target, self._sealed.format.extension
        for entry in sorted(self._gone, key=lambda entry: entry.name, reverse=True):
            *above, last = entry.name.split("/")
            place = root, tuple(above)
            with (
                contextlib.suppress(FileNotFoundError),
                closing(folders.open_folder(*place)) as folder,
            ):
                folders.open_for_run(folder, *place, os.path.join(root, *above))
                if entry.kind == "file":
                    os.unlink(last + extension, dir_fd=folder)
                elif entry.kind == "folder" and entry.name not in self.tree.folders:
                    os.rmdir(last, dir_fd=folder)
            if self._made.entries.get(entry.name) is entry:
                del self._made.entries[entry.name]
            self._there.pop(entry.name, None)

    def _add_folders_and_links(self) -> None:
        if not self.tree.source and self._before is not None:  # no folder stands for all inputs
            root = self._before.entries[""]
            self.tree.folders[""] = Attributes(root.mode, (root.mtime, root.mtime))
        for name, status in self.tree.folders.items():
            self._made.entries[name] = Entry(name, "folder", status.mode, status.times[1])
        for name, target in self.tree.links.items():
            self._made.entries[name] = Entry(name, "link", target=target)

    def decide(self, job: Job, *, update: bool) -> tuple[bool, str]:
        """The work that an earlier run left of a file: whether its output may be replaced, and why
        there is nothing to do ("": there is)."""
        there = self._there.get(job.name)
        if there is None or job.status is None:
            return False, ""
        entry = self._known.get(job.name)
        vouched, ours = self._compare(there, entry)
        if entry is None or not vouched:
            # An earlier run made it after it last wrote the journal; or it is not ours.
            return ours, ""
        if (entry.size, entry.mtime) == (job.status.st_size, job.status.st_mtime_ns):
            if update:
                self._made.entries[job.name] = replace(entry, mode=job.status.st_mode & 0o777)
            return False, "complete"
        return (True, "") if update else (False, "changed since: --update encrypts it again")

    def _compare(self, there: Job, entry: Entry | None) -> tuple[bool, bool]:
        """Whether an encrypted file is the one of its entry, and whether it is of this tree."""
        with contextlib.suppress(OSError):
            if (descriptor := _open_regular(there)) is not None:
                with closing(descriptor):
                    begins, size = os.pread(descriptor, HEAD_SIZE, 0), os.fstat(descriptor).st_size
                    if entry is not None and entry.kind == "file" and entry.is_of(begins, size):
                        return True, True
                    bound = self._sealed.options_of(there.name)
                    return False, self._sealed.opens(descriptor, bound)
        return False, False

    def add(self, job: Job, source: Any, output: OutputFile) -> None:
        """A file of the tree is done. Writes the journal from time to time."""
        self._made.entries[job.name] = Entry(
            job.name,
            "file",
            0o600 if source.mode is None else source.mode,
            time.time_ns() if source.times is None else source.times[1],
            source.count,
            output.count,
            head_of(output.head),
            holes=source.has_holes,
        )
        self._added += 1
        if (now := time.monotonic()) > self._next_write:
            self.save()
            end = time.monotonic()
            self._next_write = end + max(LEAST_SECONDS, SHARE * (end - now))

    def save(self) -> None:
        """Writes the journal, for a run that continues."""
        if self._added:
            self._has_journal = True
            self._write("journal")

    def _write(self, kind: str) -> None:
        """Gives the tree its manifest or journal, in the place of the one that it has."""
        root, name = self.tree.target, NAMES[kind]
        folder, path = folders.open_folder(root, ()), os.path.join(root, name)
        with OutputFile(folder, name, path, force=True, kept=self._kept, beneath=True) as output:
            self._sealed.write(output, self._made, kind)
            output.commit(None)

    def finish(self, *, deletes: bool) -> None:
        """Everything that can be done is done: the tree gets its manifest, unless outputs that this
        run could not replace would not belong to it."""
        if deletes:
            self._delete()
        if not self._there.keys() <= self._made.entries.keys():
            return
        unchanged = self._before is not None and self._before.entries == self._made.entries
        if not unchanged:
            self._made.made = int(time.time())
            self._write("manifest")
        if self._has_journal:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.tree.target, JOURNAL))  # noqa: PTH108


class Whole:
    """A tree that is decrypted or checked, and matches its manifest."""

    def __init__(self, tree: Tree, sealed: Sealed) -> None:
        """Raises CliError, which names the exchanged, renamed, changed, missing or added files."""
        self.tree = tree
        manifest = read(sealed, tree.source, "manifest")
        if manifest is None:
            raise without_manifest(tree)
        self.manifest = manifest
        self.files = {entry.name: entry for entry in manifest.of_kind("file")}
        problems = self._compare()
        if problems:
            raise NotAuthenticError(
                f"{shown(tree.source)} does not match its manifest, and nothing is decrypted: "
                + "; ".join(f"{what}: {listed(names)}" for what, names in problems.items())
                + "; --no-manifest decrypts the present files, unchecked"
            )

    def look_again(self, job: Job, descriptor: int) -> None:
        """Raises CliError if the open file is not the one that was compared with the manifest."""
        size, begins = os.fstat(descriptor).st_size, os.pread(descriptor, HEAD_SIZE, 0)
        if not self.files[job.name].is_of(begins, size):
            raise NotAuthenticError(
                f"{shown(job.path)} was exchanged after the tree was compared with its manifest"
            )

    def _compare(self) -> dict[str, list[str]]:
        """Names of files that do not match, by the kind of fault."""
        there = {job.name: job for job in self.tree.jobs}
        owners = {entry.head: name for name, entry in self.files.items()}
        problems: dict[str, list[str]] = {}

        def note(what: str, name: str) -> None:
            problems.setdefault(what, []).append(name)

        renamed = set()
        for name, job in there.items():
            try:
                head = _read_head(job)
            except OSError as error:
                raise translate(error, shown(job.path)) from None
            entry = self.files.get(name)
            if entry is not None and entry.head == head:
                if job.status is None or job.status.st_size != entry.sealed:
                    note("cut or added to", name)
            elif head in owners:
                owner = owners[head]
                note("exchanged or renamed", f"{name} is {owner}")
                renamed.add(owner)
            elif entry is not None:
                note("of another tree, of another time, or damaged", name)
            else:
                note("added", name)
        for name in self.files:
            if name not in there and name not in renamed:
                note("missing", name)
        folders_listed = {entry.name for entry in self.manifest.of_kind("folder")}
        for name in sorted(folders_listed - self.tree.folders.keys()):
            note("missing", name + "/")
        for name in sorted(self.tree.folders.keys() - folders_listed):
            note("added", name + "/")
        for name in (*self.tree.links, *self.tree.others):
            if not is_own(name):
                note("added", name)
        return problems


def _open_regular(job: Job) -> int | None:
    """Opens a file of a tree: by its path, or through its folders where that is longer than the
    system takes, which costs more calls.

    None if it is not a regular file. Raises OSError.
    """
    if job.source is None:
        return None
    try:
        return open_regular(job.path)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    *above, name = job.source.parts
    with closing(folders.open_folder(job.source.base, tuple(above))) as folder:
        return open_regular(name, folder)


def _read_head(job: Job) -> str | None:
    """The head of an encrypted file; None if it is not a regular file. Raises OSError."""
    descriptor = _open_regular(job)
    if descriptor is None:
        return None
    with closing(descriptor):
        return head_of(os.pread(descriptor, HEAD_SIZE, 0))


def without_manifest(tree: Tree) -> CliError:
    """The error for a tree that has no manifest."""
    return NotAuthenticError(f"{shown(tree.source)} {_why_without(tree)}")


def _why_without(tree: Tree) -> str:
    root = tree.source
    if os.path.lexists(os.path.join(root, JOURNAL)):
        return (
            "has no manifest yet: the run that encrypted it did not end; run it again with "
            "--skip-existing"
        )
    above = root_above(root)
    if above is not None:
        return f"is part of the tree {shown(above)}: name that"
    inside = [name.rpartition("/")[0] for name in tree.others if name.endswith("/" + NAME)]
    if inside:
        return (
            f"has no manifest, and holds {counted(len(inside), 'tree')} that "
            f"{'has' if len(inside) == 1 else 'have'} one: name {listed(inside)} by itself"
        )
    return (
        f"has no manifest ({NAME}): it was removed, the tree was encrypted without one, or the run "
        "that encrypted it did not end: then run that again with --skip-existing; --no-manifest "
        "decrypts the present files, unchecked"
    )


def _target(folder: int, name: str) -> str | None:
    """The target of a link; None if the name is not a link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def make_link(place: Place, target: str, *, force: bool, update: bool, kept: Kept) -> None:
    """Makes a link, unless it exists. force: it may replace a file or another link; update:
    only another link.

    Raises FileExistsError if the name is taken by a file that it may not replace, CliError if it
    may not have its name all the same, OSError.
    """
    name = place.parts[-1]
    with (
        naming(place.path),
        closing(folders.open_folder(place.base, place.parts[:-1], create=True)) as folder,
    ):
        there = _target(folder, name)
        if there == target:
            return
        force = force or (update and there is not None)
        if not force and os.access(name, os.F_OK, dir_fd=folder, follow_symlinks=False):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        check_target(folder, name, place.path, force=force, kept=kept, beneath=True)
        if not force:
            os.symlink(target, name, dir_fd=folder)
            return
        temporary = f".warpcipher-{os.urandom(8).hex()}.part"
        unfinished[temporary] = folder
        try:
            os.symlink(target, temporary, dir_fd=folder)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            unfinished.pop(temporary)
        except OSError:
            remove(temporary)
            raise

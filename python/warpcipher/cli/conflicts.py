# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH112, PTH116, PTH118, PTH120
"""Refuses a run whose outputs would replace its key, its inputs or each other.

Files are compared by device and inode, so that links and several ways to one folder do not hide
their identity; outputs that do not exist yet, by their folder and name. All of it happens before
the first file is read: later an input may already be gone.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from warpcipher._tree_names import NAME, root_above

from .errors import CliError, counted, shown, usage, warn
from .files import Kept, not_a_file
from .folders import Identity, identity_of, not_a_folder
from .jobs import Place, Plan

if TYPE_CHECKING:
    from .settings import Settings

T = TypeVar("T")


Entry = tuple[Identity, tuple[str, ...]]
"""A name: the nearest folder above it that is there, and all below that."""


def entry_of(path: str, known: dict[str, Identity]) -> Entry:
    """known: folders that were looked at: a tree asks for the same ones many times."""
    above, below = path, []
    while True:
        above, _, name = above.rstrip("/").rpartition("/")
        below.append(name)
        place = above or ("/" if path.startswith("/") else ".")
        try:
            found = known.get(place) or identity_of(os.stat(place))
        except OSError:  # not there, or its name is too long
            if not above:
                raise
            continue
        known[place] = found
        return found, tuple(below)


def refuse(plan: Plan, key_files: Iterable[str], kept: Kept, *, in_place: bool = False) -> None:
    """Raises CliError for such a run. Adds to `kept` the files that no output may replace.
    in_place: outputs are to replace their inputs."""
    if not in_place:
        _keep_inputs(plan, kept)
    for key_file in key_files:
        _keep(kept, key_file, "the key file")
    _refuse_inside_inputs(plan)
    folders: dict[str, Identity] = {}
    entries: dict[Entry, str] = {}
    existing: dict[Identity, str] = {}
    for tree in plan.trees:
        for name in tree.folders:
            path = os.path.join(tree.target, name) if name else tree.target
            source = shown(tree.path_of(name)) if name or tree.source else "the inputs"
            _take(entries, entry_of(path, folders), source, path)
            with contextlib.suppress(OSError):
                if not stat.S_ISDIR(os.stat(path, follow_symlinks=not name).st_mode):
                    raise not_a_folder(path)
    for job in plan.jobs:
        if job.target is None:
            _check_standard_output(kept)
            continue
        path, source = job.target.path, _shown_source(job.source)
        _take(entries, entry_of(job.target.real, folders), source, path)
        try:
            status = os.stat(job.target.real, follow_symlinks=False)
        except OSError:
            continue
        kept.refuse(status, path)
        if stat.S_ISDIR(status.st_mode):
            raise not_a_file(path)
        # A file with one link has one name, however spelt: some file systems take A for a.
        if status.st_nlink == 1:
            _take(existing, identity_of(status), source, path)
        elif in_place:
            warn(f"{shown(path)} has other hard links, which keep the old file and its key")


def _refuse_inside_inputs(plan: Plan) -> None:
    """A tree in its own input would be an input of the next run."""
    roots = {
        identity_of(os.stat(path)): path
        for tree in plan.trees
        for path in ([tree.source] if tree.source else tree.inputs.values())
        if os.path.isdir(path)
    }
    for tree in plan.trees:
        above = os.path.realpath(tree.target)
        while above != (above := os.path.dirname(above)):
            with contextlib.suppress(OSError):
                if (root := roots.get(identity_of(os.stat(above)))) is not None:
                    raise usage(
                        f"{shown(tree.target)} is inside of the input {shown(root)}, so the next "
                        "run would take it too: name an output elsewhere with -o"
                    )


def _keep_inputs(plan: Plan, kept: Kept) -> None:
    for job in plan.jobs:
        what = _shown_source(job.source)
        if job.source is None:
            status = os.fstat(0)
            if stat.S_ISREG(status.st_mode):
                kept.add(identity_of(status), what, None)
        elif job.status is not None and job.source.beneath:  # a regular file, not a link
            kept.add(identity_of(job.status), f"the input {what}", job.source.path)
        else:
            _keep(kept, job.source.path, f"the input {what}")


def _keep(kept: Kept, path: str, what: str) -> None:
    for identity in _identities(path):
        kept.add(identity, what, path)


def _identities(path: str) -> set[Identity]:
    """The files of a name: a link and the file that it leads to; nothing for a device."""
    found = set()
    for follow in (False, True):
        with contextlib.suppress(OSError):  # which the job itself will meet
            status = os.stat(path, follow_symlinks=follow)
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                found.add(identity_of(status))
    return found


def _check_standard_output(kept: Kept) -> None:
    status = os.fstat(1)
    if stat.S_ISREG(status.st_mode):
        kept.refuse(status, "standard output")


def _shown_source(source: Place | None) -> str:
    return "standard input" if source is None else shown(source.path)


def _take(taken: dict[T, str], place: T, source: str, path: str) -> None:
    if place in taken:
        raise usage(f"{taken[place]} and {source} would both become {shown(path)}")
    taken[place] = source


def refuse_in_trees(plan: Plan, *, encrypt: bool) -> None:
    """Raises CliError for outputs in an encrypted tree that do not belong there: it would not match
    its manifest any more."""
    places = [
        (job.target.path, job.target.real)
        for job in plan.jobs
        if job.target is not None and job.tree is None
    ]
    for tree in plan.trees:
        # The input of decryption may be an encrypted tree, with its manifest.
        inside = not encrypt and all(job.name != NAME for job in tree.jobs)
        place = os.path.join(tree.target, NAME) if inside else tree.target
        places.append((tree.target, place))
    for path, place in places:
        root = root_above(place)
        if root is not None:
            what = "a plain file" if not encrypt else "a file that its manifest does not list"
            raise usage(
                f"{shown(path)} would be in the encrypted tree {shown(root)}, where {what} does "
                "not belong: name an output elsewhere with -o"
            )


def secret_files(settings: Settings) -> frozenset[Identity]:
    """The files with secrets that a run reads."""
    paths = filter(None, (settings.key.path, *settings.people.identities))
    return frozenset(identity for path in paths for identity in _identities(path))


def refuse_key_file(path: str, secret: frozenset[Identity]) -> None:
    """Raises CliError where an input is a key file."""
    if not secret.isdisjoint(_identities(path)):
        raise _is_key_file(path)


def _is_key_file(path: str) -> CliError:
    return usage(
        f"{shown(path)} is the key file, which nobody could decrypt without itself: leave it out, "
        "and keep it elsewhere"
    )


def leave_out_keys(plan: Plan, secret: frozenset[Identity]) -> None:
    """Takes the key files out of the trees that are to be encrypted. Raises CliError for one that
    is named. A key encrypted under itself is lost with its plain file, and with it all others."""
    for job in list(plan.jobs):
        place = job.source
        if place is None:
            continue
        status = [identity_of(job.status)] if job.status is not None else _identities(place.path)
        if secret.isdisjoint(status):
            continue
        if not place.beneath or job.tree is None:
            raise _is_key_file(place.path)
        plan.jobs.remove(job)
        job.tree.jobs.remove(job)
        job.tree.others[job.name] = "the key file, which nobody could decrypt without itself"


def warn_of_encrypted(plan: Plan, suffix: str) -> None:
    """Warns where names say that inputs are encrypted already."""
    found = [job.path for job in plan.jobs if job.path.endswith(suffix)]
    if found:
        more = f" and {counted(len(found) - 1, 'more file')}" if len(found) > 1 else ""
        warn(
            f"{shown(found[0])}{more}: encrypted already, as the name says, and now once more: "
            "`warpcipher decrypt` takes off one layer at a time"
        )

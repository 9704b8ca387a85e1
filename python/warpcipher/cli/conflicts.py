# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH116
"""Refuses a run whose outputs would replace its key, its inputs or each other.

Files are compared by device and inode, so that links and several ways to one folder do not hide
what is the same; outputs that do not exist yet, by their folder and name. All of it happens before
the first file is read: later an input may already be gone.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from .errors import CliError, shown, usage
from .folders import Identity, identity_of
from .jobs import Place, Plan
from .outputs import never_overwritten


class Entry(NamedTuple):
    """A name in a folder: of one that exists by identity, with what is missing below it."""

    folder: Identity
    missing: tuple[str, ...]
    name: str


class Folders:
    """Finds what folders stand for; a tree asks for the same ones many times."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Identity, tuple[str, ...]]] = {}

    def entry(self, path: str) -> Entry:
        end = path.rfind("/")
        folder = "." if end < 0 else path[:end] or "/"
        return Entry(*self._find(folder), path[end + 1 :])

    def _find(self, path: str) -> tuple[Identity, tuple[str, ...]]:
        if path not in self._known:
            try:
                self._known[path] = identity_of(os.stat(path)), ()
            except OSError:
                parent, name = os.path.split(path.rstrip("/"))
                if not name:
                    raise
                identity, missing = self._find(parent or ("/" if path[:1] == "/" else "."))
                self._known[path] = identity, (*missing, name)
        return self._known[path]


def refuse(plan: Plan, key_files: Iterable[str], *, in_place: bool = False) -> dict[Identity, str]:
    """Raises CliError for such a run. Returns what no output may replace, by identity, and what an
    error calls it. in_place: outputs are to replace their inputs."""
    kept = {} if in_place else _inputs(plan)
    for key_file in key_files:
        kept.update(dict.fromkeys(_identities(key_file), "the key file"))
    folders = Folders()
    entries: dict[Entry, Place | None] = {}
    existing: dict[Identity, Place | None] = {}
    for job in plan.jobs:
        if job.target is None:
            _check_standard_output(kept)
            continue
        path = job.target.path
        entry = folders.entry(job.target.real)
        if entry in entries:
            raise _collision(entries[entry], job.source, path)
        entries[entry] = job.source
        try:
            status = os.stat(job.target.real, follow_symlinks=False)
        except OSError:
            continue
        identity = identity_of(status)
        if identity in kept:
            raise never_overwritten(path, kept[identity])
        # A file with one link has one name, however spelt: some file systems take A for a.
        if status.st_nlink == 1 and not stat.S_ISDIR(status.st_mode):
            if identity in existing:
                raise _collision(existing[identity], job.source, path)
            existing[identity] = job.source
    return kept


def _inputs(plan: Plan) -> dict[Identity, str]:
    kept: dict[Identity, str] = {}
    for job in plan.jobs:
        what = _shown_source(job.source)
        if job.source is None:
            status = os.fstat(0)
            if stat.S_ISREG(status.st_mode):
                kept[identity_of(status)] = what
        elif job.status is not None:  # a regular file of a tree, which is no link
            kept[identity_of(job.status)] = f"the input {what}"
        else:
            kept.update(dict.fromkeys(_identities(job.source.path), f"the input {what}"))
    return kept


def _identities(path: str) -> set[Identity]:
    """What a name stands for: a link and the file that it leads to; nothing for a device."""
    found = set()
    for follow in (False, True):
        with contextlib.suppress(OSError):  # which the job itself will meet
            status = os.stat(path, follow_symlinks=follow)
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                found.add(identity_of(status))
    return found


def _check_standard_output(kept: dict[Identity, str]) -> None:
    status = os.fstat(1)
    if stat.S_ISREG(status.st_mode) and identity_of(status) in kept:
        raise never_overwritten("standard output", kept[identity_of(status)])


def _shown_source(source: Place | None) -> str:
    return "standard input" if source is None else shown(source.path)


def _collision(first: Place | None, second: Place | None, path: str) -> CliError:
    sources = f"{_shown_source(first)} and {_shown_source(second)}"
    return usage(f"{sources} would both become {shown(path)}")

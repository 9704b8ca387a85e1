# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
# ruff: noqa: PTH112, PTH118, PTH119, PTH120
"""Which inputs become which outputs: default names, -o, several inputs, directory trees.

    input        without -o          with -o OUT
    FILE         FILE + suffix       OUT, or OUT/FILE + suffix where OUT is a directory
    DIRECTORY    DIRECTORY + suffix  OUT: the same tree, its files with the suffix
    several      each as above       OUT is a directory, made if missing, that takes them
    - (stdin)    standard output     OUT

Decryption takes the suffix away. In trees, symbolic links and special files are skipped and told
of; nothing is followed out of the tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from . import files, folders
from .errors import CliError, shown, translate, usage
from .outputs import OutputFile

STANDARD = "-"


@dataclass(frozen=True)
class Place:
    """The file base/parts[0]/.../parts[-1]. With `beneath` only `base` may be a symbolic link."""

    base: str
    parts: tuple[str, ...]
    beneath: bool = False

    @property
    def path(self) -> str:
        return (
            os.path.join(self.base, *self.parts) if self.base != "." else os.path.join(*self.parts)
        )


@dataclass(frozen=True)
class Job:
    """One input and its output; None is a standard stream."""

    source: Place | None
    target: Place | None


@dataclass
class Plan:
    """All that is to do.

    folder: that of -o for several inputs, which may be missing. folders: those of output trees,
    with their final permissions.
    """

    folder: str | None = None
    jobs: list[Job] = field(default_factory=list)
    folders: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failures: list[tuple[str, CliError]] = field(default_factory=list)


class Naming:
    """The default name of an output, from its input's."""

    def __init__(self, suffix: str, *, encrypt: bool) -> None:
        self.suffix = suffix
        self.encrypt = encrypt

    def __call__(self, name: str) -> str | None:
        """None where a name to decrypt has not the suffix."""
        if self.encrypt:
            return name + self.suffix
        if name.endswith(self.suffix) and len(name) > len(self.suffix):
            return name[: -len(self.suffix)]
        return None

    def of_input(self, path: str) -> str:
        name = self(os.path.basename(path))
        if name is None:
            raise usage(f"{shown(path)} does not end in {self.suffix}: name the output with -o")
        return name


def make_plan(inputs: tuple[str, ...], output: str | None, naming: Naming) -> Plan:
    """Finds the jobs; reads folders, and writes nothing. Raises CliError, OSError."""
    plan = Plan()
    several = len(inputs) > 1
    if output == STANDARD and (several or os.path.isdir(inputs[0])):
        raise usage("standard output takes one file: name a directory with -o")
    if several and output is not None:
        if os.path.lexists(output) and not os.path.isdir(output):
            raise folders.not_a_folder(output)
        plan.folder = output
    for given in inputs:
        if given == STANDARD:
            _plan_stdin(plan, output, several)
            continue
        path = given.rstrip("/") or given[:1]
        if os.path.isdir(path):
            _plan_tree(plan, path, _tree_target(path, output, several, naming), naming)
        else:
            _plan_file(plan, path, output, naming)
    return plan


def _plan_stdin(plan: Plan, output: str | None, several: bool) -> None:
    if several:
        raise usage("standard input (-) goes alone: it has no name for its output")
    if output is None or output == STANDARD:
        plan.jobs.append(Job(None, None))
    elif output.endswith("/") or os.path.isdir(output):
        raise usage(
            f"{shown(output)} is a directory: name the file that standard input becomes with -o"
        )
    else:
        plan.jobs.append(Job(None, _place(output)))


def _place(path: str) -> Place:
    base, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise usage(f"{shown(path) or 'an empty name'} names no file")
    return Place(base or ".", (name,))


def _plan_file(plan: Plan, path: str, output: str | None, naming: Naming) -> None:
    source = _place(path)
    if output is None:
        target = Place(source.base, (naming.of_input(path),))
    elif output == STANDARD:
        plan.jobs.append(Job(source, None))
        return
    elif plan.folder is not None or output.endswith("/") or os.path.isdir(output):
        target = Place(output, (naming.of_input(path),))
    else:
        target = _place(output)
    plan.jobs.append(Job(source, target))


def _tree_target(path: str, output: str | None, several: bool, naming: Naming) -> str:
    if output is not None and not several:
        return output
    if os.path.basename(path) in ("", ".", ".."):
        raise usage(f"{shown(path)} gives its output no name: name a directory with -o")
    name = naming.of_input(path)
    return os.path.join(output if output is not None else os.path.dirname(path), name)


def _plan_tree(plan: Plan, root: str, target: str, naming: Naming) -> None:
    if os.path.lexists(target) and not os.path.isdir(target):
        raise folders.not_a_folder(target)
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            folder = folders.open_folder(root, parts)
        except OSError as error:
            _fail(plan, os.path.join(root, *parts), error)
            continue
        try:
            plan.folders.append((target, parts, os.fstat(folder).st_mode & 0o777))
            for entry in _entries(plan, folder, root, parts):
                below = (*parts, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(below)
                    continue
                name = naming(entry.name)
                if name is None:
                    path = Place(root, below).path
                    plan.skipped.append((path, f"its name does not end in {naming.suffix}"))
                    continue
                plan.jobs.append(
                    Job(
                        Place(root, below, beneath=True),
                        Place(target, (*parts, name), beneath=True),
                    )
                )
        finally:
            os.close(folder)


def _entries(
    plan: Plan, folder: int, root: str, parts: tuple[str, ...]
) -> Iterator[os.DirEntry[str]]:
    """The regular files and folders of a folder, by name; the others are noted as skipped."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_symlink():
            reason = "a symbolic link"
        elif entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
            yield entry
            continue
        else:
            reason = "not a regular file"
        plan.skipped.append((Place(root, (*parts, entry.name)).path, reason))


def _fail(plan: Plan, path: str, error: OSError) -> None:
    translated = translate(error)
    if translated is None:
        raise error
    plan.failures.append((path, translated))


def open_source(place: Place | None) -> files.InputFile:
    """Opens an input. Raises OSError, for what has become a symbolic link too."""
    if place is None:
        return files.InputFile(0, "standard input")
    flags = os.O_RDONLY | os.O_CLOEXEC
    if not place.beneath:
        descriptor = os.open(place.path, flags)
    else:
        folder = folders.open_folder(place.base, place.parts[:-1])
        try:
            # O_NONBLOCK: a file that has become a FIFO meanwhile must not block.
            descriptor = os.open(
                place.parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder
            )
        except OSError as error:
            raise OSError(error.errno, error.strerror, place.path) from None
        finally:
            os.close(folder)
    try:
        return files.InputFile(descriptor, place.path)
    except BaseException:
        os.close(descriptor)
        raise


def open_target(
    place: Place | None, *, force: bool, kept: Mapping[folders.Identity, str]
) -> OutputFile | files.StandardOutput:
    """Opens an output under its temporary name. Raises CliError where it may not be replaced."""
    if place is None:
        return files.StandardOutput()
    folder = folders.open_folder(place.base, place.parts[:-1], create=place.beneath)
    return OutputFile(folder, place.parts[-1], place.path, force=force, kept=kept)


def make_folders(plan: Plan) -> None:
    """Makes the folder of -o for several inputs, and those of the output trees, empty ones too."""
    if plan.folder is not None:
        folders.make_folder(plan.folder)
    for base, parts, _ in plan.folders:
        folders.make_folder(base)
        os.close(folders.open_folder(base, parts, create=True))


def finish_folders(plan: Plan) -> None:
    """Gives the folders that this run made the permissions of their inputs, the deepest first."""
    for base, parts, mode in reversed(plan.folders):
        folders.finish(base, parts, mode)

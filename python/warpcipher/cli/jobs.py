# SPDX-License-Identifier: Apache-2.0
# Calls relative to a folder descriptor have no counterpart in pathlib:
# ruff: noqa: PTH112, PTH116, PTH118, PTH119, PTH120
"""Which inputs become which outputs: default names, -o, several inputs, directory trees.

    input        without -o          with -o OUT
    FILE         FILE + suffix       OUT; OUT/FILE + suffix where OUT is a directory, or ends in
                                     /: then it is made if missing
    DIRECTORY    DIRECTORY + suffix  OUT: the same tree, its files with the suffix
    several      each as above       OUT is a directory, made if missing, that takes them; of an
                                     encryption it is one tree
    - (stdin)    standard output     OUT

Decryption takes the suffix away. Special files in trees are skipped, with a warning; symbolic links
are not followed but kept in the tree's manifest, and refused without one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from warpcipher._descriptors import closing, naming
from warpcipher._tree_names import NAME

from . import files, folders
from .errors import CliError, Failures, shown, translate, usage
from .files import Kept, OutputFile, real_target

STANDARD = "-"


class Place:
    """The file base/parts[0]/.../parts[-1]. With `beneath` only `base` may be a symbolic link.

    path: all of it as one name, where it is known already: a tree has thousands of these. Of an
    output it is the name that was given, and the rest is what that leads to through links.
    """

    __slots__ = ("base", "beneath", "parts", "path")

    def __init__(
        self, base: str, parts: tuple[str, ...], beneath: bool = False, path: str = ""
    ) -> None:
        self.base = base
        self.parts = parts
        self.beneath = beneath
        self.path = path or os.path.join(*_start(base), *parts)

    @property
    def real(self) -> str:
        """`path`, through the links that an output is written through."""
        return self.path if self.beneath else os.path.join(self.base, *self.parts)


def _start(base: str) -> tuple[str, ...]:
    return () if base == "." else (base,)


@dataclass(slots=True, eq=False)
class Job:
    """One input and its output; None is a standard stream, or nothing where files are checked.

    tree, name: where it belongs to a tree, and its name there, as it is before encryption.
    status: of the input, where it was looked at.
    """

    source: Place | None
    target: Place | None
    tree: Tree | None = None
    name: str = ""
    status: os.stat_result | None = None

    @property
    def path(self) -> str:
        return "standard input" if self.source is None else self.source.path


class Attributes(NamedTuple):
    """Of a folder. times: of access and change, in nanoseconds since 1970."""

    mode: int
    times: tuple[int, int]


@dataclass(eq=False)
class Tree:
    """A directory that is an input, and its content; or several inputs that become one.

    source: its path, or "" of several inputs: their paths, by name, are `inputs`. folders, links:
    by name ("" is the root), with the targets of links. others: with no place in an encrypted
    tree, by name, and the reason.
    """

    source: str
    target: str
    inputs: dict[str, str] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    folders: dict[str, Attributes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    failed: bool = False

    def path_of(self, name: str) -> str:
        """The path of that name here."""
        top, _, rest = name.partition("/")
        base = self.inputs.get(top)
        if base is None:
            return os.path.join(*_start(self.source), name)
        return os.path.join(base, rest) if rest else base


@dataclass
class Plan:
    """All jobs of a run. folder: the -o of several inputs to decrypt, which may be missing."""

    folder: str | None = None
    jobs: list[Job] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    failures: Failures = field(default_factory=list)


class Naming:
    """The default name of an output, from its input's."""

    def __init__(self, suffix: str, *, encrypt: bool, nowhere: bool = False) -> None:
        """nowhere: there are no outputs."""
        self.suffix = suffix
        self.encrypt = encrypt
        self.nowhere = nowhere

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


class SameNames(Naming):
    """Outputs have the names of their inputs, in another folder or in their place."""

    def __init__(self, suffix: str) -> None:
        super().__init__(suffix, encrypt=False)

    def __call__(self, name: str) -> str | None:
        return name if name.endswith(self.suffix) else None

    def of_input(self, path: str) -> str:
        return os.path.basename(path)


def make_plan(inputs: tuple[str, ...], output: str | None, naming: Naming) -> Plan:
    """Finds the jobs; reads folders, and writes nothing. Raises CliError, OSError."""
    plan = Plan()
    several = len(inputs) > 1
    if output == STANDARD and (several or os.path.isdir(inputs[0])):
        raise usage("standard output takes one file: name a directory with -o")
    named_as_folder = output is not None and output.endswith("/") and not os.path.isdir(inputs[0])
    if output is not None and (several or (named_as_folder and inputs != (STANDARD,))):
        if os.path.lexists(output.rstrip("/") or "/") and not os.path.isdir(output):
            raise folders.not_a_folder(output)
        plan.folder = output
    if naming.encrypt and output not in (None, STANDARD) and STANDARD not in inputs:
        joins = os.path.lexists(os.path.join(output, NAME)) and not os.path.isdir(inputs[0])
        if several or joins:
            plan.folder = None
            _plan_several(plan, inputs, output, naming)
            return plan
    for given in inputs:
        if given == STANDARD:
            _plan_stdin(plan, output, several)
            continue
        path = given.rstrip("/") or given[:1]
        if os.path.isdir(path):
            target = path if naming.nowhere else _tree_target(path, output, several, naming)
            _plan_tree(plan, path, target, naming)
        else:
            _plan_file(plan, path, output, naming)
    return plan


def _plan_stdin(plan: Plan, output: str | None, several: bool) -> None:
    if several:
        raise usage("standard input (-) is the only input of its run: it has no name for an output")
    if output is None or output == STANDARD:
        plan.jobs.append(Job(None, None))
    elif output.endswith("/") or os.path.isdir(output):
        raise usage(
            f"{shown(output)} is a directory: name the file that standard input becomes with -o"
        )
    else:
        plan.jobs.append(Job(None, _output(output)))


def _place(path: str) -> Place:
    base, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise usage(f"{shown(path) or 'an empty name'} names no file")
    return Place(base or ".", (name,))


def _output(path: str) -> Place:
    base, name = real_target(path)
    return Place(base, (name,), path=path)


def _plan_file(plan: Plan, path: str, output: str | None, naming: Naming) -> None:
    source = _place(path)
    if naming.nowhere:
        plan.jobs.append(Job(source, None))
        return
    if output is None:
        if _is_special(path):
            raise usage(
                f"{shown(path)} is a device or pipe: name the output with -o; - is standard output"
            )
        target = _output(os.path.join(*_start(source.base), naming.of_input(path)))
    elif output == STANDARD:
        plan.jobs.append(Job(source, None))
        return
    elif plan.folder is not None or os.path.isdir(output):
        target = _output(os.path.join(output, naming.of_input(path)))
    else:
        target = _output(output)
    plan.jobs.append(Job(source, target))


def _is_special(path: str) -> bool:
    """Whether this is a device, a pipe, or a process's open file: no output belongs beside it."""
    folder = os.path.realpath(os.path.dirname(path))
    if folder == "/dev" or folder.startswith("/proc/"):  # /dev/stdin, /dev/fd/63, <(...)
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:  # which the job itself will meet
        return False


def _tree_target(path: str, output: str | None, several: bool, naming: Naming) -> str:
    if output is not None and not several:
        return output
    if os.path.basename(path) in ("", ".", ".."):
        raise usage(f"{shown(path)} gives its output no name: name a directory with -o")
    name = naming.of_input(path)
    return os.path.join(output if output is not None else os.path.dirname(path), name)


def _plan_several(plan: Plan, inputs: tuple[str, ...], output: str, naming: Naming) -> None:
    """Several inputs, or a file for the tree that is there, become a tree with their names."""
    tree = Tree("", output)
    now = time.time_ns()
    tree.folders[""] = Attributes(files.default_mode(0o777), (now, now))
    for given in inputs:
        path = given.rstrip("/") or given[:1]
        name = os.path.basename(path)
        if name in ("", ".", ".."):
            raise usage(f"{shown(path)} has no name for its output: encrypt it by itself")
        before = tree.inputs.setdefault(name, path)
        if os.path.isdir(path):
            if before is not path:
                raise _both(before, path, os.path.join(output, name))
            _walk(tree, path, (name,), naming, plan.failures)
        else:
            if name in tree.folders:
                raise _both(before, path, os.path.join(output, name))
            place = Place(output, (naming.of_input(path),), True)
            job = Job(_place(path), place, tree, name)
            with contextlib.suppress(OSError):  # which the job itself will meet
                status = os.stat(path)
                job.status = status if stat.S_ISREG(status.st_mode) else None
            tree.jobs.append(job)
    plan.trees.append(tree)
    plan.jobs += tree.jobs


def _both(first: str, second: str, path: str) -> CliError:
    return usage(f"{shown(first)} and {shown(second)} would both become {shown(path)}")


def _plan_tree(plan: Plan, root: str, target: str, naming: Naming) -> None:
    if not naming.nowhere and os.path.lexists(target) and not os.path.isdir(target):
        raise folders.not_a_folder(target)
    tree = find_tree(root, target, naming, plan.failures)
    plan.trees.append(tree)
    plan.jobs += tree.jobs


def find_tree(root: str, target: str, naming: Naming, failures: Failures) -> Tree:
    """Looks through a directory; unreadable entries go to `failures`."""
    tree = Tree(root, target)
    _walk(tree, root, (), naming, failures)
    return tree


def _walk(
    tree: Tree, root: str, above: tuple[str, ...], naming: Naming, failures: Failures
) -> None:
    """Finds the entries below `root`, which is the folder `above` in the tree."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            with closing(folders.open_folder(root, parts)) as folder:
                status = os.fstat(folder)
                tree.folders["/".join((*above, *parts))] = Attributes(
                    status.st_mode & 0o3777, (status.st_atime_ns, status.st_mtime_ns)
                )
                _look(tree, folder, root, above, parts, waiting, naming)
        except OSError as error:
            tree.failed = True
            path = os.path.join(root, *parts)
            failures.append((path, translate(error, shown(path))))


def _look(
    tree: Tree,
    folder: int,
    root: str,
    above: tuple[str, ...],
    parts: tuple[str, ...],
    waiting: list[tuple[str, ...]],
    naming: Naming,
) -> None:
    """Finds the content of one folder of a tree; folders in it go to `waiting`."""
    source = os.path.join(*_start(root), *parts, "")
    target = os.path.join(*_start(tree.target), *above, *parts, "")
    inside = "".join(f"{part}/" for part in (*above, *parts))
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = entry.name
        path = inside + name
        if entry.is_symlink():
            tree.links[path] = os.readlink(name, dir_fd=folder)
        elif entry.is_dir(follow_symlinks=False):
            waiting.append((*parts, name))
        elif not entry.is_file(follow_symlinks=False):
            tree.others[path] = "not a regular file"
        elif (other := naming(name)) is None:
            tree.others[path] = f"its name does not end in {naming.suffix}"
        else:
            place = Place(root, (*parts, name), True, source + name)
            output = None
            if not naming.nowhere:
                output = Place(tree.target, (*above, *parts, other), True, target + other)
            member = path if naming.encrypt else inside + other
            tree.jobs.append(Job(place, output, tree, member, entry.stat(follow_symlinks=False)))


def open_source(place: Place | None) -> files.InputFile:
    """Opens an input. Raises OSError, also if it has become a symbolic link."""
    if place is None:
        return files.InputFile(0, "standard input")
    flags = os.O_RDONLY | os.O_CLOEXEC
    if not place.beneath:
        descriptor = os.open(place.path, flags)
    else:
        folder = folders.open_folder(place.base, place.parts[:-1])
        with naming(place.path), closing(folder):
            # O_NONBLOCK: a file that has become a FIFO meanwhile must not block.
            flags |= os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(place.parts[-1], flags, dir_fd=folder)
    try:
        return files.InputFile(descriptor, place.path)
    except BaseException:
        os.close(descriptor)
        raise


def open_target(place: Place, *, force: bool, kept: Kept) -> OutputFile:
    """Opens an output under its temporary name. Raises CliError where it may not be replaced."""
    folder = folders.open_folder(place.base, place.parts[:-1], create=place.beneath)
    return OutputFile(
        folder, place.parts[-1], place.path, force=force, kept=kept, beneath=place.beneath
    )

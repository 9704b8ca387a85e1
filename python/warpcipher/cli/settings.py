# SPDX-License-Identifier: Apache-2.0
"""The options of `encrypt`, `decrypt` and `check`, and their meaning together."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import click

import warpcipher as wc
from warpcipher import stores
from warpcipher._types import Self

from . import keys, names, recipients
from .errors import shown, usage
from .jobs import STANDARD
from .options import FORCE, argument, in_section, option, with_options
from .run import DRY_RUN, ENGINE, TELLING, RunOptions

PATHS = (
    argument("paths PATH..."),
    option(
        "--files-from FILE", "Take further PATHs from this file, one a line; - is standard input."
    ),
    option("-0 --null", "They end in NUL, as `find -print0` writes them."),
    *in_section("Key", *keys.OPTIONS),
)
COMPUTING = (ENGINE, *recipients.CONTEXT)
_MESSAGES = (
    option(
        "--encryption-context KEY=VALUE",
        "Text that a message stores and authenticates, or must have; may be repeated.",
        multiple=True,
    ),
    option(
        "--suite NAME",
        "The algorithm suite, such as 0x0478; decrypt reads one without key commitment only "
        "where it is named. [default: 0x0578]",
    ),
)
_FRAMES = (
    option(
        "--required-context KEY",
        "Do not store this KEY of --encryption-context: decrypt must have the pair again.",
        multiple=True,
    ),
    option(
        "--frame-length N",
        "Bytes of text of a frame. [default: 4096]",
        type=click.IntRange(1, (1 << 32) - 1),
    ),
)
WRITING = (
    option("-o --output PATH", "Output file or directory; - is standard output."),
    FORCE,
    option("--no-preserve", "Do not keep times and permissions."),
    DRY_RUN,
)
EARLIER = (
    option("--skip-existing", "Go on with an earlier run: leave outputs that are there."),
    option("--update", "The same, and do changed files again."),
)
NO_MANIFEST = option(
    "--no-manifest", "Trees without a manifest: nothing binds their files together."
)
_DELETE = option(
    "--delete", "With --update: remove from a tree the files that its source no longer has."
)


MANY = (
    option("--jobs N", "Objects at a time.  [default: 16]", type=click.IntRange(1, 1024)),
    option("--include GLOB", "Only objects with such a name; may be repeated.", multiple=True),
    option("--exclude GLOB", "No objects with such a name; may be repeated.", multiple=True),
    option("--min-size SIZE", "Only objects of so many bytes: 64K, 1G."),
    option("--max-size SIZE", "Only objects of at most so many."),
    option("--min-age AGE", "Only objects older than 12h, 7d, 1y."),
    option("--max-age AGE", "Only objects newer than that."),
    option("--journal PLACE", "Where a job notes what is done.  [default: in the output]"),
    option(
        "--retry N",
        "Further attempts with an object, after errors of I/O.  [default: 3]",
        type=click.IntRange(0, 100),
    ),
    option("--report FILE", "A line of JSON for each object; - is standard output."),
    option(
        "--cluster ADDRESS",
        "Work on the nodes of this Ray cluster; auto: the one of this machine. Paths are on a "
        "file system that they share.",
    ),
)
_FILTERS = ("include", "exclude", "min_size", "max_size", "min_age", "max_age")
OF_MANY = ("jobs", "journal", "retry", "report", "cluster", *_FILTERS)


def refuse_many(given: dict[str, Any]) -> None:
    """Raises CliError where an option of MANY is among these, which no local run takes."""
    for name in OF_MANY:
        if given[name] not in (None, ()):
            raise usage(f"--{name.replace('_', '-')} is for objects at URLs and for --cluster")


_MANY = "Many objects, at URLs"
_TREES = "Trees, and outputs of earlier runs"
_PEOPLE = "Keys of people: age and Crypt4GH"
_AWSESDK = "Format awsesdk: messages of the AWS Encryption SDK"


check_options = with_options(
    *PATHS,
    *in_section(_PEOPLE, *recipients.READING),
    *in_section("Format", names.FORMAT, *COMPUTING),
    *in_section(_AWSESDK, *_MESSAGES),
    *in_section(_TREES, NO_MANIFEST),
    *in_section(_MANY, *MANY),
    *TELLING,
)
decrypt_options = with_options(
    check_options,
    *in_section(_PEOPLE, *recipients.WRITING),  # who can decrypt: refused
    *in_section("Output", *WRITING),
    *in_section(_TREES, *EARLIER),
)
encrypt_options = with_options(
    decrypt_options, *in_section(_TREES, _DELETE), *in_section(_AWSESDK, *_FRAMES)
)


@dataclass(kw_only=True)
class Settings(RunOptions):
    """The options of a run, as given."""

    key: keys.Choice
    people: recipients.People
    format_name: str
    engine: str
    context: str | None
    context_hex: bytes | None
    no_manifest: bool = False
    skip_existing: bool = False
    update: bool = False
    no_preserve: bool = False
    delete: bool = False
    armor: bool = False
    jobs: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    min_size: str | None = None
    max_size: str | None = None
    min_age: str | None = None
    max_age: str | None = None
    journal: str | None = None
    retry: int | None = None
    report: str | None = None
    cluster: str | None = None
    encryption_context: tuple[str, ...] = ()
    suite: str | None = None
    required_context: tuple[str, ...] = ()
    frame_length: int | None = None

    @classmethod
    def of(cls, given: dict[str, Any], *, decrypts: bool = False) -> Self:
        """From the arguments of a command. Raises CliError for options that do not go together,
        before anything is read but the beginnings of files that are to be opened without a key."""
        people = recipients.People.take(given)
        listed, null = given.pop("files_from"), given.pop("null")
        settings = cls(key=keys.Choice.take(given), people=people, **given)
        if null and listed is None:
            raise usage("--null needs --files-from")
        if listed == STANDARD:
            settings._refuse_standard_input("the list of files")
        if listed is not None:
            settings.paths += _names(listed, b"\0" if null else b"\n")
        if not settings.paths:
            raise usage(
                "Missing argument: give PATH... or --files-from FILE"
                if listed is None
                else f"{shown(listed)} names no file"
            )
        if any("://" in place for place in (*settings.paths, settings.output or "")):
            settings.paths = tuple(map(stores.local_path, settings.paths))
            settings.output = stores.local_path(settings.output)
        if decrypts and not (settings.people or settings.key):
            settings.people = recipients.without_key(settings.paths, settings.format_name)
        settings._check()
        return settings

    @property
    def is_job(self) -> bool:
        """Whether this is a run over objects: at URLs, or at paths that a cluster's nodes share."""
        places = (*self.paths, self.output or "")
        return self.cluster is not None or any(map(stores.is_url, places))

    @property
    def key_files(self) -> tuple[str, ...]:
        """The files that keys are read from, which no output may replace."""
        return tuple(filter(None, (self.key.path, *self.people.paths)))

    @property
    def filters(self) -> list[str]:
        """The options given that choose some of many objects."""
        return [name for name in _FILTERS if getattr(self, name)]

    @property
    def goes_on(self) -> bool:
        """Whether outputs of an earlier run may be there."""
        return self.skip_existing or self.update

    def _check(self) -> None:
        self.check_telling()
        if not self.is_job:
            refuse_many(vars(self))
        if self.cluster is not None:
            if STANDARD in (*self.paths, self.output):
                raise usage("--cluster takes files and objects, not standard input or output")
            self.paths = tuple(map(_absolute, self.paths))
            self.output = self.output and _absolute(self.output)
        if self.force and self.goes_on:
            raise usage("--force cannot be combined with --skip-existing or --update")
        if self.delete and not (self.force or self.update):
            raise usage("--delete removes files that the source does not have: it needs --update")
        if self.skip_existing and self.update:
            raise usage("give one of --skip-existing and --update, which does more")
        if self.goes_on and (self.output == STANDARD or STANDARD in self.paths):
            raise usage(
                "--skip-existing and --update work on files, not on standard input or output"
            )
        self._check_key()
        if STANDARD in self.paths:
            self._refuse_standard_input("the input")

    def _check_key(self) -> None:
        """Raises CliError unless there is one key, of a format that the command takes."""
        self._check_format(self.format_name)
        if sum((bool(self.key), bool(self.people))) != 1:
            raise usage("give one key, with --key FILE, or age's: -r, -R, -i, --passphrase")

    def _check_format(self, name: str) -> None:
        if name == "auto":
            return
        if command := wc.formats.get(name).command:
            raise usage(
                f"format {name} has its own commands: `warpcipher {command} encrypt` and "
                f"`{command} decrypt`; nothing can be checked, as nothing is authenticated"
            )

    def _refuse_standard_input(self, what: str) -> None:
        """Raises CliError if `what` comes from standard input, and something else does too."""
        others = {
            "the key": self.key.takes_standard_input or self.people.takes_standard_input,
            "the input": what != "the input" and STANDARD in self.paths,
        }
        for other, wants in others.items():
            if wants:
                raise usage(f"{other} and {what} both want standard input: name a file for one")


def _absolute(path: str) -> str:
    """A path as nodes find it, whose working directory is another one; URLs stay."""
    if not path or stores.is_url(path):
        return path
    return os.path.abspath(path) + "/" * path.endswith("/")  # noqa: PTH100


def _names(path: str, end: bytes) -> tuple[str, ...]:
    """The paths in a list. `-` is a file of that name there."""
    with open(0 if path == STANDARD else path, "rb", closefd=path != STANDARD) as file:
        names = [os.fsdecode(name) for name in file.read().split(end) if name]
    if any("\0" in name for name in names):
        raise usage(f"{shown(path)} has names that end in NUL: add --null")
    return tuple("./-" if name == STANDARD else name for name in names)

# SPDX-License-Identifier: Apache-2.0
"""The options of the key that takes the place of another: of `rewrap` and `rekey`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from . import keys
from .errors import as_usage, usage
from .jobs import STANDARD
from .options import option
from .recipients import People, passphrase_options, recipient_options
from .settings import Settings

if TYPE_CHECKING:
    from warpcipher.formats.sealed import Sealed

KEY = (
    option(
        "--new-key new_key_file FILE", "The new key file, or JSON Web Keys; - is standard input."
    ),
    option("--new-key-env NAME", "It is in this environment variable."),
    option("--new-key-command COMMAND", "Take it from this command's output."),
)
PEOPLE = (
    *recipient_options("new key"),
    *passphrase_options("Format age: ask for the passphrase that opens it.", "new-"),
)


@dataclass(frozen=True)
class NewKeys:
    """The options for new keys: one of the two, or nothing."""

    choice: keys.Choice
    people: People

    @classmethod
    def take(cls, given: dict[str, Any]) -> NewKeys:
        """Takes the options out of a command's arguments. Raises CliError."""
        made = cls(keys.Choice.take(given, "new_"), People.take(given, "new_"))
        if made.choice and made.people:
            raise usage("give one new key: --new-key, or age's: -r, -R, --new-passphrase")
        return made

    def __bool__(self) -> bool:
        return bool(self.choice or self.people)

    @property
    def takes_standard_input(self) -> bool:
        return self.choice.takes_standard_input or self.people.takes_standard_input

    @property
    def paths(self) -> tuple[str, ...]:
        """Files that no output may replace."""
        return (*filter(None, (self.choice.path if self.choice else None,)), *self.people.paths)

    def read(self, format_name: str) -> Any:
        """The key of new files. Raises CliError, OSError."""
        if self.people:
            return self.people.read(encrypts=True)
        return self.choice.read(format_name, None)


@dataclass(kw_only=True)
class RekeySettings(Settings):
    """The options of a run, as given."""

    new: NewKeys
    new_format: str
    new_context: str | None
    new_armor: bool
    in_place: bool

    @property
    def is_job(self) -> bool:
        return super().is_job or any(map(os.path.isdir, self.paths))

    @property
    def key_files(self) -> tuple[str, ...]:
        return (*super().key_files, *self.new.paths)

    def _check(self) -> None:
        super()._check()
        if not self.new:
            raise usage("give the new key: --new-key FILE, or age's: -r, -R, --new-passphrase")
        if STANDARD in self.paths or self.output == STANDARD:
            raise usage("new files are read back before they appear: name files, not -")
        if (self.output is not None) == self.in_place:
            raise usage("give one of -o PATH, for new files, and --in-place")
        if self.in_place and (self.force or self.goes_on):
            raise usage("--force, --skip-existing and --update are for --output")
        keys_from_input = self.key.takes_standard_input or self.people.takes_standard_input
        if keys_from_input and self.new.takes_standard_input:
            raise usage("both keys are to come from standard input: name a file for one")
        self._check_format(self.new_format)

    def new_sealed(self, context: bytes) -> Sealed:
        """The keys and context of new files. context: of the old ones. Raises CliError, OSError."""
        from warpcipher.formats.sealed import Sealed

        key = self.new.read(self.new_format)
        chosen = wc.formats.resolve(self.new_format, key)
        if self.new.people and (fits := wc.formats.resolve("auto", key)) is not chosen:
            raise usage(f"the new keys are of format {fits.name}, not of {chosen.name}")
        if self.new_context is not None:
            context = os.fsencode(self.new_context)
        options = wc.formats.Options(context, engine=self.engine, armor=self.new_armor)
        with as_usage():
            options.check(chosen)
        return Sealed(key, chosen, options)

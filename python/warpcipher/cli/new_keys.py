# SPDX-License-Identifier: Apache-2.0
"""The options of the key that takes the place of another: of `rewrap` and `rekey`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from . import keys
from .errors import usage
from .recipients import People, recipient_options

KEY = (
    click.option(
        "--new-key", metavar="FILE", help="The new key file, or JSON Web Keys; - is standard input."
    ),
    click.option("--new-key-env", metavar="NAME", help="It is in this environment variable."),
    click.option(
        "--new-key-command", metavar="COMMAND", help="Take it from this command's output."
    ),
)
PEOPLE = (
    *recipient_options("new key"),
    click.option(
        "--new-passphrase", is_flag=True, help="Format age: ask for the passphrase that opens it."
    ),
    click.option(
        "--new-passphrase-env", metavar="NAME", help="It is in this environment variable."
    ),
    click.option(
        "--new-passphrase-fd",
        metavar="N",
        callback=keys.descriptor,
        help="It is read from this open descriptor, without its line end.",
    ),
)


@dataclass(frozen=True)
class NewKeys:
    """What the options say: one of the two, or nothing."""

    choice: keys.Choice
    people: People

    @classmethod
    def take(cls, given: dict[str, Any]) -> NewKeys:
        """Takes the options out of a command's arguments. Raises CliError."""
        values = [given.pop(f"new_key{suffix}") for suffix in ("", "_env", "_command")]
        if sum(value is not None for value in values) > 1:
            raise usage("give the new keys: one of --new-key, --new-key-env and --new-key-command")
        file, env, command = values
        choice = keys.Choice(file=file, env=env, command=command, option="--new-key")
        made = cls(choice, People.take(given, "new_"))
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

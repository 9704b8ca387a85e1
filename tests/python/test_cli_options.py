# SPDX-License-Identifier: Apache-2.0
"""Short options go to click by their long names: it reads them as it would without that."""

from __future__ import annotations

import random
from typing import Any

import click
import pytest
from warpcipher.cli.encrypt import encrypt
from warpcipher.cli.errors import Command

WORDS = [
    *("-q", "-f", "-o", "-r", "-R", "-i", "-a", "-h", "-qf", "-oout", "-fo", "-z", "-", "--"),
    *("--key", "--key=k", "--context", "--context=-f", "--json", "--force", "--no", "--output"),
    *("file", "age1x", "3", "", "=", "-o=x", "-q=1", "--cluster"),
]


@click.command(cls=Command)
@click.option("--cluster", is_flag=False, flag_value="auto")  # as of search
@click.option("-o", "--output")
@click.option("-q", "--quiet", is_flag=True)
@click.argument("files", nargs=-1)
def optional(**_: Any) -> None:
    pass


def read(kind: type[click.Command], args: list[str], command: click.Command = encrypt) -> Any:
    """What the command gets; for an error its kind."""
    context = click.Context(command, info_name="encrypt", resilient_parsing=False)
    try:
        left = kind.parse_args(command, context, list(args))
    except (click.ClickException, click.exceptions.Exit) as error:
        return type(error)
    return context.params, left


def test_every_line_is_read_as_click_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = random.Random(29)
    for _ in range(3000):
        args = lines.choices(WORDS, k=lines.randrange(7))
        for command in (encrypt, optional):
            assert read(Command, args, command) == read(click.Command, args, command), args
    capsys.readouterr()  # of --help
    assert read(Command, ["--cluster", "--", "-o"], optional)[0]["files"] == ("-o",)
    assert read(Command, ["-o", "-f", "-q", "a"])[0]["output"] == "-f"

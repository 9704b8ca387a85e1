# SPDX-License-Identifier: Apache-2.0
"""Short options go to click by their long names: it reads them as it would without that."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import click
import pytest
from cli_support import run
from warpcipher.cli.encrypt import encrypt
from warpcipher.cli.errors import Command, UsageError

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
    """The values that the command gets; for an error its kind."""
    context = click.Context(command, info_name="encrypt", resilient_parsing=False)
    try:
        left = kind.parse_args(command, context, list(args))
    except (click.ClickException, click.exceptions.Exit) as error:
        return type(error)
    return context.params, left


def twice(args: list[str], command: click.Command) -> bool:
    """Whether an option is there more than once of which one is taken."""
    _, _, order = command.make_parser(click.Context(command)).parse_args(list(args))
    given = [option.name for option in order]
    return any(given.count(name) > 1 for name in ("key_file", "context", "output"))


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--key", ("--key", "a", "--key-file=b")),
        ("--key-env", ("--key-env", "A", "--key-env", "A")),
        ("--output", ("-oa", "--output", "b")),
        ("--passphrase-env", ("--passphrase-env", "A", "--passphrase-env", "B")),
    ],
)
def test_an_option_of_one_value_is_given_once(
    tmp_path: Path, option: str, values: tuple[str, ...]
) -> None:
    done = run("encrypt", *values, "f", cwd=tmp_path, expect=2)
    assert done.stderr.decode() == f"warpcipher: {option} was given 2 times: give one\n"


def test_of_other_options_the_last_counts(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(32))
    (tmp_path / "f").write_text("text")
    run("encrypt", "--engine", "none", "--engine", "cpu", "--key", "key", "f", cwd=tmp_path)


def test_names_that_end_in_nul_need_an_option(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(32))
    (tmp_path / "list").write_bytes(b"a\0b\0")
    done = run("encrypt", "--key", "key", "--files-from", "list", cwd=tmp_path, expect=2)
    assert done.stderr == b"warpcipher: list has names that end in NUL: add --null\n"


@pytest.mark.parametrize("group", [(), ("parquet",), ("raw",)])
def test_a_command_is_described_by_a_whole_sentence(tmp_path: Path, group: tuple[str, ...]) -> None:
    text = run(*group, "--help", cwd=tmp_path).stdout.decode()
    assert "..." not in text.partition("Commands:")[2]


def test_every_line_is_read_as_click_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = random.Random(29)
    for _ in range(3000):
        args = lines.choices(WORDS, k=lines.randrange(7))
        for command in (encrypt, optional):
            found = read(Command, args, command)
            if found is UsageError:
                assert twice(args, command), args
            else:
                assert found == read(click.Command, args, command), args
    capsys.readouterr()  # of --help
    assert read(Command, ["--cluster", "--", "-o"], optional)[0]["files"] == ("-o",)
    assert read(Command, ["-o", "-f", "-q", "a"])[0]["output"] == "-f"

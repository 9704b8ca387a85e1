# SPDX-License-Identifier: Apache-2.0
"""Files installed beside the program: its man page and the completion of shells."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from warpcipher.cli import errors
from warpcipher.cli.app import COMMANDS, cli

SHARE = Path(__file__).parents[3] / "share"
PAGE = SHARE / "warpcipher.1"


def test_man_page_has_every_command_and_exit_code() -> None:
    text = PAGE.read_text().replace("\\-", "-")
    entries = dict(re.findall(r"^\.TP\n\.B (.*)\n(.*)$", text, re.MULTILINE))
    context = click.Context(cli, info_name="warpcipher")
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    expected = {name: found.get_short_help_str(200) for name, found in commands.items() if found}
    assert entries == {**expected, **errors._MEANINGS}


def test_man_page_is_well_formed() -> None:
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    done = subprocess.run(
        ["man", "--warnings", "-l", PAGE], capture_output=True, text=True, check=True
    )
    if "has been minimized" in done.stdout:  # a container's image, whose `man` shows no page
        pytest.skip("man shows no pages on this system")
    assert done.stderr == ""
    assert "authenticated encryption" in done.stdout


def test_bash_finds_the_completion(tmp_path: Path) -> None:
    program = tmp_path / "warpcipher"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m warpcipher "$@"\n')
    program.chmod(0o755)
    script = (
        f"PATH={tmp_path}:$PATH\n"
        + """
. "$1"
complete -p warpcipher
COMP_WORDS=(warpcipher en) COMP_CWORD=1
_warpcipher_completion warpcipher
echo "${COMPREPLY[@]}"
"""
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", SHARE / "completions/warpcipher.bash"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "encrypt"


def test_files_are_installed_with_the_package() -> None:
    """Each by the name under which the system looks for it."""
    rules = (SHARE.parent / "cmake/PythonExtension.cmake").read_text()
    for path in (path for path in SHARE.rglob("*") if path.is_file()):
        assert f"install(FILES {path.relative_to(SHARE.parent)} DESTINATION" in rules

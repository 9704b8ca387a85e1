# SPDX-License-Identifier: Apache-2.0
"""Runs every example of the pages below, and checks docs/cli.md against the command."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_support import path_with_command, pattern
from warpcipher.cli import errors
from warpcipher.cli.app import COMMANDS

DOCS = Path(__file__).parents[3] / "docs"
# And the least number of examples in each.
PAGES = {
    "cli.md": 20,
    "search.md": 8,
    "parquet.md": 5,
}


def examples(page: Path) -> list[tuple[str, str]]:
    """The (command, expected output) pairs of the page's console blocks."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the page shows openssl")
@pytest.mark.parametrize("name", PAGES)
def test_examples(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "examples"
    (folder / "photos/2024").mkdir(parents=True)
    (folder / "photos/2024/a.jpg").write_bytes(os.urandom(1000))
    (folder / "photos/b.jpg").write_bytes(os.urandom(2000))
    (folder / "report.pdf").write_bytes(os.urandom(300_000))
    if name == "parquet.md":
        pyarrow = pytest.importorskip("pyarrow")
        importlib.import_module("pyarrow.parquet").write_table(
            pyarrow.table({"id": [1, 2], "ssn": ["1", "2"]}), folder / "plain.parquet"
        )
    (folder / "notes.txt").write_text("some notes\n")
    path = path_with_command(tmp_path / "bin")
    pairs = examples(DOCS / name)
    assert len(pairs) > PAGES[name]
    if any("--format age" in line for line, _ in pairs):
        pytest.importorskip("cryptography")
    variables = ""
    for line, expected in pairs:
        if re.match(r"\w+=\S+( \w+=\S+)*$", line):
            variables += line + "\n"
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{variables}{line}"],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        shown = done.stdout + (f"[exit code {done.returncode}]\n" if done.returncode else "")
        assert re.fullmatch(pattern(expected), shown), (
            f"$ {line}\n{shown}--- the page says\n{expected}"
        )


def test_page_has_every_command_and_exit_code() -> None:
    page = (DOCS / "cli.md").read_text()
    for command in COMMANDS:
        assert f"| `{command}" in page
    rows = [
        re.split(r" {2,}", line.strip(), maxsplit=1)
        for line in errors.EPILOG_OF_ALL.splitlines()[3:]
        if line
    ]
    assert len(rows) > 5
    for code, _ in rows:
        assert f"| {code} | " in page

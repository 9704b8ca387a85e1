# SPDX-License-Identifier: Apache-2.0
"""Runs the examples in Python of the pages below, each page in order in one namespace."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from cli_support import path_with_command

DOCS = Path(__file__).parents[3] / "docs"
# The least number of examples, and what they print.
PAGES = {
    "guides/llm.md": (5, "missed: [1]"),
    "guides/private-computation.md": (2, ""),
    "guides/random.md": (6, "32 bytes"),
    "guides/storage.md": (1, ""),
    "parquet.md": (1, ""),
    "python.md": (9, "reference True"),
    "search.md": (3, "keys/s"),
    "trees.md": (1, ""),
    "../README.md": (4, ""),
}
BLOCK = re.compile(r"(?:<!-- needs: (?P<needs>.*?) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)


def is_here(needs: str) -> bool:
    """Whether "torch with a GPU" or "numpy" is met."""
    module, _, gpu = needs.partition(" ")
    if importlib.util.find_spec(module) is None:
        return False
    return not gpu or importlib.import_module(module).cuda.is_available()


@pytest.mark.parametrize("name", PAGES)
def test_examples(
    name: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", path_with_command(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)  # some write files
    least, printed = PAGES[name]
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= least
    names: dict[str, Any] = {}
    ran = 0
    for block in blocks:
        if block["needs"] is None or is_here(block["needs"]):
            line = text[: block.start("code")].count("\n")
            exec(compile("\n" * line + block["code"], name, "exec"), names)  # noqa: S102
            ran += 1
    # pyarrow's factories hold functions where no look for cycles sees it, and these all names.
    names.clear()
    assert ran >= len(blocks) - 3
    assert printed in capsys.readouterr().out

# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of docs/python.md, in order, in one namespace."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"(?:<!-- needs: (?P<needs>.*?) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)


def is_here(needs: str) -> bool:
    """Whether "torch with a GPU" or "numpy" is met."""
    module, _, gpu = needs.partition(" ")
    if importlib.util.find_spec(module) is None:
        return False
    return not gpu or importlib.import_module(module).cuda.is_available()


def test_examples(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = list(BLOCK.finditer(PAGE.read_text(encoding="utf-8")))
    assert len(blocks) >= 9
    names: dict[str, Any] = {}
    ran = 0
    for block in blocks:
        if block["needs"] is None or is_here(block["needs"]):
            line = PAGE.read_text(encoding="utf-8")[: block.start("code")].count("\n")
            exec(compile("\n" * line + block["code"], str(PAGE), "exec"), names)  # noqa: S102
            ran += 1
    assert ran >= len(blocks) - 2
    assert "reference True" in capsys.readouterr().out

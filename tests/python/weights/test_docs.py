# SPDX-License-Identifier: Apache-2.0
"""Runs every example of docs/weights.md, in order, in one folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cli_support import pattern, run
from test_docs_python import BLOCK, is_here
from warpcipher import weights

np = pytest.importorskip("numpy", reason="NumPy is not installed")

PAGE = Path(__file__).parents[3] / "docs/weights.md"


@pytest.mark.filterwarnings("ignore")  # of PyTorch, about running without ranks
def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    names: dict[str, Any] = {}
    ran = 0
    for block in blocks:
        if block["needs"] is None or is_here(block["needs"]):
            line = text[: block.start("code")].count("\n")
            exec(compile("\n" * line + block["code"], PAGE.name, "exec"), names)  # noqa: S102
            ran += 1
    assert (len(blocks), ran >= 4) == (7, True)


def test_console(tmp_path: Path) -> None:
    model = {"embed": np.zeros((1000, 64), np.float32), "norm": np.ones(64, np.float32)}
    weights.save_file(model, tmp_path / "model.safetensors")
    run("keygen", "my.key", cwd=tmp_path)
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    assert len(commands) == 2
    for part in commands:
        command, _, output = part.partition("\n")
        done = run(*command.split()[1:], cwd=tmp_path)
        assert re.fullmatch(pattern(output), done.stdout.decode()), done.stdout.decode()

# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of docs/formats.md in order, and finds every format and template in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from warpcipher import formats
from warpcipher.formats import registry

PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("cryptography")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry._FORMATS, "made", {})  # what the page adds goes again
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 9
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/formats.md", "exec"), names)  # noqa: S102
    plain = Path("plain").read_bytes()
    assert len(plain) == 100_000
    assert Path("again").read_bytes() == plain, "encrypted and decrypted again"
    with formats.open("secret", names["key"]) as file:
        assert file.read() == plain
    with formats.open("bare", names["key"], format="raw", options=names["options"]) as file:
        assert file.read() == plain
    assert names["start"] == plain[:16]
    assert names["numbers"].tobytes() == plain[4:4004]
    assert names["keyset"] == formats.Keyset.from_json(names["text"])
    assert len(names["keyset"].keys) == 2


def test_every_format_is_described() -> None:
    for name in formats.FORMATS:
        assert f"`{name}`" in PAGE
    for template in formats.TEMPLATES:
        kind = re.sub("GCM_HKDF|CTR_HMAC_SHA256", "GCM_HKDF", template)
        assert f"`{kind}`" in PAGE

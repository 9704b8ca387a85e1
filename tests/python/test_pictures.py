# SPDX-License-Identifier: Apache-2.0
"""The picture of README.md, which is drawn by hand: its bars are as long as its figures say, and
the figures are those of docs/performance.md."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_their_figures() -> None:
    picture = ET.parse(ROOT / "docs/images/aes-128-ctr.svg").getroot()  # noqa: S314 - our own
    bars = [bar for bar in picture.iter(f"{SVG}rect") if bar.get("x")]
    figures = [float(text.text or "") for text in picture.iter(f"{SVG}text") if is_figure(text)]
    assert len(bars) == len(figures) == 6
    assert len({bar.get("x") for bar in bars}) == 1, "all begin at zero"
    for bar, figure in zip(bars, figures, strict=True):
        assert abs(float(bar.get("width", 0)) - figure / 2) < 1, figure
    (bound,) = (line for line in picture.iter(f"{SVG}line") if line.get("x1") == line.get("x2"))
    assert float(bound.get("x1", 0)) - float(bars[0].get("x", 0)) == 1014 / 2
    page = (ROOT / "docs/performance.md").read_text()
    for figure in figures:
        assert any(round(float(found)) == figure for found in re.findall(r"[0-9.]*[0-9]", page))


def is_figure(text: ET.Element) -> bool:
    return text.get("font-weight") == "bold" and (text.text or "").isdigit()

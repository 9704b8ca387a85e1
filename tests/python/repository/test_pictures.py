# SPDX-License-Identifier: Apache-2.0
"""The pictures that are drawn by hand: bars are as long as their figures say, and the figures are
those of docs/performance.md."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[3]
FIGURE = re.compile(r"[0-9.]*[0-9]")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("name", "count", "unit", "bounds"),
    [("rates", 11, 0.42, [1014]), ("models", 8, 10.4, [])],
)
def test_bars_are_as_long_as_their_figures(
    name: str, count: int, unit: float, bounds: list[float]
) -> None:
    """unit: the length of one GB/s."""
    picture = ET.parse(ROOT / f"docs/images/{name}.svg").getroot()  # noqa: S314 - our own
    bars = [bar for bar in picture.iter(f"{SVG}rect") if bar.get("x")]
    figures = [float(text.text or "") for text in picture.iter(f"{SVG}text") if is_figure(text)]
    assert len(bars) == len(figures) == count
    assert len({bar.get("x") for bar in bars}) == 1, "all begin at zero"
    for bar, figure in zip(bars, figures, strict=True):
        assert abs(float(bar.get("width", 0)) - unit * figure) < 1, figure
    lines = [line for line in picture.iter(f"{SVG}line") if line.get("x1") == line.get("x2")]
    lengths = [float(line.get("x1", 0)) - float(bars[0].get("x", 0)) for line in lines]
    assert lengths == pytest.approx([unit * bound for bound in bounds])
    page = (ROOT / "docs/performance.md").read_text()
    for figure in figures:
        digits = 1 if figure % 1 else 0
        assert any(round(float(found), digits) == figure for found in FIGURE.findall(page))


def is_figure(text: ET.Element) -> bool:
    return text.get("font-weight") == "bold" and bool(re.fullmatch(r"[0-9.]+", text.text or ""))

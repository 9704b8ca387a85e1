# SPDX-License-Identifier: Apache-2.0
"""What the documentation points at exists. Sphinx checks links between its pages too;
here source paths in backticks are checked as well: a file that moves takes its mention along."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
# `src/mode/x.hpp` and `lab/NAME.cu` stand for files to come.
STANDS_FOR_ANY = re.compile(r"\bx\.|NAME|[<>*{}]")
SOURCE = re.compile(
    r"`((?:bench|bindings|build_backend|cmake|examples|include|lab|python|src|tests|tools)/[^` ]*)`"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(params=PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def page(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def test_links_lead_to_files(page: Path) -> None:
    links = [
        link.partition("#")[0]
        for link in LINK.findall(without_code(page.read_text(encoding="utf-8")))
        if not re.match(r"https?:|mailto:", link)
    ]
    assert [link for link in links if link and not (page.parent / link).exists()] == []


def test_source_paths_exist(page: Path) -> None:
    named = SOURCE.findall(page.read_text(encoding="utf-8"))
    missing = [
        name for name in named if not STANDS_FOR_ANY.search(name) and not (ROOT / name).exists()
    ]
    assert missing == []


def test_prose_is_wrapped(page: Path) -> None:
    """At 120 columns; tables, code and pictures are as wide as they are."""
    text = re.sub(
        r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    wide = [
        line
        for line in text.splitlines()
        if len(line) > 120 and not line.lstrip().startswith(("|", "![")) and " " in line.strip()
    ]
    assert wide == []


def test_there_are_pages_and_paths() -> None:
    assert len(PAGES) > 30
    assert sum(len(SOURCE.findall(page.read_text(encoding="utf-8"))) for page in PAGES) > 40


def test_rates_of_the_readme_are_those_of_performance() -> None:
    """A measurement replaces the one before it in both."""
    figure = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w.-])")
    table = re.search(
        r"^\| 4 GiB in device memory \|.*?\n\n", (ROOT / "README.md").read_text(), re.M | re.S
    )
    assert table is not None
    rates = [row.rpartition(" | ")[2] for row in table.group().splitlines()[2:]]
    known = set(figure.findall((ROOT / "docs/performance.md").read_text(encoding="utf-8")))
    assert [rate for rate in figure.findall("\n".join(rates)) if rate not in known] == []

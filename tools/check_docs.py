# SPDX-License-Identifier: Apache-2.0
"""Checks of the documentation that Sphinx does not make (`make docs` checks the links).

Source paths in backticks exist, and prose is wrapped. Every public name of the package stands in
the reference and has a docstring. Figures of the README and of the pictures drawn by hand are in
docs/performance.md, and bars are as long as their figures say.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import warpcipher

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
PERFORMANCE = (ROOT / "docs/performance.md").read_text(encoding="utf-8")

SOURCE = re.compile(
    r"`((?:bindings|build_backend|cmake|examples|include|measure|python|src|tests|tools)/[^` ]*)`"
)
# `src/mode/x.hpp` and `measure/lab/NAME.cu` stand for files to come.
STANDS_FOR_ANY = re.compile(r"\bx\.|NAME|[<>*{}]")
FIGURE = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w.-])")

# Modules that users import.
MODULES = (
    "",
    "aead",
    "formats",
    "formats.age",
    "formats.crypt4gh",
    "keys",
    "keysearch",
    "kv",
    "parquet",
    "random",
    "random.jax",
    "random.opacus",
    "tuning",
    "weights",
)

# A picture, the number of its bars, the length of one GB/s, and the bounds that are drawn as lines.
PICTURES = (("rates", 11, 0.42, [1014.0]), ("models", 8, 10.4, []))
SVG = "{http://www.w3.org/2000/svg}"


def pages() -> Iterator[str]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(ROOT)
        for path in SOURCE.findall(text):
            if not STANDS_FOR_ANY.search(path) and not (ROOT / path).exists():
                yield f"{name}: no file {path}"
        # Tables, code and pictures are as wide as they are.
        prose = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
        for line in prose.splitlines():
            is_prose = not line.lstrip().startswith(("|", "![")) and " " in line.strip()
            if is_prose and len(line) > 120:
                yield f"{name}: longer than 120 columns: {line[:40]}..."


def reference() -> Iterator[str]:
    text = "".join(p.read_text("utf-8") for p in (ROOT / "docs/reference/python").glob("*.md"))
    named = set(re.findall(r"auto\w+:: (?:warpcipher\.)?(\w+)", text))
    public = {name for name in warpcipher.__all__ if not name.startswith("_")}
    for name in public - named - {"search"}:  # which is on the page of its module
        yield f"docs/reference/python has no {name}"
    for name in named - public - {"warpcipher_measure"}:
        yield f"docs/reference/python has {name}, which is not a public name"


def docstrings() -> Iterator[str]:
    """Ruff's D rules do not know which names are public here, and see no native ones."""
    for place in MODULES:
        module = importlib.import_module("warpcipher" + ("." + place if place else ""))
        for name in getattr(module, "__all__", None) or vars(module):
            thing = getattr(module, name)
            is_ours = str(getattr(thing, "__module__", "")).startswith("warpcipher")
            if name.startswith("_") or not callable(thing) or not is_ours:
                continue
            # Slots, and the fields of data classes and named tuples, are described by the class.
            members = {
                f"{name}.{member}": value
                for member, value in (vars(thing) if isinstance(thing, type) else {}).items()
                if not member.startswith("_")
                and (isinstance(value, property | classmethod | staticmethod) or callable(value))
            }
            for full, value in {name: thing, **members}.items():
                if not (getattr(value, "__doc__", None) or "").strip():
                    yield f"{module.__name__}.{full} has no docstring"


def figures() -> Iterator[str]:
    """A measurement replaces the one before it everywhere."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| 4 GiB in device memory |")[2].partition("\n\n")[0]
    rates = [row.rpartition(" | ")[2] for row in table.splitlines()[2:]]
    known = set(FIGURE.findall(PERFORMANCE))
    if not rates:
        yield "README.md: no table of rates in device memory"
    for rate in FIGURE.findall("\n".join(rates)):
        if rate not in known:
            yield f"README.md: {rate} is not in docs/performance.md"


def pictures() -> Iterator[str]:
    known = [float(found) for found in re.findall(r"\d+(?:\.\d+)?", PERFORMANCE)]
    for name, count, unit, bounds in PICTURES:
        picture = ET.parse(ROOT / f"docs/images/{name}.svg").getroot()  # noqa: S314 - our own
        bars = [bar for bar in picture.iter(f"{SVG}rect") if bar.get("x")]
        texts = [t for t in picture.iter(f"{SVG}text") if t.get("font-weight") == "bold"]
        shown = [float(t.text or "") for t in texts if re.fullmatch(r"[0-9.]+", t.text or "")]
        start = float(bars[0].get("x", 0))
        lines = [line for line in picture.iter(f"{SVG}line") if line.get("x1") == line.get("x2")]
        drawn = [round((float(line.get("x1", 0)) - start) / unit, 6) for line in lines]
        if not len(bars) == len(shown) == count or drawn != bounds:
            yield f"{name}.svg: {len(bars)} bars, {len(shown)} figures, bounds at {drawn}"
        for bar, figure in zip(bars, shown, strict=False):
            at, width = float(bar.get("x", 0)), float(bar.get("width", 0))
            if at != start or abs(width - unit * figure) >= 1:
                yield f"{name}.svg: the bar of {figure} is {width} long and begins at {at}"
            digits = 1 if figure % 1 else 0
            if not any(round(value, digits) == figure for value in known):
                yield f"{name}.svg: {figure} is not in docs/performance.md"


def main() -> None:
    checks = (pages, reference, docstrings, figures, pictures)
    if faults := [fault for check in checks for fault in check()]:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()

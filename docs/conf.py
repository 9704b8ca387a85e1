# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx: `make docs` builds build/site from the Markdown of docs/ and of the root.

The source folder is the root of the repository, not docs/, so that a link such as ../SECURITY.md
means the same on the site and where the files are read as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/site"))

import c_reference  # noqa: E402
import markup  # noqa: E402
import warpcipher  # noqa: E402

project = "warpcipher"
author = "the warpcipher authors"
copyright = author
version = release = warpcipher.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "tests/vectors/SOURCES.md",
]
# Folders that Sphinx need not walk through: all but those above.
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("docs", "tests")),
    *(f"tests/{p.name}" for p in (ROOT / "tests").iterdir() if p.name != "vectors"),
]

# Markdown: anchors of headings as on the usual hosts of repositories.
myst_heading_anchors = 4
# The examples of docs/ hold shell sessions in which a word may be anything.
highlight_language = "text"

# Docstrings are plain text (tools/site/markup.py).
default_role = "code"
smartquotes = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"warpcipher {version}"
html_extra_path = ["site"]  # the page at the root, which leads to docs/
html_copy_source = False
html_show_sphinx = False

# The page of the C interface is made for each build.
GENERATED = ROOT / "build/reference"


def write_c_reference() -> None:
    GENERATED.mkdir(parents=True, exist_ok=True)
    headers = c_reference.read_headers(ROOT / "include/warpcipher.h")
    (GENERATED / "c.rst").write_text(c_reference.page(*headers), encoding="utf-8")


def names_of_the_package() -> dict[str, str]:
    """The meaning of a name in backticks in docstrings."""
    return {name: f"warpcipher.{name}" for name in warpcipher.__all__ if not name.startswith("_")}


LINKS = names_of_the_package()


def read_signature(
    _app: Any,
    _what: str,
    _name: str,
    _obj: object,
    _options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """The signatures that nanobind writes into docstrings, as those of Python's functions look."""
    if signature is not None:
        signature = re.sub(r"^\(self(?:, )?", "(", signature)
        signature = signature.replace("typing_extensions.Buffer", "Buffer")
    return signature, returns


def read_docstring(
    _app: Any, what: str, name: str, _obj: object, _options: Any, lines: list[str]
) -> None:
    own = name.rpartition(".")[2]
    if what == "property" and lines and lines[0].startswith("(self) -> "):
        del lines[0]  # nanobind's signature
    lines[:] = markup.to_rst(lines, {k: v for k, v in LINKS.items() if k != own})


def skip_member(
    _app: Any, _what: str, _name: str, obj: object, skip: bool, _options: Any
) -> bool | None:
    """Fields of named tuples: the docstring of the class describes them."""
    text = getattr(obj, "__doc__", None) or ""
    return True if re.match(r"Alias for field number \d+", text) else None


def name_pages_by_title(_app: Any, _page: str, source: list[str]) -> None:
    """A link that a repository's page shows as weights.md has the title of that page here."""
    source[0] = re.sub(r"\[[\w./-]+\.md\](\([\w./-]+\.md(?:#[\w-]+)?\))", r"[]\1", source[0])


def show_as_code(_app: Any, _context: Any, lines: list[str]) -> None:
    """Lines that click keeps as they are, examples and exit codes: sphinx-click makes verse."""
    made: list[str] = []
    for line in lines:
        is_kept = line.startswith("| ")
        if is_kept and not (made and made[-1].startswith("   ")):
            made += ["", ".. code-block:: text", ""]
        made.append("   " + line[2:] if is_kept else line)
    lines[:] = made


def setup(app: Any) -> None:
    write_c_reference()
    app.connect("autodoc-process-signature", read_signature)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("source-read", name_pages_by_title)
    for part in ("description", "epilog"):
        app.connect(f"sphinx-click-process-{part}", show_as_code)

# SPDX-License-Identifier: Apache-2.0
"""The reference is whole: every public name of the package stands on a page and has a docstring,
and the generators of tools/site leave nothing out."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs/reference/python"
UMBRELLA = ROOT / "include/warpcipher.h"
HEADER = "".join(
    path.read_text(encoding="utf-8") for path in (UMBRELLA, *UMBRELLA.parent.glob("*/*.h"))
)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools/site"))
    return importlib.import_module("c_reference")


@pytest.fixture
def markup(site: ModuleType) -> ModuleType:
    return sys.modules["markup"]


def test_every_public_name_of_the_package_is_on_a_page() -> None:
    import warpcipher as wc

    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    named = set(re.findall(r"auto\w+:: (?:warpcipher\.)?(\w+)", text))
    public = {name for name in wc.__all__ if not name.startswith("_")}
    of_key_search = {"search"}  # on the page of its module
    assert public - named - of_key_search == set()
    assert named - public - {"warpcipher_measure"} == set()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "aead",
        "formats",
        "formats.age",
        "formats.crypt4gh",
        "keys",
        "keysearch",
        "parquet",
        "random",
        "random.jax",
        "random.opacus",
        "tuning",
        "weights",
    ],
)
def test_every_public_name_has_a_docstring(name: str) -> None:
    module = importlib.import_module("warpcipher" + ("." + name if name else ""))
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    found = {n: getattr(module, n) for n in names if not n.startswith("_")}
    assert found
    things = {
        n: thing
        for n, thing in found.items()
        if callable(thing) and str(getattr(thing, "__module__", "")).startswith("warpcipher")
    }
    assert [
        n for n, thing in things.items() if not (getattr(thing, "__doc__", "") or "").strip()
    ] == []
    members = {
        f"{n}.{member}": value
        for n, thing in things.items()
        if isinstance(thing, type)
        for member, value in vars(thing).items()
        if not member.startswith("_")
        # Slots, and the fields of data classes and named tuples, are described by the class.
        and (isinstance(value, property | classmethod | staticmethod) or callable(value))
    }
    assert [n for n, member in members.items() if not (member.__doc__ or "").strip()] == []


def test_the_c_page_has_everything_of_the_header(site: ModuleType) -> None:
    page = site.page(*site.read_headers(UMBRELLA))
    functions = re.findall(r"^WC_API .*?(wc_\w+)\(", HEADER, re.MULTILINE)
    assert len(functions) > 20
    for name in functions:
        assert re.search(rf"^(?:\.\. c:function::| {{17}}).* \*?{name}\(", page, re.MULTILINE), name
    for name in re.findall(r"^\} (wc_\w+);", HEADER, re.MULTILINE):
        assert re.search(rf"^\.\. c:(?:struct|enum):: {name}$", page, re.MULTILINE), name
    for value in re.findall(r"^  (WC_[A-Z_0-9]+) = ", HEADER, re.MULTILINE):
        assert f".. c:enumerator:: {value}\n" in page
    for field in re.findall(r"^  [a-z][^/\n]*[ *](\w+);", HEADER, re.MULTILINE):
        assert re.search(rf"^   \.\. c:member:: .*\b{field}$", page, re.MULTILINE), field


def test_the_version_stands_in_the_header_as_in_the_build() -> None:
    build = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(warpcipher VERSION (\d+)\.(\d+)\.(\d+)", build)
    assert found is not None
    for name, value in zip(("MAJOR", "MINOR", "PATCH"), found.groups(), strict=True):
        assert f"#define WC_VERSION_{name} {value}\n" in HEADER
    assert f'#define WC_VERSION "{".".join(found.groups())}"\n' in HEADER


def test_the_c_page_has_the_comments_of_members(site: ModuleType) -> None:
    page = site.page(*site.read_headers(UMBRELLA))
    assert "2: a tag did not match; the output is zeros" in page
    assert "bytes of text at out; 0 unless WC_OK" in page


INTRO = """/* SPDX
 *
 * x: a header.
 *
 * Notes.
 */
"""
SMALL = """extern "C" {
#endif
%s
#ifdef __cplusplus
"""


@pytest.mark.parametrize(
    ("declarations", "says"),
    [
        ("WC_API int wc_f(void);", "no comment describes 'WC_API int wc_f\\(void\\);'"),
        ("/* A. */\ntypedef union wc_u wc_u;", "not understood: 'typedef union"),
        ("/* A. */\ntypedef struct wc_s {\n  int a;\n", "no end of"),
        ("/* A. */\nWC_API int wc_a(void);\n\nWC_API int wc_b(void);", "no comment .* wc_b"),
    ],
)
def test_what_the_header_leaves_out_is_an_error(
    site: ModuleType, declarations: str, says: str
) -> None:
    with pytest.raises(site.HeaderError, match=says):
        site.page(INTRO, SMALL % declarations)


def test_a_part_that_is_not_on_the_page_is_an_error(site: ModuleType, tmp_path: Path) -> None:
    header = tmp_path / "warpcipher.h"
    header.write_text(UMBRELLA.read_text() + '#include "warpcipher/new.h"\n')
    with pytest.raises(site.HeaderError, match="other parts than core, messages"):
        site.read_headers(header)
    with pytest.raises(site.HeaderError, match='extern "C"'):
        site.page(INTRO, "WC_API int wc_f(void);")


def test_functions_without_a_line_between_them_share_a_comment(site: ModuleType) -> None:
    page = site.page(
        INTRO,
        SMALL % "/* Both; see wc_b(). */\nWC_API int wc_a(int *x);\nWC_API int wc_b(void);",
    )
    assert ".. c:function:: int wc_a(int *x)\n                 int wc_b(void)\n" in page
    assert "Both; see :c:func:`wc_b`." in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (["One *star* and", "`code`."], [r"One \*star\* and ``code``.", ""]),
        (["a `b`s name_ x_y"], [r"a ``b``\ s name\_ x_y", ""]),
        (
            ["key:  the key,", "      more", "a, b: two"],
            ["``key``", "    the key, more", "", "``a, b``", "    two", ""],
        ),
        (["engine  a name"], ["``engine``", "    a name", ""]),
        (["A word: then", "no list"], ["A word: then no list", ""]),
        (["They hold:", "- one", "  more", "- two"], ["They hold:", "", "- one more", "- two", ""]),
        (["    x = 1", "      y"], [".. code-block:: text", "", "    x = 1", "      y", ""]),
        (
            ["Text.", "", ">>> f(a_, '\\n')", "4 * x"],
            ["Text.", "", ".. code-block:: pycon", "", "    >>> f(a_, '\\n')", "    4 * x", ""],
        ),
        (["+--+", "|  |"], [".. code-block:: text", "", "    +--+", "    |  |", ""]),
        (["see `Cipher`"], ["see :py:obj:`Cipher <warpcipher.Cipher>`", ""]),
    ],
)
def test_docstrings_become_rst(markup: ModuleType, text: list[str], expected: list[str]) -> None:
    assert markup.to_rst(text, {"Cipher": "warpcipher.Cipher"}) == expected

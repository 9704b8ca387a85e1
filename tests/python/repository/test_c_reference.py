# SPDX-License-Identifier: Apache-2.0
"""The generators of tools/site, which make pages of the reference, leave nothing out."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
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

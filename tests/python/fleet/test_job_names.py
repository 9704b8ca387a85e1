# SPDX-License-Identifier: Apache-2.0
"""Objects that a job takes by their names: filters, slashes at their ends, and passwords."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_support import do, encrypt, plain
from step_store import StepStore
from warpcipher import stores
from warpcipher.fleet.filters import pattern


@pytest.mark.parametrize(
    ("glob", "matches", "others"),
    [
        ("*.jpg", ["a.jpg", "b/a.jpg"], ["a.jpeg", "a.jpg/b"]),
        ("/*.jpg", ["a.jpg"], ["b/a.jpg"]),
        ("b/**", ["b/a", "b/c/d", "x/b/a"], ["xb/a", "a"]),
        ("b/", ["b/a", "b/c/d"], ["b"]),
        ("[ab]?.{jpg,png}", ["a1.jpg", "b2.png"], ["c1.jpg", "a.jpg", "a/.jpg"]),
        ("[!a].x", ["b.x"], ["a.x"]),
        (r"a\*", ["a*"], ["ab"]),
        ("a+(b)", ["a+(b)"], ["aab"]),
    ],
)
def test_patterns(glob: str, matches: list[str], others: list[str]) -> None:
    made = pattern(glob)
    assert [name for name in (*matches, *others) if made.search(name)] == matches


def test_filters(store: StepStore, there: Path) -> None:
    encrypt("--include", "*.jpg", "--include", "/a*", "--exclude", "a/1", "--min-size", "1K")
    names = {path.removesuffix(".cobblestone") for path in plain(store, "out/")}
    assert names == {"a-b", "a.b", "a/2.jpg", "b/c/d.jpg", "MANIFEST.warpcipher"}
    do("check", "step://out")
    encrypt()  # the rest
    do("decrypt", "step://out", "-o", "step://some", "--include", "*.jpg")
    assert plain(store, "some/").keys() == {"a/2.jpg", "b/c/d.jpg"}
    text = do("decrypt", "step://out", "-o", "step://more", "--max-age", "1d", "--dry-run")
    assert text == ""
    assert stores.stat("step://in/a0").modified < 10**12


def test_objects_whose_names_end_in_a_slash(store: StepStore, there: Path) -> None:
    """Empty ones show folders. No other is left out without a word."""
    store.put("in/empty/", b"")
    store.put("in/full/", b"data")
    store.put("in/", b"data")
    text = encrypt("--no-manifest", "-v")
    assert "an object of the name of the prefix" in text
    assert "in/full/" in do("encrypt", "step://in", "-o", "step://tree", expect=4)
    do("decrypt", "step://out", "-o", "step://back", "--no-manifest")
    expected = plain(store)
    del expected["empty/"], expected[""]
    assert plain(store, "back/") == expected


@pytest.mark.parametrize("given", [("step://on/",), ("step://in/", "--include", "*.none")])
def test_a_run_that_takes_nothing_says_so(
    store: StepStore, there: Path, given: tuple[str, ...]
) -> None:
    text = do("encrypt", *given, "-o", "step://out/")
    assert f"warning: {given[0]}: no objects: the place is empty, or the filters match" in text


def test_no_password_of_a_url_is_shown(store: StepStore, there: Path) -> None:
    store.put("me:secret@in/a", b"text")
    store.put("me:secret@in/b/", b"text")  # which fails
    text = ""
    for more, code in ((["-n"], 0), (["--json", "--report", "report"], 4), (["--force"], 4)):
        given = ("encrypt", "step://me:secret@in/", "-o", "step://out/", *more)
        text += do(*given, expect=code)
    text += do("decrypt", "step://me:secret@in/", "-o", "step://new/", expect=3)
    assert "step://***@in/" in text
    assert "secret" not in text + Path("report").read_text()


def test_prefixes_that_end_in_slashes(store: StepStore, there: Path) -> None:
    """a// is not all that lies below a/."""
    store.put("in/a//x", b"text")
    do("encrypt", "step://in/a//", "-o", "step://out//")
    assert plain(store, "out/").keys() == {"/MANIFEST.warpcipher", "/x.cobblestone"}
    assert do("list", "step://out//").split()[-1] == "x"
    do("decrypt", "step://out//", "-o", "step://back/")
    assert plain(store, "back/") == {"x": b"text"}

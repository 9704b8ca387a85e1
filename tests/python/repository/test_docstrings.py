# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings: what a user constructs or calls has one, and each runs as it says."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from warpcipher import formats, keys, keysearch, weights

# Those of native code have their examples in the guides; the rest are made by others here, or are
# one of several that take the same arguments.
PLACES = {
    wc: set(),
    formats: {"get", "key_sizes", "resolve", "take"},
    keys: {"from_descriptor", "from_tink", "is_deferred", "resolve", "rewrap_tink"},
    keysearch: {"candidates_from_scores", "parse_candidates", "searchers"},
    weights: {"describe", "is_cryptotensors", "public_key", "rewrap"},
}
MADE_BY_USERS = {"Batch", "Cipher", "Queue"}


def documented() -> dict[str, Any]:
    found = {}
    for place, without in PLACES.items():
        for name in place.__all__:
            thing = getattr(place, name)
            has_one = inspect.isclass(thing) and ">>>" in (thing.__doc__ or "")
            called = inspect.isfunction(thing) or name in MADE_BY_USERS
            if has_one or (called and name not in without):
                found[f"{place.__name__}.{name}"] = thing
    return found


DOCUMENTED = documented()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("BACKUP_KEY", "")  # one sets it
    text = inspect.getdoc(DOCUMENTED[name]) or ""
    for library in ("numpy", "torch"):
        if f"import {library}\n" in text:
            pytest.importorskip(library, reason=f"{library} is not installed")
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples, "it has no example"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example, out=said.append)
    assert not said, "".join(said)

# SPDX-License-Identifier: Apache-2.0
"""Trees that jobs write: their manifests, in parts too, and the changes that these show."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import warpcipher as wc
from cli_support import run
from job_support import NAMES, damage, decrypted, do, encrypt, plain
from step_store import StepStore
from warpcipher import formats
from warpcipher.formats import tree_parts


def test_local_trees_go_to_a_store_and_back(store: StepStore, there: Path) -> None:
    do("decrypt", "--no-manifest", "step://in", "-o", "empty")  # nothing has the suffix
    encrypt()
    do("decrypt", "step://out", "-o", "tree")
    (there / "tree" / ".warpcipher-journal").unlink()
    do("encrypt", "tree", "-o", "step://again/")
    assert decrypted(store, "step://again") == plain(store)


def test_a_copied_prefix_is_a_local_tree(store: StepStore, there: Path) -> None:
    """With a manifest that runs over files read."""
    encrypt()
    for path, (data, _, _) in store.objects.items():
        if path.startswith("out/"):
            (there / path).parent.mkdir(parents=True, exist_ok=True)
            (there / path).write_bytes(data)
    (there / "out" / ".warpcipher-journal").unlink()
    run("decrypt", "--key", "key", "-o", "back", "out", cwd=there)
    found = {
        str(path.relative_to(there / "back")): path.read_bytes()
        for path in (there / "back").rglob("*")
        if path.is_file()
    }
    assert found == plain(store)


@pytest.mark.parametrize("part", [1, 3, 100])
def test_a_manifest_has_parts(
    store: StepStore, there: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(tree_parts, "PART", part)
    encrypt()
    parts = [path for path in store.objects if path.startswith("out/MANIFEST.warpcipher.")]
    assert len(parts) == (0 if part == 100 else -(-len(NAMES) // part))
    assert decrypted(store) == plain(store)
    assert "b/c/d.jpg" in do("list", "step://out")
    do("decrypt", "step://out/a/2.jpg.cobblestone", "-o", "one")
    assert Path("one").read_bytes() == store.objects["in/a/2.jpg"][0]
    store.put("in/new", b"text")
    encrypt()
    later = [path for path in store.objects if path.startswith("out/MANIFEST.warpcipher.")]
    assert not set(parts) & set(later)
    assert decrypted(store) == plain(store)


def test_parts_of_a_run_that_was_killed_go(
    store: StepStore, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_parts, "PART", 3)
    orphan = f"out/MANIFEST.warpcipher.{'0' * 32}.000000"
    store.put(orphan, b"text")
    encrypt()
    assert orphan not in store.objects
    do("check", "step://out")


Change = Callable[[StepStore], None]


def _swap(store: StepStore) -> None:
    one, other = "out/a0.cobblestone", "out/a-b.cobblestone"
    store.objects[one], store.objects[other] = store.objects[other], store.objects[one]


def _older(store: StepStore) -> None:
    old = store.objects["out/a/1.cobblestone"]
    encrypt("--force")
    store.objects["out/a/1.cobblestone"] = old


def _cut(store: StepStore) -> None:
    store.put("out/z.cobblestone", store.objects["out/z.cobblestone"][0][:-1])


def _part_swapped(store: StepStore) -> None:
    one, other, *_ = sorted(path for path in store.objects if "MANIFEST.warpcipher." in path)
    store.objects[one], store.objects[other] = store.objects[other], store.objects[one]


@pytest.mark.parametrize("part", [3, 100])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda store: store.objects.pop("out/a/1.cobblestone"), "missing: a/1"),
        (lambda store: store.put("out/y.cobblestone", b"x" * 99), "added: y"),
        (lambda store: store.put("out/y", b"x"), "added: y"),
        (_cut, "cut or added to: z"),
        (_swap, "exchanged|cut or added"),
        (_older, "of another time"),
        (damage, "chunk 0 failed authentication"),
        (lambda store: store.objects.pop("out/MANIFEST.warpcipher"), "has no manifest"),
    ],
)
def test_changes_of_a_tree_are_found(
    store: StepStore,
    there: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    said: str,
    part: int,
) -> None:
    monkeypatch.setattr(tree_parts, "PART", part)
    encrypt()
    change(store)
    assert re.search(said, do("check", "step://out", expect=3))


def test_parts_of_the_manifest_are_authenticated(
    store: StepStore, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_parts, "PART", 3)
    encrypt()
    _part_swapped(store)
    assert "is not that part" in do("check", "step://out", expect=3)
    part = next(path for path in store.objects if "MANIFEST.warpcipher." in path)
    del store.objects[part]
    assert "is missing" in do("check", "step://out", expect=3)


def test_an_object_may_have_the_name_of_a_folder(store: StepStore, there: Path) -> None:
    store.put("in/a", b"both")
    encrypt()
    assert decrypted(store) == plain(store)
    do("check", "step://out")


def test_one_object_of_a_tree(store: StepStore, there: Path) -> None:
    encrypt()
    do("decrypt", "step://out/a/1.cobblestone", "-o", "one")
    assert Path("one").read_bytes() == store.objects["in/a/1"][0]
    store.objects["out/moved.cobblestone"] = store.objects["out/a/1.cobblestone"]
    said = do("decrypt", "step://out/moved.cobblestone", "-o", "two", expect=3)
    assert "lists no file 'moved'" in said
    assert not Path("two").exists()


@pytest.mark.parametrize("part", [3, 100])
def test_one_object_of_a_tree_in_python(
    store: StepStore, there: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(tree_parts, "PART", part)
    encrypt()
    key, text = Path("key").read_bytes(), store.objects["in/a/1"][0]
    url = "step://out/a/1.cobblestone"

    def refused(said: str, url: str = url) -> None:
        with pytest.raises(wc.InvalidTag, match=said):
            formats.open(url, key)
        with pytest.raises(wc.InvalidTag, match=said):
            formats.decrypt_file(url, "step://one", key)
        with pytest.raises(wc.InvalidTag, match=said):
            formats.info(url, key)
        assert "one" not in store.objects

    with formats.open(url, key) as file:
        assert file.read() == text
    (candidate,) = formats.info(url, key).candidates
    assert candidate.plaintext_size == len(text)
    assert formats.decrypt_file(url, "step://back", key) == len(text)
    assert store.objects["back"][0] == text
    with pytest.raises(wc.InvalidTag, match="do not open"):
        formats.open(url, bytes(32))
    store.put("out/moved.cobblestone", store.objects["out/a/1.cobblestone"][0])
    refused("'step://out', whose manifest lists no file 'moved'", "step://out/moved.cobblestone")
    manifest = store.objects.pop("out/MANIFEST.warpcipher")
    refused("part of a tree, 'a/1' there, and no folder above")
    assert "and no folder above" in do("decrypt", url, "-o", "two", expect=3)
    do("decrypt", url, "-o", "two", "--no-manifest")
    assert Path("two").read_bytes() == text
    store.objects["out/MANIFEST.warpcipher"] = manifest
    store.objects["out/a/1.cobblestone"] = store.objects["out/z.cobblestone"]
    refused("not the file that the manifest of the tree 'step://out' lists")

# SPDX-License-Identifier: Apache-2.0
"""Trees are bound: whatever is exchanged, renamed, rolled back, cut, removed or added is named, and
nothing is decrypted."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import warpcipher as wc
from cli_support import make_key, names, run, run_json
from tree_support import FILES, content_of, sealed
from warpcipher import _tree_names as tree_names
from warpcipher import formats


def refused(tree: Path, text: str, *options: str) -> None:
    """decrypt and check say it, with exit code 3, and write nothing."""
    before = names(tree)
    for command in (("decrypt", "-o", "back"), ("check",)):
        done = run(*command, "--key", "key", *options, "t.cobblestone", cwd=tree, expect=3)
        assert text in done.stderr.decode(), done.stderr
        assert done.stderr.count(b"\n") == 1
    assert names(tree) == before


def exchange(tree: Path) -> None:
    a, b = sealed(tree, "a"), sealed(tree, "sub/a")
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(content)


def roll_back(tree: Path) -> None:
    old = sealed(tree, "a").read_bytes()
    (tree / "t/a").write_bytes(b"9")
    run("encrypt", "--update", "--key", "key", "t", cwd=tree)
    run("check", "--key", "key", "t.cobblestone", cwd=tree)
    sealed(tree, "a").write_bytes(old)


def roll_back_the_manifest(tree: Path) -> None:
    old = (sealed(tree) / tree_names.NAME).read_bytes()
    (tree / "t/a").write_bytes(b"9")
    run("encrypt", "--update", "--key", "key", "t", cwd=tree)
    (sealed(tree) / tree_names.NAME).write_bytes(old)


def cut(tree: Path) -> None:
    with sealed(tree, "b").open("r+b") as file:
        file.truncate(40_000)


def append(tree: Path) -> None:
    with sealed(tree, "b").open("ab") as file:
        file.write(b"x")


def other_tree(tree: Path) -> None:
    (tree / "u").mkdir()
    (tree / "u/x").write_bytes(b"x")
    run("encrypt", "--key", "key", "u", cwd=tree)
    shutil.copy(tree / "u.cobblestone" / tree_names.NAME, sealed(tree))


def member_as_manifest(tree: Path) -> None:
    shutil.copy(sealed(tree, "a"), sealed(tree) / tree_names.NAME)


def damage_the_manifest(tree: Path) -> None:
    data = bytearray((sealed(tree) / tree_names.NAME).read_bytes())
    data[len(data) // 2] ^= 1
    (sealed(tree) / tree_names.NAME).write_bytes(data)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "exchanged": (exchange, "exchanged or renamed: a is sub/a, sub/a is a"),
    "renamed": (
        lambda tree: sealed(tree, "a").rename(sealed(tree, "z")),
        "exchanged or renamed: z is a",
    ),
    "renamed over": (
        lambda tree: sealed(tree, "a").rename(sealed(tree, "b")),
        "exchanged or renamed: b is a",
    ),
    "copied": (
        lambda tree: shutil.copy(sealed(tree, "a"), sealed(tree, "sub/z")),
        "exchanged or renamed: sub/z is a",
    ),
    "moved folder": (
        lambda tree: (sealed(tree) / "sub").rename(sealed(tree) / "sup"),
        "exchanged or renamed: sup/a is sub/a, sup/deep/c is sub/deep/c; missing: sub/, sub/deep/; "
        "added: sup/, sup/deep/",
    ),
    "rolled back": (roll_back, "of another tree, of another time, or damaged: a"),
    "manifest rolled back": (
        roll_back_the_manifest,
        "of another tree, of another time, or damaged: a",
    ),
    "removed": (lambda tree: sealed(tree, "sub/deep/c").unlink(), "missing: sub/deep/c"),
    "folder removed": (lambda tree: (sealed(tree) / "empty").rmdir(), "missing: empty/"),
    "folder added": (lambda tree: (sealed(tree) / "new").mkdir(), "added: new/"),
    "file added": (lambda tree: (sealed(tree) / "x").write_bytes(b""), "added: x"),
    "sealed file added": (
        lambda tree: sealed(tree, "x").write_bytes(os.urandom(100)),
        "added: x",
    ),
    "link added": (lambda tree: (sealed(tree) / "l").symlink_to("a"), "added: l"),
    "file is a link": (
        lambda tree: (
            sealed(tree, "a").rename(tree / "x"),
            sealed(tree, "a").symlink_to(tree / "x"),
        ),
        "missing: a; added: a.cobblestone",
    ),
    "cut": (cut, "cut or added to: b"),
    "added to": (append, "cut or added to: b"),
    "manifest removed": (
        lambda tree: (sealed(tree) / tree_names.NAME).unlink(),
        "has no manifest (MANIFEST.warpcipher): it was removed, the tree was encrypted without "
        "one, or the run that encrypted it did not end: then run that again with --skip-existing",
    ),
    "manifest of another tree": (other_tree, "does not match its manifest"),
    "a member for the manifest": (
        member_as_manifest,
        "is not the manifest of a tree with this key",
    ),
    "manifest damaged": (damage_the_manifest, "is not the manifest of a tree with this key"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_named(tree: Path, change: str) -> None:
    apply, text = CHANGES[change]
    apply(tree)
    refused(tree, text)


def test_a_file_exchanged_after_the_look_is_refused(tree: Path) -> None:
    roll_back(tree)
    script = (
        "from warpcipher.cli import main, trees; trees.Whole._compare = lambda self: {}; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "decrypt", "--key", "key", "t.cobblestone", "-o", "back"],
        cwd=tree,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3
    assert b"a.cobblestone was exchanged after the tree was compared" in done.stderr
    assert "a" not in names(tree / "back")


def test_another_key_or_context(tree: Path) -> None:
    refused(tree, "is not the manifest of a tree with this key and context", "--context", "x")
    (tree / "key").write_bytes(os.urandom(32))
    refused(tree, "is not the manifest of a tree with this key and context")


def test_damage_inside_a_file_is_found_by_its_chunk(tree: Path) -> None:
    data = bytearray(sealed(tree, "b").read_bytes())
    data[30_000] ^= 1
    sealed(tree, "b").write_bytes(data)
    done = run("check", "--key", "key", "t.cobblestone", cwd=tree, expect=3)
    assert b"b.cobblestone: chunk 1 failed" in done.stderr
    assert b"4 files done, 1 failed" in done.stderr
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tree, expect=3)
    assert "b" not in names(tree / "back")


def test_many_names_are_cut_short(tree: Path) -> None:
    for number in range(20):
        (sealed(tree) / f"x{number:02}").write_bytes(b"")
    refused(tree, "added: x00, x01, x02, x03, x04 and 15 more")


def test_part_of_a_tree_and_one_file_of_it(tree: Path) -> None:
    done = run("decrypt", "--key", "key", "t.cobblestone/sub", "-o", "x", cwd=tree, expect=3)
    assert b"t.cobblestone/sub is part of the tree" in done.stderr
    run("decrypt", "--key", "key", "t.cobblestone/sub/a.cobblestone", "-o", "x", cwd=tree)
    assert (tree / "x").read_bytes() == FILES["sub/a"]
    shutil.copy(sealed(tree, "a"), sealed(tree, "sub/a"))
    done = run("decrypt", "--key", "key", sealed(tree, "sub/a"), "-o", "y", cwd=tree, expect=3)
    assert b"a.cobblestone: this is not the file that the manifest of the tree" in done.stderr
    (tree / "a.cobblestone").write_bytes(sealed(tree, "a").read_bytes())
    done = run("decrypt", "--key", "key", "a.cobblestone", cwd=tree, expect=3)
    assert b"a.cobblestone: the file is part of a tree, 'a' there, and no folder" in done.stderr
    run("decrypt", "--no-manifest", "--key", "key", "a.cobblestone", "-o", "z", cwd=tree)
    assert (tree / "z").read_bytes() == FILES["a"]


def test_trees_of_before_and_trees_that_lost_their_manifest(tree: Path) -> None:
    (sealed(tree) / tree_names.NAME).unlink()
    run("decrypt", "--no-manifest", "--key", "key", "t.cobblestone", "-o", "back", cwd=tree)
    assert (tree / "back/sub/a").read_bytes() == FILES["sub/a"]
    exchange(tree)
    done = run(
        *("decrypt", "--no-manifest", "--key", "key", "t.cobblestone", "-o", "again"),
        cwd=tree,
        expect=3,
    )
    assert b"4 files" not in done.stderr
    assert "a" not in names(tree / "again"), "its name is in its context"
    (tree / "t/link").unlink()
    run("encrypt", "--no-manifest", "--key", "key", "t", "-o", "plain", cwd=tree)
    assert tree_names.NAME not in names(tree / "plain")
    run("encrypt", "--key", "key", "t", "-o", "bound", cwd=tree)
    done = run("encrypt", "--no-manifest", "--key", "key", "t", "-o", "bound", cwd=tree, expect=2)
    assert b"bound has a manifest, which files without one would not match" in done.stderr
    done = run("decrypt", "--key", "key", "plain", "-o", "no", cwd=tree, expect=3)
    assert b"--no-manifest decrypts the present files" in done.stderr
    run("decrypt", "--no-manifest", "--key", "key", "plain", "-o", "yes", cwd=tree)
    assert (tree / "yes/sub/a").read_bytes() == FILES["sub/a"]
    with formats.open(tree / "plain/a.cobblestone", (tree / "key").read_bytes()) as file:
        assert file.read() == FILES["a"], "its context is empty, as before"


def test_links_without_a_manifest_are_refused(tree: Path) -> None:
    document = run_json(
        *("encrypt", "--no-manifest", "--key", "key", "t", "-o", "o"), cwd=tree, expect=2
    )
    assert document["ok"] is False
    assert [entry["input"] for entry in document["failures"]] == ["t/link"]
    assert len(document["results"]) == len(FILES)


def test_a_folder_with_other_files_becomes_no_tree(tree: Path) -> None:
    (tree / "out").mkdir()
    (tree / "out/other").write_bytes(b"x")
    done = run("encrypt", "--key", "key", "t", "-o", "out", cwd=tree, expect=2)
    assert (
        b"out holds files that would not belong to the tree: out/other: name a new" in done.stderr
    )
    assert names(tree / "out") == {"other"}
    done = run("encrypt", "--key", "key", "t", cwd=tree, expect=2)
    assert b"t.cobblestone exists: use --update" in done.stderr


def test_a_wrong_key_leaves_no_folders(tree: Path) -> None:
    make_key(tree, "other")
    (tree / "t/link").unlink()
    run("encrypt", "--no-manifest", "--key", "key", "t", "-o", "old", cwd=tree)
    for options in (
        ("t.cobblestone",),
        ("--no-manifest", "t.cobblestone"),
        ("--no-manifest", "old"),
    ):
        before = names(tree)
        done = run("decrypt", "--key", "other", *options, "-o", "back", cwd=tree, expect=3)
        assert names(tree) == before
    assert done.stderr.count(b"\n") == 5, "three of five alike, how many more, and the numbers"
    assert b"2 more files failed alike: ...: wrong key or context, not a" in done.stderr
    assert b"0 files done, 5 failed" in done.stderr


def test_a_file_opens_in_its_place(tree: Path) -> None:
    """`formats.open` and `info` find the manifest beside a file; nothing opens that is not its."""
    key = (tree / "key").read_bytes()
    with formats.open(sealed(tree, "sub/a"), key) as file:
        assert file.read() == FILES["sub/a"]
    assert formats.decrypt_file(sealed(tree, "b"), tree / "plain", key) == len(FILES["b"])
    found = formats.info(sealed(tree, "b"), key)
    assert (found.certain, found.candidates[0].plaintext_size) == (True, len(FILES["b"]))
    (answer,) = run_json("info", "--key", "key", sealed(tree, "b"), cwd=tree)["files"]
    assert answer["certain"] is True
    old = sealed(tree, "a").read_bytes()
    exchange(tree)
    with pytest.raises(wc.InvalidTag, match="this is not the file that the manifest of the tree"):
        formats.open(sealed(tree, "a"), key)
    sealed(tree, "z").write_bytes(old)
    with pytest.raises(wc.InvalidTag, match="whose manifest lists no file 'z'"):
        formats.open(sealed(tree, "z"), key)
    with pytest.raises(wc.InvalidTag, match="whose manifest this key and context do not open"):
        formats.open(sealed(tree, "b"), bytes(32))
    (tree / "b.cobblestone").write_bytes(sealed(tree, "b").read_bytes())
    with pytest.raises(wc.InvalidTag, match=r"part of a tree, 'b' there, .*--no-manifest"):
        formats.open(tree / "b.cobblestone", key)
    formats.encrypt_stream(io.BytesIO(b"alone"), alone := io.BytesIO(), key)
    sealed(tree, "alone").write_bytes(alone.getvalue())
    with formats.open(sealed(tree, "alone"), key) as file:
        assert file.read() == b"alone", "a file that is bound to no tree opens anywhere"


def test_a_manifest_of_who_may_only_write_in_the_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / tree_names.NAME).touch()
    assert tree_names.root_above(tmp_path / "a/b") == str(tmp_path)
    if os.geteuid() == 0:
        os.chown(tmp_path / tree_names.NAME, 12345, -1)
        assert tree_names.root_above(tmp_path / "a/b") != str(tmp_path)


def test_two_runs_on_one_tree(tree: Path) -> None:
    descriptor = os.open(sealed(tree), os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        done = run("encrypt", "--force", "--key", "key", "t", cwd=tree, expect=4)
        assert b"another run writes to t.cobblestone: wait until it has ended" in done.stderr
        again = ("--key", "key", "--new-key", "key", "--in-place", "t.cobblestone")
        done = run("rekey", *again, cwd=tree, expect=4)
        assert b"another run writes to t.cobblestone" in done.stderr
        run("check", "--key", "key", "t.cobblestone", cwd=tree)
    finally:
        os.close(descriptor)
    run("encrypt", "--force", "--key", "key", "t", cwd=tree)


def test_what_is_gone_from_the_source(tree: Path) -> None:
    shutil.rmtree(tree / "t/sub")
    (tree / "t/link").unlink()
    (tree / "t/a").unlink()
    (tree / "t/a").mkdir()
    options = ("--key", "key", "t")
    done = run("encrypt", "--delete", *options, cwd=tree, expect=2)
    assert b"it needs --update" in done.stderr
    (tree / "t/a").rmdir()
    done = run("encrypt", "--update", *options, cwd=tree)
    assert (
        b"t.cobblestone keeps files that the source does not have any more: a, link, sub, sub/a, "
        b"sub/deep and 1 more: --delete removes them\n"
    ) in done.stderr
    run("check", "--key", "key", "t.cobblestone", cwd=tree)
    (tree / "t/a").mkdir()
    done = run("encrypt", "--update", "--delete", *options, cwd=tree)
    assert b"--delete removes" not in done.stderr
    assert {"a", "empty"} < names(sealed(tree))
    assert not {"a.cobblestone", "sub", "link"} & names(sealed(tree))
    run("check", "--key", "key", "t.cobblestone", cwd=tree)
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tree)
    assert content_of(tree / "back") == content_of(tree / "t")

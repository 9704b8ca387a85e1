# SPDX-License-Identifier: Apache-2.0
"""`encrypt` and `decrypt` on folders: names, links, permissions, and what is in their way."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cli_support import make_key, names, run, run_json


def build_tree(root: Path) -> dict[str, bytes]:
    """A tree with empty and nested folders, links that lead out of it, and a FIFO; its files."""
    files = {"a": b"1", "sub/b": os.urandom(100_000), "sub/deep/er/c": b"", "läst/d": b"4"}
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "empty").mkdir()
    (root / "sub").chmod(0o711)
    (root / "empty").chmod(0o500)
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"not part of the tree")
    (root / "link").symlink_to(outside / "secret")
    (root / "sub/linked-folder").symlink_to(outside)
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "sub/pipe")
    return files


def test_tree_is_recreated(tmp_path: Path) -> None:
    make_key(tmp_path)
    files = build_tree(tmp_path / "tree")
    report = run_json("encrypt", "--key", "key", "tree/", cwd=tmp_path)
    assert {entry["input"] for entry in report["skipped"]} == {"tree/sub/pipe"}
    folders = {"sub", "sub/deep", "sub/deep/er", "läst", "empty"}
    sealed = tmp_path / "tree.cobblestone"
    sealed_names = {name + ".cobblestone" for name in files}
    assert names(sealed) == folders | sealed_names | {"MANIFEST.warpcipher"}
    assert stat.S_IMODE((sealed / "sub").stat().st_mode) == 0o711
    assert stat.S_IMODE((sealed / "empty").stat().st_mode) == 0o500
    run("decrypt", "--key", "key", "tree.cobblestone", "-o", "back", cwd=tmp_path)
    links = {"link", "dangling", "sub/linked-folder"}
    assert names(tmp_path / "back") == folders | set(files) | links
    for name in links:
        assert (tmp_path / "back" / name).readlink() == (tmp_path / "tree" / name).readlink()
    for name, content in files.items():
        assert (tmp_path / "back" / name).read_bytes() == content
    for folder in (tmp_path / "tree/empty", sealed / "empty", tmp_path / "back/empty"):
        folder.chmod(0o700)


def test_tree_decrypts_to_its_own_name(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "t/a").write_bytes(b"1")
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    (tmp_path / "t/a").unlink()
    (tmp_path / "t").rmdir()
    run("decrypt", "--key", "key", "t.cobblestone", cwd=tmp_path)
    assert names(tmp_path / "t") == {"a"}
    (tmp_path / "t.cobblestone/README").write_bytes(b"not encrypted")
    options = ("decrypt", "--key", "key", "t.cobblestone", "-o", "u")
    done = run(*options, cwd=tmp_path, expect=3)
    assert b"nothing is decrypted: added: README" in done.stderr
    done = run(*options, "--no-manifest", cwd=tmp_path)
    assert b"README: skipped" in done.stderr
    assert names(tmp_path / "u") == {"a"}


def test_trees_and_files_become_one_tree(tmp_path: Path) -> None:
    """It decrypts and is checked by one call, takes more inputs, and misses none that is gone."""
    make_key(tmp_path)
    (tmp_path / "x/t/sub").mkdir(parents=True)
    (tmp_path / "x/t/sub/a").write_bytes(b"1")
    (tmp_path / "x/t/l").symlink_to("sub/a")
    (tmp_path / "b").write_bytes(b"2")
    (tmp_path / "c").symlink_to("b")
    encrypt = ("encrypt", "--key", "key")
    run(*encrypt, "x/t", "b", "-o", "out", cwd=tmp_path)
    tree = {"t", "t/sub", "t/sub/a.cobblestone", "MANIFEST.warpcipher", "b.cobblestone"}
    assert names(tmp_path / "out") == tree
    done = run(*encrypt, "b", "c", "-o", "out", cwd=tmp_path, expect=2)
    assert b"out exists: use --update" in done.stderr
    (tmp_path / "b").write_bytes(b"22")
    run(*encrypt, "--update", "b", "c", "-o", "out", cwd=tmp_path)
    manifest = (tmp_path / "out/MANIFEST.warpcipher").read_bytes()
    run(*encrypt, "--update", "b", "c", "x/t", "-o", "out", cwd=tmp_path)
    assert (tmp_path / "out/MANIFEST.warpcipher").read_bytes() == manifest
    run("check", "--key", "key", "out", cwd=tmp_path)
    run("decrypt", "--key", "key", "out", "-o", "back", cwd=tmp_path)
    assert names(tmp_path / "back") == {"t", "t/l", "t/sub", "t/sub/a", "b", "c"}
    assert (tmp_path / "back/c").read_bytes() == b"22"
    assert (tmp_path / "back/t/l").readlink() == Path("sub/a")
    (tmp_path / "out/b.cobblestone").unlink()
    done = run("check", "--key", "key", "out", cwd=tmp_path, expect=3)
    assert b"missing: b; --no-manifest decrypts" in done.stderr


def test_a_folder_of_trees_names_them(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "d/t").mkdir(parents=True)
    (tmp_path / "d/t/a").write_bytes(b"1")
    (tmp_path / "d/b").write_bytes(b"2")
    run("encrypt", "--key", "key", "d/t", "d/b", cwd=tmp_path)
    (tmp_path / "e").mkdir()
    for name in ("t.cobblestone", "b.cobblestone"):
        (tmp_path / "d" / name).rename(tmp_path / "e" / name)
    done = run("decrypt", "--key", "key", "e", "-o", "back", cwd=tmp_path, expect=3)
    assert b"e has no manifest, and holds 1 tree that has one: name t.cobblestone" in done.stderr
    run("decrypt", "--no-manifest", "--key", "key", "e", "-o", "back", cwd=tmp_path)
    assert (tmp_path / "back/t.cobblestone/a").read_bytes() == b"1"


def test_nothing_else_is_put_into_an_encrypted_tree(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "t/sub").mkdir(parents=True)
    (tmp_path / "t/sub/a").write_bytes(b"1")
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    before = names(tmp_path)
    for force in ((), ("--force",)):
        for arguments in (
            ("decrypt", "-o", "t.cobblestone", "t.cobblestone"),
            ("decrypt", "-o", "t.cobblestone/sub/x", "t.cobblestone"),
            ("decrypt", "t.cobblestone/sub/a.cobblestone"),
            ("encrypt", "-o", "t.cobblestone/x", "t/sub/a"),
            ("encrypt", "-o", "t.cobblestone/sub", "t"),
        ):
            done = run(*arguments, *force, "--key", "key", cwd=tmp_path, expect=2)
            assert b"would be in the encrypted tree " in done.stderr
            assert names(tmp_path) == before
    run("encrypt", "--key", "key", "-o", "twice", "t.cobblestone", cwd=tmp_path)
    for _ in range(2):
        run("decrypt", "--key", "key", "--force", "-o", "once", "twice", cwd=tmp_path)


def test_output_tree_is_not_followed_out_of(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "t/sub").mkdir(parents=True)
    (tmp_path / "t/sub/a").write_bytes(b"1")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/sub").symlink_to(tmp_path / "elsewhere")
    run("encrypt", "--key", "key", "t", "-o", "out", cwd=tmp_path, expect=2)
    run("encrypt", "--no-manifest", "--key", "key", "t", "-o", "out", cwd=tmp_path, expect=2)
    assert names(tmp_path / "elsewhere") == set()


def test_tree_cannot_become_a_file_nor_standard_output(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "file").write_bytes(b"1")
    run("encrypt", "--key", "key", "t", "-o", "file", cwd=tmp_path, expect=2)
    run("encrypt", "--key", "key", "t", "-o", "-", cwd=tmp_path, expect=2)
    run("encrypt", "--key", "key", ".", cwd=tmp_path, expect=2)
    assert (tmp_path / "file").read_bytes() == b"1"

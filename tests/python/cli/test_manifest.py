# SPDX-License-Identifier: Apache-2.0
"""Trees refuse: manifests that lie, formats that bind no blocks, entries that became of
another kind, links in the place of a user's files."""

from __future__ import annotations

import io
import os
import random
import shutil
from pathlib import Path

import pytest
from cli_support import make_key, names, run
from warpcipher import InvalidTag, formats
from warpcipher import _tree_names as tree_names
from warpcipher.formats import trees as manifest


def test_manifests_that_lie_are_refused() -> None:
    good = manifest.Manifest("cobblestone-256", made=5)
    good.entries = {
        entry.name: entry
        for entry in (
            manifest.Entry("", "folder"),
            manifest.Entry("sub", "folder", 0o700, 5),
            manifest.Entry("sub/a", "file", 0o600, 5, 1, 73, "00"),
            manifest.Entry("l", "link", target="sub"),
        )
    }
    data = good.to_bytes()
    assert manifest.Manifest.from_bytes(data).entries == good.entries
    for old, new in (
        (b'"sub/a"', b'"sub/.."'),
        (b'"sub/a"', b'"/etc/x"'),
        (b'"l"', b'"/l"'),
        (b'"mtime": 5', b'"mtime": 9223372036854775808000000000'),
        (b'"sub/a"', b'"l/x"'),
        (b'"sub/a"', b'"sup/x"'),
        (b'"sub/a"', b'"sub/a\\u0000"'),
        (b'"kind": "file"', b'"kind": "pipe"'),
        (b'"size": 1', b'"size": -1'),
        (b'"size": 1', b'"size": "1"'),
        (b'"mode": 384', b'"mode": 2432'),
        (b'"entries": 4', b'"entries": 5'),
        (b'"sealed"', b'"other"'),
        (b"warpcipher.tree.v1", b"warpcipher.tree.v9"),
        (b'"made": 5', b'"made": 1e400'),
        (b'"base": null', b'"base": ' + b"[" * 100_000),
        (b'"size": 1', b'"size": ' + b'{"a":' * 100_000),
        (b'"size": 1', b'"size": ' + b"9" * 5000),
        (b'"sub/a"', b'"sub/\\ud800"'),
        (b'"target": "sub"', b'"target": "\\ud800"'),
    ):
        assert old in data
        with pytest.raises(manifest.ManifestError, match="the manifest"):
            manifest.Manifest.from_bytes(data.replace(old, new, 1))
    choose = random.Random(5)
    for _ in range(300):
        bad = bytearray(data)
        bad[choose.randrange(len(bad))] = choose.randrange(256)
        try:
            manifest.Manifest.from_bytes(bytes(bad))
        except manifest.ManifestError:
            continue


def test_the_size_of_the_manifest_is_that_of_the_plaintext(tmp_path: Path) -> None:
    make_tree(tmp_path)
    run("encrypt", "--key", "key", "t", "-o", "o", cwd=tmp_path)
    key, place = (tmp_path / "key").read_bytes(), tmp_path / "o" / tree_names.NAME
    options = formats.Options(context=manifest.context_of_manifest(b"", "manifest"))
    with formats.open(place, key, options=options) as file:
        made = manifest.Manifest.from_bytes(file.read())
    made.entries["d/x"].size += 1
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(made.to_bytes()), sealed, key, options=options)
    place.write_bytes(sealed.getvalue())
    for arguments in (("check", "o"), ("decrypt", "o", "-o", "back")):
        done = run(*arguments, "--key", "key", cwd=tmp_path, expect=3)
        assert b"has 1 byte of plaintext, and the manifest of its tree says 2" in done.stderr
    assert not (tmp_path / "back/d/x").exists()


@pytest.mark.parametrize("value", ["[" * 100_000, "1", '1, "other": 2', "1e400"])
def test_a_line_of_a_manifest_that_lies(tmp_path: Path, value: str) -> None:
    """A file in its place is opened only by its line of the manifest."""
    make_tree(tmp_path)
    run("encrypt", "--key", "key", "t", "-o", "o", cwd=tmp_path)
    key, place = (tmp_path / "key").read_bytes(), tmp_path / "o" / tree_names.NAME
    options = formats.Options(context=manifest.context_of_manifest(b"", "manifest"))
    text = f'{{}}\n{{"name": "d/x", "kind": "file", "sealed": {value}}}\n'
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(text.encode()), sealed, key, options=options)
    place.write_bytes(sealed.getvalue())
    with pytest.raises((InvalidTag, formats.FormatError), match="manifest"):
        formats.open(tmp_path / "o/d/x.cobblestone", key)


def test_entries_are_checked_before_they_are_written() -> None:
    made = manifest.Manifest("tink", {"d": manifest.Entry("d", "file")})
    made.entries["d/x"] = manifest.Entry("d/x", "file")
    with pytest.raises(manifest.ManifestError, match="leads out of the tree"):
        made.to_bytes()


def make_tree(folder: Path) -> Path:
    make_key(folder)
    (folder / "t/d").mkdir(parents=True)
    (folder / "t/d/x").write_bytes(b"x")
    (folder / "t/latest").symlink_to("d/x")
    return folder


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_that_became_something_else_is_refused(tmp_path: Path, kind: str) -> None:
    make_tree(tmp_path)
    run("encrypt", "--key", "key", "t", "-o", "o", cwd=tmp_path)
    shutil.rmtree(tmp_path / "t/d")
    if kind == "file":
        (tmp_path / "t/d").write_bytes(b"now a file")
    else:
        (tmp_path / "t/d").symlink_to("/")
    for _ in range(2):
        done = run("encrypt", "--update", "--key", "key", "t", "-o", "o", cwd=tmp_path, expect=2)
        assert b"t/d was a folder when the tree was encrypted" in done.stderr
    run("check", "--key", "key", "o", cwd=tmp_path)


def test_a_link_that_became_a_file_is_not_kept(tmp_path: Path) -> None:
    make_tree(tmp_path)
    run("encrypt", "--key", "key", "t", "-o", "o", cwd=tmp_path)
    (tmp_path / "t/latest").unlink()
    (tmp_path / "t/latest").write_bytes(b"a file")
    done = run("encrypt", "--update", "--key", "key", "t", "-o", "o", cwd=tmp_path)
    assert b"keeps files" not in done.stderr
    run("decrypt", "--key", "key", "o", "-o", "back", cwd=tmp_path)
    assert (tmp_path / "back/latest").read_bytes() == b"a file"


def test_links_replace_no_file_of_the_user(tmp_path: Path) -> None:
    make_tree(tmp_path)
    run("encrypt", "--key", "key", "t", "-o", "o", cwd=tmp_path)
    run("decrypt", "--key", "key", "o", "-o", "back", cwd=tmp_path)
    link = tmp_path / "back/latest"
    link.unlink()
    link.symlink_to("elsewhere")
    options = ("--key", "key", "o", "-o", "back")
    done = run("decrypt", "--skip-existing", *options, cwd=tmp_path)
    assert b"back/latest: skipped: its output exists and differs" in done.stderr
    assert link.readlink() == Path("elsewhere")
    run("decrypt", "--update", *options, cwd=tmp_path)
    assert link.readlink() == Path("d/x")
    link.unlink()
    link.write_bytes(b"my own work")
    done = run("decrypt", "--update", *options, cwd=tmp_path)
    assert b"back/latest: skipped: its output exists and differs" in done.stderr
    assert link.read_bytes() == b"my own work"
    done = run("decrypt", *options, cwd=tmp_path, expect=2)
    assert b"back/latest exists: use --force" in done.stderr


@pytest.mark.parametrize("command", ["encrypt", "decrypt"])
def test_a_pipe_for_the_manifest_keeps_nobody_waiting(tmp_path: Path, command: str) -> None:
    make_tree(tmp_path)
    (tmp_path / "o").mkdir()
    os.mkfifo(tmp_path / "o" / tree_names.NAME)
    paths = ("t", "-o", "o") if command == "encrypt" else ("o", "-o", "back")
    done = run(command, "--key", "key", *paths, cwd=tmp_path, expect=3)
    assert b"MANIFEST.warpcipher: not a regular file, as a manifest is" in done.stderr


UNBOUND = [
    entry.name
    for entry in formats.FORMATS.values()
    if entry.authenticated and not entry.binds_chunks and entry.takes_context
]


@pytest.mark.parametrize("which", UNBOUND)
def test_formats_whose_blocks_are_not_bound_get_no_manifest(tmp_path: Path, which: str) -> None:
    make_tree(tmp_path)
    (tmp_path / "t/latest").unlink()
    options = ("--format", which, "--key", "key")
    done = run("encrypt", *options, "t", "-o", "o", cwd=tmp_path, expect=2)
    assert b"take --no-manifest" in done.stderr
    assert not (tmp_path / "o").exists()
    run("encrypt", "--no-manifest", *options, "t", "-o", "o", cwd=tmp_path)
    for command in (("check",), ("decrypt", "-o", "no")):
        done = run(*command, *options, "o", cwd=tmp_path, expect=2)
        assert b"take --no-manifest" in done.stderr
    run("check", "--no-manifest", *options, "o", cwd=tmp_path)
    done = run("decrypt", "--no-manifest", *options, "o", "-o", "back", cwd=tmp_path)
    assert b"does not authenticate the end of a file" in done.stderr
    assert names(tmp_path / "back") == {"d", "d/x"}
    assert (tmp_path / "back/d/x").read_bytes() == b"x"


def test_links_never_replace_the_key(tmp_path: Path) -> None:
    make_tree(tmp_path)
    (tmp_path / "t/d/key").symlink_to("x")
    run("encrypt", "--key", "key", "t", "-o", "o", cwd=tmp_path)
    (tmp_path / "back/d").mkdir(parents=True)
    shutil.copy(tmp_path / "key", tmp_path / "back/d/key")
    (tmp_path / "back/d/key").chmod(0o600)
    key = "back/d/key"
    done = run("decrypt", "--force", "--key", key, "o", "-o", "back", cwd=tmp_path, expect=2)
    assert b"is the key file, which is never overwritten" in done.stderr
    assert (tmp_path / key).read_bytes() == (tmp_path / "key").read_bytes()


def test_trees_with_paths_longer_than_the_system_takes(tmp_path: Path) -> None:
    """All is done beneath descriptors of folders: such a tree is encrypted, gone on with and
    decrypted as any other."""
    make_key(tmp_path)
    name, depth = "n" * 200, 21
    assert len(name) * depth > os.pathconf(tmp_path, "PC_PATH_MAX")
    folder = _open_deep(tmp_path, "tree", name, depth, create=True)
    with os.fdopen(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=folder), "wb") as file:
        file.write(b"text")
    os.close(folder)
    run("encrypt", "--key", "key", "tree", "-o", "sealed", cwd=tmp_path)
    done = run("encrypt", "--key", "key", "--update", "tree", "-o", "sealed", cwd=tmp_path)
    assert done.stderr == b""
    run("check", "--key", "key", "sealed", cwd=tmp_path)
    run("decrypt", "--key", "key", "sealed", "-o", "back", cwd=tmp_path)
    folder = _open_deep(tmp_path, "back", name, depth)
    with os.fdopen(os.open("leaf", os.O_RDONLY, dir_fd=folder), "rb") as file:
        assert file.read() == b"text"
    os.close(folder)


def _open_deep(base: Path, tree: str, name: str, depth: int, *, create: bool = False) -> int:
    """A descriptor of base/tree/name/name/... ."""
    folder = os.open(base, os.O_RDONLY)
    for part in [tree] + [name] * depth:
        if create:
            os.mkdir(part, dir_fd=folder)
        below = os.open(part, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    return folder

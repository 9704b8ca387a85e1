# SPDX-License-Identifier: Apache-2.0
# Names that are bytes, and folders deeper than a path may be long, have no counterpart in pathlib:
# ruff: noqa: PTH102, PTH113, PTH114, PTH118, PTH119, PTH123, PTH211
"""Trees and files of any names that Linux allows, there and back through the command."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from cli_support import run
from fuzz_scenes import KEY, SUFFIX

LONGEST = 255
MANIFEST = b"MANIFEST.warpcipher"
PIECES = (
    b"\n", b"\r", b"\t", b"\x1b[31m", b"\x7f", b"\\", b"'", b'"', b"`", b"$(id)", b"%s", b"{}",
    b"*", b"?", b" ", b"  ", b".", b"..", b"...", b"~", b"-", b"--force", b"-o", b"=", b":", b"|",
    b"&", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", "ä".encode(), "a\u0308".encode(),
    "\u202e".encode(), "\U0001f511".encode(), b"key", b".warpcipher-", b".part", SUFFIX.encode(),
)  # fmt: skip


def any_name(choose: random.Random) -> bytes:
    name = b"".join(choose.choices(PIECES, k=choose.randint(1, 6)))
    if choose.random() < 0.1:
        name = (name * LONGEST)[: LONGEST - choose.choice((0, 1, len(SUFFIX), len(SUFFIX) + 1))]
    return b"_" if name in (b".", b"..") else name


def fits(name: bytes) -> bool:
    return len(name) + len(SUFFIX) <= LONGEST


def make_tree(choose: random.Random, root: bytes) -> tuple[dict[bytes, bytes], set[bytes]]:
    """Makes files, folders, links, pipes below `root`; returns the files, and what is passed over:
    links go into the manifest. All relative to root."""
    files: dict[bytes, bytes] = {}
    skipped: set[bytes] = set()
    folders = [b""]
    os.mkdir(root)
    for _ in range(choose.randint(1, 12)):
        parent = choose.choice(folders)
        relative = os.path.join(parent, any_name(choose))
        path = os.path.join(root, relative)
        if os.path.lexists(path) or len(path) > 3000:
            continue
        what = choose.choice(("file", "file", "file", "folder", "folder", "link", "pipe"))
        if what == "folder":
            os.mkdir(path)
            folders.append(relative)
        elif what == "link":
            os.symlink(choose.choice((b"/", b".", b"nowhere", path)), path)
        elif what == "pipe":
            os.mkfifo(path)
            skipped.add(relative)
        else:
            text = choose.randbytes(choose.randrange(50))
            with open(path, "wb") as file:
                file.write(text)
            files[relative] = text
    return files, skipped


def read_tree(root: bytes) -> dict[bytes, bytes]:
    """Regular files by their names relative to `root`."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, root)] = file.read()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(KEY)
    return tmp_path


def check_lines(errors: bytes) -> None:
    """Each message is one line that a terminal can show."""
    for line in errors.decode().splitlines():
        assert line.startswith("warpcipher: "), line
        assert line.isprintable(), line


@pytest.mark.cases(5)
def test_tree_of_any_names(choose: random.Random, folder: Path) -> None:
    root = os.path.join(os.fsencode(folder), b"tree")
    files, skipped = make_tree(choose, root)
    wanted = {name: text for name, text in files.items() if fits(os.path.basename(name))}
    whole = len(wanted) == len(files)
    done = run(
        *("encrypt", "--json", "--key", "key", "tree", "-o", "sealed"),
        cwd=folder,
        expect=0 if whole else 4,
    )
    check_lines(done.stderr)
    report = json.loads(done.stdout)
    assert {os.fsencode(entry["input"]) for entry in report["results"]} == {
        b"tree/" + name for name in wanted
    }
    assert {os.fsencode(entry["input"]) for entry in report["skipped"]} == {
        b"tree/" + name for name in skipped
    }
    assert len(report["failures"]) == len(files) - len(wanted)
    if not wanted and not whole:  # nothing was done, and nothing stays behind
        assert not (folder / "sealed").exists()
        return
    sealed = read_tree(os.fsencode(folder / "sealed"))
    assert sealed.keys() - {MANIFEST} == {name + SUFFIX.encode() for name in wanted}
    assert MANIFEST in sealed
    run("decrypt", "--key", "key", "sealed", "-o", "back", cwd=folder)
    assert read_tree(os.fsencode(folder / "back")) == wanted
    assert read_tree(root).keys() == files.keys()  # inputs stay


@pytest.mark.cases(5)
def test_file_of_any_name(choose: random.Random, folder: Path) -> None:
    """As an argument after --, as an output, as a key."""
    name, out, key = (os.fsdecode(any_name(choose)) for _ in range(3))
    if len({name, out, key, "key"}) < 4 or not fits(os.fsencode(name)) or "-" in (name, out, key):
        return
    (folder / name).write_bytes(b"text")
    done = run("keygen", "--", key, cwd=folder)
    done = run("encrypt", "--key", key, f"--output={out}", "--", name, cwd=folder)
    assert done.stderr == b"" or name.endswith(".cobblestone"), "encrypted already, as it says"
    check_lines(run("info", "--key", key, "--", out, cwd=folder).stderr)
    refused = run("encrypt", "--key", key, f"--output={out}", "--", name, cwd=folder, expect=2)
    check_lines(refused.stderr)
    done = run("decrypt", "--key", key, "--output=-", "--", out, cwd=folder)
    assert done.stdout == b"text"


@pytest.mark.cases(1)
def test_deep_tree(choose: random.Random, folder: Path) -> None:
    """Deeper than a path may be long: what can be reached is done, and the rest reported."""
    descriptor = os.open(folder, os.O_RDONLY)
    name = os.fsdecode(choose.choice("abc").encode() * choose.randint(100, 200))
    depth = choose.randint(4096 // len(name) - 2, 4096 // len(name) + 3)
    os.mkdir(folder / "tree")
    for level, part in enumerate(["tree"] + [name] * depth):
        if level:
            os.mkdir(part, dir_fd=descriptor)
        below = os.open(part, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    done = run("encrypt", "--key", "key", "tree", "-o", "sealed", cwd=folder)
    assert done.stderr == b""
    run("decrypt", "--key", "key", "sealed", "-o", "back", cwd=folder)

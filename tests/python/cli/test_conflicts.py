# SPDX-License-Identifier: Apache-2.0
"""Runs that would lose something are refused before the first file: outputs that would replace the
key, an input or each other, and two files under one key and IV."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import warpcipher as wc
from cli_support import COMMAND, make_key, names, run, run_json
from warpcipher.cli import conflicts, errors, files

KEEPING = "which is never overwritten"


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names(folder) if is_file(folder / name)}


def is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def refuse(folder: Path, *arguments: str, text: str) -> None:
    """The run is refused with that text, and nothing is written, made or removed."""
    before, held = names(folder), contents(folder)
    done = run(*arguments, cwd=folder, expect=2)
    assert text in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert names(folder) == before
    assert contents(folder) == held


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_key(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize("name", ["key", "./key", "hard", "folder/key"])
def test_force_keeps_the_key(folder: Path, name: str) -> None:
    os.link(folder / "key", folder / "hard")
    (folder / "folder").symlink_to(".")
    refuse(
        folder,
        *("encrypt", "--force", "--key", "key", "-o", name, "a"),
        text=f"{name.removeprefix('./')} is the key file, {KEEPING}",
    )


def test_force_keeps_a_link_that_names_the_key(folder: Path) -> None:
    (folder / "link").symlink_to("key")
    refuse(
        folder,
        *("encrypt", "--force", "--key", "link", "-o", "link", "a"),
        text=f"link is the key file, {KEEPING}",
    )
    assert (folder / "link").is_symlink()


@pytest.mark.parametrize("name", ["people", "./people", "link"])
def test_force_keeps_the_recipients(folder: Path, name: str) -> None:
    pytest.importorskip("cryptography")
    run("keygen", "--format", "age", "identity", cwd=folder)
    public = next(
        line for line in (folder / "identity").read_text().split() if line.startswith("age1")
    )
    (folder / "people").write_text(public + "\n")
    (folder / "link").symlink_to("people")
    given = ("encrypt", "--format", "age", "--force", "-R", name)
    shown = name.removeprefix("./")
    refuse(folder, *given, "-o", name, "a", text=f"{shown} is the key file, {KEEPING}")
    refuse(folder, *given, "-o", "people", "a", text=f"people is the key file, {KEEPING}")


def test_decryption_keeps_the_key(folder: Path) -> None:
    (folder / "t").mkdir()
    (folder / "t/key").write_bytes(b"named as the key is")
    run("encrypt", "--key", "key", "t", cwd=folder)
    arguments = ("decrypt", "--force", "--key", "key")
    text = f"key is the key file, {KEEPING}"
    refuse(folder, *arguments, "t.cobblestone", "-o", ".", text=text)
    refuse(folder, *arguments, "t.cobblestone/key.cobblestone", "-o", "key", text=text)


@pytest.mark.parametrize("names_given", [("a", "a.cobblestone"), ("a.cobblestone", "a")])
def test_force_keeps_the_other_inputs(folder: Path, names_given: tuple[str, str]) -> None:
    (folder / "a.cobblestone").write_bytes(b"an input, too")
    refuse(
        folder,
        *("encrypt", "--force", "--key", "key", *names_given),
        text=f"a.cobblestone is the input a.cobblestone, {KEEPING}",
    )


def test_force_keeps_the_inputs_of_a_tree_that_is_its_own_output(folder: Path) -> None:
    (folder / "t").mkdir()
    (folder / "t/a").write_bytes(b"1")
    done = run("encrypt", "--key", "key", "t", "-o", "t", cwd=folder, expect=2)
    assert b"t holds files that would not belong to the tree: t/a: name a new folder" in done.stderr
    run("encrypt", "--no-manifest", "--key", "key", "t", "-o", "t", cwd=folder)
    assert names(folder / "t") == {"a", "a.cobblestone"}
    refuse(
        folder,
        *("encrypt", "--no-manifest", "--force", "--key", "key", "t", "-o", "t"),
        text=f"t/a.cobblestone is the input t/a.cobblestone, {KEEPING}",
    )


def test_standard_input_is_kept(folder: Path) -> None:
    with (folder / "a").open("rb") as file:
        done = subprocess.run(
            [*COMMAND, "encrypt", "--force", "--key", "key", "-", "-o", "a"],
            cwd=folder,
            stdin=file,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 2
    assert f"a is standard input, {KEEPING}" in done.stderr.decode()
    assert (folder / "a").read_bytes() == b"a"


@pytest.mark.parametrize("name", ["a", "key"])
def test_standard_output_is_neither_an_input_nor_the_key(folder: Path, name: str) -> None:
    """Appending to what is read would go on until the disk is full."""
    before = (folder / name).read_bytes()
    with (folder / name).open("ab") as file:
        done = subprocess.run(
            ["prlimit", f"--fsize={1 << 20}", *COMMAND, "encrypt", "--key", "key", "-o", "-", "a"],
            cwd=folder,
            stdout=file,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert b"standard output is the " in done.stderr
    assert (folder / name).read_bytes() == before


def test_two_ways_to_one_output(folder: Path) -> None:
    (folder / "x").mkdir()
    (folder / "x/a").write_bytes(b"1")
    (folder / "y").symlink_to("x")
    for force in ((), ("--force",)):
        refuse(
            folder,
            *("encrypt", *force, "--key", "key", "x/a", "y/a"),
            text="x/a and y/a would both become y/a.cobblestone",
        )


def test_trees_that_meet_through_a_link(folder: Path) -> None:
    for name in ("t", "u"):
        (folder / name).mkdir()
        (folder / name / "a").write_bytes(name.encode())
    (folder / "t.cobblestone").mkdir()
    (folder / "u.cobblestone").symlink_to("t.cobblestone")
    refuse(
        folder,
        *("encrypt", "--force", "--key", "key", "t", "u"),
        text="t/a and u/a would both become u.cobblestone/a.cobblestone",
    )


FOLDERS_AND_FILES = {
    "a file becomes a folder's name": (
        ("t/a", "t/a.cobblestone/x"),
        ("t",),
        "t/a.cobblestone and t/a would both become t.cobblestone/a.cobblestone",
    ),
    "the manifest's name": (
        ("t/MANIFEST.warpcipher/x",),
        ("t",),
        "t/MANIFEST.warpcipher has the name of the tree's own MANIFEST.warpcipher: rename it",
    ),
    "folders of one name": (
        ("t/a/x", "u/a/y"),
        ("-o", "out", "t/a", "u/a"),
        "t/a and u/a would both become out/a",
    ),
    "a folder for a file": (
        ("t/a", "t.cobblestone/a.cobblestone/x"),
        ("--no-manifest", "t"),
        "t.cobblestone/a.cobblestone is a directory, and the output is a file",
    ),
    "a file for a folder": (
        ("t/a/x", "t.cobblestone/a"),
        ("--no-manifest", "t"),
        "t.cobblestone/a exists and is not a directory",
    ),
}


@pytest.mark.parametrize("case", FOLDERS_AND_FILES)
def test_folders_and_files_of_one_name(folder: Path, case: str) -> None:
    """All of it is found before the first byte is written."""
    files, arguments, text = FOLDERS_AND_FILES[case]
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"1")
    refuse(folder, "encrypt", "--force", "--key", "key", *arguments, text=text)


def test_deep_outputs(folder: Path) -> None:
    """Thousands of levels that are not there yet are no recursion."""
    depth = 1500
    _, below = conflicts.entry_of("x/" * depth + "a", {})
    assert below == ("a", *["x"] * depth)


@pytest.mark.parametrize("inputs", [("tree",), ("tree", "a"), ("link", "a")])
def test_a_tree_is_not_written_into_its_input(folder: Path, inputs: tuple[str, ...]) -> None:
    (folder / "tree/sub").mkdir(parents=True)
    (folder / "link").symlink_to("tree")
    for output in ("tree/new", "tree/sub/new/deep", "link/new"):
        for how in ((), ("--no-manifest",)):
            refuse(
                folder,
                *("encrypt", "--key", "key", *how, "-o", output, *inputs),
                text=f"{output} is inside of the input {inputs[0]}, so the next run",
            )
    run("encrypt", "--key", "key", "-o", "beside", *inputs, cwd=folder)


def test_refused_run_makes_no_folder(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/a").write_bytes(b"other")
    refuse(
        folder,
        *("encrypt", "--key", "key", "a", "sub/a", "-o", "new"),
        text="a and sub/a would both become new/a.cobblestone",
    )


def test_outputs_that_are_hard_links_are_replaced_each(folder: Path) -> None:
    (folder / "a.cobblestone").write_bytes(b"old")
    os.link(folder / "a.cobblestone", folder / "b.cobblestone")
    run("encrypt", "--force", "--key", "key", "a", "b", cwd=folder)
    for name in ("a", "b"):
        done = run("decrypt", "--key", "key", "-o", "-", f"{name}.cobblestone", cwd=folder)
        assert done.stdout == name.encode()


def test_one_file_of_two_names_is_one_output(folder: Path) -> None:
    """As where a file system does not tell names apart by their case."""
    for name in ("a", "b"):
        (folder / f"{name}.cobblestone").write_bytes(name.encode())
    one, two = folder / "a.cobblestone", folder / "b.cobblestone"
    if subprocess.run(["mount", "--bind", one, two], capture_output=True, check=False).returncode:
        pytest.skip("this user cannot mount")
    try:
        refuse(
            folder,
            *("encrypt", "--force", "--key", "key", "a", "b"),
            text="a and b would both become b.cobblestone",
        )
    finally:
        subprocess.run(["umount", two], check=True)


# The same, found only when the first file is there.
def test_a_file_is_kept_only_while_it_is_there(folder: Path) -> None:
    """Another file may have the inode of one that was removed."""
    kept = files.Kept()
    for name in ("a", "b"):
        (folder / name).write_bytes(b"")
    status = (folder / "a").stat()
    kept.add((status.st_dev, status.st_ino), "an output of this run", str(folder / "a"))
    with pytest.raises(errors.CliError, match="a is an output of this run, which is never"):
        kept.refuse(status, "a")
    (folder / "a").unlink()
    kept.refuse(status, "a")
    (folder / "b").rename(folder / "a")
    kept.refuse(status, "a")


LATE_NAME = """
import os
rename = os.rename
def late(*given, **options):
    rename(*given, **options)
    os.rename = rename
    os.link("a.cobblestone", "b.cobblestone")
os.rename = late
from warpcipher.cli import main
main()
"""


def test_output_of_the_run_is_kept(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE_NAME, "encrypt", "--force", "--key", "key", "a", "b"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"b.cobblestone is an output of this run, {KEEPING}" in done.stderr.decode()
    done = run("decrypt", "--key", "key", "-o", "-", "a.cobblestone", cwd=folder)
    assert done.stdout == b"a"


KEY_SIZES = {entry.name: entry.key_size for entry in wc.algorithms()}
IV_SIZES = {entry.name: entry.iv_size for entry in wc.algorithms()}
ALGORITHMS = [
    *(f"aes-128-{mode}" for mode in ("cbc", "cfb", "cfb8", "ofb", "ctr", "gcm", "xts")),
    *("aes-256-gcm", "des-cbc", "des-ede3-ofb"),
]


def raw_options(algorithm: str) -> tuple[str, ...]:
    key, iv = os.urandom(KEY_SIZES[algorithm]).hex(), os.urandom(IV_SIZES[algorithm]).hex()
    return ("--algorithm", algorithm, "--key-hex", key, "--iv-hex", iv)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_iv_encrypts_one_file(folder: Path, algorithm: str) -> None:
    (folder / "t/sub").mkdir(parents=True)
    for name in ("t/a", "t/sub/b"):
        (folder / name).write_bytes(b"two of a tree")
    options = raw_options(algorithm)
    ways = [("a", "b"), ("a", "b", "-o", "out"), ("t",), ("t", "-o", "out"), ("a", "t/a")]
    only_one = algorithm != "aes-256-gcm"  # what is refused does not depend on the algorithm
    for inputs in ways[:1] if only_one else ways:
        refuse(
            folder,
            *("raw", "encrypt", "--force", *options, *inputs),
            text="2 files cannot be encrypted with one --iv-hex",
        )
    if only_one:
        return
    refuse(
        folder,
        *("raw", "encrypt", "--json", *options, "a", "b", "t"),
        text="4 files cannot be encrypted with one --iv-hex",
    )
    # Once more the same file: it could have changed meanwhile.
    refuse(folder, "raw", "encrypt", *options, "a", "./a", "-o", "out", text="2 files cannot")
    only = "standard input (-) is the only input"
    refuse(folder, "raw", "encrypt", *options, "-", "-", text=only)


def test_one_iv_encrypts_the_only_file_of_a_tree(folder: Path) -> None:
    (folder / "t/sub").mkdir(parents=True)
    (folder / "t/sub/a").write_bytes(b"alone")
    options = raw_options("aes-128-gcm")
    run("raw", "encrypt", *options, "t", cwd=folder)
    run("raw", "decrypt", *options, "t.enc", "-o", "back", cwd=folder)
    assert (folder / "back/sub/a").read_bytes() == b"alone"


def test_one_iv_decrypts_many_files(folder: Path) -> None:
    """Who has them under one IV has to read them."""
    options = raw_options("aes-128-gcm")
    for name in ("a", "b"):
        run("raw", "encrypt", *options, name, cwd=folder)
    run("raw", "decrypt", *options, "a.enc", "b.enc", "-o", "back", cwd=folder)
    assert contents(folder / "back") == {"a": b"a", "b": b"b"}


def test_modes_without_iv_encrypt_many_files(folder: Path) -> None:
    options = ("--algorithm", "aes-128-ecb", "--key-hex", "00" * 16)
    run("raw", "encrypt", *options, "a", "b", cwd=folder)
    assert {"a.enc", "b.enc"} < names(folder)


@pytest.mark.parametrize("name", ["key", "link", "sub/../key"])
def test_the_key_file_is_not_encrypted_under_itself(tmp_path: Path, name: str) -> None:
    """Who then deleted the originals had lost all: `encrypt --key my.key *`."""
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("key")
    before = names(tmp_path)
    for options in ((), ("-o", "out")):
        done = run("encrypt", "--key", "key", "a", name, *options, cwd=tmp_path, expect=2)
        assert f"{name} is the key file, which nobody could decrypt".encode() in done.stderr
        assert names(tmp_path) == before


def test_the_key_file_in_a_tree_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "t/sub").mkdir(parents=True)
    make_key(tmp_path / "t/sub")
    (tmp_path / "t/a").write_bytes(b"text")
    key = ("--key", "t/sub/key")
    report = run_json("encrypt", *key, "t", cwd=tmp_path)
    reason = "the key file, which nobody could decrypt without itself"
    assert report["skipped"] == [{"input": "t/sub/key", "reason": reason}]
    assert [entry["input"] for entry in report["results"]] == ["t/a"]
    run("decrypt", *key, "-o", "back", "t.cobblestone", cwd=tmp_path)
    assert names(tmp_path / "back") == {"a", "sub"}
    assert names(tmp_path / "back/sub") == set()


def test_an_identity_is_not_encrypted_for_itself(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    run("keygen", "--format", "age", "me", cwd=tmp_path)
    done = run("encrypt", "-i", "me", "me", cwd=tmp_path, expect=2)
    assert b"me is the key file" in done.stderr
    assert names(tmp_path) == {"me"}


def test_what_is_encrypted_already_is_told(tmp_path: Path) -> None:
    make_key(tmp_path)
    for name in ("a.cobblestone", "b.cobblestone", "c"):
        (tmp_path / name).write_bytes(b"text")
    done = run("encrypt", "--key", "key", "a.cobblestone", "b.cobblestone", "c", cwd=tmp_path)
    assert b"warning: a.cobblestone and 1 more file: encrypted already" in done.stderr
    done = run("encrypt", "--key", "key", "-o", "d", "c", cwd=tmp_path)
    assert b"warning" not in done.stderr
    run("decrypt", "--key", "key", "-o", "back", "a.cobblestone.cobblestone", cwd=tmp_path)
    assert (tmp_path / "back").read_bytes() == b"text"

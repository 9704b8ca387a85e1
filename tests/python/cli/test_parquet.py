# SPDX-License-Identifier: Apache-2.0
"""`warpcipher parquet`: info, decrypt, encrypt, rekey."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from cli_support import COMMAND, names, run, run_json, temporaries
from parquet_cases import KEY, KEYS, read_plain, table, write
from warpcipher import parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, key in (("key", KEY), ("new", KEYS[32]), ("column", KEYS[24])):
        path = tmp_path / name
        path.touch(0o600)
        path.write_bytes(key)
    (tmp_path / "plain.parquet").write_bytes(write(table(), None))
    (tmp_path / "t.parquet").write_bytes(write(table(), aad_prefix=b"p 1"))
    return tmp_path


def test_decrypt_and_encrypt(folder: Path) -> None:
    run("parquet", "decrypt", "--key", "key", "-o", "out", "t.parquet", cwd=folder)
    assert read_plain((folder / "out").read_bytes()).equals(table())
    options = ("--algorithm", "AES_GCM_CTR_V1", "--plaintext-footer", "--key-metadata", "k 7")
    prefix = ("--aad-prefix", "x", "--no-store-prefix")
    command = ("parquet", "encrypt", "--key", "key", "--column-key", "a=column", "--column", "s")
    done = run_json(*command, *options, *prefix, "-o", "again", "plain.parquet", cwd=folder)
    assert done["ok"]
    assert done["results"][0]["output_bytes"] == (folder / "again").stat().st_size
    seen = parquet.inspect(folder / "again")
    assert seen == ("signed footer", "AES_GCM_CTR_V1", b"k 7", b"", True)
    keys = {b"k 7": KEY, "a": KEYS[24]}
    assert parquet.read_table(folder / "again", keys, aad_prefix=b"x").equals(table())
    command = ("parquet", "decrypt", "--key", "key", "--column-key", "a=column")
    run(*command, "--aad-prefix", "x", "-o", "back", "again", cwd=folder)
    assert read_plain((folder / "back").read_bytes()).equals(table())
    out = run("parquet", "decrypt", "--key", "key", "-o", "-", "t.parquet", cwd=folder).stdout
    assert read_plain(out).equals(table())


@pytest.mark.parametrize(("options", "kind"), [((), "footer key"), (("--others-plain",), "none")])
def test_columns_without_a_key_of_their_own(
    folder: Path, options: tuple[str, ...], kind: str
) -> None:
    command = ("parquet", "encrypt", "--key", "key", "--column-key", "a=column", *options)
    run(*command, "-o", "x", "plain.parquet", cwd=folder)
    with parquet.open(folder / "x", {b"": KEY, "a": KEYS[24]}) as file:
        kinds = [column.encryption for column in file.columns()]
    assert kinds == ["column key", *[kind] * 4]


def test_rekey_says_what_it_is_told_of_the_new_key(folder: Path) -> None:
    command = ("parquet", "encrypt", "--key", "key", "--key-metadata", "old")
    run(*command, "-o", "x", "plain.parquet", cwd=folder)
    command = ("parquet", "rekey", "--key", "key", "--new-key", "new")
    for options, says in ((("--key-metadata", "of 2026"), b"of 2026"), ((), b"")):
        run(*command, *options, "-f", "-o", "y", "x", cwd=folder)
        assert parquet.inspect(folder / "y").key_metadata == says
        assert parquet.read_table(folder / "y", {says: KEYS[32]}).equals(table())


def test_rekey_keeps_the_rest(folder: Path) -> None:
    command = ("parquet", "encrypt", "--key", "key", "--column-key", "a=column", "--column", "s")
    run(*command, "--plaintext-footer", "--aad-prefix", "p", "-o", "x", "plain.parquet", cwd=folder)
    command = ("parquet", "rekey", "--key", "key", "--column-key", "a=column", "--new-key", "new")
    run(*command, "--new-column-key", "a=key", "-o", "y", "x", cwd=folder)
    assert parquet.inspect(folder / "y") == parquet.inspect(folder / "x")
    kinds = []
    for name, keys in (("x", {b"": KEY, "a": KEYS[24]}), ("y", {b"": KEYS[32], "a": KEY})):
        with parquet.open(folder / name, keys) as file:
            kinds.append([column.encryption for column in file.columns()])
        assert parquet.read_table(folder / name, keys).equals(table())
    assert kinds[0] == kinds[1] == ["column key", "footer key", "none", "none", "none"]
    failed = run(*command, "-o", "z", "x", cwd=folder, expect=2)
    assert b"column a has a key of its own: give it a new one in column_keys" in failed.stderr
    assert b"--new-column-key a=FILE" in failed.stderr
    assert not (folder / "z").exists()


def test_rekey_in_place(folder: Path) -> None:
    tree = folder / "people/below"
    tree.mkdir(parents=True)
    files = [folder / "people/one.parquet", tree / "two.parquet", folder / "t.parquet"]
    for path in files:
        path.write_bytes(write(table(50), plaintext_footer=True))
        path.chmod(0o640)
    (tree / "other.parquet").write_bytes(write(table(50), KEYS[24]))
    (tree / "notes.txt").write_text("no table")
    before = names(folder)
    command = ("parquet", "rekey", "--key", "key", "--new-key", "new")
    told = run(*command, "--dry-run", "t.parquet", cwd=folder)
    assert told.stdout == b"t.parquet -> t.parquet\n"
    assert parquet.read_table(files[2], KEYS[16]).equals(table(50))
    done = run_json(*command, "people/", "t.parquet", cwd=folder, expect=3)
    assert [entry["input"] for entry in done["failures"]] == ["people/below/other.parquet"]
    assert [entry["output"] for entry in done["results"]] == [
        entry["input"] for entry in done["results"]
    ]
    for path in files:
        assert parquet.read_table(path, KEYS[32]).equals(table(50))
        assert path.stat().st_mode & 0o777 == 0o640
    assert parquet.read_table(tree / "other.parquet", KEYS[24]).equals(table(50))
    assert names(folder) == before
    for options, says in (
        (("-f", "t.parquet"), "--force is for --output"),
        (("t.parquet", "./t.parquet"), "would both become"),
    ):
        assert says in run(*command, *options, cwd=folder, expect=2).stderr.decode()
    # A key is not a table: neither is replaced.
    (folder / "key.parquet").write_bytes(KEY)
    command = ("parquet", "rekey", "--key", "key.parquet", "--new-key", "new", "key.parquet")
    assert b"the key file, which is never" in run(*command, cwd=folder, expect=2).stderr
    assert temporaries(folder) == []


def test_a_column_without_its_key_is_named_by_the_option(folder: Path) -> None:
    config = parquet.EncryptionConfig(
        KEY, column_keys={"t.u": KEYS[24], "s": KEYS[24]}, column_key_metadata={"t.u": b"no 7"}
    )
    parquet.encrypt(folder / "plain.parquet", folder / "x.parquet", config)
    for given, says in (
        ((), "column s has its own key: give it with --column-key s=FILE"),
        (
            ("--column-key", "s=column"),
            "column t.u has its own key, of which the file says no 7: give it with "
            "--column-key t.u=FILE",
        ),
    ):
        command = ("parquet", "decrypt", "--key", "key", *given, "-o", "y", "x.parquet")
        done = run(*command, cwd=folder, expect=2)
        assert done.stderr.decode() == f"warpcipher: x.parquet: {says}\n"
    given = ("--column-key", "s=column", "--column-key", "t=column")  # t is all of t
    run("parquet", "decrypt", "--key", "key", *given, "-o", "y", "x.parquet", cwd=folder)
    assert read_plain((folder / "y").read_bytes()).equals(table())


def test_closed_pipe_ends_quietly(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for command, name in (("encrypt", "plain.parquet"), ("decrypt", "t.parquet")):
        options = ("--key", "key", "-o", "-", name)
        if command == "decrypt":
            options = ("--aad-prefix", "p 1", *options)
        done = subprocess.run(
            [*COMMAND, "parquet", command, *options],
            cwd=folder,
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
        assert done.returncode == -signal.SIGPIPE  # 141 to a shell
        assert done.stderr == b""
    os.close(writer)


def test_many_files_and_directories(folder: Path) -> None:
    tree = folder / "tree/below"
    tree.mkdir(parents=True)
    for path in (folder / "tree/one.parquet", tree / "two.parquet"):
        path.write_bytes(write(table(50)))
    (tree / "notes.txt").write_text("no table")
    (folder / "bad.parquet").write_bytes(write(table(50), KEYS[32]))
    command = ("parquet", "decrypt", "--key", "key", "-o", "out", "t.parquet", "bad.parquet")
    done = run_json(*command, "tree", cwd=folder, expect=3)
    assert not done["ok"]
    assert [entry["input"] for entry in done["failures"]] == ["bad.parquet"]
    assert "the footer: failed authentication" in done["failures"][0]["error"]
    assert [entry["input"] for entry in done["skipped"]] == ["tree/below/notes.txt"]
    assert (folder / "out/tree/below").stat().st_mode == tree.stat().st_mode
    out = folder / "out"
    assert names(out) >= {"t.parquet", "tree/one.parquet", "tree/below/two.parquet"}
    assert "bad.parquet" not in names(out)
    assert read_plain((out / "tree/below/two.parquet").read_bytes()).equals(table(50))
    assert temporaries(folder) == []


def test_info(folder: Path) -> None:
    found = run_json("parquet", "info", "t.parquet", "plain.parquet", cwd=folder)["files"]
    assert found[0] == {
        "path": "t.parquet",
        "encryption": "encrypted footer",
        "algorithm": "AES_GCM_V1",
        "key_metadata": None,
        "aad_prefix": "p 1",
        "needs_aad_prefix": False,
    }
    assert found[1]["encryption"] == "none"
    assert found[1]["rows"] == 500
    found = run_json("parquet", "info", "--key", "key", "t.parquet", cwd=folder)["files"]
    assert (found[0]["rows"], found[0]["row_groups"]) == (500, 3)
    assert found[0]["columns"][0] == {
        "name": "a",
        "encryption": "footer key",
        "key_metadata": None,
    }
    text = run("parquet", "info", "--key", "key", "t.parquet", cwd=folder).stdout.decode()
    assert "t.parquet: encryption: encrypted footer, AES_GCM_V1\n" in text
    assert "  column        t.v.w: footer key\n" in text
    run("parquet", "info", "--key", "new", "t.parquet", cwd=folder, expect=3)
    run("parquet", "info", "key", cwd=folder, expect=3)


def test_info_of_a_directory_and_of_a_magic(folder: Path) -> None:
    (folder / "people/below").mkdir(parents=True)
    (folder / "none").mkdir()
    (folder / "people/below/x.parquet").write_bytes(write(table(5), plaintext_footer=True))
    (folder / "people/bad.parquet").write_bytes(b"PARE")
    (folder / "people/notes.txt").write_text("no table")
    done = run_json("parquet", "info", "people", "none", "t.parquet", cwd=folder, expect=3)
    found = [(entry["path"], entry["encryption"]) for entry in done["files"]]
    below = ("people/below/x.parquet", "signed footer")
    assert found == [below, ("t.parquet", "encrypted footer")]
    command = ("parquet", "info", "people", "none", "t.parquet")
    said = run(*command, cwd=folder, expect=3).stderr.decode()
    assert "people/bad.parquet: 4 bytes are too few for a Parquet file" in said
    assert "none has no files whose names end in .parquet" in said
    text = run("info", "t.parquet", "plain.parquet", cwd=folder).stdout.decode()
    assert "  is parquet: an encrypted Parquet file\n" in text
    assert "  is parquet: a Parquet file with a plaintext footer, which says whether" in text


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("decrypt", "-o", "x", "t.parquet"), 2, "give the key, with --key FILE"),
        (("decrypt", "--key", "new", "-o", "x", "t.parquet"), 3, "the footer: failed"),
        (("decrypt", "--key", "key", "-o", "x", "plain.parquet"), 2, "the file is not encrypted"),
        (("decrypt", "--key", "key", "-o", "x", "none"), 4, "No such file"),
        (("decrypt", "--key", "key", "-o", "x", "-"), 2, "standard input (-) cannot be one"),
        (("decrypt", "--key", "key", "-o", "key", "t.parquet"), 2, "never overwritten"),
        (("decrypt", "--key", "key", "-o", "t.parquet", "t.parquet"), 2, "never overwritten"),
        (("decrypt", "--key", "key", "-o", "new", "t.parquet"), 2, "new exists: use --force"),
        (("decrypt", "--key", "key", "-o", "-", "--json", "t.parquet"), 2, "--json and the out"),
        (
            ("decrypt", "--key", "key", "--column-key", "a", "-o", "x", "t.parquet"),
            2,
            "--column-key takes COLUMN=FILE",
        ),
        (
            ("encrypt", "--key", "key", "--column", "y", "-o", "x", "plain.parquet"),
            2,
            "no column 'y'",
        ),
        (
            ("encrypt", "--key", "key", "-o", "x", "t.parquet"),
            2,
            "encrypted already: `rekey` gives it other keys",
        ),
        (("encrypt", "--key", "t.parquet", "-o", "x", "plain.parquet"), 2, "an AES key"),
        (
            ("rekey", "--key", "key", "--new-key", "new", "-o", "x", "plain.parquet"),
            2,
            "the file is not encrypted",
        ),
        (
            ("info", "--key", "key", "--column-key", f"a={KEYS[32].hex()}", "t.parquet"),
            2,
            "--column-key names a file: what was given, 64 characters not repeated",
        ),
        (
            ("rekey", "--key", "key", "--new-key", KEYS[32].hex(), "-o", "x", "t.parquet"),
            2,
            "--new-key names a file",
        ),
        (("info", "--aad-prefix", "p", "t.parquet"), 2, "give the footer's key, too"),
    ],
)
def test_failures(folder: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    before = names(folder)
    done = run("parquet", *arguments, cwd=folder, expect=code)
    assert says in done.stderr.decode()
    assert KEY.hex() not in done.stderr.decode()
    assert names(folder) == before

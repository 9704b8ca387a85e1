# SPDX-License-Identifier: Apache-2.0
"""`warpcipher rewrap` of files for people; tests/python/weights has that of models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_support import make_key, names, run, run_json
from test_recipients import ME, PLAIN, READER, YOU

pytest.importorskip("cryptography")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (
        ("me", ME.to_text()),
        ("you", YOU.to_text()),
        ("reader", READER.to_text()),
        ("reader.pub", READER.public_key.to_text()),
        ("team", f"{ME.recipient}\n{YOU.recipient}\n"),
        ("key", "00" * 32),
    ):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(content)
    (tmp_path / "f").write_bytes(PLAIN)
    return tmp_path


def test_age_and_crypt4gh(folder: Path) -> None:
    run("encrypt", "-i", "me", "f", cwd=folder)
    made = run_json("rewrap", "-i", "me", "-R", "team", "-o", "g.age", "f.age", cwd=folder)
    assert made == {"path": "g.age", "format": "age"}
    run("decrypt", "-i", "you", "-o", "g", "g.age", cwd=folder)
    assert (folder / "g").read_bytes() == PLAIN
    run("check", "-i", "you", "f.age", cwd=folder, expect=3)
    run("rewrap", "-i", "me", "-r", str(YOU.recipient), "--keep", "f.age", cwd=folder)
    for who in ("me", "you"):
        run("check", "-i", who, "f.age", cwd=folder)
    run("keygen", "--format", "crypt4gh", "other", cwd=folder)
    run("encrypt", "-R", "reader.pub", "f", cwd=folder)
    run("rewrap", "-i", "reader", "-R", "other.pub", "f.c4gh", cwd=folder)
    run("decrypt", "-i", "other", "-o", "h", "f.c4gh", cwd=folder)
    assert (folder / "h").read_bytes() == PLAIN


def test_passphrases(folder: Path) -> None:
    env = {**os.environ, "OLD": "correct horse", "NEW": "battery"}
    run("encrypt", "--passphrase-env", "OLD", "f", cwd=folder, env=env)
    options = ("--passphrase-env", "OLD", "--new-passphrase-env", "NEW")
    run("rewrap", *options, "f.age", cwd=folder, env=env)
    run("check", "--passphrase-env", "NEW", "f.age", cwd=folder, env=env)
    run("check", "--passphrase-env", "OLD", "f.age", cwd=folder, env=env, expect=3)
    options = ("--new-passphrase-fd", "0", *options[:2])
    run("rewrap", *options, "f.age", cwd=folder, env=env, stdin=b"x", expect=3)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-i", "me", "f.age"), 2, "give the new key"),
        (("-R", "team", "f.age"), 2, "give an identity, with -i FILE"),
        (("-i", "you", "-R", "team", "f.age"), 3, "f.age: wrong key"),
        (("-i", "me", "-R", "reader.pub", "f.age"), 2, "the new keys are of format crypt4gh"),
        (("-i", "me", "-R", "team", "--new-key", "key", "f.age"), 2, "give one new key"),
        (("-i", "me", "-R", "team", "-o", "f", "f.age"), 2, "f exists: use --force"),
        (("-i", "me", "-R", "team", "-f", "f.age"), 2, "--force is for --output"),
        (("-i", "me", "-R", "team", "absent"), 4, "absent: No such file"),
        (("-i", "me", "-R", "team", "f"), 3, "f: not an age file"),
        (("-i", "me", "-R", "team", "--context", "x", "f.age"), 2, "takes no context"),
        (("-i", "me", "--key", "key", "-R", "team", "f.age"), 2, "give one key"),
        (("-i", "-", "-R", "-", "f.age"), 2, "both keys are to come from standard input"),
        (("--key", "key", "--new-key", "key", "f.cobblestone"), 2, "no wrapping key"),
        (("--key", "key", "-R", "team", "f.cobblestone"), 2, "`warpcipher rekey`"),
        (("-i", "me", "-R", "team", "t.age/f.age"), 2, "cipher: t.age/f.age is part of the tree"),
    ],
)
def test_what_cannot_be(
    folder: Path,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    make_key(folder, "own")
    run("encrypt", "-i", "me", "f", cwd=folder)
    run("encrypt", "--key", "own", "f", cwd=folder)
    (folder / "t").mkdir()
    (folder / "t/f").write_bytes(b"f")
    run("encrypt", "-i", "me", "t", cwd=folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    there = names(folder)
    done = run("rewrap", *arguments, cwd=folder, expect=code)
    assert message in done.stderr.decode()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert names(folder) == there

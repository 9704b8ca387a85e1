# SPDX-License-Identifier: Apache-2.0
"""`warpcipher rekey` and `formats.rekey_file`: files and trees under other keys."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import make_key, names, run, run_json, temporaries
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import Options, age, crypt4gh, rekey

pytest.importorskip("cryptography")

SIZE = 300_001
ME = age.Identity(bytes(range(32)))
READER = crypt4gh.SecretKey(bytes(range(32)))
KEYSET = formats.Keyset.generate("AES128_CTR_HMAC_SHA256_4KB")
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # encrypts, opens, options
    "cobblestone-128": (bytes(16), bytes(16), {}),
    "cobblestone-256": (bytes(32), bytes(32), {"context": b"x"}),
    "tink": (KEYSET, KEYSET, {"context": b"y"}),
    "age": (ME.recipient, ME, {}),
    "armor": (ME, ME, {"armor": True}),
    "crypt4gh": (READER.public_key, READER, {}),
    "ags1": (bytes(range(24)), bytes(range(24)), {}),
    "raw": (bytes(32), bytes(32), {"algorithm": "aes-256-gcm", "iv": bytes(12)}),
}


def how(name: str) -> tuple[Any, Any, str, Options]:
    to, by, options = CASES[name]
    return to, by, "age" if name == "armor" else name, Options(**options)


def sealed(path: Path, name: str, size: int = SIZE) -> bytes:
    to, _, of, options = how(name)
    with path.open("wb") as file:
        formats.encrypt_stream(io.BytesIO(paint(size)), file, to, format=of, options=options)
    return path.read_bytes()


def opened(path: Path, name: str) -> bytes:
    _, by, of, options = how(name)
    with formats.open(path, by, format=of, options=options) as file:
        return file.read()


@pytest.mark.parametrize("new", CASES)
@pytest.mark.parametrize("old", CASES)
def test_between_any_two_formats(tmp_path: Path, old: str, new: str) -> None:
    path, out = tmp_path / "old", tmp_path / "new"
    before = sealed(path, old)
    path.chmod(0o640)
    for target in (out, None):
        to, by = how(new), how(old)
        size = formats.rekey_file(
            path, target, by[1], to[0], format=by[2], new_format=to[2], options=by[3],
            new_options=to[3],
        )  # fmt: skip
        result = target or path
        assert opened(result, new) == paint(SIZE)
        assert result.stat().st_size == size
        assert result.stat().st_mode & 0o777 == 0o640
        same = old == new == "raw"  # which takes no salt
        assert (path.read_bytes() == before) is (target is not None or same)
    assert names(tmp_path) == {"old", "new"}


def test_damage_and_cuts_write_nothing(tmp_path: Path) -> None:
    path, out = tmp_path / "old", tmp_path / "new"
    for name in ("cobblestone-256", "tink", "age", "crypt4gh"):
        whole = sealed(path, name)
        key, options = CASES[name][1], how(name)[3]
        ends = {"crypt4gh": (len(whole) - 1,)}.get(name, (len(whole) - 1, len(whole) // 2))
        bad = [whole[:end] for end in (0, 10, 100, *ends)]
        bad += [
            whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
            for at in (0, 20, 60, 150, len(whole) // 3, len(whole) - 1)
        ]
        for data in bad:
            path.write_bytes(data)
            for target in (out, None):
                with pytest.raises((InvalidTag, ValueError)):
                    formats.rekey_file(path, target, key, bytes(range(16)), options=options)
            assert path.read_bytes() == data
            assert names(tmp_path) == {"old"}


def test_what_reads_back_as_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a disk that loses what it was given, for keys that decrypt and for those that do
    not."""
    path = tmp_path / "old"
    before = sealed(path, "cobblestone-128")
    from_disk = rekey.from_disk

    def lossy(descriptor: int) -> io.FileIO:
        os.pwrite(descriptor, bytes(64), 1000)
        return from_disk(descriptor)

    def swapped(descriptor: int) -> io.FileIO:
        """Authentic, and another text."""
        other = io.BytesIO()
        formats.encrypt_stream(io.BytesIO(paint(SIZE + 1)), other, bytes(range(32)))
        os.pwrite(descriptor, other.getvalue(), 0)
        return from_disk(descriptor)

    for disk, new, kind in (
        (lossy, bytes(range(32)), InvalidTag),
        (lossy, ME.recipient, OSError),
        (swapped, bytes(range(32)), OSError),
    ):
        monkeypatch.setattr(rekey, "from_disk", disk)
        with pytest.raises(kind):
            formats.rekey_file(path, None, bytes(16), new)
        assert path.read_bytes() == before
        assert names(tmp_path) == {"old"}


def test_a_source_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old"
    sealed(path, "ags1")
    from_disk = rekey.from_disk

    def and_append(descriptor: int) -> io.FileIO:
        with path.open("ab") as file:
            file.write(b"more")
        return from_disk(descriptor)

    monkeypatch.setattr(rekey, "from_disk", and_append)
    with pytest.raises(OSError, match="changed while it was read"):
        formats.rekey_file(path, None, bytes(range(24)), bytes(16), format="ags1")
    assert path.read_bytes().endswith(b"more")
    assert names(tmp_path) == {"old"}


PROGRAM = """
import os, resource, signal, sys
from warpcipher import formats
from warpcipher.formats import rekey
if sys.argv[2] == "kill":
    rekey.from_disk = lambda _: os.kill(os.getpid(), signal.SIGKILL)
else:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000,) * 2)
formats.rekey_file(sys.argv[1], None, bytes(16), bytes(32))
"""


@pytest.mark.parametrize("how", ["kill", "full"])
def test_killed_and_on_a_full_disk(tmp_path: Path, how: str) -> None:
    path = tmp_path / "old"
    before = sealed(path, "cobblestone-128")
    command = [sys.executable, "-c", PROGRAM, str(path), how]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode == -signal.SIGKILL) is (how == "kill"), done.stderr
    assert how == "kill" or b"File too large" in done.stderr
    assert path.read_bytes() == before
    assert opened(path, "cobblestone-128") == paint(SIZE)
    assert len(temporaries(tmp_path)) == (how == "kill")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Keys `old` and `new`, people `me` and `team`, a file `f` and a tree `t`, encrypted."""
    make_key(tmp_path, "old")
    make_key(tmp_path, "new")
    (tmp_path / "me").touch(0o600)
    (tmp_path / "me").write_text(ME.to_text())
    (tmp_path / "team").write_text(str(ME.recipient))
    (tmp_path / "f").write_bytes(paint(SIZE))
    for name in ("a", "b/c", "b/empty"):
        place = tmp_path / "t" / name
        place.parent.mkdir(exist_ok=True, parents=True)
        place.write_bytes(paint(70_000) if name != "b/empty" else b"")
        place.chmod(0o640)
        os.utime(place, ns=(10**18, 10**18 + 7))
    (tmp_path / "t/nothing").mkdir()
    (tmp_path / "t/link").symlink_to("b/c")
    run("encrypt", "--key", "old", "f", cwd=tmp_path)
    run("encrypt", "--key", "old", "t", cwd=tmp_path)
    return tmp_path


def content(root: Path) -> dict[str, Any]:
    """Names, and what of them a tree keeps."""
    return {
        str(path.relative_to(root)): (
            str(path.readlink())
            if path.is_symlink()
            else (path.stat().st_mode, path.is_file() and path.read_bytes())
        )
        for path in sorted(root.rglob("*"))
    }


def test_a_file(folder: Path) -> None:
    command = ("rekey", "--key", "old", "--new-key", "new")
    (done,) = run_json(*command, "-o", "g.cobblestone", "f.cobblestone", cwd=folder)["results"]
    assert (done["output"], done["format"]) == ("g.cobblestone", "cobblestone-256")
    run("decrypt", "--key", "new", "g.cobblestone", cwd=folder)
    assert (folder / "g").read_bytes() == paint(SIZE)
    run("check", "--key", "old", "f.cobblestone", cwd=folder)
    (folder / "link").hardlink_to(folder / "f.cobblestone")
    said = run(*command, "--in-place", "f.cobblestone", cwd=folder).stderr
    assert b"f.cobblestone has other hard links, which keep the old file and its key" in said
    (folder / "link").unlink()
    run("check", "--key", "new", "f.cobblestone", cwd=folder)
    run("check", "--key", "old", "f.cobblestone", cwd=folder, expect=3)
    out = ("-R", "team", "-a", "-o", "x/", "f.cobblestone", "g.cobblestone")
    run("rekey", "--key", "new", *out, cwd=folder)
    assert names(folder / "x") == {"f.age", "g.age"}
    run("decrypt", "-i", "me", "-o", "h", "x/f.age", cwd=folder)
    assert (folder / "h").read_bytes() == paint(SIZE)
    assert (folder / "x/f.age").read_bytes().startswith(b"-----BEGIN")
    env = {**os.environ, "PHRASE": "correct horse"}
    phrase = ("--new-passphrase-env", "PHRASE", "-o", "p.age", "x/f.age")
    run("rekey", "-i", "me", *phrase, cwd=folder, env=env)
    run("check", "--passphrase-env", "PHRASE", "p.age", cwd=folder, env=env)


def test_contexts(folder: Path) -> None:
    run("encrypt", "--key", "old", "--context", "one", "-o", "c", "f", cwd=folder)
    command = ("rekey", "--key", "old", "--context", "one", "--new-key", "new", "c")
    run(*command, "-o", "same", cwd=folder)
    run("check", "--key", "new", "--context", "one", "same", cwd=folder)
    run(*command, "--new-context", "two", "-o", "other", cwd=folder)
    run("check", "--key", "new", "--context", "two", "other", cwd=folder)
    done = run(*command[:-3], "-R", "team", "-o", "x", "c", cwd=folder, expect=2)
    assert b"age takes no context" in done.stderr


@pytest.mark.parametrize("new", [("--new-key", "new"), ("-R", "team")])
def test_a_tree(folder: Path, new: tuple[str, str]) -> None:
    reads = ("--key", "new") if new[0] == "--new-key" else ("-i", "me")
    before = content(folder / "t.cobblestone")
    run("rekey", "--key", "old", *new, "-o", "n", "t.cobblestone", cwd=folder)
    assert content(folder / "t.cobblestone") == before
    run("check", *reads, "n", cwd=folder)
    run("decrypt", *reads, "-o", "back", "n", cwd=folder)
    assert content(folder / "back") == content(folder / "t")
    assert (folder / "back/a").stat().st_mtime_ns == 10**18 + 7
    suffix = ".cobblestone" if new[0] == "--new-key" else ".age"
    assert (folder / f"n/b/c{suffix}").is_file()
    (folder / f"n/a{suffix}").rename(folder / "moved")
    assert b"missing: a" in run("check", *reads, "n", cwd=folder, expect=3).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_changes_in_place_keeps_its_owner(folder: Path) -> None:
    """So the owner goes on reading it after root changed the keys."""
    run("keygen", "--format", "tink", "keyset", cwd=folder)
    run("encrypt", "-R", "team", "f", cwd=folder)
    tree = (f"t.cobblestone/{name}" for name in ("a.cobblestone", "MANIFEST.warpcipher"))
    places = [folder / name for name in ("f.cobblestone", "f.age", "keyset", *tree)]
    for place in places:
        place.chmod(0o640)
        os.chown(place, 12345, 23456)
    new = ("--key", "old", "--new-key", "new", "--in-place")
    run("rekey", *new, "f.cobblestone", cwd=folder)
    run("rekey", *new, "t.cobblestone", cwd=folder)
    run("rewrap", "-i", "me", "-R", "team", "f.age", cwd=folder)
    run("keyset", "--rotate", "keyset", cwd=folder)
    for place in places:
        found = place.stat()
        assert (found.st_uid, found.st_gid) == (12345, 23456), place
        assert found.st_mode & 0o777 == (0o600 if place.name == "keyset" else 0o640)


def test_a_tree_in_place(folder: Path) -> None:
    before, there = content(folder / "t.cobblestone"), names(folder)
    run("rekey", "--key", "old", "--new-key", "new", "--in-place", "t.cobblestone", cwd=folder)
    now = content(folder / "t.cobblestone")
    assert names(folder) == there
    assert [name for name in now if now[name] != before[name]] == [
        name for name in before if name.endswith((".cobblestone", ".warpcipher"))
    ]
    run("check", "--key", "old", "t.cobblestone", cwd=folder, expect=3)
    run("decrypt", "--key", "new", "-o", "back", "t.cobblestone", cwd=folder)
    assert content(folder / "back") == content(folder / "t")


def test_a_tree_goes_on(folder: Path) -> None:
    command = ("rekey", "--key", "old", "--new-key", "new", "-o", "n", "t.cobblestone")
    run(*command, cwd=folder)
    first, journal = (folder / "n/b/c.cobblestone").read_bytes(), folder / "n/.warpcipher-journal"
    for number, more in enumerate(((), ("--update",), ("--skip-existing",))):
        (folder / "t/a").write_bytes(b"changed" * number)
        run("encrypt", "--update", "--key", "old", "t", cwd=folder)
        if more:  # else it goes on by its journal
            journal.unlink()
            done = run(*command, cwd=folder, expect=2)
            assert b"holds objects already" in done.stderr
        changed = run_json(*command, *more, cwd=folder)
        assert (changed["objects"], changed["complete"]) == ((0, 3) if number == 2 else (1, 2))
        assert (folder / "n/b/c.cobblestone").read_bytes() == first, "it was there"
        if number < 2:
            run("decrypt", "--key", "new", "-o", f"back{number}", "n", cwd=folder)
            assert content(folder / f"back{number}") == content(folder / "t")
    (folder / "n/MANIFEST.warpcipher").unlink()
    shutil.rmtree(folder / "n/b")
    run(*command, cwd=folder)
    run("check", "--key", "new", "n", cwd=folder)


def test_a_key_file_in_the_output_of_a_tree(folder: Path) -> None:
    (folder / "n").mkdir()
    shutil.copy(folder / "new", folder / "n/a.cobblestone")
    command = ("--key", "old", "--new-key", "n/a.cobblestone", "--force", "-o", "n")
    done = run("rekey", *command, "t.cobblestone", cwd=folder, expect=2)
    assert b"the key file n/a.cobblestone lies in the output" in done.stderr
    assert names(folder / "n") == {"a.cobblestone"}


def test_a_tree_that_does_not_match_its_manifest(folder: Path) -> None:
    (folder / "t.cobblestone/b/c.cobblestone").unlink()
    command = ("rekey", "--key", "old", "--new-key", "new", "-o", "n", "t.cobblestone")
    assert b"missing: b/c" in run(*command, cwd=folder, expect=3).stderr
    assert not (folder / "n").exists()


def test_a_damaged_file_of_a_tree(folder: Path) -> None:
    path = folder / "t.cobblestone/b/c.cobblestone"
    data = bytearray(path.read_bytes())
    data[40_000] ^= 1
    path.write_bytes(data)
    command = ("rekey", "--key", "old", "--new-key", "new", "-o", "n", "t.cobblestone")
    assert b"chunk 2 failed" in run(*command, cwd=folder, expect=3).stderr
    assert not (folder / "n/b/c.cobblestone").exists()
    assert not temporaries(folder)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--key", "old", "--in-place", "f.cobblestone"), 2, "give the new key"),
        (("--new-key", "new", "--in-place", "f.cobblestone"), 2, "give one key"),
        (("--key", "old", "--new-key", "new", "f.cobblestone"), 2, "give one of -o PATH"),
        (
            ("--key", "old", "--new-key", "new", "--in-place", "-o", "x", "f.cobblestone"),
            2,
            "give one of -o PATH",
        ),
        (("--key", "old", "-R", "team", "--in-place", "t.cobblestone"), 2, "keep the suffix"),
        (("--key", "old", "--new-key", "new", "-o", "-", "f.cobblestone"), 2, "read back"),
        (("--key", "old", "--new-key", "new", "--in-place", "-"), 2, "read back"),
        (("--key", "old", "-R", "team", "--in-place", "f.cobblestone"), 2, "suffix of cobblestone"),
        (("--key", "new", "--new-key", "old", "--in-place", "f.cobblestone"), 3, "wrong key"),
        (("-i", "me", "--new-key", "new", "--in-place", "f.cobblestone"), 3, "not an age file"),
        (("--key", "old", "--new-key", "new", "-o", "f", "f.cobblestone"), 2, "f exists"),
        (("--key", "old", "--new-key", "absent", "--in-place", "f.cobblestone"), 4, "absent"),
        (("--key", "-", "--new-key", "-", "--in-place", "f.cobblestone"), 2, "both keys"),
        (
            ("--key", "old", "--new-key", "new", "--in-place", "t.cobblestone/a.cobblestone"),
            2,
            "would be in the encrypted tree",
        ),
        (
            ("--key", "old", "--new-key", "new", "--new-format", "raw", "-o", "x", "f.cobblestone"),
            2,
            "format raw has its own commands",
        ),
    ],
)
def test_what_cannot_be(folder: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    before, there = content(folder), names(folder)
    done = run("rekey", *arguments, cwd=folder, expect=code)
    assert message in done.stderr.decode()
    assert content(folder) == before
    assert names(folder) == there

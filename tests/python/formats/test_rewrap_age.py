# SPDX-License-Identifier: Apache-2.0
"""New recipients for a file of age: its header is made again, and its payload stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import FormatError, Options, age

pytest.importorskip("cryptography")

ME, YOU, OTHER = (age.Identity(bytes(range(32 * i, 32 * i + 32))) for i in range(3))
QUICK = age.Passphrase("correct horse", work_factor=1)
SIZE = 200_001


def made(path: Path, key: Any = ME.recipient, *, armor: bool = False, size: int = SIZE) -> bytes:
    plain = path.with_name("plain")
    plain.write_bytes(paint(size))
    formats.encrypt_file(plain, path, key, options=Options(armor=armor))
    plain.unlink()
    return path.read_bytes()


def opened(path: Path, key: Any) -> bytes:
    with formats.open(path, key) as file:
        return file.read()


def payload_of(data: bytes) -> bytes:
    return data[data.index(b"\n", data.index(b"\n--- ") + 1) + 1 :]


@pytest.mark.parametrize("armor", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_others_open_it_and_the_payload_stays(tmp_path: Path, armor: bool, in_place: bool) -> None:
    path, out = tmp_path / "x", tmp_path / "y"
    before = made(path, armor=armor)
    path.chmod(0o640)
    formats.rewrap_file(path, ME, [YOU.recipient, OTHER.recipient], None if in_place else out)
    result = path if in_place else out
    after = result.read_bytes()
    assert opened(result, YOU) == opened(result, OTHER) == paint(SIZE)
    with pytest.raises(InvalidTag, match="wrong key"):
        opened(result, ME)
    assert after.startswith(b"-----BEGIN") is armor
    assert armor or payload_of(after) == payload_of(before)
    assert result.stat().st_mode & 0o777 == 0o640
    if not in_place:
        assert path.read_bytes() == before


@pytest.mark.parametrize("size", [0, 1, 65536])
def test_sizes(tmp_path: Path, size: int) -> None:
    made(tmp_path / "x", size=size)
    formats.rewrap_file(tmp_path / "x", ME, YOU)
    assert opened(tmp_path / "x", YOU) == paint(size)


def test_readers_can_be_kept(tmp_path: Path) -> None:
    made(tmp_path / "x", [ME.recipient, OTHER.recipient])
    formats.rewrap_file(tmp_path / "x", ME, YOU.recipient, keep=True)
    assert {opened(tmp_path / "x", key) for key in (ME, YOU, OTHER)} == {paint(SIZE)}


def test_passphrases(tmp_path: Path) -> None:
    path = tmp_path / "x"
    made(path, QUICK)
    for keep, new in ((True, YOU), (True, QUICK), (False, [YOU, QUICK])):
        with pytest.raises(ValueError, match="only without other recipients"):
            formats.rewrap_file(path, QUICK, new, keep=keep)
    formats.rewrap_file(path, QUICK, age.Passphrase("another", work_factor=1))
    assert opened(path, age.Passphrase("another")) == paint(SIZE)
    formats.rewrap_file(path, age.Passphrase("another"), ME)
    assert opened(path, ME) == paint(SIZE)


def test_peers(tmp_path: Path) -> None:
    pyrage = pytest.importorskip("pyrage")
    me, you = (pyrage.x25519.Identity.from_str(one.to_text()) for one in (ME, YOU))
    for armored in (False, True):
        path = tmp_path / f"x{armored}"
        path.write_bytes(pyrage.encrypt(paint(SIZE), [me.to_public()], armored=armored))
        formats.rewrap_file(path, ME, YOU.recipient)
        assert pyrage.decrypt(path.read_bytes(), [you]) == paint(SIZE)
        if shutil.which("age") is not None:
            (tmp_path / "you.txt").write_text(YOU.to_text())
            command = ["age", "-d", "-i", "you.txt", path.name]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
            assert done.stdout == paint(SIZE)


def test_what_cannot_be_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    before = made(path)
    (tmp_path / "y").write_bytes(b"y")
    refused: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
        (YOU, YOU, {}, InvalidTag, "wrong key"),
        (QUICK, YOU, {}, InvalidTag, "has no passphrase"),
        (ME.recipient, YOU, {}, ValueError, "not with a recipient"),
        (ME, [], {}, ValueError, "empty list"),
        (ME, [YOU] * 4097, {}, ValueError, "1 to 4096 recipients"),
        (ME, bytes(32), {}, ValueError, "not an identity of age"),
        (bytes(32), YOU, {}, ValueError, "cobblestone-256 has no wrapping key.*rekey"),
        (bytes(16), YOU, {"format": "ags1"}, ValueError, "ags1 has no wrapping key.*rekey"),
        (ME, YOU, {"out": tmp_path / "y", "replace": False}, FileExistsError, "exists"),
        (ME, YOU, {"out": tmp_path}, IsADirectoryError, "directory"),
        (ME, YOU, {"options": Options(context=b"x")}, ValueError, "takes no context"),
    ]
    for key, new, how, kind, text in refused:
        with pytest.raises(kind, match=text):
            formats.rewrap_file(path, key, new, **how)
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {"x", "y"}


@pytest.mark.parametrize("armor", [False, True])
def test_damage_and_cuts_of_the_header(tmp_path: Path, armor: bool) -> None:
    path = tmp_path / "x"
    whole = made(path, size=0, armor=armor)
    size = len(whole) - (1 if armor else len(payload_of(whole)))
    for at in range(size):
        for bad in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            path.write_bytes(bad)
            with contextlib.suppress(InvalidTag, FormatError, ValueError):
                formats.rewrap_file(path, ME, YOU)
                assert armor, "the header was not authenticated"
            if path.read_bytes() != bad:  # damage of the payload is found when it is read
                with pytest.raises(InvalidTag):
                    opened(path, YOU)
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_a_file_of_a_tree_is_refused_in_its_place(tmp_path: Path) -> None:
    made(tmp_path / "x")
    (tmp_path / "MANIFEST.warpcipher").write_bytes(b"")
    for out in (None, tmp_path / "x"):
        with pytest.raises(ValueError, match="part of the tree"):
            formats.rewrap_file(tmp_path / "x", ME, YOU, out)
        with pytest.raises(ValueError, match="part of the tree"):
            formats.rekey_file(tmp_path / "x", out, ME, YOU)
    (tmp_path / "MANIFEST.warpcipher").unlink()
    formats.rewrap_file(tmp_path / "x", ME, YOU)


def test_a_file_that_grows_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpcipher.formats import source

    path = tmp_path / "x"
    made(path)
    copy = source.copy_range

    def and_grow(*arguments: int) -> None:
        copy(*arguments)
        with path.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(source, "copy_range", and_grow)
    with pytest.raises(OSError, match="changed while it was read"):
        formats.rewrap_file(path, ME, YOU)
    assert [one.name for one in tmp_path.iterdir()] == ["x"]
    assert path.read_bytes().endswith(b"more")


@pytest.mark.parametrize(
    ("change", "syncs"),
    [
        (lambda path: formats.rewrap_file(path, ME, YOU, keep=True), 1),
        (lambda path: formats.rekey_file(path, None, ME, YOU), 2),  # it is read back
        (lambda path: formats.rekey_file(path, str(path), ME, YOU), 2),
    ],
)
def test_a_version_that_appears_at_the_last_moment_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], object],
    syncs: int,
) -> None:
    """Such as one with a reader whom another call has added: after the last look at the file."""
    path, seen = tmp_path / "x", []
    made(path)

    def fsync(descriptor: int) -> None:
        seen.append(descriptor)
        if len(seen) == syncs:
            path.with_name("other").write_bytes(b"other")
            path.with_name("other").replace(path)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="another program changed it meanwhile"):
        change(path)
    assert path.read_bytes() == b"other"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


PROGRAM = """
import resource, sys
from warpcipher import formats
from warpcipher.formats import age
if int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
me = age.Identity(bytes(range(32)))
formats.rewrap_file(sys.argv[1], me, age.Identity.generate())
"""


def test_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "x"
    before = made(path)
    command = [sys.executable, "-c", PROGRAM, str(path), str(SIZE // 2)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode not in (0, -signal.SIGXFSZ), "Python ignores the signal"
    assert b"File too large" in done.stderr
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


KILLED = "import os, signal\n" + PROGRAM.replace(
    "me = ",
    "from warpcipher.formats import source\n"
    "source.copy_range = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nme = ",
)


def test_killed_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "x"
    before = made(path)
    command = [sys.executable, "-c", KILLED, str(path), "0"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_bytes() == before
    assert opened(path, ME) == paint(SIZE)

# SPDX-License-Identifier: Apache-2.0
"""Outputs where another program writes in the same folder, and where there are no hard links."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import make_key, names, run
from warpcipher import _descriptors
from warpcipher.cli import files, folders

RUN = "from warpcipher.cli import main\nmain()\n"

# The last moment before the output gets its name.
EXCHANGE = """
import os, sys
fsync, exchange = os.fsync, {exchange}
def interfere(descriptor):
    fsync(descriptor)
    for name in os.listdir("."):
        if name.endswith(".part"):
            os.rename(name, "moved") if {keep} else os.unlink(name)
            exchange("victim", name)
os.fsync = interfere
"""
NO_PROC = (
    "lexists = os.path.lexists\nos.path.lexists = lambda p: p[:6] != '/proc/' and lexists(p)\n"
)

NO_HARD_LINKS = """
import errno, os
def refuse(*_, **__):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
os.link = refuse
"""
# Another program takes the name between the last look at it and the renaming.
RACE = """
linked, stat = os.link, os.stat
def link(*given, **options):
    os.stat = late
    linked(*given, **options)
def late(*given, **options):
    try:
        return stat(*given, **options)
    finally:
        open("out", "wb").write(b"precious")
        os.stat = stat
os.link = link
"""
NO_CTYPES = "import sys\nsys.modules['ctypes'] = None\n"


def run_with(
    program: str, *arguments: str, cwd: Path, expect: int
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-c", program + RUN, *arguments],
        cwd=cwd,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == expect, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "victim").write_bytes(b"of somebody else")
    return tmp_path


def check_out(folder: Path) -> None:
    assert not (folder / "out").is_symlink()
    run("decrypt", "--key", "key", "-o", "back", "out", cwd=folder)
    assert (folder / "back").read_bytes() == b"text"


@pytest.mark.parametrize("exchange", ["os.symlink", "os.link"])
def test_exchanged_temporary_gets_no_name(folder: Path, exchange: str) -> None:
    program = EXCHANGE.format(exchange=exchange, keep=False)
    arguments = ("encrypt", "--key", "key", "-o", "out", "a")
    done = run_with(program, *arguments, cwd=folder, expect=4)
    assert b"out: another program exchanged the temporary .warpcipher-" in done.stderr
    assert (folder / "victim").stat().st_nlink == 1
    assert names(folder) == {"key", "a", "victim"}


@pytest.mark.parametrize("exchange", ["os.symlink", "os.link"])
def test_what_was_written_gets_the_name_wherever_it_was_moved(folder: Path, exchange: str) -> None:
    program = EXCHANGE.format(exchange=exchange, keep=True)
    run_with(program, "encrypt", "--key", "key", "-o", "out", "a", cwd=folder, expect=0)
    assert (folder / "victim").stat().st_nlink == 1
    assert names(folder) == {"key", "a", "victim", "out", "moved"}
    check_out(folder)


@pytest.mark.parametrize("exchange", ["os.symlink", "os.link"])
def test_exchanged_temporary_replaces_nothing(folder: Path, exchange: str) -> None:
    (folder / "out").write_bytes(b"precious")
    program = EXCHANGE.format(exchange=exchange, keep=True)
    arguments = ("encrypt", "--force", "--key", "key", "-o", "out", "a")
    done = run_with(program, *arguments, cwd=folder, expect=4)
    assert b"out: another program exchanged the temporary .warpcipher-" in done.stderr
    assert (folder / "out").read_bytes() == b"precious"
    assert (folder / "victim").stat().st_nlink == 1
    assert names(folder) == {"key", "a", "victim", "out", "moved"}


@pytest.mark.parametrize("exchange", ["os.symlink", "os.link"])
def test_exchanged_temporary_without_proc(folder: Path, exchange: str) -> None:
    program = EXCHANGE.format(exchange=exchange, keep=True) + NO_PROC
    run_with(program, "encrypt", "--key", "key", "-o", "out", "a", cwd=folder, expect=4)
    assert (folder / "victim").stat().st_nlink == 1
    assert names(folder) == {"key", "a", "victim", "moved"}


@pytest.mark.parametrize("exchange", ["os.symlink", "os.link"])
def test_exchanged_key_file(folder: Path, exchange: str) -> None:
    (folder / "out").write_bytes(b"old")
    program = EXCHANGE.format(exchange=exchange, keep=True)
    run_with(program, "keygen", "--force", "out", cwd=folder, expect=4)
    assert (folder / "out").read_bytes() == b"old"


def test_output_without_proc(folder: Path) -> None:
    program = "import os\n" + NO_PROC
    run_with(program, "encrypt", "--key", "key", "-o", "out", "a", cwd=folder, expect=0)
    assert (folder / "out").stat().st_nlink == 1
    check_out(folder)


@pytest.mark.parametrize("more", ["", NO_CTYPES])
def test_output_without_hard_links(folder: Path, more: str) -> None:
    arguments = ("encrypt", "--key", "key", "-o", "out", "a")
    run_with(NO_HARD_LINKS + more, *arguments, cwd=folder, expect=0)
    check_out(folder)
    before = (folder / "out").read_bytes()
    done = run_with(NO_HARD_LINKS + more, *arguments, cwd=folder, expect=2)
    assert b"out exists: use --force" in done.stderr
    assert (folder / "out").read_bytes() == before


def can_rename_noreplace(folder: Path) -> bool:
    (folder / "old").touch()
    descriptor = folders.open_folder(str(folder), ())
    try:
        return _descriptors.rename_noreplace(descriptor, "old", "new")
    finally:
        os.close(descriptor)
        for name in ("old", "new"):
            (folder / name).unlink(missing_ok=True)


def test_name_taken_at_the_last_moment_is_kept(folder: Path) -> None:
    if not can_rename_noreplace(folder):
        pytest.skip("this file system cannot rename without replacing")
    arguments = ("encrypt", "--key", "key", "-o", "out", "a")
    done = run_with(NO_HARD_LINKS + RACE, *arguments, cwd=folder, expect=2)
    assert b"out exists: use --force" in done.stderr
    assert (folder / "out").read_bytes() == b"precious"
    assert names(folder) == {"key", "a", "victim", "out"}


def test_folder_put_in_the_place_of_one_that_was_made_is_left_alone(tmp_path: Path) -> None:
    """Neither its mode is changed nor is it removed."""
    base = str(tmp_path)
    os.close(folders.open_folder(base, ("made",), create=True))
    (tmp_path / "made").rename(tmp_path / "moved")
    (tmp_path / "made").mkdir(0o700)
    folders.finish(base, ("made",), 0o755, None, always=False)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700
    folders.remove_empty()
    assert names(tmp_path) == {"made", "moved"}
    folders.forget()


def fails(*_: object, **__: object) -> os.stat_result:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_file_that_cannot_be_looked_at_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", fails)  # which pytest needs afterwards
        with pytest.raises(OSError, match="Stale") as raised:
            files.open_output(str(tmp_path / "out"), force=False)
    assert raised.value.filename == str(tmp_path / "out")
    assert names(tmp_path) == set()


def test_folder_that_cannot_be_looked_at_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", fails)
        with pytest.raises(OSError, match="Stale") as raised:
            folders.open_folder(str(tmp_path), ("made",), create=True)
    assert raised.value.filename == str(tmp_path / "made")
    assert names(tmp_path) == set()


def test_signal_while_a_folder_is_made_finds_it_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def interrupted(*given: object, **options: object) -> None:
        mkdir(*given, **options)  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGTERM)  # to this thread: kill() may pick another

    monkeypatch.setattr(os, "mkdir", interrupted)
    before = signal.signal(signal.SIGTERM, lambda *_: folders.remove_empty())
    try:
        with pytest.raises(FileNotFoundError):  # it is gone when it is to be opened
            folders.open_folder(str(tmp_path), ("made",), create=True)
    finally:
        signal.signal(signal.SIGTERM, before)
        folders.forget()
    assert names(tmp_path) == set()

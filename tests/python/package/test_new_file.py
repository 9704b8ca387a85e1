# SPDX-License-Identifier: Apache-2.0
"""Files that get their names when they are whole: what is on the disk, in which order."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warpcipher import _new_file, parquet, weights
from warpcipher._new_file import replaced, target_of
from warpcipher.keysearch.session import Checkpoint, Identity, State


@pytest.mark.parametrize("replace", [True, False])
def test_file_and_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool
) -> None:
    """The file before it has its name, then the folder: else a loss of power may undo the name."""
    place = tmp_path / "table"
    synced: list[tuple[str, bool]] = []

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        kind = "folder" if stat.S_ISDIR(status.st_mode) else "file"
        if kind == "folder":
            assert os.path.samestat(status, tmp_path.stat())
        synced.append((kind, place.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with replaced(place, replace=replace) as file:
        file.write(b"whole")
    assert synced == [("file", False), ("folder", True)]
    assert place.read_bytes() == b"whole"


def test_a_folder_that_cannot_be_synced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    with replaced(tmp_path / "table") as file:
        file.write(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def writers() -> dict[str, Callable[[Path], object]]:
    """Everything in Python that writes a file by name."""
    np = pytest.importorskip("numpy", reason="NumPy is not installed")
    tensors = {"a": np.zeros(3, np.float32)}

    def plain(path: Path) -> None:
        with replaced(path) as file:
            file.write(b"whole")

    def table(path: Path) -> None:
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
        source = io.BytesIO()
        pq.write_table(pa.table({"x": [1, 2]}), source)
        parquet.encrypt(source, path, parquet.EncryptionConfig(bytes(16)))

    def search(path: Path) -> None:
        checkpoint = Checkpoint(path, Identity("aes-128-ecb", "", "", 0, 1))
        checkpoint.save(State())
        checkpoint.close()

    return {
        "replaced": plain,
        "weights, plain": lambda path: weights.save_file(tensors, path),
        "weights, encrypted": lambda path: weights.save_file(tensors, path, key=bytes(32)),
        "parquet": table,
        "checkpoint": search,
    }


WRITERS = ["replaced", "weights, plain", "weights, encrypted", "parquet", "checkpoint"]


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_no_file_is_refused_and_left(tmp_path: Path, writer: str) -> None:
    """As root, a device was replaced by a file: here a FIFO, a socket and what a process has open
    stand for it."""
    write = writers()[writer]
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "out").touch()
    with (
        socket.socket(socket.AF_UNIX) as bound,
        (tmp_path / "out").open("wb") as opened,
    ):
        bound.bind(os.fspath(tmp_path / "socket"))
        (tmp_path / "link").symlink_to("fifo")
        (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{opened.fileno()}")
        for place in ("fifo", "folder", "socket", "link", "stdout", "/dev/full"):
            with pytest.raises(OSError, match=r"[Nn]ot a regular file|directory") as raised:
                write(tmp_path / place)
            assert raised.value.filename == os.fspath(tmp_path / place)
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    assert {entry.name for entry in tmp_path.iterdir()} == {
        *("fifo", "folder", "link", "out", "socket", "stdout")
    }


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_written_through(tmp_path: Path, writer: str, there: bool) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "middle").symlink_to(tmp_path / "disk/real")
    (tmp_path / "link").symlink_to("middle")
    if there and writer != "checkpoint":  # which replaces its own file only
        (tmp_path / "disk/real").touch(mode=0o640)
    writers()[writer](tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    status = (tmp_path / "disk/real").stat(follow_symlinks=False)
    assert stat.S_ISREG(status.st_mode)
    assert status.st_size > 0
    if there and writer != "checkpoint":
        assert stat.S_IMODE(status.st_mode) == 0o640
    assert [entry.name for entry in (tmp_path / "disk").iterdir()] == ["real"]


def test_rekey_of_a_link_in_its_place_changes_the_real_file(tmp_path: Path) -> None:
    """It left that under its old key, and said that it was done."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "plain")
    old, new = (parquet.EncryptionConfig(bytes([value]) * 16) for value in (1, 2))
    parquet.encrypt(tmp_path / "plain", tmp_path / "real", old)
    (tmp_path / "link").symlink_to("real")
    parquet.rekey(tmp_path / "link", tmp_path / "link", bytes([1]) * 16, new)
    assert (tmp_path / "link").is_symlink()
    assert parquet.read_table(tmp_path / "real", bytes([2]) * 16).num_rows == 2


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links") as raised, replaced(tmp_path / "a"):
        pass
    assert raised.value.errno == errno.ELOOP


def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does where protected_symlinks is set, as it is nearly everywhere."""
    (tmp_path / "real").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("real")
    tmp_path.chmod(0o1777)
    assert target_of(tmp_path / "link") == (os.path.realpath(tmp_path), "real")
    mine = os.lstat
    owner = os.geteuid() + 1

    def look(path: str) -> os.stat_result:
        return os.stat_result([*mine(path)[:4], owner, *mine(path)[5:10]])

    monkeypatch.setattr(os, "lstat", look)
    with pytest.raises(PermissionError, match=r"another user.s symbolic link"):
        target_of(tmp_path / "link")
    tmp_path.chmod(0o700)
    assert target_of(tmp_path / "link")[1] == "real"


def test_owner_and_group_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system does not let the group stay, the other one gets no permissions."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o664)
    mine, asked, look = path.stat(), [], os.stat

    def other(*given: Any, **more: Any) -> os.stat_result:
        found = look(*given, **more)
        return os.stat_result([*found[:4], 12345, 23456, *found[6:10]])

    def fchown(descriptor: int, owner: int, group: int) -> None:
        asked.append((owner, group))
        raise PermissionError

    monkeypatch.setattr(os, "fchown", fchown)
    monkeypatch.setattr(os, "stat", other)
    with replaced(path) as file:
        file.write(b"new")
    assert asked == [(12345, 23456), (-1, 23456)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    tmp_path.chmod(0o1777)  # as /tmp: another user may have put it there
    with replaced(path) as file:
        file.write(b"new")
    assert len(asked) == 2
    monkeypatch.undo()
    tmp_path.chmod(0o700)
    with replaced(path) as file:
        file.write(b"newer")
    assert (path.stat().st_uid, path.stat().st_gid) == (mine.st_uid, mine.st_gid)


def test_attributes_and_access_lists_stay(tmp_path: Path) -> None:
    path, name = tmp_path / "a", "system.posix_acl_access"
    path.write_bytes(b"old")
    entries = ((1, 6, -1), (2, 4, 12345), (4, 4, -1), (16, 4, -1), (32, 0, -1))
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(path, "user.note", b"mine")
        os.setxattr(path, name, access)
    except OSError:
        pytest.skip("this file system has no attributes")
    mode = path.stat().st_mode
    with replaced(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert os.getxattr(path, "user.note") == b"mine"
    assert os.getxattr(path, name) == access
    assert path.stat().st_mode == mode
    os.setxattr(tmp_path, "system.posix_acl_default", access)
    os.removexattr(path, name)
    path.chmod(0o640)
    with replaced(path) as file:
        file.write(b"newer")
    assert name not in os.listxattr(path), "whom the folder lets in was not let in to this file"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_that_flock_keeps_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `flock keyset warpcipher keyset --rotate keyset`."""
    monkeypatch.setattr(_new_file, "LOCK_SECONDS", 0.01)
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with path.open("rb") as locked, path.open("rb") as old:
        fcntl.flock(locked, fcntl.LOCK_EX)
        with replaced(path, of=old.fileno()) as file:
            file.write(b"new")
    assert path.read_bytes() == b"new"

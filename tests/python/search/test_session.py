# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of searches: what is done is known after any end, and nothing foreign is touched."""

from __future__ import annotations

import errno
import json
import os
import random
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import warpcipher as wc
from warpcipher._new_file import NewFile
from warpcipher.keysearch import CheckpointError, Pair, Search, Template
from warpcipher.keysearch.ranges import RangeSet
from warpcipher.keysearch.session import Checkpoint, Identity, State, _digest

IDENTITY = Identity("aes-128-ecb", "00" * 32, "11" * 32, 0, 1 << 130)


def make_search(path: Path, *, number: int = 60_000, **options: object) -> Search:
    """For a key of 2^16, with one more unknown to nobody."""
    template = Template("aes-128", "00{14}????")
    key = template.space.key_at(number)
    pair = Pair(bytes(16), wc.Cipher("aes-128-ecb", key).encrypt(bytes(16)))
    return wc.search("aes-128", [pair], template, checkpoint=path, interval=0, **options)  # type: ignore[arg-type]


def test_state_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "c"
    state = State(RangeSet([(5, 1 << 100), (1 << 129, 1 << 130)]), [7, 1 << 129], 3, 12.5)
    with Checkpoint(path, IDENTITY) as checkpoint:
        assert checkpoint.load() is None
        checkpoint.save(state)
        checkpoint.save(state)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["c"]  # noqa: PTH208
    with Checkpoint(path, IDENTITY) as checkpoint:
        assert checkpoint.load() == state


def test_search_goes_on_where_it_was_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "c"
    first = make_search(path, engine="reference")
    for _ in first:
        first.cancel()
    assert first.result == "cancelled"
    done = json.loads(path.read_text())["done"]
    second = make_search(path, engine="reference")
    last = list(second)[-1]
    assert second.result == "found"
    assert second.resumed == sum(int(end) - int(begin) for begin, end in done)
    assert last.done - last.tested == second.resumed
    # A third run knows it all: nothing is tested.
    third = make_search(path)
    (only,) = list(third)
    assert third.keys == second.keys
    assert only.tested == 0


def test_exhausted_search_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "c"
    for tested in (1000, 0):
        search = make_search(path, count=1000)
        assert list(search)[-1].tested == tested
        assert search.result == "exhausted"


@pytest.mark.parametrize(
    "other",
    [{"number": 1}, {"count": 100}, {"shard": (1, 2)}],
    ids=["pairs", "count", "shard"],
)
def test_checkpoint_of_another_search_is_left_alone(tmp_path: Path, other: dict[str, int]) -> None:
    path = tmp_path / "c"
    make_search(path, count=1000).run()
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="belongs to another search"):
        make_search(path, **{"count": 1000, **other} if "number" in other else other).run()
    assert path.read_bytes() == before


def test_checkpoint_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with Checkpoint(path, IDENTITY) as checkpoint:
        checkpoint.save(State())
        with pytest.raises(CheckpointError, match="in use"):
            Checkpoint(path, IDENTITY).load()
        checkpoint.save(State())  # the new version is locked as well
        with pytest.raises(CheckpointError, match="in use"):
            Checkpoint(path, IDENTITY).load()
    with Checkpoint(path, IDENTITY) as checkpoint:
        assert checkpoint.load() == State()


def test_first_save_takes_no_name_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with Checkpoint(path, IDENTITY) as checkpoint:
        assert checkpoint.load() is None
        path.write_text("appeared meanwhile")
        with pytest.raises(CheckpointError, match="appeared meanwhile"):
            checkpoint.save(State())
    assert path.read_text() == "appeared meanwhile"
    assert os.listdir(tmp_path) == ["c"]  # noqa: PTH208


def test_place_where_no_checkpoint_can_be_is_told_at_once(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for use in (Checkpoint.load, Checkpoint.peek):
        with pytest.raises(FileNotFoundError, match="no such folder") as raised:
            use(Checkpoint(missing / "c", IDENTITY))
        assert raised.value.filename == str(missing)
        with pytest.raises(CheckpointError, match="not a regular file"):
            use(Checkpoint(tmp_path, IDENTITY))


def test_checkpoint_that_was_replaced_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with Checkpoint(path, IDENTITY) as checkpoint:
        checkpoint.save(State())
        path.unlink()
        path.write_text("another's")
        with pytest.raises(CheckpointError, match="replaced"):
            checkpoint.save(State())
    assert path.read_text() == "another's"


def test_damaged_checkpoint_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with Checkpoint(path, IDENTITY) as checkpoint:
        checkpoint.save(State(RangeSet([(10, 99)]), [12], 1, 2.0))
    good = path.read_bytes()
    source = random.Random(9)
    damaged = [good[:length] for length in source.sample(range(len(good) - 2), 20)]
    for _ in range(60):
        text = bytearray(good)
        at = source.randrange(len(text) - 1)
        text[at] ^= 1 << source.randrange(7)
        if json_or_none(bytes(text)) != json_or_none(good):  # whitespace may change
            damaged.append(bytes(text))
    damaged += [b"[]", b"null", b'{"format": "warpcipher-search", "version": 1}', b"[" * 100_000]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=r"damaged|not a checkpoint|version"):
            Checkpoint(path, IDENTITY).load()
        assert path.read_bytes() == data


def json_or_none(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None


def test_range_outside_of_the_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    narrow = Identity("aes-128-ecb", "00" * 32, "11" * 32, 0, 50)
    for state in (State(RangeSet([(10, 51)])), State(found=[50])):
        path.unlink(missing_ok=True)
        with Checkpoint(path, narrow) as checkpoint:
            checkpoint.save(state)
        with pytest.raises(CheckpointError, match="damaged"):
            Checkpoint(path, narrow).load()


def test_key_that_does_not_pass_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    search = make_search(path)
    with Checkpoint(path, search.identity) as checkpoint:
        checkpoint.save(State(found=[1]))
    with pytest.raises(CheckpointError, match="does not pass"):
        search.run()


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "c").symlink_to("disk/real")
    for done in (1, 2):
        with Checkpoint(tmp_path / "c", IDENTITY) as checkpoint:
            assert (checkpoint.load() is None) == (done == 1)
            checkpoint.save(State(false_positives=done))
        assert (tmp_path / "c").is_symlink()
        assert [entry.name for entry in (tmp_path / "disk").iterdir()] == ["real"]
        assert Checkpoint(tmp_path / "disk/real", IDENTITY).peek() == State(false_positives=done)


def test_a_link_to_another_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "c").symlink_to("target")
    with pytest.raises(CheckpointError, match="damaged"):
        make_search(tmp_path / "c").run()
    assert (tmp_path / "target").read_text() == "precious"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """In a process of its own, which a FIFO that is opened would keep for ever."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.fspath(tmp_path / "socket"))
        script = (
            "import sys; from warpcipher.keysearch.session import *\n"
            "i = Identity('aes-128-ecb', '', '', 0, 1)\n"
            "for use in Checkpoint.load, Checkpoint.peek:\n"
            "  for path in sys.argv[1:]:\n"
            "    try: use(Checkpoint(path, i))\n"
            "    except CheckpointError as error: print(error)\n"
        )
        paths = [
            *(os.fspath(tmp_path / name) for name in ("fifo", "folder", "socket")),
            "/dev/zero",
            "/dev/tty",
        ]
        done = subprocess.run(
            [sys.executable, "-c", script, *paths], timeout=60, capture_output=True, check=True
        )
    expected = [f"{path} is not a regular file: name one for the checkpoint" for path in paths]
    assert done.stdout.decode().splitlines() == expected * 2
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_checkpoint_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # without a byte on the disk
    with pytest.raises(CheckpointError, match="has more than 16777216 bytes"):
        Checkpoint(path, IDENTITY).load()
    assert path.stat().st_size == 1 << 40


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("seconds", value) for value in (float("nan"), float("inf"), -1.0, 10**400, "1e999")),
        *(("false_positives", value) for value in (float("inf"), -1)),
    ],
)
def test_figures_that_cannot_be_are_refused(tmp_path: Path, field: str, value: object) -> None:
    """After a digest that is right, which anyone can make."""
    path = tmp_path / "c"
    with Checkpoint(path, IDENTITY) as checkpoint:
        checkpoint.save(State())
    document = json.loads(path.read_text())
    del document["sha256"]
    document[field] = value
    document["sha256"] = _digest(document)
    path.write_text(json.dumps(document))
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint(path, IDENTITY).load()


def test_version_in_the_error_is_short(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_text(json.dumps({"format": "warpcipher-search", "version": "9" * 100_000}))
    with pytest.raises(CheckpointError, match=r"is of version '9+[.]{3}, expected 1") as raised:
        Checkpoint(path, IDENTITY).load()
    assert len(str(raised.value)) < 1000


def test_a_checkpoint_exchanged_in_the_last_moment_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program's file gets the name between the look and the renaming."""
    path = tmp_path / "c"
    checkpoint = Checkpoint(path, IDENTITY)
    checkpoint.save(State())
    look = NewFile._stands_for

    def late(self: NewFile, name: str, descriptor: int) -> bool:
        found = look(self, name, descriptor)
        if name == "c" and found:
            path.unlink()
            path.write_text("precious")
        return found

    monkeypatch.setattr(NewFile, "_stands_for", late)
    with pytest.raises(CheckpointError, match="was replaced by another program: not saved"):
        checkpoint.save(State())
    assert path.read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


def test_a_name_taken_in_the_last_moment_is_kept_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c"

    def refuse(*_: object, **__: object) -> None:
        path.write_text("precious")
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(CheckpointError, match="has appeared meanwhile"):
        Checkpoint(path, IDENTITY).save(State())
    assert path.read_text() == "precious"


def test_a_write_of_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 0)
    with pytest.raises(OSError, match="nothing could be written"):
        Checkpoint(tmp_path / "c", IDENTITY).save(State())
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []

# SPDX-License-Identifier: Apache-2.0
"""Jobs over objects: what they write, what they find, and how they go on after a kill."""

from __future__ import annotations

import contextlib
import errno
import inspect
import json
import os
import random
import secrets
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from job_support import NAMES, damage, decrypted, do, encrypt, invoke, plain, reported
from step_store import Killed, StepStore
from warpcipher import stores
from warpcipher.cli.app import cli
from warpcipher.fleet import journal, places
from warpcipher.fleet.places import Item, Items
from warpcipher.fleet.runner import ROOM, Threads, Todo
from warpcipher.fleet.work import Outcome


def test_a_prefix_comes_back(store: StepStore, there: Path) -> None:
    encrypt("--report", "report")
    lines = reported()
    assert lines.keys() == set(NAMES)
    for name, line in lines.items():
        assert line["state"] == "done"
        assert line["output"] == f"step://out/{name}.cobblestone"
        assert line["input_bytes"] == len(store.objects[f"in/{name}"][0])
        assert line["output_bytes"] == len(store.objects[f"out/{name}.cobblestone"][0])
    assert decrypted(store) == plain(store)
    do("check", "step://out")


def test_long_objects_go_in_pieces(
    store: StepStore, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "SHORT", 3000)
    store.put("in/long", secrets.token_bytes(3 << 20))
    encrypt()
    assert decrypted(store) == plain(store)
    do("check", "step://out")
    damage(store)
    assert "chunk 0 failed" in do("check", "step://out", expect=3)


def test_key_files_are_left_out(store: StepStore, there: Path) -> None:
    """A key that is encrypted under itself is lost with its plain file."""
    (there / "tree").mkdir()
    (there / "tree" / "a").write_bytes(b"text")
    (there / "tree" / "link").hardlink_to(there / "key")
    said = do("encrypt", "tree", "-o", "step://keys", "-v")
    assert "link" in said
    assert "key file" in said
    assert sorted(plain(store, "keys/")) == ["MANIFEST.warpcipher", "a.cobblestone"]
    assert "is the key file" in do("encrypt", "key", "-o", "step://keys/key", expect=2)


def test_one_object(store: StepStore, there: Path) -> None:
    do("encrypt", "step://in/z", "-o", "step://one/z")
    assert "use --force" in do("encrypt", "step://in/z", "-o", "step://one/z", expect=2)
    do("encrypt", "step://in/z", "-o", "step://one/z", "--force")
    do("decrypt", "step://one/z", "-o", "z")
    assert Path("z").read_bytes() == store.objects["in/z"][0]


# --- going on -------------------------------------------------------------------------------------


def test_a_second_call_does_what_is_new(store: StepStore, there: Path) -> None:
    encrypt()
    before = dict(store.objects)
    encrypt("--report", "report")
    assert {line["state"] for line in reported().values()} == {"complete"}
    assert store.objects == before
    store.put("in/a0", b"changed")
    store.put("in/new", b"new")
    encrypt("--report", "report")
    states = {name: line["state"] for name, line in reported().items()}
    assert states == {**dict.fromkeys(NAMES, "complete"), "a0": "done", "new": "done"}
    assert decrypted(store) == plain(store)


def test_outputs_that_are_gone_are_made_again(store: StepStore, there: Path) -> None:
    encrypt()
    del store.objects["out/a/1.cobblestone"]
    store.put("out/z.cobblestone", b"garbage")
    encrypt("--report", "report")
    assert {name for name, line in reported().items() if line["state"] == "done"} == {"a/1", "z"}
    do("check", "step://out")
    do("decrypt", "step://out", "-o", "tree")
    Path("tree/a/1").unlink()
    Path("tree/a.b").write_bytes(b"garbage")
    text = do("decrypt", "step://out", "-o", "tree", "-v")
    assert f"2 objects done, {len(NAMES) - 2} complete before" in text
    for name, data in plain(store).items():
        assert Path("tree", name).read_bytes() == data
    one = ("encrypt", "step://in/z", "-o", "step://one/z", "--journal", "mine")
    do(*one)
    before = store.objects.pop("one/z")
    do(*one)
    assert "1 complete before" in do(*one, "-v")
    assert store.objects["one/z"] != before


@pytest.mark.parametrize("more", [(), ("--no-manifest",)])
def test_outputs_without_a_journal(store: StepStore, there: Path, more: tuple[str, ...]) -> None:
    """--skip-existing leaves them, --update does those again whose source has changed."""

    def names(*arguments: str) -> set[str]:
        store.objects.pop("out/.warpcipher-journal", None)
        encrypt(*arguments, *more, "--report", "report")
        assert reported().keys() == {*NAMES, "new"}
        return {name for name, line in reported().items() if line["state"] == "done"}

    encrypt(*more)
    store.objects.pop("out/.warpcipher-journal")
    assert "holds objects already" in encrypt(*more, expect=2)
    store.put("in/new", b"new")
    store.put("in/a0", b"changed")
    assert names("--skip-existing") == {"new"}
    assert names("--skip-existing") == set()
    assert names("--update") == {"a0"}
    assert names("--update") == set()
    found = decrypted(store) if not more else plain(store)
    assert found == plain(store)
    do("check", "step://out", *more)


def test_outputs_whose_sources_are_gone(store: StepStore, there: Path) -> None:
    encrypt()
    for name in ("a/1", "z"):
        del store.objects[f"in/{name}"]
    store.put("in/new", b"new")
    encrypt("--update", "--exclude", "new")
    assert decrypted(store).keys() == {*NAMES}
    for journal_stays in (True, False):
        if not journal_stays:
            store.objects.pop("out/.warpcipher-journal")
            del store.objects["in/a0"]
        encrypt("--update", "--delete", "--include", "nothing")
        assert decrypted(store) == {k: v for k, v in plain(store).items() if k != "new"}
        names = {path for path in plain(store, "out/") if not path.startswith("MANIFEST")}
        assert names == {f"{name}.cobblestone" for name in decrypted(store)}
    store.put("out/stranger", b"theirs")
    encrypt("--update", "--delete", "--include", "nothing")
    assert "stranger" in do("check", "step://out", expect=3)
    for wrong in ((), ("--force",), ("--update", "--no-manifest")):
        encrypt("--delete", *wrong, expect=2)
    for path in [path for path in store.objects if path.startswith("in/")]:
        del store.objects[path]
    before = plain(store, "out/")
    misspelt = ("encrypt", "step://in/", "-o", "step://out", "--update", "--delete")
    assert "would empty the tree" in do(*misspelt, expect=2)
    assert plain(store, "out/") == before


def test_decrypted_outputs_without_a_journal(store: StepStore, there: Path) -> None:
    encrypt()
    do("decrypt", "step://out", "-o", "tree")
    Path("tree/.warpcipher-journal").unlink()
    Path("tree/a/1").unlink()
    Path("tree/z").write_bytes(b"mine")
    given = ("decrypt", "step://out", "-o", "tree", "-v")
    assert "2 objects done" not in do(*given, "--skip-existing")
    assert Path("tree/z").read_bytes() == b"mine"
    assert Path("tree/a/1").read_bytes() == store.objects["in/a/1"][0]
    encrypt("--force")  # with the same times
    Path("tree/.warpcipher-journal").unlink()
    Path("tree/b/c/d.jpg").unlink()
    store.put("in/z", b"changed")
    encrypt()
    os.utime("tree/z", (1, 1))
    assert "2 objects done, 6 complete before" in do(*given, "--update")
    assert Path("tree/z").read_bytes() == b"changed"
    for target in ("step://back", "step://back/"):  # a store gives its own times
        done = "8 objects done" if target == "step://back" else "1 object done, 7 complete before"
        assert done in do("decrypt", "step://out", "-o", target, "-v", "--update")
        del store.objects["back/.warpcipher-journal"]
        store.put("in/a0", b"again")
        encrypt()
    assert decrypted(store) == plain(store)
    do("encrypt", "step://in/z", "-o", "step://one/z")
    before = store.objects["one/z"]
    given = ("encrypt", "step://in/z", "-o", "step://one/z", "-v", "--update")
    assert "1 complete before" in do(*given)
    assert store.objects["one/z"] == before


def test_killed_a_hundred_times(
    store: StepStore, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is the same as of one run, and the last report says so."""
    monkeypatch.setattr(journal, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(journal, "SHARE", 0)
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    encrypt()
    most = 2 * store.steps  # fewer would seldom let a run get on
    kills = 0
    while kills < 100:
        for path in list(store.objects):
            if path.startswith("out/"):
                del store.objects[path]
        while True:
            store.steps, store.dies_at = 0, chance.randrange(1, most)
            try:
                encrypt("--jobs", "3", "--report", "report")
                break
            except Killed:
                kills += 1
            finally:
                store.dies_at = None
        lines = reported()
        assert lines.keys() == set(NAMES), seed
        for name, line in lines.items():
            assert line["state"] in ("done", "complete"), seed
            assert line["output_bytes"] == len(store.objects[f"out/{name}.cobblestone"][0]), seed
        assert decrypted(store) == plain(store), seed


def test_a_journal_of_another_job_is_refused(store: StepStore, there: Path) -> None:
    encrypt("--journal", "mine")
    run_other = CliRunner().invoke(
        cli, ["encrypt", "step://in", "-o", "step://out", "--key", "other", "--journal", "mine"]
    )
    assert run_other.exit_code == 2
    assert "is not the journal of this job" in run_other.output
    text = do("encrypt", "step://in", "-o", "step://else", "--journal", "mine", expect=2)
    assert "or of other inputs" in text
    same = do("encrypt", "step://in/", "-o", "step://out/", "--journal", "mine", "-v")
    assert f"{len(NAMES)} complete before" in same
    encrypt_here = ("encrypt", "step://in", "--no-manifest", "-v", "-o")
    do(*encrypt_here, "local")
    Path("link").symlink_to("local")
    assert f"{len(NAMES)} complete before" in do(*encrypt_here, "link")
    Path("text").write_text("some text of mine, longer than the first bytes of a journal")
    assert "is not a journal" in encrypt("--journal", "text", "--force", expect=2)
    assert Path("text").read_text().startswith("some text")
    for _ in range(2):  # the first leaves nothing that lets the second pass
        assert "holds objects already" in encrypt("--journal", "new", expect=2)
        assert not Path("new").exists()
    encrypt("--journal", "new", "--force")


def test_a_part_that_is_not_whole_is_cut_off(store: StepStore, there: Path) -> None:
    encrypt("--journal", "mine")
    whole = Path("mine").read_bytes()
    for end in (0, 5, len(journal.MAGIC), len(journal.MAGIC) + 3, len(whole) - 1):
        Path("mine").write_bytes(whole[:end])
        encrypt("--journal", "mine", "--report", "report", *(["--force"] if end < 200 else []))
        assert reported().keys() == set(NAMES)
    first = len(journal.MAGIC) + 8
    first += int.from_bytes(whole[first - 8 : first], "big")
    for kept in (first, first + 8):  # as a loss of power leaves it
        Path("mine").write_bytes(whole[:kept] + bytes(len(whole) - kept))
        encrypt("--journal", "mine", "--report", "report")
        assert {line["state"] for line in reported().values()} == {"done"}
    Path("mine").write_bytes(whole[: first - 1] + bytes([whole[first - 1] ^ 1]) + whole[first:])
    encrypt("--journal", "mine", expect=2)


def test_journals_hold_no_names_and_no_key(store: StepStore, there: Path) -> None:
    encrypt("--journal", "mine")
    text = Path("mine").read_bytes()
    assert b"jpg" not in text
    assert Path("key").read_bytes() not in text


# --- what fails -----------------------------------------------------------------------------------


def test_an_object_that_fails_is_tried_again(store: StepStore, there: Path) -> None:
    left = {"a0": 2, "z": 9}

    def hook(call: str, path: str) -> None:
        name = path.removeprefix("in/")
        if call == "read" and left.get(name, 0) > 0:
            left[name] -= 1
            raise OSError(errno.EIO, "this store is slow", path)

    store.hook = hook
    text = encrypt("--retry", "2", "--report", "report", expect=4)
    assert "this store is slow" in text
    lines = reported()
    assert (lines["a0"]["state"], lines["a0"]["attempts"]) == ("done", 3)
    assert (lines["z"]["state"], lines["z"]["attempts"]) == ("failed", 3)
    assert lines["z"]["exit_code"] == 4
    store.hook = lambda call, path: None
    encrypt("--report", "report")
    assert {name for name, line in reported().items() if line["state"] == "done"} == {"z"}
    assert decrypted(store) == plain(store)


def test_objects_that_change_or_vanish(store: StepStore, there: Path) -> None:
    def hook(call: str, path: str) -> None:
        if call == "read" and path == "in/a/1" and "in/gone" not in store.objects:
            store.put("in/gone", b"")
            store.put("in/a/1", b"another content")
        if call == "read" and path == "in/z":
            store.objects.pop("in/z", None)

    store.hook = hook
    text = encrypt("--report", "report", expect=4)
    assert "in/z" in text
    lines = reported()
    assert lines["a/1"]["state"] == "done"
    assert lines["a/1"]["input_bytes"] == len(b"another content")
    assert lines["z"]["state"] == "failed"
    store.hook = lambda call, path: None
    del store.objects["in/gone"]
    assert decrypted(store) == plain(store)


def test_no_thread_stays_of_a_run_that_fails_early(store: StepStore, there: Path) -> None:
    encrypt()
    before = threading.active_count()
    invoke("decrypt", "step://out", "-o", "step://back", "--key", "other", expect=3)
    assert threading.active_count() == before


def test_a_wrong_key(store: StepStore, there: Path) -> None:
    encrypt()
    Path("key").write_bytes(secrets.token_bytes(32))
    do("decrypt", "step://out", "-o", "step://back", expect=3)
    do("decrypt", "step://out", "-o", "step://back", "--no-manifest", expect=3)
    assert plain(store, "back/") == {}


def test_names_like_those_of_jobs(store: StepStore, there: Path) -> None:
    (there / "tree").mkdir()
    for name in ("a", ".warpcipher-notes", ".warpcipher-journal", ".warpcipher-0f.part"):
        (there / "tree" / name).write_bytes(b"text")
    text = do("encrypt", "tree", "-o", "step://kept", "--report", "report")
    assert "notes: skipped: a name that warpcipher keeps for itself" in text
    assert {name.rpartition("/")[2] for name in reported()} == {"a", ".warpcipher-notes"}
    store.put("full/.warpcipher-notes", b"text")
    assert "holds objects already" in do("encrypt", "tree", "-o", "step://full", expect=2)
    assert store.objects.keys().isdisjoint({"full/.warpcipher-journal", "full/a.cobblestone"})


@pytest.mark.parametrize("more", [(), ("--no-preserve",)])
def test_the_umask_counts(
    store: StepStore, there: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    encrypt()
    before = os.umask(0o077)
    try:
        do("decrypt", "step://out", "-o", "tree", *more)
        do("decrypt", "step://out/z.cobblestone", "-o", "one", *more)
    finally:
        assert os.umask(before) == 0o077
    files = [path for path in (there / "tree").rglob("*") if path.is_file()]
    assert len(files) > len(NAMES)
    assert {path.stat().st_mode & 0o777 for path in (*files, there / "one")} == {0o600}
    if not more:  # the mode of a local file comes back
        (there / "tree" / "z").chmod(0o664)
        do("encrypt", "tree", "-o", "step://again")
        do("decrypt", "step://again", "-o", "back")
        assert (there / "back" / "z").stat().st_mode & 0o777 == 0o664


def test_names_that_lead_out_of_a_folder(store: StepStore, there: Path) -> None:
    store.put("in/../../up", b"text")
    store.put("in/x//y", b"text")
    store.put("odd/x//y", b"text")
    text = do("encrypt", "step://odd", "-o", "step://none", expect=4)
    assert "--no-manifest" not in text
    assert plain(store, "none/") == {}
    do("encrypt", "step://in", "-o", "step://out", "--no-manifest")
    text = do("decrypt", "step://out", "-o", "tree", "--no-manifest", expect=4)
    assert text.count("no name of a file") == 2
    assert not (there / "up").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--update", "--delete", "--no-manifest"), "trees with a manifest"),
        (("--min-size", "10"), "with a unit"),
        (("--max-age", "soon"), "is not an age"),
        (("--json", "--report", "-"), "both write to standard output"),
    ],
)
def test_options_that_do_not_fit(
    store: StepStore, there: Path, arguments: tuple[str, ...], said: str
) -> None:
    assert said in encrypt(*arguments, expect=2)
    assert plain(store, "out/") == {}


def test_a_journal_is_for_one_job(store: StepStore, there: Path) -> None:
    """The second job would refuse it when the first one is done."""
    for number in ("1", "2"):
        do("encrypt", "step://in", "-o", f"step://sealed/{number}.cobblestone")
    inputs = ("step://sealed/1.cobblestone", "step://sealed/2.cobblestone", "-o", "step://back")
    assert "for one job, and these are 2" in do("decrypt", *inputs, "--journal", "j", expect=2)
    assert plain(store, "back/") == {}
    do("decrypt", *inputs)


def test_bytes_of_what_failed_are_not_done(store: StepStore, there: Path) -> None:
    def hook(call: str, path: str) -> None:
        if call == "read" and path == "in/z":
            raise OSError(errno.EIO, "no such sector", path)

    store.hook = hook
    found = json.loads("{" + encrypt("--json", "--retry", "0", expect=4).partition("{")[2])
    sizes = [len(data) for name, data in plain(store).items() if name != "z"]
    assert (found["objects"], found["failed"], found["bytes"]) == (len(sizes), 1, sum(sizes))


def test_no_password_is_printed(there: Path) -> None:
    (there / "in").mkdir()
    (there / "in" / "a").touch()
    target = "memory://me:secret@there/x"
    assert "secret" not in do("encrypt", "in", "-o", target, "--dry-run")
    given = ("--journal", "memory://me:secret@there/journal")
    with stores.writing(given[1]) as file:
        file.write(b"something else")
    text = do("encrypt", "in", "-o", target, *given, expect=2)
    assert "is not a journal" in text
    assert "secret" not in text


def test_places_that_overlap(store: StepStore, there: Path) -> None:
    for target in ("step://in", "step://in/sealed", "step://"):
        do("encrypt", "step://in", "-o", target, expect=2)
    assert "expected s3://bucket/name" in do("check", "s3://", expect=2)
    text = do("encrypt", "step://in/z", "-o", "step://one", expect=2)
    assert "step://one names no object" in text
    assert "is for objects at URLs" in do("encrypt", "key", "--jobs", "3", expect=2)


@pytest.mark.parametrize("more", [(), ("--no-manifest",)])
@pytest.mark.parametrize("out", ["step://back", "back"])
def test_the_right_key_after_a_wrong_one(
    store: StepStore, there: Path, more: tuple[str, ...], out: str
) -> None:
    """No journal of the wrong one is in its way."""
    encrypt(*more)
    given = ("decrypt", "step://out", "-o", out, *more, "--key")
    invoke(*given, "other", expect=3)
    assert not plain(store, "back/.")
    invoke(*given, "key")


def test_an_empty_object_that_grows(store: StepStore) -> None:
    store.put("in/empty", b"")
    items = Items({"": "step://in"}, frozenset({""}))
    (item,) = (item for item in items if item.name == "empty")
    assert isinstance(item, Item)
    with items.open(item) as file:
        assert file.size == 0
    store.put("in/empty", b"text")
    with pytest.raises(OSError, match="changed"):
        items.open(item)


def test_a_deep_folder(tmp_path: Path) -> None:
    """Deeper than Python's calls may be, and in the order of whole names."""
    names = ["a-b", "a.b", "a/" * 100 + "b", "a/b", "ab"]
    (tmp_path / names[2]).parent.mkdir(parents=True)
    for name in names:
        (tmp_path / name).touch()
    items, most = Items({"": str(tmp_path)}, frozenset({""})), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 80)
    try:
        found = [item.name for item in items]
    finally:
        sys.setrecursionlimit(most)
    assert found == names


def test_a_file_that_vanishes_while_a_folder_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def then_remove(folder: int) -> Any:
        entries = list(scandir(folder))
        (tmp_path / "b").unlink()
        return contextlib.nullcontext(entries)

    for name in "abc":
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "scandir", then_remove)
    found = [item.name for item in Items({"": str(tmp_path)}, frozenset({""}))]
    monkeypatch.undo()
    assert found == ["a", "c"]


def test_room_after_objects_that_changed() -> None:
    """A finished object leaves as much room as it took, though it is another version."""

    class Shorter:
        def do(self, sealed: Any, item: Item, entry: Any, ready: Any, stopped: Any) -> Outcome:
            return Outcome(item._replace(size=1), None, OSError(), 2, 0.0)

    made: Any = Shorter()
    runner = Threads(made, made, 1)
    try:
        for size in (ROOM, ROOM, ROOM, ROOM, 5, 5):
            assert runner.has_room()
            runner.submit(Todo(Item("name", size, 0), None))
            if size == ROOM:
                runner.collect(wait=True)
    finally:
        runner.close()

# SPDX-License-Identifier: Apache-2.0
"""Jobs that change keys: what they write, what they leave, and how they go on after a kill."""

from __future__ import annotations

import errno
import io
import json
import pickle
import random
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from job_support import invoke as do
from job_support import plain
from step_store import Killed, StepStore, step_store
from warpcipher import formats
from warpcipher.cluster import objects
from warpcipher.fleet import journal, runner, work
from warpcipher.fleet.work import Outcome, Work
from warpcipher.formats import age, tink_keyset, tree_parts

NAMES = ["a0", "a-b", "a/1", "a/2.jpg", "b/c/d.jpg", "z"]
ME, YOU = (age.Identity(bytes(range(32 * i, 32 * i + 32))) for i in range(2))
REKEY = ("rekey", "--key", "key", "--new-key", "other")
REWRAP = ("rewrap", "-i", "me", "-r", str(YOU.recipient))
CHANGES = pytest.mark.parametrize(("change", "suffix"), [(REKEY, "cobblestone"), (REWRAP, "age")])


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("key", "other", "me", "you"):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_bytes(secrets.token_bytes(32))
    (tmp_path / "me").write_text(ME.to_text())
    (tmp_path / "you").write_text(YOU.to_text())
    return tmp_path


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, there: Path) -> Iterator[StepStore]:
    """With objects below step://in, and two trees of them."""
    monkeypatch.setattr(work, "FIRST_DELAY", 0.0)
    with step_store() as made:
        for number, name in enumerate(NAMES):
            made.put(f"in/{name}", secrets.token_bytes((number + 1) * 900))
        for suffix, key in (("cobblestone", ("--key", "key")), ("age", ("-r", str(ME.recipient)))):
            do("encrypt", "step://in", "-o", f"step://{suffix}", *key)
        yield made


def alone(store: StepStore, suffix: str) -> None:
    """Objects of no tree, below step://sealed."""
    key: Any = ME.recipient if suffix == "age" else Path("key").read_bytes()
    for path in [path for path in store.objects if path.startswith("sealed/")]:
        del store.objects[path]
    for name in NAMES:
        sealed = io.BytesIO()
        formats.encrypt_stream(io.BytesIO(store.objects[f"in/{name}"][0]), sealed, key)
        store.put(f"sealed/{name}.{suffix}", sealed.getvalue())


def opens(suffix: str) -> tuple[str, ...]:
    """The options of the new key."""
    return ("-i", "you") if suffix == "age" else ("--key", "other")


def are_plain(store: StepStore, suffix: str, *more: str, source: str = "step://new") -> None:
    """Whether the new key, and only that, opens all of it."""
    do("decrypt", source, "-o", "step://back", "--force", *opens(suffix), *more)
    assert plain(store, "back/") == plain(store, "in/")
    old = ("-i", "me") if suffix == "age" else ("--key", "key")
    do("check", source, *old, *more, expect=3)


@CHANGES
@pytest.mark.parametrize("part", [3, 100])
def test_a_tree_gets_a_new_key(
    store: StepStore,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[str, ...],
    suffix: str,
    part: int,
) -> None:
    before = dict(store.objects)
    monkeypatch.setattr(tree_parts, "PART", part)
    do(*change, f"step://{suffix}", "-o", "step://new", "--report", "report")
    assert {path: store.objects[path] for path in before} == before
    lines = [json.loads(line) for line in Path("report").read_text().splitlines()]
    assert len(lines) == len(NAMES)
    for line in lines:
        assert line["state"] == "done"
        for size, place in (("input_bytes", "input"), ("output_bytes", "output")):
            assert line[size] == len(store.objects[line[place].removeprefix("step://")][0])
    do("check", "step://new", *opens(suffix))
    are_plain(store, suffix)
    do(*change, f"step://{suffix}", "-o", "step://new", "--report", "report")
    lines = [json.loads(line) for line in Path("report").read_text().splitlines()]
    assert {line["state"] for line in lines} == {"complete"}


@CHANGES
def test_objects_in_place(store: StepStore, change: tuple[str, ...], suffix: str) -> None:
    alone(store, suffix)
    place = ("--in-place",) if change == REKEY else ("--copy",)
    assert f"{len(NAMES)} objects done" in do(*change, *place, "step://sealed/", "-v")
    assert plain(store, "sealed/").keys() == {f"{name}.{suffix}" for name in NAMES}
    are_plain(store, suffix, "--no-manifest", source="step://sealed")
    if change == REKEY:
        do(*change, *place, "step://sealed/")  # the new key opens them: they are done
        are_plain(store, suffix, "--no-manifest", source="step://sealed")
        back = ("rekey", "--key", "other", "--new-key", "key", "--in-place", "step://sealed")
        assert f"{len(NAMES)} objects done" in do(*back, "-v")


@pytest.mark.parametrize(
    ("change", "suffix", "in_place"),
    [
        *((REKEY, "cobblestone", place) for place in ("", "objects", "tree", "tree in parts")),
        *((REWRAP, "age", place) for place in ("", "objects")),
    ],
)
def test_killed_at_random(
    store: StepStore,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[str, ...],
    suffix: str,
    in_place: str,
) -> None:
    """The result is the same as of one run, and the last report says so."""
    monkeypatch.setattr(tree_parts, "PART", 3 if "parts" in in_place else tree_parts.PART)
    do("encrypt", "step://in", "-o", "step://tree", "--key", "key")
    tree = {path: data for path, (data, _, _) in store.objects.items() if path.startswith("tree/")}
    monkeypatch.setattr(journal, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(journal, "SHARE", 0)
    if in_place and change == REWRAP:  # with an identity that opens objects which are done
        change = (*change, "-i", "you", "--copy")
    source = {"": f"step://{suffix}", "objects": "step://sealed"}.get(in_place, "step://tree")
    new = source if in_place else "step://new"
    more = ["--no-manifest"] if in_place == "objects" else []
    target = () if in_place else ("-o", "step://new")
    target = ("--in-place",) if in_place and change == REKEY else target
    chance, kills = random.Random(seed := random.randrange(1 << 30)), 0
    while kills < 25:
        alone(store, suffix)
        for path in [path for path in store.objects if path.startswith(("new/", "tree/"))]:
            del store.objects[path]
        for path, data in tree.items() if in_place.startswith("tree") else ():
            store.put(path, data)
        while True:
            store.steps, store.dies_at = 0, chance.randrange(20, 120)
            try:
                do(*change, source, *target, "--jobs", "3", "--report", "report")
                break
            except Killed:
                kills += 1
            finally:
                store.dies_at = None
        lines = [json.loads(line) for line in Path("report").read_text().splitlines()]
        assert len(lines) == len(NAMES), seed
        assert {line["state"] for line in lines} <= {"done", "complete"}, seed
        do("decrypt", new, "-o", "step://back", "--force", *opens(suffix), *more)
        assert plain(store, "back/") == plain(store, "in/"), seed
        assert not [path for path in store.objects if path.endswith(".part")], seed


@CHANGES
def test_wrong_and_exchanged_keys(store: StepStore, change: tuple[str, ...], suffix: str) -> None:
    before = dict(store.objects)
    exchanged = ("rekey", "--key", "other", "--new-key", "key")
    if change == REWRAP:
        exchanged = ("rewrap", "-i", "you", "-r", str(ME.recipient))
    do(*exchanged, f"step://{suffix}", "-o", "step://new", expect=3)
    do(*exchanged, f"step://{suffix}", "-o", "step://new", "--no-manifest", expect=3)
    assert plain(store, "new/") == {}
    assert {path: store.objects[path] for path in before} == before


@pytest.mark.parametrize("old", ["key", "other"])
def test_a_damaged_object_is_not_done(store: StepStore, old: str) -> None:
    """Though the new key opens its beginning: the old one does too, or only the new one does."""
    sealed = io.BytesIO()
    key = Path("key").read_bytes()
    formats.encrypt_stream(io.BytesIO(bytes(200_000)), sealed, key)
    data = bytearray(sealed.getvalue())
    data[-5] ^= 1
    store.put("sealed/a.cobblestone", bytes(data))
    given = ("rekey", "--key", old, "--new-key", "key", "--in-place", "step://sealed/")
    assert "0 objects done, 1 failed" in do(*given, "-v", expect=3)
    assert store.objects["sealed/a.cobblestone"][0] == data


def test_an_object_under_another_key_of_the_new_keyset_is_not_done(store: StepStore) -> None:
    """The new keyset opens it, and would not have made it."""
    theirs, old, new = (tink_keyset.Keyset.generate("AES256_GCM_HKDF_4KB") for _ in range(3))
    both = tink_keyset.Keyset((new.primary, theirs.primary), new.primary_key_id)
    for name, keyset in (("old", old), ("both", both)):
        Path(name).write_text(keyset.to_json())
    for name, keyset in (("theirs", theirs), ("done", new), ("old", old)):
        sealed = io.BytesIO()
        formats.encrypt_stream(io.BytesIO(b"text"), sealed, keyset)
        store.put(f"sealed/{name}.tink", sealed.getvalue())
    before = store.objects["sealed/theirs.tink"]
    given = ("rekey", "--key", "old", "--new-key", "both", "--in-place", "step://sealed/", "-v")
    assert "2 objects done, 1 failed" in do(*given, expect=3)
    assert store.objects["sealed/theirs.tink"] == before


@CHANGES
def test_an_object_that_fails(store: StepStore, change: tuple[str, ...], suffix: str) -> None:
    """The others are done; the new tree does not list it until it is."""
    whole = store.objects[f"{suffix}/z.{suffix}"]
    data = bytearray(whole[0])
    data[60] ^= 1
    store.objects[f"{suffix}/z.{suffix}"] = bytes(data), *whole[1:]
    given = (*change, f"step://{suffix}", "-o", "step://new")
    assert "the manifest lists another object" in do(*given, expect=3)
    assert plain(store, "new/").keys() == {
        "MANIFEST.warpcipher",
        *(f"{name}.{suffix}" for name in NAMES if name != "z"),
    }
    do("check", "step://new", *opens(suffix))
    store.objects[f"{suffix}/z.{suffix}"] = whole
    assert "1 object done" in do(*given, "-v")
    are_plain(store, suffix)


def test_an_error_of_the_store_is_tried_again(store: StepStore) -> None:
    left = [2]

    def hook(call: str, path: str) -> None:
        if call == "end" and path == "new/z.cobblestone" and left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, "this store is slow", path)

    store.hook = hook
    do(*REKEY, "step://cobblestone", "-o", "step://new")
    assert left == [0]
    are_plain(store, "cobblestone")


def test_objects_that_change_meanwhile(store: StepStore) -> None:
    """A write of another program in place is not lost."""
    alone(store, "cobblestone")
    old, other = store.objects["sealed/z.cobblestone"][0], b"another content"

    def hook(call: str, path: str) -> None:
        is_old = store.objects["sealed/z.cobblestone"][0] == old
        if call == "end" and path.startswith("sealed/.warpcipher-") and is_old:
            store.put("sealed/z.cobblestone", other)

    store.hook = hook
    text = do(*REKEY, "--in-place", "step://sealed", "--jobs", "1", expect=3)
    assert "z.cobblestone" in text
    assert store.objects["sealed/z.cobblestone"][0] == other


def test_a_tree_in_place(store: StepStore) -> None:
    given = (*REKEY, "--in-place", "step://cobblestone", "-v")
    assert "as a whole" in do(*given, "--include", "a*", expect=2)
    path = "cobblestone/z.cobblestone"
    whole = store.objects[path]
    for other in ("cobblestone/a0.cobblestone", "age/z.age"):  # exchanged
        store.put(path, store.objects[other][0])
        done = "5 objects done, 1 failed" if other.startswith("cob") else "0 objects done, 5 comp"
        assert done in do(*given, expect=3)
    do("check", "step://cobblestone", "--key", "other", expect=3)
    store.put(path, whole[0])
    assert "1 object done, 5 complete before" in do(*given)
    are_plain(store, "cobblestone", source="step://cobblestone")
    assert not [path for path in plain(store, "cobblestone/") if "journal" in path]
    store.put("cobblestone/added.cobblestone", whole[0])
    back = ("rekey", "--key", "other", "--new-key", "key", "--in-place", "step://cobblestone")
    assert "added: added" in do(*back, expect=3)
    del store.objects["cobblestone/added.cobblestone"]
    do(*back)
    do("check", "step://cobblestone", "--key", "key")


def test_what_is_not_changed_in_place(store: StepStore) -> None:
    before = dict(store.objects)
    text = do(*REKEY, "--in-place", "step://cobblestone", "--no-manifest", expect=2)
    assert "is a tree, whose manifest lists its objects" in text
    assert "is part of the tree" in do(*REKEY, "--in-place", "step://cobblestone/a", expect=2)
    do(*REKEY, "--in-place", "step://cobblestone/z.cobblestone", expect=2)
    do(*REWRAP, "step://age/", expect=2)
    do("rekey", "--key", "key", "-i", "me", "--in-place", "step://age", "local", expect=2)
    text = do("rekey", "--key", "key", "-r", str(ME.recipient), "--in-place", "step://in", expect=2)
    assert "keep the suffix" in text
    assert "URLs and folders only" in do(*REKEY, "--in-place", "step://in", "key", expect=2)
    assert "no wrapping key" in do(
        *("rewrap", "--key", "key", "--new-key", "other", "step://cobblestone"),
        *("-o", "step://new"),
        expect=2,
    )
    changed = {path for path in store.objects if store.objects[path] != before.get(path)}
    assert {path for path in changed if ".warpcipher-journal" not in path} == set()


def test_options_of_objects_are_not_for_files(there: Path) -> None:
    Path("file").write_bytes(b"text")
    for option in ("--copy", "--dry-run", "--no-manifest", "--jobs=3"):
        assert "objects at URLs" in do(*REWRAP, "file", option, expect=2)
    assert "objects at URLs" in do(*REKEY, "file", "-o", "x", "--jobs", "3", expect=2)


def test_between_folders_and_stores(store: StepStore) -> None:
    """Links and empty folders of a tree stay in its manifest."""
    (tree := Path("tree")).mkdir()
    (tree / "a").write_bytes(b"text")
    (tree / "link").symlink_to("a")
    (tree / "empty").mkdir()
    do("encrypt", "tree", "-r", str(ME.recipient))
    do(*REWRAP, "tree.age", "-o", "step://new")
    do("rekey", "-i", "you", "--new-key", "key", "step://new", "-o", "again.cobblestone")
    Path("again.cobblestone/.warpcipher-journal").unlink()
    do("decrypt", "--key", "key", "again.cobblestone", "-o", "back")
    assert Path("back/link").readlink() == Path("a")
    assert Path("back/link").read_bytes() == b"text"
    assert Path("back/empty").is_dir()


def test_dry_run_and_filters(store: StepStore) -> None:
    given = (*REKEY, "step://cobblestone", "-o", "step://new", "--include", "*.jpg")
    text = do(*given, "--dry-run")
    assert text.count(" -> step://new/") == 2
    assert plain(store, "new/") == {}
    do(*given)
    do("decrypt", "step://new", "-o", "step://back", "--key", "other")
    assert plain(store, "back/").keys() == {"a/2.jpg", "b/c/d.jpg"}


@CHANGES
def test_tasks_of_a_cluster_carry_no_key(
    there: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, ...], suffix: str
) -> None:
    """The command, with what its nodes do done in this process."""
    for name in ("a", "b"):
        Path(f"in/{name}").parent.mkdir(exist_ok=True)
        Path(name).write_bytes(name.encode())
        key = ME if suffix == "age" else Path("key").read_bytes()
        formats.encrypt_file(name, f"in/{name}.{suffix}", key)

    class Nodes:
        def __init__(self, _: str, work: Work, key: Any, threads: int, new: Any) -> None:
            kept = (objects.portable_keys(new[0]), *new[1:])
            task = objects.ObjectTask(
                work, objects.portable_keys(key), threads, time.time_ns(), wc.__version__, kept
            )
            sent = pickle.dumps(task)
            secret = [Path(name).read_bytes() for name in ("key", "other")] + [ME.secret]
            assert not [one for one in secret if one in sent]
            self._task: objects.ObjectTask = pickle.loads(sent)  # noqa: S301
            self._done: list[Outcome] = []

        def submit(self, todo: runner.Todo) -> None:
            self._done += self._task.do([todo])

        def has_room(self) -> bool:
            return True

        def collect(self, *, wait: bool) -> list[Outcome]:
            done, self._done = self._done, []
            return done

        def flush(self) -> None:
            pass

        close = flush

    monkeypatch.setattr(objects, "Nodes", Nodes)
    with step_store():
        do(*change, "in", "-o", "step://out", "--cluster", "auto", "--no-manifest")
        do("decrypt", "step://out", "-o", "back", "--no-manifest", *opens(suffix))
    assert Path("back/b").read_bytes() == b"b"


@pytest.mark.parametrize("key", [ME, ME.to_text(), "x", [ME.recipient, ME], age.Passphrase(b"a")])
def test_keys_that_would_travel(key: Any) -> None:
    with pytest.raises(TypeError, match="tasks carry no keys"):
        objects.portable_keys(key)
    assert objects.portable_keys([ME.recipient]) == [ME.recipient]


def test_a_passphrase_is_not_for_a_cluster(store: StepStore, monkeypatch: Any) -> None:
    monkeypatch.setenv("PASSPHRASE", "words")
    given = ("--new-passphrase-env", "PASSPHRASE", "step://age", "-o", "step://new")
    assert "no passphrase" in do("rewrap", "-i", "me", *given, "--cluster", "auto", expect=2)

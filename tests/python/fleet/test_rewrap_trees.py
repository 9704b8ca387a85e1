# SPDX-License-Identifier: Apache-2.0
"""Trees for people that get other recipients in place, whenever the run is killed."""

from __future__ import annotations

import errno
import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_s3
from job_support import invoke as do
from job_support import plain
from step_store import Killed, StepStore, step_store
from warpcipher import _new_file, formats
from warpcipher.fleet import journal, work
from warpcipher.formats import age, tree_parts
from warpcipher.formats.sealed import Sealed

NAMES = ["a-b", "a/1", "b/c/d.jpg", "z"]
ME, YOU, OTHER = (age.Identity(bytes(range(32 * i, 32 * i + 32))) for i in range(3))
REWRAP = ("rewrap", "-i", "me", "-r", str(YOU.recipient))


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a tree of files for ME, in which there are a link and an empty folder."""
    monkeypatch.setattr(work, "FIRST_DELAY", 0.0)
    monkeypatch.setattr(journal, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(journal, "SHARE", 0)
    monkeypatch.chdir(tmp_path)
    for name, key in (("me", ME), ("you", YOU)):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(key.to_text())
    for number, name in enumerate(NAMES):
        (path := tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(secrets.token_bytes(number * 40_000))
    (tmp_path / "in" / "link").symlink_to("a-b")
    (tmp_path / "in" / "empty").mkdir()
    do("encrypt", "-r", str(ME.recipient), "in")
    return tmp_path


@pytest.fixture
def store(there: Path) -> Iterator[StepStore]:
    """With the same files as objects, and a tree of them at step://tree."""
    with step_store() as made:
        for name in NAMES:
            made.put(f"in/{name}", (there / "in" / name).read_bytes())
        do("encrypt", "step://in", "-o", "step://tree", "-r", str(ME.recipient))
        yield made


def files(root: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(root)): path.readlink() if path.is_symlink() else path.read_bytes()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def is_whole(root: Path) -> None:
    """Whether YOU, and nobody else, opens all of the local tree."""
    do("check", "-i", "me", str(root), expect=3)
    do("decrypt", "-i", "you", str(root), "-o", "back", "--force")
    assert files(Path("back")) == files(Path("in"))
    assert Path("back/empty").is_dir()
    assert not list(root.rglob(".warpcipher-*"))
    for path in root.rglob("*.age"):
        assert (
            path.stat().st_mtime_ns
            == (Path("in") / path.relative_to(root))
            .with_name(path.name.removesuffix(".age"))
            .stat()
            .st_mtime_ns
        )


def test_a_local_tree(there: Path) -> None:
    do(*REWRAP, "in.age", "-o", "new.age")
    (there / "new.age" / ".warpcipher-journal").unlink()
    is_whole(there / "new.age")
    assert "4 objects done" in do(*REWRAP, "in.age", "-v")
    is_whole(there / "in.age")


def test_killed_at_each_step_of_a_local_tree(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after each new name, and each part of the journal, which may be half written."""
    before, calls, dies_at = files(there / "in.age"), [0], [0]
    give_name, write = _new_file.NewFile.give_name, journal.Journal._write

    def step() -> None:
        calls[0] += 1
        if calls[0] == dies_at[0]:
            raise Killed

    def killed(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **how: Any) -> Any:
            step()
            made = real(*given, **how)
            step()
            return made

        return call

    monkeypatch.setattr(_new_file.NewFile, "give_name", killed(give_name))
    monkeypatch.setattr(journal.Journal, "_write", killed(write))
    for kills in itertools.count(1):
        for name, data in before.items():
            if isinstance(data, bytes):
                (there / "in.age" / name).write_bytes(data)
        calls[0], dies_at[0] = 0, kills
        try:
            do(*REWRAP, "in.age", "--jobs", "1")
        except Killed:
            dies_at[0] = 0
            for path in (there / "in.age").glob(".warpcipher-journal*"):
                if kills % 2:
                    path.write_bytes(path.read_bytes()[:-5])  # not whole
            do(*REWRAP, "in.age", "--jobs", "1")
        if dies_at[0]:
            break
        do("decrypt", "-i", "you", "in.age", "-o", "back", "--force")
        assert files(Path("back")) == files(Path("in")), kills
        do("check", "-i", "me", "in.age", expect=3)
        assert not list((there / "in.age").rglob(".warpcipher-*")), kills
    assert kills > 20


@pytest.mark.parametrize("part", [2, 100])
def test_killed_at_each_step_of_a_store(
    store: StepStore, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(tree_parts, "PART", part)
    do("encrypt", "step://in", "-o", "step://tree", "--force", "-r", str(ME.recipient))
    before = plain(store, "tree/")
    given, dies_at = (*REWRAP, "step://tree/", "--copy", "--jobs", "1"), 0
    while True:
        for path in [path for path in store.objects if path.startswith("tree/")]:
            del store.objects[path]
        for name, data in before.items():
            store.put(f"tree/{name}", data)
        store.steps, dies_at = 0, dies_at + 1
        store.dies_at = dies_at
        try:
            do(*given)
            break
        except Killed:
            store.dies_at = None
        do(*given)
        do("decrypt", "-i", "you", "step://tree", "-o", "step://back", "--force")
        assert plain(store, "back/") == plain(store, "in/"), dies_at
        do("check", "-i", "me", "step://tree", expect=3)
        assert not [path for path in store.objects if "tree/.warpcipher" in path], dies_at
    assert dies_at > 60


def test_wrong_keys(there: Path) -> None:
    before = files(there / "in.age")
    do("rewrap", "-i", "you", "-r", str(OTHER.recipient), "in.age", expect=3)
    text = do(*REWRAP, "in.age", "--keep", expect=2)
    assert "only; name all who are to open the tree" in text
    assert "in.age is a tree" in do(*REWRAP, "in.age", "--no-manifest", expect=2)
    assert "as a whole" in do(*REWRAP, "in.age", "--include", "z", expect=2)
    assert "is part of the tree" in do(*REWRAP, "in.age/b", expect=2)
    assert files(there / "in.age").items() >= before.items()


@pytest.mark.parametrize("fault", ["damaged", "exchanged", "cut", "armor"])
def test_no_object_is_replaced_where_one_is_not_as_listed(there: Path, fault: str) -> None:
    tree = there / "in.age"
    first, last = tree / "a" / "1.age", tree / "z.age"
    if fault == "exchanged":
        data = first.read_bytes()
        first.write_bytes(last.read_bytes())
        last.write_bytes(data)
    elif fault == "armor":
        do("encrypt", "-r", str(ME.recipient), "-a", "in", "-o", "armored")
        tree = there / "armored"
    else:
        data = last.read_bytes()
        last.write_bytes(data[:-1] if fault == "cut" else data[:60] + b"!" + data[61:])
    before = files(tree)
    text = do(*REWRAP, str(tree), "-v", expect=2 if fault == "armor" else 3)
    assert "armor" in text if fault == "armor" else "0 objects done" in text
    assert files(tree).items() >= before.items()
    assert fault == "armor" or files(tree) == before


def test_objects_that_change_after_they_were_prepared(store: StepStore) -> None:
    """An object of another program is not lost, and the tree goes on when the old one is back."""
    path, given = "tree/z.age", (*REWRAP, "step://tree/", "--copy", "--jobs", "1")
    old = store.objects[path][0]

    def hook(call: str, place: str) -> None:
        if call == "end" and place == "tree/a-b.age":
            store.hook = lambda call, place: None
            store.put(path, b"another content")

    store.hook = hook
    assert "3 objects done, 1 failed" in do(*given, "-v", expect=3)
    assert store.objects[path][0] == b"another content"
    store.put(path, old)
    assert "1 object done, 3 complete before" in do(*given, "-v")
    do("check", "-i", "you", "step://tree")


@pytest.mark.parametrize("place", ["in.age", "step://tree/"])
def test_other_new_keys_in_the_middle(store: StepStore, place: str) -> None:
    """A run that goes on must not give half of the objects other keys."""
    failing = [True]

    def hook(call: str, path: str) -> None:
        if call == "end" and path == "tree/z.age" and failing[0]:
            raise OSError(errno.EIO, "this store is full", path)

    store.hook = hook
    given = ("rewrap", "-i", "me", "step://tree/", "--copy", "--retry", "0")
    do(*given, "-r", str(YOU.recipient), expect=4)
    failing[0] = False
    assert "another new key" in do(*given, "-r", str(OTHER.recipient), expect=2)
    do(*given, "-r", str(YOU.recipient))
    do("check", "-i", "you", "step://tree")


def test_marks_of_keys() -> None:
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    public = rsa.generate_private_key(65537, 2048).public_key()
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = public.public_bytes(serialization.Encoding.PEM, kind)
    given: list[Any] = [bytes(32), ME, [YOU.recipient, ME.recipient], ME.recipient]
    given += [age.Passphrase(b"words"), formats.awsesdk.RawRSA(pem, "name", "space")]
    sealed = [Sealed(key, formats.resolve("auto", key), formats.Options()) for key in given]
    marks = [one.mark() for one in sealed]
    assert marks.pop() == "", "a public key cannot tell"
    for number, mark in enumerate(marks):
        assert [one.made(mark) for one in sealed].index(True) == number


def test_other_new_keys_of_a_new_tree(store: StepStore) -> None:
    for name in ("key", "new", "other"):
        Path(name).touch(0o600)
        Path(name).write_bytes(secrets.token_bytes(32))
    do("encrypt", "step://in", "-o", "step://sealed", "--key", "key")
    given = ("rekey", "--key", "key", "step://sealed", "-o", "step://new", "--new-key")
    do(*given, "new", "--include", "a*")
    assert "another new key" in do(*given, "other", expect=2)
    do(*given, "new")
    do("check", "--key", "new", "step://new")
    do(*given, "other", "--force")
    do("check", "--key", "other", "step://new")


def test_a_tree_in_s3(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server copies all but the headers; a write that it refuses is found by the next run."""
    pytest.importorskip("boto3")
    cloud = pytest.importorskip("warpcipher.stores.cloud")
    monkeypatch.setattr(cloud, "RETRIES", 0)
    (there / "in" / "z").write_bytes(secrets.token_bytes(12 << 20))
    with small_s3.running() as server:
        for name, value in (
            ("AWS_ENDPOINT_URL", server.endpoint),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ):
            monkeypatch.setenv(name, value)
        do("encrypt", "in", "-o", "s3://bucket/tree", "-r", str(ME.recipient))
        server.seen.clear()
        given = (*REWRAP, "s3://bucket/tree/", "--retry", "0")

        def refused(request: small_s3.Request) -> Any:
            return (500, "InternalError") if request.kind == "complete" else None

        server.fault = refused
        do(*given, expect=4)
        server.fault = None
        do(*given)
        assert server.count("copy")
        do("check", "-i", "you", "s3://bucket/tree")
        do("decrypt", "-i", "you", "s3://bucket/tree", "-o", "back")
    assert (there / "back" / "z").read_bytes() == (there / "in" / "z").read_bytes()

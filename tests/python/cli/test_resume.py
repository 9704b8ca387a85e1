# SPDX-License-Identifier: Apache-2.0
"""Jobs that were interrupted and go on: the result is as of one run; nothing is done twice, and
nothing is replaced that an earlier run did not make."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli_support import ended, make_key, names, run, run_json, start, temporaries
from tree_support import content_of
from warpcipher import _tree_names as tree_names

INTERRUPTIONS = 8 * int(os.environ.get("WARPCIPHER_TEST_LONG", "1"))
"""Of each command and seed: WARPCIPHER_TEST_LONG=7 makes 224 in all."""


def build(root: Path, count: int) -> None:
    """A tree of `count` small files in folders of eight, an empty folder and a link."""
    for number in range(count):
        path = root / f"{number // 8}/file{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d " % number * (number % 50))
        os.utime(path, ns=(10**18, 10**18 + number))
    (root / "empty").mkdir()
    (root / "link").symlink_to("0/file0")


def inodes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_ino for path in root.rglob("*.cobblestone")}


@pytest.mark.parametrize("option", ["--skip-existing", "--update"])
def test_a_finished_tree_is_left_as_it_is(tmp_path: Path, option: str) -> None:
    make_key(tmp_path)
    build(tmp_path / "t", 20)
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    before = content_of(tmp_path / "t.cobblestone")
    made = inodes(tmp_path / "t.cobblestone")
    done = run("encrypt", option, "--key", "key", "t", cwd=tmp_path)
    assert b"0 files done, 20 complete before" in done.stderr
    assert content_of(tmp_path / "t.cobblestone") == before, "the manifest, too"
    assert inodes(tmp_path / "t.cobblestone") == made
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tmp_path)
    plain = content_of(tmp_path / "back")
    document = run_json(
        *("decrypt", option, "--key", "key", "t.cobblestone", "-o", "back"), cwd=tmp_path
    )
    assert (document["ok"], document["results"], document["complete"]) == (True, [], 20)
    assert content_of(tmp_path / "back") == plain == content_of(tmp_path / "t")


def test_update_does_what_has_changed(tmp_path: Path) -> None:
    make_key(tmp_path)
    build(tmp_path / "t", 16)
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    made = inodes(tmp_path / "t.cobblestone")
    (tmp_path / "t/0/file3").write_bytes(b"changed")
    (tmp_path / "t/0/file4").chmod(0o600)
    (tmp_path / "t/new").write_bytes(b"new")
    (tmp_path / "t/0/file5").unlink()
    document = run_json("encrypt", "--skip-existing", "--key", "key", "t", cwd=tmp_path)
    assert [entry["reason"] for entry in document["skipped"]] == [
        "changed since: --update encrypts it again"
    ]
    assert [result["input"] for result in document["results"]] == ["t/new"]
    document = run_json("encrypt", "--update", "--key", "key", "t", cwd=tmp_path)
    assert [result["input"] for result in document["results"]] == ["t/0/file3"]
    now = inodes(tmp_path / "t.cobblestone")
    assert {name for name in made if made[name] != now[name]} == {"0/file3.cobblestone"}
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tmp_path)
    assert names(tmp_path / "back") == names(tmp_path / "t") | {"0/file5"}
    assert (tmp_path / "back/0/file3").read_bytes() == b"changed"
    assert (tmp_path / "back/0/file4").stat().st_mode & 0o777 == 0o600


def test_decryption_goes_on_and_keeps_what_is_newer(tmp_path: Path) -> None:
    make_key(tmp_path)
    build(tmp_path / "t", 8)
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tmp_path)
    back = tmp_path / "back/0"
    (back / "file1").unlink()
    (back / "file2").write_bytes(b"newer, and mine")
    (back / "file3").write_bytes(b"older")
    os.utime(back / "file3", ns=(5, 5))
    (back.parent / "link").unlink()
    options = ("--key", "key", "t.cobblestone", "-o", "back")
    document = run_json("decrypt", "--skip-existing", *options, cwd=tmp_path)
    assert {entry["input"][-18:] for entry in document["skipped"]} == {
        "/file2.cobblestone",
        "/file3.cobblestone",
    }
    assert [result["output"] for result in document["results"]] == ["back/0/file1"]
    assert (back.parent / "link").readlink() == Path("0/file0")
    run("decrypt", "--update", *options, cwd=tmp_path)
    assert (back / "file2").read_bytes() == b"newer, and mine"
    assert (back / "file3").read_bytes() == (tmp_path / "t/0/file3").read_bytes()


def test_single_files_go_on_too(tmp_path: Path) -> None:
    make_key(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
    run("encrypt", "--key", "key", "a", cwd=tmp_path)
    assert (tmp_path / "a.cobblestone").stat().st_mtime_ns == (tmp_path / "a").stat().st_mtime_ns
    document = run_json("encrypt", "--skip-existing", "--key", "key", "a", "b", cwd=tmp_path)
    assert (document["complete"], len(document["results"])) == (1, 1)
    document = run_json("encrypt", "--update", "--key", "key", "a", "b", cwd=tmp_path)
    assert (document["complete"], len(document["results"])) == (2, 0)
    (tmp_path / "a").write_bytes(b"changed")
    os.utime(tmp_path / "a", ns=(2 * 10**18, 2 * 10**18))
    document = run_json("encrypt", "--update", "--key", "key", "a", "b", cwd=tmp_path)
    assert [result["input"] for result in document["results"]] == ["a"]


def test_what_an_earlier_run_did_not_make_is_never_replaced(tmp_path: Path) -> None:
    make_key(tmp_path)
    build(tmp_path / "t", 4)
    target = tmp_path / "t.cobblestone/0/file1.cobblestone"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"precious")
    for option in ("--skip-existing", "--update"):
        done = run("encrypt", option, "--key", "key", "t", cwd=tmp_path, expect=2)
        assert b"file1.cobblestone exists: use --force" in done.stderr
        assert target.read_bytes() == b"precious"
        assert not (tmp_path / "t.cobblestone" / tree_names.NAME).exists()
    target.unlink()
    run("encrypt", "--skip-existing", "--key", "key", "t", cwd=tmp_path)
    run("check", "--key", "key", "t.cobblestone", cwd=tmp_path)


def test_an_old_version_is_not_taken_for_complete(tmp_path: Path) -> None:
    """An output is rolled back, with the size and time of the new one, before the run goes on."""
    make_key(tmp_path)
    (tmp_path / "t").mkdir()
    plain, sealed = tmp_path / "t/a", tmp_path / "t.cobblestone/a.cobblestone"
    plain.write_bytes(b"old")
    os.utime(plain, ns=(10**18, 10**18))
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    old = sealed.read_bytes()
    plain.write_bytes(b"new")
    os.utime(plain, ns=(10**18, 10**18))
    run("encrypt", "--force", "--key", "key", "t", cwd=tmp_path)
    sealed.write_bytes(old)
    run("encrypt", "--skip-existing", "--key", "key", "t", cwd=tmp_path)
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tmp_path)
    assert (tmp_path / "back/a").read_bytes() == b"new"


def test_a_journal_of_another_run_vouches_for_nothing(tmp_path: Path) -> None:
    make_key(tmp_path)
    build(tmp_path / "t", 3)
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    root = tmp_path / "t.cobblestone"
    shutil.copy(root / tree_names.NAME, root / tree_names.JOURNAL)
    done = run("encrypt", "--skip-existing", "--key", "key", "t", cwd=tmp_path, expect=3)
    assert b"MANIFEST.warpcipher.unfinished is not the journal of a tree" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--force", "--update"),
        ("--skip-existing", "--update"),
        ("--skip-existing", "-o", "-"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, options: tuple[str, ...]) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    run("encrypt", "--key", "key", *options, "a", cwd=tmp_path, expect=2)
    assert names(tmp_path) == {"key", "a"}


def interrupt(command: str, source: str, tmp_path: Path, delay: float, number: int) -> bool:
    """Runs it, and sends a signal after a while; whether that ended it."""
    arguments = (command, "--skip-existing", "--key", "key", source, "-o", f"{command}ed")
    with ended(start(*arguments, cwd=tmp_path, stderr=-3)) as process:
        try:
            assert process.wait(delay) == 0
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            return process.wait(120) != 0


@pytest.mark.parametrize("seed", range(2))
def test_interrupted_at_random_times_and_resumed(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    make_key(tmp_path)
    build(tmp_path / "t", 200)
    for command, source in (("encrypt", "t"), ("decrypt", "encrypted")):
        result = tmp_path / f"{command}ed"
        began = time.monotonic()
        run(command, "--key", "key", source, "-o", result.name, cwd=tmp_path)
        longest = time.monotonic() - began
        shutil.rmtree(result)
        left = INTERRUPTIONS
        while True:
            number = choose.choice((signal.SIGTERM, signal.SIGINT, signal.SIGKILL))
            delay = choose.uniform(0.3, 1) * longest if left else 100 * longest
            if interrupt(command, source, tmp_path, delay, number):
                left -= 1
                for path in temporaries(tmp_path):  # of SIGKILL; this changes a folder's time
                    path.unlink()
                continue
            if command == "encrypt":
                run("check", "--key", "key", result.name, cwd=tmp_path)
                assert tree_names.JOURNAL not in names(result)
            else:
                assert content_of(result) == content_of(tmp_path / "t")
            if left <= 0:
                break
            shutil.rmtree(result)  # it was done before the signal: once more from the beginning,
            longest *= 0.9  # and sooner, as the machine may be less busy than it was at first

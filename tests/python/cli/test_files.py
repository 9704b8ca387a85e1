# SPDX-License-Identifier: Apache-2.0
"""`encrypt` and `decrypt` on files and trees: names, permissions, what is kept and skipped."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import COMMAND, make_key, names, run, run_json
from warpcipher.cli.report import Result

FORMATS = {
    "cobblestone-128": ("--format", "cobblestone-128"),
    "cobblestone-256": ("--format", "cobblestone-256"),
    "gcm-1mb": ("--format", "tink", "--template", "AES256_GCM_HKDF_1MB"),
    "ctr-4kb": ("--format", "tink", "--template", "AES128_CTR_HMAC_SHA256_4KB"),
}
SUFFIXES = {
    "cobblestone-128": ".cobblestone",
    "cobblestone-256": ".cobblestone",
    "gcm-1mb": ".tink",
    "ctr-4kb": ".tink",
}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("which", FORMATS)
@pytest.mark.parametrize("size", [0, 1, 16384, 9_000_001])
def test_round_trip(tmp_path: Path, which: str, size: int) -> None:
    key = make_key(tmp_path, "key", *FORMATS[which])
    plain = os.urandom(size)
    (tmp_path / "a").write_bytes(plain)
    sealed = "a" + SUFFIXES[which]
    run("encrypt", "--key", key, "a", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == plain
    assert plain[:32] not in (tmp_path / sealed).read_bytes() or size < 8
    (tmp_path / "a").unlink()
    run("decrypt", "--key", key, sealed, cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == plain
    assert names(tmp_path) == {"key", "a", sealed}


def test_output_has_the_permissions_of_the_input(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    for bits in (0o640, 0o400, 0o755, 0o4711):
        (tmp_path / "a").chmod(bits)
        run("encrypt", "--force", "--key", "key", "a", cwd=tmp_path)
        assert mode(tmp_path / "a.cobblestone") == bits & 0o777
    run("encrypt", "--key", "key", "-", "-o", "b", cwd=tmp_path, stdin=b"x", umask=0o027)
    assert mode(tmp_path / "b") == 0o640


def test_existing_output_is_kept_without_force(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "a.cobblestone").write_bytes(b"precious")
    done = run("encrypt", "--key", "key", "a", cwd=tmp_path, expect=2)
    assert b"a.cobblestone exists" in done.stderr
    assert (tmp_path / "a.cobblestone").read_bytes() == b"precious"
    run("encrypt", "--force", "--key", "key", "a", cwd=tmp_path)
    (tmp_path / "a").write_bytes(b"changed")
    run("decrypt", "--key", "key", "a.cobblestone", cwd=tmp_path, expect=2)
    assert (tmp_path / "a").read_bytes() == b"changed"
    run("decrypt", "--key", "key", "-f", "a.cobblestone", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == b"text"
    assert names(tmp_path) == {"key", "a", "a.cobblestone"}


def test_input_is_never_its_own_output(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    os.link(tmp_path / "a", tmp_path / "same")
    for output in ("a", "./a", "same"):
        done = run("encrypt", "--force", "--key", "key", "a", "-o", output, cwd=tmp_path, expect=2)
        assert b"is the input a, which is never overwritten" in done.stderr
    assert (tmp_path / "a").read_bytes() == b"text"


@pytest.mark.parametrize("options", [(), ("-o", "a.cobblestone")])
def test_symbolic_link_as_output_is_written_through(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/real").write_bytes(b"old")
    (tmp_path / "a.cobblestone").symlink_to("disk/real")
    done = run("encrypt", "--key", "key", "a", *options, cwd=tmp_path, expect=2)
    assert b"a.cobblestone exists" in done.stderr
    run("encrypt", "--key", "key", "--force", "a", *options, cwd=tmp_path)
    assert (tmp_path / "a.cobblestone").is_symlink()
    assert names(tmp_path / "disk") == {"real"}
    run("decrypt", "--key", "key", "disk/real", "-o", "back", cwd=tmp_path)
    assert (tmp_path / "back").read_bytes() == b"text"


def test_links_to_an_input_or_to_each_other_are_no_outputs(tmp_path: Path) -> None:
    """An input that is written through a link would be lost."""
    make_key(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"text")
    (tmp_path / "link").symlink_to("b")
    done = run("encrypt", "--force", "--key", "key", "b", "-o", "link", cwd=tmp_path, expect=2)
    assert b"link is the input b, which is never overwritten" in done.stderr
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("key")
    done = run("encrypt", "--force", "--key", "key", "b", "-o", "link", cwd=tmp_path, expect=2)
    assert b"link is the key file, which is never overwritten" in done.stderr
    for name in ("a", "b"):
        (tmp_path / f"{name}.cobblestone").symlink_to("one")
    done = run("encrypt", "--force", "--key", "key", "a", "b", cwd=tmp_path, expect=2)
    assert b"a and b would both become" in done.stderr


def test_special_file_as_output_is_refused(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    os.mkfifo(tmp_path / "pipe")
    done = run("encrypt", "--key", "key", "--force", "a", "-o", "pipe", cwd=tmp_path, expect=2)
    assert b"not a regular file" in done.stderr
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("target", ["/dev/stdout", "/dev/null", "pipe", "/proc/self/fd/1"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_link_to_a_device_is_not_replaced(
    tmp_path: Path, target: str, force: tuple[str, ...]
) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(target)
    options = ("--key", "key", *force, "a", "-o", "link")
    done = run("encrypt", *options, cwd=tmp_path, expect=2)
    assert b"link is not a regular file: write to it with `-o - > link`" in done.stderr
    assert str((tmp_path / "link").readlink()) == target


def test_special_file_as_input_needs_a_name_for_its_output(tmp_path: Path) -> None:
    make_key(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link", "/dev/stdin", "/dev/fd/0", "/dev/zero"):
        done = run("encrypt", "--key", "key", name, cwd=tmp_path, expect=2, stdin=b"text")
        assert f"{name} is a device or pipe: name the output with -o".encode() in done.stderr
    with (tmp_path / "key").open("rb") as file:
        command = [*COMMAND, "encrypt", "--key", "key", "/dev/stdin"]
        done = subprocess.run(command, cwd=tmp_path, stdin=file, capture_output=True, check=False)
    assert done.returncode == 2
    assert not Path("/dev/stdin.cobblestone").exists()
    run("encrypt", "--key", "key", "/dev/stdin", "-o", "out", cwd=tmp_path, stdin=b"text")
    assert names(tmp_path) == {"key", "pipe", "link", "out"}


def test_several_files_go_to_a_directory(tmp_path: Path) -> None:
    make_key(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
    run("encrypt", "--key", "key", "a", "b", "-o", "out", cwd=tmp_path)
    tree = {"a.cobblestone", "b.cobblestone", "MANIFEST.warpcipher"}
    assert names(tmp_path / "out") == tree
    (tmp_path / "a").write_bytes(b"new")
    run("encrypt", "--key", "key", "a", "-o", "out/", "--force", cwd=tmp_path)
    assert names(tmp_path / "out") == tree
    run("decrypt", "--key", "key", "out/a.cobblestone", "-o", "back", cwd=tmp_path)
    assert (tmp_path / "back").read_bytes() == b"new"
    run("check", "--key", "key", "out", cwd=tmp_path)
    # Two inputs of one name.
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").write_bytes(b"other")
    done = run("encrypt", "--key", "key", "a", "sub/a", "-o", "new", cwd=tmp_path, expect=2)
    assert b"a and sub/a would both become new/a.cobblestone" in done.stderr
    assert not (tmp_path / "new").exists()


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    make_key(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode())
    run("encrypt", "--key", "key", "a", "b", "c", cwd=tmp_path)
    damaged = bytearray((tmp_path / "b.cobblestone").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "b.cobblestone").write_bytes(damaged)
    inputs = ["a.cobblestone", "b.cobblestone", "missing.cobblestone", "c.cobblestone"]
    report = run_json("decrypt", "--key", "key", *inputs, "-o", "out", cwd=tmp_path, expect=3)
    assert report["ok"] is False
    assert [result["input"] for result in report["results"]] == ["a.cobblestone", "c.cobblestone"]
    assert [(entry["input"], entry["exit_code"]) for entry in report["failures"]] == [
        ("b.cobblestone", 3),
        ("missing.cobblestone", 4),
    ]
    assert names(tmp_path / "out") == {"a", "c"}


def test_name_without_the_suffix_needs_an_output(tmp_path: Path) -> None:
    make_key(tmp_path)
    sealed = run("encrypt", "--key", "key", "-", cwd=tmp_path, stdin=b"text").stdout
    for name in ("sealed", ".cobblestone"):
        (tmp_path / name).write_bytes(sealed)
        done = run("decrypt", "--key", "key", name, cwd=tmp_path, expect=2)
        assert b"name the output with -o" in done.stderr
    run("decrypt", "--key", "key", "sealed", "-o", "plain", cwd=tmp_path)
    assert (tmp_path / "plain").read_bytes() == b"text"


ODD_NAMES = [
    b"-dash",
    b"new\nline",
    b"\xff\xfe not UTF-8",
    b"esc\x1b[31m",
    b"with space",
    "schlüssel".encode(),
    b"n" * 240,
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_odd_names(tmp_path: Path, name: bytes) -> None:
    make_key(tmp_path)
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(b"text")
    report = run_json("encrypt", "--key", "key", path, cwd=tmp_path)
    assert os.fsencode(report["results"][0]["input"]) == os.fsencode(path)
    path.unlink()
    sealed = path.with_name(path.name + ".cobblestone")
    run("decrypt", "--key", "key", "--", sealed.name, cwd=tmp_path)
    assert path.read_bytes() == b"text"
    done = run("decrypt", "--key", "key", "--", sealed.name, cwd=tmp_path, expect=2)
    assert b"\x1b" not in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_name_too_long_for_the_suffix_is_an_error_of_the_system(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / ("n" * 250)).write_bytes(b"text")
    run("encrypt", "--key", "key", "n" * 250, cwd=tmp_path, expect=4)
    assert names(tmp_path) == {"key", "n" * 250}


def test_context_belongs_to_the_file(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    run("encrypt", "--key", "key", "--context", "v1", "a", cwd=tmp_path)
    sealed = "a.cobblestone"
    run("decrypt", "--key", "key", "-o", "b", sealed, cwd=tmp_path, expect=3)
    run("decrypt", "--key", "key", "--context", "v2", "-o", "b", sealed, cwd=tmp_path, expect=3)
    run("decrypt", "--key", "key", "--context-hex", b"v1".hex(), "-o", "b", sealed, cwd=tmp_path)
    assert (tmp_path / "b").read_bytes() == b"text"


def test_engine_is_passed_on(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    done = run("encrypt", "--key", "key", "--engine", "warp-drive", "a", cwd=tmp_path, expect=5)
    assert b"warp-drive" in done.stderr
    assert names(tmp_path) == {"key", "a"}
    run("encrypt", "--key", "key", "--engine", "cpu", "a", cwd=tmp_path)
    run(
        "decrypt", "--key", "key", "--engine", "reference", "-o", "b", "a.cobblestone", cwd=tmp_path
    )
    assert (tmp_path / "b").read_bytes() == b"text"


def test_output_that_ends_in_a_slash_is_a_folder_and_made(tmp_path: Path) -> None:
    """With one file it said "No such file"; with two the folder was made."""
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    run("encrypt", "--key", "key", "-o", "out/", "a", cwd=tmp_path)
    assert names(tmp_path / "out") == {"a.cobblestone"}
    run("decrypt", "--key", "key", "-o", "back/", "out/a.cobblestone", cwd=tmp_path)
    assert (tmp_path / "back/a").read_bytes() == b"text"
    done = run("encrypt", "--key", "key", "-o", "a/", "a", cwd=tmp_path, expect=2)
    assert b"a/ exists and is not a directory" in done.stderr
    done = run("encrypt", "--key", "key", "-o", "no/", "missing", cwd=tmp_path, expect=4)
    assert b"missing: No such file" in done.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("end", "options"), [("\n", ()), ("\0", ("--null",)), ("\0", ("-0",))])
def test_files_from_a_list(tmp_path: Path, end: str, options: tuple[str, ...]) -> None:
    make_key(tmp_path)
    files = ["a", "-", "--force", "sub/b \xe4", *(["line\nend"] if options else [])]
    (tmp_path / "sub").mkdir()
    for name in files:
        (tmp_path / name).write_bytes(b"text")
    (tmp_path / "list").write_text(end.join([*files, ""]))
    listed = ("--key", "key", "--files-from")
    run("encrypt", *listed, "list", *options, cwd=tmp_path)
    encrypted = [f"{name}.cobblestone" for name in files]
    assert all((tmp_path / name).is_file() for name in encrypted)
    text = end.join(encrypted[1:]).encode()
    run("check", *listed, "-", *options, encrypted[0], cwd=tmp_path, stdin=text)
    run("decrypt", *listed, "-", *options, "-o", "out", cwd=tmp_path, stdin=text)
    assert names(tmp_path / "out") == {Path(name).name for name in files[1:]}


def test_lists_that_cannot_be(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "empty").write_text("\n\n")
    for arguments, code, text in (
        (("--key", "key"), 2, b"Missing argument: give PATH... or --files-from FILE"),
        (("--key", "key", "--files-from", "empty"), 2, b"empty names no file"),
        (("--key", "key", "--files-from", "none"), 4, b"none: No such file"),
        (("--key", "key", "--null", "a"), 2, b"--null needs --files-from"),
        (("--key", "-", "--files-from", "-"), 2, b"the key and the list of files both want"),
        (("--key", "key", "--files-from", "-", "-"), 2, b"the input and the list of files both"),
    ):
        assert text in run("encrypt", *arguments, cwd=tmp_path, expect=code).stderr


def test_dry_run_tells_and_writes_nothing(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "t/sub").mkdir(parents=True)
    for name in ("a", "t/b", "t/sub/c"):
        (tmp_path / name).write_bytes(b"text")
    (tmp_path / "a.cobblestone").write_bytes(b"precious")
    key = ("--dry-run", "--key", "key")
    before = sorted(tmp_path.rglob("*"))
    done = run("encrypt", *key, "-v", "t", cwd=tmp_path)
    assert done.stdout.decode().splitlines() == [
        "t/b -> t.cobblestone/b.cobblestone",
        "t/sub/c -> t.cobblestone/sub/c.cobblestone",
    ]
    assert done.stderr == b"warpcipher: 2 files to do, nothing was written\n"
    done = run("encrypt", *key, "a", "t/b", "none", cwd=tmp_path, expect=2)
    assert done.stdout == b"t/b -> t/b.cobblestone\n"
    assert b"a.cobblestone exists" in done.stderr
    assert b"none: No such file" in done.stderr
    report = run_json("encrypt", *key, "--force", "a", cwd=tmp_path)
    assert report["planned"] == [{"input": "a", "output": "a.cobblestone"}]
    run("encrypt", *key, "-o", "missing/x", "a", cwd=tmp_path, expect=4)
    run("encrypt", *key, "-o", "made/", "a", cwd=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    (tmp_path / "t/b").write_bytes(b"changed, and longer")
    before = sorted(tmp_path.rglob("*"))
    done = run("encrypt", *key, "--update", "t", cwd=tmp_path)
    assert done.stdout == b"t/b -> t.cobblestone/b.cobblestone\n"
    done = run("decrypt", *key, "-o", "back", "t.cobblestone", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == b"t.cobblestone/b.cobblestone -> back/b"
    run("decrypt", *key, "--context", "other", "t.cobblestone", cwd=tmp_path, expect=3)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_summary_has_the_rate_of_what_took_some_time() -> None:
    short = Result("a", "b", "raw", 5, 76, 0.01, 500.0)
    assert short.summary() == "a -> b: 76 B in 0.0 s"
    assert replace(short, seconds=2.0).summary() == "a -> b: 76 B in 2.0 s (500 B/s)"


def test_summary_without_a_terminal(tmp_path: Path) -> None:
    make_key(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"text")
    assert run("encrypt", "--key", "key", "--force", "a", "b", cwd=tmp_path).stderr == b""
    told = run("encrypt", "--key", "key", "--force", "-v", "a", "b", cwd=tmp_path).stderr
    assert told.startswith(b"a -> a.cobblestone: 76 B in ")
    assert told.endswith(b"\nwarpcipher: 2 files done\n")
    run("encrypt", "-v", "-q", "--key", "key", "a", cwd=tmp_path, expect=2)

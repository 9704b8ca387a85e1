# SPDX-License-Identifier: Apache-2.0
"""Signals, full disks, wrong keys, damaged and missing files: nothing half written is left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import ended, make_key, names, run, start, temporaries, wait_until


def is_writing(folder: Path, size: int = 1) -> bool:
    """Whether a temporary of that size is there."""
    with contextlib.suppress(FileNotFoundError):  # it got its name meanwhile
        return any(path.stat().st_size >= size for path in temporaries(folder))
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("direction", ["encrypt", "decrypt"])
def test_signal_in_the_middle_leaves_nothing(
    tmp_path: Path, number: signal.Signals, direction: str
) -> None:
    make_key(tmp_path)
    data = bytes(24 << 20)
    if direction == "decrypt":
        data = run("encrypt", "--key", "key", "-", cwd=tmp_path, stdin=data).stdout
    with ended(
        start(
            *(direction, "--key", "key", "-", "-o", "out"),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(data[: 20 << 20])  # and the pipe stays open
        process.stdin.flush()
        wait_until(lambda: is_writing(tmp_path), "output")
        process.send_signal(number)
        assert process.wait(timeout=60) == -number  # 128 + number to a shell
        assert process.stderr.read() == b"\nwarpcipher: interrupted\n"
    assert names(tmp_path) == {"key"}


def test_signal_in_a_tree_keeps_whole_files_alone(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "t/later").mkdir(parents=True)
    (tmp_path / "t/a").write_bytes(b"small")
    with (tmp_path / "t/b").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "t/later/c").write_bytes(b"never reached")
    with ended(start("encrypt", "--key", "key", "t", cwd=tmp_path)) as process:
        wait_until(lambda: is_writing(tmp_path, 1 << 20), "output")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == -signal.SIGINT
    assert names(tmp_path / "t.cobblestone") == {"a.cobblestone"}


def test_folders_of_an_interrupted_tree_are_for_their_owner_until_it_is_finished(
    tmp_path: Path,
) -> None:
    """Folders get the permissions of their inputs at the end."""
    make_key(tmp_path)
    (tmp_path / "t/sub/deep").mkdir(parents=True)
    (tmp_path / "t/sub/deep/a").write_bytes(b"small")
    with (tmp_path / "t/sub/deep/b").open("wb") as file:
        file.truncate(1 << 40)
    modes = {"t": 0o755, "t/sub": 0o711, "t/sub/deep": 0o750}
    for name, mode in modes.items():
        (tmp_path / name).chmod(mode)
    folders = [tmp_path / name for name in ("out", "out/sub", "out/sub/deep")]
    arguments = ("encrypt", "--key", "key", "t", "-o", "out", "--skip-existing")
    with ended(start(*arguments, cwd=tmp_path)) as process:
        wait_until(lambda: is_writing(folders[-1], 1 << 20), "output")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == -signal.SIGTERM
    assert [stat.S_IMODE(path.stat().st_mode) for path in folders] == [0o700] * 3
    os.truncate(tmp_path / "t/sub/deep/b", 5)
    run(*arguments, cwd=tmp_path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in folders] == list(modes.values())


def test_sigkill_never_leaves_the_final_name(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "out").write_bytes(b"precious")
    with ended(
        start(
            *("encrypt", "--force", "--key", "key", "-", "-o", "out"),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
        )
    ) as process:
        assert process.stdin is not None
        process.stdin.write(bytes(20 << 20))
        process.stdin.flush()
        wait_until(lambda: is_writing(tmp_path), "output")
        process.kill()
        assert process.wait(timeout=60) == -signal.SIGKILL
    (leftover,) = temporaries(tmp_path)
    assert leftover.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out").read_bytes() == b"precious"
    (tmp_path / "a").write_bytes(b"text")
    run("encrypt", "--force", "--key", "key", "a", "-o", "out", cwd=tmp_path)
    assert names(tmp_path) == {"key", "a", "out", leftover.name}


@pytest.mark.parametrize("size", [(1 << 20) - 10, 30 << 20])
def test_output_over_the_limit_leaves_nothing(tmp_path: Path, size: int) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(bytes(size))
    limit = ("prlimit", f"--fsize={1 << 20}")
    done = run("encrypt", "--key", "key", "a", cwd=tmp_path, expect=4, prefix=limit)
    assert b"a.cobblestone: File too large" in done.stderr
    assert names(tmp_path) == {"key", "a"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user cannot mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_disk_leaves_nothing_and_goes_on(tmp_path: Path, small_disk: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "big").write_bytes(bytes(8 << 20))
    (tmp_path / "small").write_bytes(b"text")
    done = run("encrypt", "--key", "key", "big", "small", "-o", "disk", cwd=tmp_path, expect=4)
    assert b"disk/big.cobblestone: No space left on device" in done.stderr
    assert names(small_disk) == {"small.cobblestone", "MANIFEST.warpcipher"}


def sealed_file(folder: Path, size: int = 100_000) -> bytes:
    make_key(folder)
    (folder / "a").write_bytes(os.urandom(size))
    run("encrypt", "--key", "key", "a", cwd=folder)
    (folder / "a").unlink()
    return (folder / "a.cobblestone").read_bytes()


def refuse(folder: Path, content: bytes, *, key: str = "key") -> bytes:
    """The error of decrypting `content`, after which there is no output."""
    (folder / "a.cobblestone").write_bytes(content)
    before = names(folder)
    done = run("decrypt", "--key", key, "a.cobblestone", cwd=folder, expect=3)
    assert names(folder) == before
    assert done.stderr.startswith(b"warpcipher: a.cobblestone: ")
    return done.stderr


def test_wrong_key_is_refused(tmp_path: Path) -> None:
    sealed = sealed_file(tmp_path)
    make_key(tmp_path, "other")
    make_key(tmp_path, "short", "--format", "cobblestone-128")
    for key in ("other", "short"):
        error = refuse(tmp_path, sealed, key=key)
        assert b"wrong key" in error
        assert (tmp_path / key).read_bytes().hex().encode() not in error


@pytest.mark.parametrize("place", [0, 30, 56, 60, 20_000, -16, -1])
def test_one_flipped_bit_is_refused(tmp_path: Path, place: int) -> None:
    content = bytearray(sealed_file(tmp_path))
    content[place] ^= 0x80
    refuse(tmp_path, bytes(content))


def test_cut_and_lengthened_files_are_refused(tmp_path: Path) -> None:
    sealed = sealed_file(tmp_path)
    for size in (0, 1, 56, 71, 72, 56 + 16400, len(sealed) - 1):
        refuse(tmp_path, sealed[:size])
    refuse(tmp_path, sealed + b"\0")
    refuse(tmp_path, sealed + bytes(16400))


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("encrypt", "--key", "key", "missing"), 4, b"missing: No such file"),
        (("encrypt", "--key", "missing", "a"), 4, b"missing: No such file"),
        (("encrypt", "--key", ".", "a"), 4, b"warpcipher: .: Is a directory"),
        (("encrypt", "--key", "-", "a"), 2, b"standard input holds nothing; expected a key: 16 or"),
        (("encrypt", "--key", "-", "-"), 2, b"both want standard input"),
        (("encrypt", "--key", "", "a"), 2, b"--key names a file"),
        (("encrypt", "--key", "key", "-o", "a", "a", "key"), 2, b"a exists and is not a directory"),
        (
            (
                *("verify", "--algorithm", "aes-128-ctr", "--key", "key"),
                *("--pair", ":".join(["00" * 16] * 3)),
            ),
            2,
            b"key holds 32 bytes; expected a key of aes-128: 16 bytes",
        ),
        (("encrypt", "--key", "key", "a", "-o", "no/such/place"), 4, b"No such file"),
        (("encrypt", "--key", "key", "a", "-o", "a/b"), 4, b"Not a directory"),
        (("encrypt", "--key", "key", "a", "-o", ""), 2, b"names no file"),
        (("encrypt", "--key", "key", ""), 2, b"names no file"),
        (("encrypt", "--key", "key"), 2, b"Missing argument"),
        (("encrypt", "a"), 2, b"--key FILE"),
        (("encrypt", "--key", "key", "--format", "zip", "a"), 2, b"unknown format 'zip'"),
        (("encrypt", "--key", "key", "--iv-hex", "00", "a"), 2, b"No such option '--iv-hex'"),
        (("encrypt", "--key", "key", "--context", "x", "--context-hex", "00", "a"), 2, b"give one"),
        (("encrypt", "--key", "key", "--context-hex", "0", "a"), 2, b"hex digits"),
        (("encrypt", "--format", "raw", "--key", "key", "a"), 2, b"`warpcipher raw encrypt`"),
        (("check", "--format", "raw", "--key", "key", "a"), 2, b"nothing can be checked"),
        (("keygen", "--format", "raw", "new"), 2, b"`warpcipher raw keygen --algorithm NAME`"),
        (("encrypt", "--key", "s3://b/k", "a"), 2, b"s3://b/k: expected the path of a file here"),
        (("keygen", "s3://b/k"), 2, b"s3://b: expected the path of a file here"),
        (("encrypt", "--no-such-option", "a"), 2, b"No such option"),
        (("decrypt", "--key", "key", "a.cobblestone"), 4, b"a.cobblestone: No such file"),
        (("Encypt",), 2, b"did you mean encrypt or decrypt? `warpcipher --help` lists them"),
        (("parquet", "decypt"), 2, b"did you mean decrypt or encrypt? `warpcipher parquet --help`"),
        (
            ("no-such-command",),
            2,
            b"no such command: no-such-command: `warpcipher --help` lists them",
        ),
    ],
)
def test_bad_use_is_explained_and_writes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], code: int, text: bytes
) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    done = run(*arguments, cwd=tmp_path, expect=code)
    assert text in done.stderr
    assert done.stdout == b""
    assert names(tmp_path) == {"key", "a"}


# Root may read everything, unless it gives that up.
UNPRIVILEGED = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
)


@pytest.mark.skipif(
    bool(UNPRIVILEGED) and shutil.which("setpriv") is None, reason="root, and no setpriv"
)
def test_unreadable_input_and_folder(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "a").chmod(0)
    (tmp_path / "locked").mkdir(mode=0o500)
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/b").write_bytes(b"text")
    (tmp_path / "tree/sub").chmod(0)

    def refuse_with(*arguments: str) -> bytes:
        command = ("encrypt", "--key", "key", *arguments)
        return run(*command, cwd=tmp_path, expect=4, prefix=UNPRIVILEGED).stderr

    try:
        assert refuse_with("a") == b"warpcipher: a: Permission denied\n"
        locked = refuse_with("tree/b", "-o", "locked/")
        assert locked == b"warpcipher: locked/b.cobblestone: Permission denied\n"
        assert refuse_with("tree") == (
            b"warpcipher: tree/sub: Permission denied\nwarpcipher: 1 file done, 1 failed\n"
        )
        assert names(tmp_path / "tree.cobblestone") == {"b.cobblestone", "MANIFEST.warpcipher"}
    finally:
        (tmp_path / "tree/sub").chmod(0o700)

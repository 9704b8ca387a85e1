# SPDX-License-Identifier: Apache-2.0
"""Files whose size changes while they are read, and what was given as --key but is no file."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import COMMAND, make_key, names, run
from warpcipher.formats.layout import PIECE_SIZE

# Changes the file when some of it has been read.
CHANGE = """
import os, sys
readv = os.readv
def change(descriptor, buffers):
    count = readv(descriptor, buffers)
    if not os.environ.get("CHANGED") and os.path.samestat(os.fstat(descriptor), os.stat("a")):
        os.environ["CHANGED"] = "1"
        os.truncate("a", int(os.environ["SIZE"]))
    return count
os.readv = change
from warpcipher.cli import main
main()
"""
SIZE = 5_000_000


def encrypt_changing(
    folder: Path, size: int, *arguments: str, stdin: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", CHANGE, "encrypt", "--key", "key", *arguments],
        cwd=folder,
        env={**os.environ, "SIZE": str(size)},
        stdin=stdin,
        capture_output=True,
        check=True,
        timeout=60,
    )


@pytest.mark.parametrize(("size", "read"), [(SIZE + 10, SIZE + 10), (4_500_000, 4_500_000)])
def test_changed_size_is_told(tmp_path: Path, size: int, read: int) -> None:
    make_key(tmp_path)
    plain = os.urandom(SIZE)
    (tmp_path / "a").write_bytes(plain)
    done = encrypt_changing(tmp_path, size, "a")
    assert done.stderr.decode() == (
        f"warpcipher: warning: a: changed while it was read ({SIZE} bytes when it was opened, "
        f"{read} were read, {size} now): its output holds the bytes that were read\n"
    )
    back = run("decrypt", "--key", "key", "-o", "-", "a.cobblestone", cwd=tmp_path).stdout
    assert back == (plain + bytes(10))[:read]


# The same, once chunks were copied past Python.
CUT = """
import os
from warpcipher.formats import chunks
copy = chunks.ChunkEncryptor.copy
def cutting(*call):
    done = copy(*call)
    os.truncate("a", 0)
    return done
chunks.ChunkEncryptor.copy = cutting
from warpcipher.cli import main
main()
"""


@pytest.mark.parametrize("format_name", ["cobblestone", "age"])
def test_file_that_is_cut_to_nothing(tmp_path: Path, format_name: str) -> None:
    """As a log that is rotated: what was read is whole, or there is no output."""
    if format_name == "age":
        pytest.importorskip("cryptography")
        run("keygen", "--format", "age", "key", cwd=tmp_path)
    else:
        make_key(tmp_path)
    # All after the first pieces is copied, and pieces are longer with more cores.
    size = 4 * PIECE_SIZE
    plain = os.urandom(size)
    (tmp_path / "a").write_bytes(plain)
    key = "-i" if format_name == "age" else "--key"
    done = subprocess.run(
        [sys.executable, "-c", CUT, "encrypt", key, "key", "-o", "b", "a"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if format_name == "age":
        assert done.stderr == b"warpcipher: a: the input became shorter while it was read\n"
        assert done.returncode == 4
        assert names(tmp_path) == {"a", "key"}
        return
    assert f"({size} bytes when it was opened, ".encode() in done.stderr
    assert b" were read, 0 now): its output holds the bytes that were read" in done.stderr
    assert done.returncode == 0
    back = run("decrypt", "--key", "key", "-o", "-", "b", cwd=tmp_path).stdout
    assert len(back) > 1 << 20
    assert plain.startswith(back)


def test_unchanged_size_is_not_told(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(bytes(SIZE))
    assert encrypt_changing(tmp_path, SIZE, "a").stderr == b""
    # Standard input that begins in the middle of the file.
    with (tmp_path / "a").open("rb") as file:
        os.lseek(file.fileno(), 1_000_000, os.SEEK_SET)
        assert encrypt_changing(tmp_path, SIZE, "-", stdin=file.fileno()).stderr == b""
    # A file that the kernel makes up says that it holds nothing.
    done = run("encrypt", "--key", "key", "-o", "b", "/proc/cpuinfo", cwd=tmp_path)
    assert done.stderr == b""


def looks() -> list[str]:
    """Keys as somebody may give them in place of a file's name."""
    key = os.urandom(32)
    return [
        *(os.urandom(size).hex() for size in (7, 8, 16, 24, 32, 64)),
        key.hex().upper(),
        "0x" + key.hex(),
        key.hex(":"),
        key.hex(" ", 4),
        f"sub/{key.hex()}",
        *(base64.b64encode(os.urandom(size)).decode() for size in (8, 16, 24, 32, 64)),
        base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("="),
        base64.urlsafe_b64encode(key).decode().rstrip("="),
        '{"primaryKeyId": 1, "key": [{"keyData": {"value": "GiBkZWFkYmVlZg=="}}]}',
    ]


@pytest.mark.parametrize("command", ["encrypt", "decrypt", "info", "verify"])
def test_key_given_as_a_name_is_not_repeated(tmp_path: Path, command: str) -> None:
    (tmp_path / "a").write_bytes(b"text")
    pair = ("--algorithm", "aes-256-ecb", "--pair", "00" * 16 + ":" + "00" * 16)
    rest = pair if command == "verify" else ("a",)
    for text in looks() if command == "encrypt" else looks()[4:5]:
        done = run(command, "--key", text, *rest, cwd=tmp_path, expect=2)
        assert b"--key names a file: what was given" in done.stderr
        for part in filter(None, (text, text.split("/")[-1], text[-12:])):
            assert part.encode() not in done.stdout + done.stderr
    assert names(tmp_path) == {"a"}


@pytest.mark.parametrize("name", ["missing", "my.key", "keys/prod.key", "/no/such/key-2026.json"])
def test_missing_key_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_bytes(b"text")
    done = run("encrypt", "--key", name, "a", cwd=tmp_path, expect=4)
    assert done.stderr.decode() == f"warpcipher: {name}: No such file or directory\n"


def test_key_file_may_have_such_a_name(tmp_path: Path) -> None:
    name = "00" * 32
    make_key(tmp_path, name)
    (tmp_path / "a").write_bytes(b"text")
    run("encrypt", "--key", name, "a", cwd=tmp_path)


def test_surplus_argument_is_not_repeated(tmp_path: Path) -> None:
    """Such as a key whose option was forgotten."""
    key = os.urandom(16).hex()
    for arguments in (
        ("verify", "--algorithm", "des-ecb", "--pair", "00:00", key),
        ("keygen", "new", key),
        ("tune", key, key),
    ):
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 2
        assert b"too many, not repeated here" in done.stderr
        assert key.encode() not in done.stderr
    assert names(tmp_path) == set()

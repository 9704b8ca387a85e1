# SPDX-License-Identifier: Apache-2.0
"""`warpcipher keygen`: what it writes, that nobody else can read it, that it overwrites nothing."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest
import warpcipher as wc
from cli_support import COMMAND, names, run, run_json
from warpcipher import formats


def make_key(folder: Path, name: str = "key", *options: str) -> Path:
    run("keygen", name, *options, cwd=folder)
    return folder / name


@pytest.mark.parametrize(("bits", "size"), [(128, 16), (256, 32)])
def test_raw_key_has_the_size_of_its_format(tmp_path: Path, bits: int, size: int) -> None:
    key = make_key(tmp_path, "key", "--format", f"cobblestone-{bits}")
    assert len(key.read_bytes()) == size
    assert names(tmp_path) == {"key"}


def test_default_is_cobblestone_256_and_keys_differ(tmp_path: Path) -> None:
    first, second = make_key(tmp_path, "1").read_bytes(), make_key(tmp_path, "2").read_bytes()
    assert len(first) == len(second) == 32
    assert first != second


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_mode_is_0600_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    run("keygen", "key", cwd=tmp_path, umask=umask)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("template", sorted(formats.TEMPLATES))
def test_keyset_of_every_template_opens_its_own_files(tmp_path: Path, template: str) -> None:
    key = make_key(tmp_path, "keys.json", "--format", "tink", "--template", template)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(formats.Keyset.from_json(key.read_bytes()).keys) == 1
    sealed = run("encrypt", "--key", key, "-", cwd=tmp_path, stdin=b"some text").stdout
    assert run("decrypt", "--key", key, "-", cwd=tmp_path, stdin=sealed).stdout == b"some text"


def test_key_of_every_algorithm_has_its_size(tmp_path: Path) -> None:
    for entry in wc.algorithms()[::7]:
        run("raw", "keygen", "--algorithm", entry.name, entry.name, cwd=tmp_path)
        key = tmp_path / entry.name
        assert len(key.read_bytes()) == entry.key_size
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    run("raw", "keygen", "--algorithm", entry.name, entry.name, cwd=tmp_path, expect=2)


def test_existing_file_is_kept_without_force(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    before = key.read_bytes()
    done = run("keygen", "key", cwd=tmp_path, expect=2)
    assert b"key exists: use --force to replace it, or name another output\n" in done.stderr
    assert key.read_bytes() == before
    run("keygen", "--force", "key", cwd=tmp_path)
    assert key.read_bytes() != before
    assert names(tmp_path) == {"key"}


def test_no_output_holds_the_key(tmp_path: Path) -> None:
    done = run("keygen", "--json", "key", cwd=tmp_path)
    key = (tmp_path / "key").read_bytes()
    for text in (done.stdout, done.stderr):
        assert key not in text
        assert key.hex().encode() not in text.lower()
    assert json.loads(done.stdout)["bytes"] == 32
    made = run("keygen", "--json", "--format", "tink", "keyset", cwd=tmp_path)
    value = json.loads((tmp_path / "keyset").read_text())["key"][0]["keyData"]["value"]
    assert value.encode() not in made.stdout + made.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("-",),
        ("missing/key",),
        (".",),
        ("folder/",),
        ("/dev/null",),
        ("--format", "rot13", "key"),
        ("--format", "raw", "key"),
        ("--format", "tink", "--template", "AES999", "key"),
        ("--template", "AES256_GCM_HKDF_1MB", "key"),
        (),
    ],
)
def test_bad_arguments_write_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code = 4 if arguments == ("missing/key",) else 2
    done = run("keygen", *arguments, cwd=tmp_path, expect=code)
    assert done.stdout == b""
    assert done.stderr
    assert b"-o" not in done.stderr  # an option that the command does not have
    assert names(tmp_path) == set()


def test_key_may_be_written_in_hex_digits(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    (tmp_path / "hex").write_text(key.read_bytes().hex().upper() + "\n")
    (tmp_path / "hex").chmod(0o600)
    (tmp_path / "a").write_bytes(b"text")
    run("encrypt", "--key", key, "a", cwd=tmp_path)
    done = run("decrypt", "--key", "hex", "-o", "-", "a.cobblestone", cwd=tmp_path)
    assert done.stdout == b"text"
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("content", "format_name"),
    [
        (b"", "auto"),
        (bytes(31), "auto"),
        (b"secretsecretsecretsecretsecretse!", "auto"),
        (b"5ec2e7" * 5, "auto"),
        (b"0123456789abcdef" * 2, "cobblestone-256"),
        (bytes(16), "cobblestone-256"),
        (b'{"key": 5}', "auto"),
        (bytes(32), "tink"),
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(
    tmp_path: Path, content: bytes, format_name: str
) -> None:
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "a").write_bytes(b"text")
    done = run("encrypt", "--key", "key", "--format", format_name, "a", cwd=tmp_path, expect=2)
    assert done.stderr.startswith(b"warpcipher: key")
    assert b"secret" not in done.stderr
    assert b"5ec2e7" not in done.stderr
    assert names(tmp_path) == {"key", "a"}


def test_32_hex_digits_are_a_128_bit_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"0123456789abcdef" * 2)
    (tmp_path / "a").write_bytes(b"text")
    result = run_json("encrypt", "--key", "key", "a", cwd=tmp_path)["results"][0]
    assert result["format"] == "cobblestone-128"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_key_open_to_others_is_warned_of(tmp_path: Path, mode: int) -> None:
    key = make_key(tmp_path)
    key.chmod(mode)
    (tmp_path / "a").write_bytes(b"text")
    done = run("encrypt", "--key", "key", "a", cwd=tmp_path)
    assert b"warning: key file key is open to others" in done.stderr
    assert oct(mode)[2:].encode() in done.stderr


def test_key_may_come_from_a_pipe(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    script = '"$@" encrypt --key <(cat key) a'
    subprocess.run(["bash", "-c", script, "bash", *COMMAND], cwd=tmp_path, check=True, timeout=60)
    done = run("decrypt", "--key", "key", "-o", "-", "a.cobblestone", cwd=tmp_path)
    assert done.stdout == b"text"


def test_help_names_no_option_of_other_commands(tmp_path: Path) -> None:
    for group in ("parquet", "raw", "rewrap"):
        assert b"checkpoint" not in run(group, "--help", cwd=tmp_path).stdout
    text = b" ".join(run("keygen", "--help", cwd=tmp_path).stdout.split())
    assert b"encrypt the key with a passphrase" in text
    assert b"with -i" not in text

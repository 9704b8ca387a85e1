# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.keys`: names that may be keys are not shown; a command's number is not used once
it is free."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest
from cli_support import COMMAND, run
from warpcipher import keys
from warpcipher.keys import command as commands
from warpcipher.keys.decode import may_be_key

KEY = bytes(range(100, 132))
# Keys of nobody, in the form of an identity of age and of a secret key of Crypt4GH.
IDENTITY = "AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 5 + "QPZRY9X8"
BODY = "YzRnaC12MQAEbm9uZQAEbm9uZQAgAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
PEM = f"-----BEGIN CRYPT4GH PRIVATE KEY-----\n{BODY}\n-----END CRYPT4GH PRIVATE KEY-----"
WORDS = "correct horse battery staple"
SECRETS = {
    "hex": KEY.hex(),
    "0x": "0x" + KEY[:16].hex(),
    "base64": base64.b64encode(KEY).decode(),
    "base64 in lines": base64.encodebytes(KEY * 2).decode(),
    "identity": IDENTITY,
    "file of an identity": f"# created: today\n{IDENTITY}",
    "lower case": IDENTITY.lower(),
    "pem": PEM,
    "body of a pem": BODY,
    "jwk": '{"kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ"}',
}


@pytest.mark.parametrize("key", SECRETS.values(), ids=SECRETS)
def test_a_key_given_for_a_name_is_not_repeated(key: str) -> None:
    for make in (keys.from_env, keys.from_command, keys.from_file, keys.from_tink):
        if make is keys.from_tink and "{" in key:
            continue  # a keyset may be given
        if "=" in key and make is keys.from_env:
            key = key.replace("=", "")
        source = make(key)
        with pytest.raises((ValueError, OSError)) as raised:
            source.resolve()
        told = str(raised.value) + repr(source)
        assert not any(line in told for line in key.splitlines())
        assert "not repeated: they may be a key" in str(raised.value)


def test_a_variable_that_is_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "A_NAME_OF_22_CHARACTER"
    assert may_be_key(name)
    monkeypatch.setenv(name, "x")
    with pytest.raises(ValueError, match=name):
        keys.from_env(name).resolve()


def test_a_file_that_is_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / KEY.hex()
    with pytest.raises(FileNotFoundError, match="not repeated: they may be a key"):
        keys.from_file(path).resolve()
    path.write_text("no key")
    with pytest.raises(ValueError, match=f"{KEY.hex()} holds a text of 6 bytes"):
        keys.from_file(path).resolve()


@pytest.mark.parametrize("given", [IDENTITY, PEM, WORDS, f"aws-kms://{IDENTITY}"])
def test_what_is_no_uri_of_a_kms_is_not_repeated(given: str) -> None:
    with pytest.raises(ValueError, match=r"not repeated|expected a URI") as raised:
        keys.from_tink("keyset.json", kms=given.replace("aws-kms", "https")).resolve()
    assert IDENTITY not in str(raised.value)
    assert WORDS not in str(raised.value)


NAMES_A_KEY = (
    ("encrypt", "--key", "?", "f"),
    ("encrypt", "-i", "?", "f"),
    ("encrypt", "-R", "?", "f"),
    ("encrypt", "-r", "?", "f"),
    ("encrypt", "--key-env", "?", "f"),
    ("encrypt", "--key-fd", "?", "f"),
    ("encrypt", "--key-command", "?", "f"),
    ("encrypt", "--kms", "?", "--key", "key", "f"),
    ("encrypt", "--passphrase-env", "?", "f"),
    ("encrypt", "--passphrase-fd", "?", "f"),
    ("raw", "encrypt", "--algorithm", "aes-128-ctr", "--key-hex", "?", "f"),
    ("info", "-i", "?", "f"),
    ("check", "--passphrase-fd", "?", "f"),
    ("verify", "--algorithm", "aes-128-ecb", "--pair", "00:00", "--key", "?"),
    ("rewrap", "--key", "key", "--new-key", "?", "f"),
    ("rewrap", "--kms", "?", "--new-kms", "?", "f"),
    ("parquet", "info", "--key", "?", "f"),
    ("parquet", "info", "--key", "key", "--column-key", "a=?", "f"),
    ("parquet", "rekey", "--key", "key", "--new-key", "?", "-o", "out", "f"),
    ("keygen", "--format", "age", "--passphrase-env", "?", "new"),
    ("?",),
)


@pytest.mark.parametrize("arguments", NAMES_A_KEY, ids=" ".join)
def test_the_command_repeats_no_key(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    for name in ("f", "key"):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(KEY.hex())
    for kind in ("identity", "pem"):
        secret = SECRETS[kind]
        given = [word.replace("?", secret) for word in arguments]
        command = subprocess.run(
            [*COMMAND, *given], cwd=tmp_path, capture_output=True, check=False, timeout=60
        )
        assert command.returncode in (2, 4), (kind, command.stderr)
        told = (command.stderr + command.stdout).decode()
        assert not any(line in told for line in secret.splitlines() if line[0] != "#"), told


def test_the_command_repeats_no_passphrase_and_no_identity_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("text")
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(KEY)
    for option in ("--passphrase-env", "--passphrase-fd", "--kms"):
        key = ("--key", "f") if option == "--kms" else ()
        done = run("encrypt", option, WORDS, *key, "f", cwd=tmp_path, expect=2)
        assert b"horse" not in done.stderr
        assert b"28 characters" in done.stderr
    done = run("encrypt", "--json", "--key", "key", IDENTITY, cwd=tmp_path, expect=4)
    assert IDENTITY.encode() not in done.stderr + done.stdout
    done = run("encrypt", "--key", "key", PEM, cwd=tmp_path, expect=2)
    assert BODY.encode() not in done.stderr
    done = run(
        "verify", "--algorithm", "aes-128-ecb", "--key", "/", KEY.hex(), cwd=tmp_path, expect=2
    )
    assert KEY.hex().encode() not in done.stderr


def test_a_group_is_ended_before_its_number_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(group: int) -> None:
        ended = os.waitid(os.P_PID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        seen.append(ended is not None and ended.si_pid == group)

    monkeypatch.setattr(commands, "_end_group", look)
    assert keys.from_command(["printf", KEY.hex()]).resolve() == KEY
    assert seen == [True], "ended, and not yet waited for"

# SPDX-License-Identifier: Apache-2.0
"""Where the commands take keys from, good and bad; no message shows one."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_support import COMMAND, ended, make_key, names, run, run_json, start, wait_until
from warpcipher import formats

KEY = bytes(range(60, 92))
TEXT = b"text" * 1000


def sealed(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(TEXT)
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(KEY)
    run("encrypt", "--key", "key", "a", cwd=tmp_path)
    return tmp_path / "a.cobblestone"


def opened(tmp_path: Path, *options: str, **more: Any) -> bytes:
    run("decrypt", "-f", "-o", "out", *options, "a.cobblestone", cwd=tmp_path, **more)
    return (tmp_path / "out").read_bytes()


@pytest.mark.parametrize(
    "content",
    [KEY, KEY.hex().encode(), base64.b64encode(KEY) + b"\n"],
    ids=["raw", "hex", "base64"],
)
def test_every_source(tmp_path: Path, content: bytes) -> None:
    sealed(tmp_path)
    (tmp_path / "key").write_bytes(content)
    assert opened(tmp_path, "--key", "key") == TEXT
    assert opened(tmp_path, "--key", "-", stdin=content) == TEXT
    assert opened(tmp_path, "--key-fd", "0", stdin=content) == TEXT
    assert opened(tmp_path, "--key-command", "cat key") == TEXT
    if content != KEY:
        assert opened(tmp_path, "--key-env", "K", env={**os.environb, b"K": content}) == TEXT
    with (tmp_path / "key").open("rb") as file:
        number = file.fileno()
        assert opened(tmp_path, "--key-fd", str(number), pass_fds=(number,)) == TEXT
    assert run("info", "--key", "-", "a.cobblestone", cwd=tmp_path, stdin=content)


def test_verify_takes_them_too(tmp_path: Path) -> None:
    pair = "00" * 16 + ":dc95c078a2408989ad48a21492842087"
    options = ("--algorithm", "aes-256-ecb", "--pair", pair)
    run("verify", *options, "--key", "-", cwd=tmp_path, stdin=base64.b64encode(bytes(32)))
    run("verify", *options, "--key", "-", cwd=tmp_path, stdin=base64.b64encode(KEY), expect=6)


def test_a_keyset_from_a_command(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    (tmp_path / "keyset").write_text(formats.Keyset.generate().to_json())
    run("encrypt", "--key-command", "cat keyset", "a", cwd=tmp_path)
    run(
        "decrypt",
        "--key",
        "-",
        "-o",
        "b",
        "a.tink",
        cwd=tmp_path,
        stdin=(tmp_path / "keyset").read_bytes(),
    )
    assert (tmp_path / "b").read_bytes() == TEXT


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--key", "key", "--key-env", "K"), 2, b"give one key: one of --key, --key-env, --key-fd"),
        (("--key-env", "NOT_SET"), 2, b"environment variable NOT_SET is not set"),
        (("--key-env", "A=B"), 2, b"expected the name of an environment variable"),
        (("--key-fd", "99"), 4, b"descriptor 99: Bad file descriptor"),
        (("--key-fd", "-1"), 2, b"--key-fd takes the number of an open descriptor, got -1"),
        (("--key-command", ""), 2, b"takes a program and its arguments"),
        (("--key-command", "'"), 2, b"No closing quotation"),
        (("--key-command", "/no/such"), 4, b"the command /no/such: No such file"),
        (
            ("--key-command", "sh -c 'echo token expired >&2; exit 7'"),
            4,
            b"the command sh failed with exit code 7: token expired",
        ),
        (
            ("--key-command", "echo no key"),
            2,
            b"the command echo holds a text of 7 bytes; expected",
        ),
        (("--kms", "aws-kms://x"), 2, b"--kms decrypts a keyset: name it, with --key FILE"),
        (("--kms", "file://x", "--key", "wrapped"), 2, b"expected a URI of aws-kms://"),
        (
            ("--kms", "aws-kms://x", "--key", "keyset"),
            2,
            b"is not encrypted: give it without a KMS",
        ),
        (("--key", "wrapped"), 2, b"wrapped holds a Tink keyset that a KMS encrypted: give"),
        (("--key", "pem"), 2, b"pem holds a PEM (EC PRIVATE KEY); expected a key: 16 or 32"),
        (("--key", "age", "--format", "tink"), 2, b"age holds an age identity; expected a tink"),
        (("--key", "age"), 2, b"line 2: not an identity of age: its checksum does not match"),
        (("--key", "-"), 2, b"standard input holds nothing; expected a key"),
    ],
)
def test_bad_sources_are_explained(
    tmp_path: Path, options: tuple[str, ...], code: int, text: bytes
) -> None:
    contents = {
        "key": KEY.hex(),
        "keyset": formats.Keyset.generate().to_json(),
        "wrapped": '{"encryptedKeyset": "AAAA", "keysetInfo": {}}',
        "pem": "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEI\n",
        "age": "# created: today\nAGE-SECRET-KEY-1QQQQQQ\n",
        "a": "text",
    }
    for name, content in contents.items():
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(content)
    done = run("encrypt", *options, "a", cwd=tmp_path, expect=code)
    assert text in done.stderr, done.stderr
    assert names(tmp_path) == set(contents)
    for secret in (b"MHcCAQEEI", b"SECRET-KEY-1Q", KEY.hex().encode()):
        assert secret not in done.stderr + done.stdout


def test_the_key_that_standard_input_is_stays(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(TEXT)
    with (tmp_path / "key").open("rb") as key:
        done = subprocess.run(
            [*COMMAND, "encrypt", "--force", "--key", "-", "-o", "key", "a"],
            cwd=tmp_path,
            stdin=key,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 2
    assert b"key is the key file, which is never overwritten" in done.stderr


def test_a_signal_ends_the_command_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    command = "sh -c 'echo $$ > pid; sleep 600'"
    with ended(start("encrypt", "--key-command", command, "a", cwd=tmp_path)) as process:
        pid = tmp_path / "pid"
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), "the command")
        status = Path(f"/proc/{pid.read_text().strip()}/stat")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
        wait_until(lambda: not status.exists() or status.read_text().split()[2] in "ZX", "its end")


@pytest.mark.parametrize("text", ["correct horse ba", "correct horse battery staple and"])
def test_a_password_taken_for_a_key_gets_a_warning(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_text(text)
    sealed = run("encrypt", "--key", "key", "-", cwd=tmp_path, stdin=TEXT)
    back = run("decrypt", "--key", "key", "-", cwd=tmp_path, stdin=sealed.stdout)
    for done in (sealed, back):
        warning = f"warning: the key of key is a text of {len(text)} characters, taken as it is"
        assert warning.encode() in done.stderr
        assert b"horse" not in done.stderr
    assert back.stdout == TEXT
    run("decrypt", "--key-command", f"echo {'00' * 32}", "-", cwd=tmp_path, expect=3)


def test_json_names_no_key(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    document = run_json("encrypt", "--key-command", f"echo {KEY.hex()}", "a", cwd=tmp_path)
    assert KEY.hex() not in str(document)


def test_a_command_that_fails_where_sigchld_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "a").write_bytes(TEXT)
    ignores: Any = {"cwd": tmp_path, "prefix": ("env", "--ignore-signal=CHLD")}
    failing = ("--key-command", "sh -c 'cat key; exit 3'", "a")
    assert b"failed with exit code 3" in run("encrypt", *failing, **ignores, expect=4).stderr
    run("encrypt", "--key-command", "cat key", "a", **ignores)

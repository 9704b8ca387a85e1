# SPDX-License-Identifier: Apache-2.0
"""Files for people on the command line: recipients, identities and passphrases of age and
Crypt4GH. No message shows a secret."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import stat
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from cli_support import COMMAND, names, run, run_json
from format_cases import paint
from warpcipher import formats
from warpcipher.formats import age, crypt4gh

pytest.importorskip("cryptography")
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

ME = age.Identity(bytes(range(32)))
YOU = age.Identity(bytes(range(32, 64)))
READER = crypt4gh.SecretKey(bytes(range(32)))
PLAIN = paint(100_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (
        ("me", f"# public key: {ME.recipient}\n{ME.to_text()}\n"),
        ("you", YOU.to_text()),
        ("reader", READER.to_text()),
        ("key", "00" * 32),
    ):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(content)
    (tmp_path / "team").write_text(f"# the team\n{ME.recipient}\n\n{YOU.recipient}\n")
    (tmp_path / "reader.pub").write_text(READER.public_key.to_text())
    (tmp_path / "f").write_bytes(PLAIN)
    return tmp_path


def test_recipients(folder: Path) -> None:
    both = ("-r", str(ME.recipient), "--recipient", str(YOU.recipient))
    run("encrypt", *both, "f", cwd=folder)
    for who in ("me", "you"):
        run("decrypt", "-i", who, "-o", f"of_{who}", "f.age", cwd=folder)
        assert (folder / f"of_{who}").read_bytes() == PLAIN
    run("encrypt", "-R", "team", "-o", "g.age", "f", cwd=folder)
    run("decrypt", "-i", "you", "-o", "g", "g.age", cwd=folder)
    assert (folder / "g").read_bytes() == PLAIN
    run("encrypt", "-i", "me", "-o", "own.age", "f", cwd=folder)
    run("check", "-i", "you", "-i", "me", "own.age", "g.age", cwd=folder)
    done = run("decrypt", "-i", "you", "-o", "h", "own.age", cwd=folder, expect=3)
    assert b"wrong key: the identity opens nothing; the file is for 1 recipient" in done.stderr
    assert not (folder / "h").exists()
    done = run("encrypt", "-r", os.fsdecode(b"\xff"), "f", cwd=folder, expect=2)
    assert b"-r: " in done.stderr


def test_an_identity_is_a_key_file_too(folder: Path) -> None:
    run("encrypt", "--key", "me", "f", cwd=folder)
    out = run("decrypt", "--key", "me", "-o", "-", "f.age", cwd=folder)
    assert out.stdout == PLAIN
    run("encrypt", "--key", "reader", "f", cwd=folder)
    assert run("decrypt", "--key", "reader", "-o", "-", "f.c4gh", cwd=folder).stdout == PLAIN


def test_post_quantum_keys(folder: Path) -> None:
    run("keygen", "--format", "cobblestone-256", "--pq", "pq", cwd=folder, expect=2)
    recipient = run("keygen", "--format", "age", "--pq", "pq", cwd=folder).stdout.decode().strip()
    comment, public, secret = (folder / "pq").read_text().splitlines()
    assert (comment[:11], public) == ("# created: ", f"# public key: {recipient}")
    assert len(formats.age.HybridRecipient.parse(recipient).public) == 1216
    assert secret == formats.age.HybridIdentity.parse(secret).to_text()
    run("encrypt", "-r", recipient, "f", cwd=folder)
    assert run("decrypt", "-i", "pq", "-o", "-", "f.age", cwd=folder).stdout == PLAIN
    done = run("decrypt", "-i", "me", "-o", "-", "f.age", cwd=folder, expect=3)
    assert b"for 1 recipient" in done.stderr
    done = run("encrypt", "-r", recipient, "-i", "me", "-o", "g", "f", cwd=folder, expect=2)
    assert b"post-quantum" in done.stderr


def test_crypt4gh(folder: Path) -> None:
    run("encrypt", "-R", "reader.pub", "f", cwd=folder)
    done = run("decrypt", "-i", "reader", "-o", "g", "f.c4gh", cwd=folder)
    assert (folder / "g").read_bytes() == PLAIN
    assert b"does not authenticate the order and number of its chunks" in done.stderr
    done = run("decrypt", "-i", "me", "--format", "crypt4gh", "f.c4gh", cwd=folder, expect=2)
    assert b"these are keys of format age, not of crypt4gh" in done.stderr


@pytest.mark.parametrize("armor", [False, True])
def test_streams(folder: Path, armor: bool) -> None:
    options = ("--armor",) if armor else ()
    sealed = run("encrypt", "-i", "me", *options, "-", cwd=folder, stdin=PLAIN).stdout
    assert sealed.isascii() == armor
    assert run("decrypt", "-i", "me", "-", cwd=folder, stdin=sealed).stdout == PLAIN
    identity = (folder / "me").read_bytes()
    (folder / "s.age").write_bytes(sealed)
    done = run("decrypt", "-i", "-", "-o", "-", "s.age", cwd=folder, stdin=identity)
    assert done.stdout == PLAIN


def test_streams_of_crypt4gh(folder: Path) -> None:
    """Through pipes, which cannot be read again: the method is found in the header."""
    plain = PLAIN * 30  # several segments
    sealed = run("encrypt", "-R", "reader.pub", "-", cwd=folder, stdin=plain).stdout
    assert sealed.startswith(b"crypt4gh")
    assert run("decrypt", "-i", "reader", "-", cwd=folder, stdin=sealed).stdout == plain
    cut = run("decrypt", "-i", "reader", "-", cwd=folder, stdin=sealed[:-1], expect=3).stdout
    assert plain.startswith(cut)


def test_passphrases(folder: Path) -> None:
    secret = {**os.environ, "PHRASE": "correct horse"}
    run("encrypt", "--passphrase-env", "PHRASE", "f", cwd=folder, env=secret)
    out = run("decrypt", "--passphrase-env", "PHRASE", "-o", "-", "f.age", cwd=folder, env=secret)
    assert out.stdout == PLAIN
    for content, code in ((b"correct horse\n", 0), (b"correct horse\r\n", 0), (b"wrong", 3)):
        reader, writer = os.pipe()
        os.write(writer, content)
        os.close(writer)
        options = ("--passphrase-fd", str(reader), "f.age")
        done = run("check", *options, cwd=folder, expect=code, pass_fds=(reader,))
        os.close(reader)
        assert b"horse" not in done.stderr
        assert (b"the passphrase is another" in done.stderr) == (code == 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "arguments", [("encrypt", "-p", "f"), ("keygen", "--format", "age", "-p", "new")]
)
def test_signal_at_the_prompt_leaves_the_terminal_as_it_was(
    folder: Path, number: signal.Signals, arguments: tuple[str, ...]
) -> None:
    """The process ended inside of the handler, and the shell showed nothing of what was typed."""
    before = names(folder)
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(number, signal.SIG_DFL)
        os.chdir(folder)
        os.execv(COMMAND[0], [*COMMAND, *arguments])  # noqa: S606
    echo = termios.tcgetattr(terminal)
    shown = b""
    while not shown.endswith(b": "):
        assert select.select([terminal], [], [], 60)[0]
        shown += os.read(terminal, 4096)
    assert not termios.tcgetattr(terminal)[3] & termios.ECHO
    if number == signal.SIGINT:
        os.write(terminal, b"half\x03")  # as Ctrl-C sends it
    else:
        os.kill(child, number)
    with contextlib.suppress(OSError):  # the end of the terminal
        while select.select([terminal], [], [], 60)[0] and (part := os.read(terminal, 4096)):
            shown += part
    # On Linux the master still shows the settings that the last process left.
    assert termios.tcgetattr(terminal) == echo
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == -number
    assert b"warpcipher: interrupted" in shown
    assert b"Traceback" not in shown
    assert names(folder) == before


def ask(folder: Path, answers: list[bytes], *arguments: str) -> tuple[int, bytes]:
    """Runs a command on a terminal of its own, which answers each question."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(COMMAND[0], [*COMMAND, *arguments])  # noqa: S606
    shown = b""
    waiting = list(answers)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 1)
        if not ready:
            continue
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
        if shown.rstrip(b" ").endswith(b":") and waiting:
            os.write(terminal, waiting.pop(0) + b"\n")
            shown += b"\n"
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


def test_a_passphrase_is_asked_for_on_the_terminal(folder: Path) -> None:
    code, shown = ask(folder, [b"battery", b"battery"], "encrypt", "-p", "f")
    assert code == 0, shown
    assert b"Passphrase: " in shown
    assert b"Passphrase again: " in shown
    assert b"battery" not in shown
    code, shown = ask(folder, [b"battery"], "decrypt", "-p", "-o", "g", "f.age")
    assert code == 0, shown
    assert b"again" not in shown
    assert b"battery" not in shown
    assert (folder / "g").read_bytes() == PLAIN
    code, shown = ask(folder, [b"battery", b"staple"], "encrypt", "-p", "-o", "h", "f")
    assert code == 2
    assert b"the two passphrases differ" in shown
    assert not (folder / "h").exists()
    code, shown = ask(folder, [], "encrypt", "-p", "missing")
    assert (code, b"Passphrase" in shown) == (4, False)


@pytest.mark.parametrize("format_name", ["age", "crypt4gh"])
def test_identities_under_a_passphrase(folder: Path, format_name: str) -> None:
    secret = {**os.environ, "PHRASE": "correct horse"}
    phrase = ("--passphrase-env", "PHRASE")
    options = ("--format", format_name, *phrase)
    run("keygen", *options, "locked", cwd=folder, env=secret)
    assert b"SECRET" not in (folder / "locked").read_bytes()
    run("encrypt", "-i", "locked", *phrase, "-o", "sealed", "f", cwd=folder, env=secret)
    out = run("decrypt", "-i", "locked", *phrase, "-o", "-", "sealed", cwd=folder, env=secret)
    assert out.stdout == PLAIN
    code, shown = ask(folder, [b"correct horse"], "decrypt", "-i", "locked", "-o", "g", "sealed")
    assert code == 0, shown
    assert b"Passphrase of locked: " in shown
    assert (folder / "g").read_bytes() == PLAIN
    wrong = {**os.environ, "PHRASE": "wrong"}
    done = run("decrypt", "-i", "locked", *phrase, "sealed", cwd=folder, env=wrong, expect=3)
    assert b"locked: " in done.stderr
    done = run(
        "decrypt",
        "-i",
        "locked",
        "-o",
        "h",
        "sealed",
        cwd=folder,
        expect=2,
        prefix=("setsid", "-w"),
    )
    assert b"no terminal can ask" in done.stderr


@pytest.mark.parametrize("phrase", ["", "correct horse"])
def test_ssh_keys(folder: Path, phrase: str) -> None:
    if phrase:
        pytest.importorskip("bcrypt")
    secret, public = ssh_key(ed25519.Ed25519PrivateKey.generate(), phrase)
    (folder / "id").touch(0o600)
    (folder / "id").write_bytes(secret)
    (folder / "id.pub").write_text(f"{public} me@here\n")
    environment = {**os.environ, "PHRASE": phrase}
    options = ("-i", "id", *(("--passphrase-env", "PHRASE") if phrase else ()))
    run("encrypt", "-r", public, "-R", "team", "f", cwd=folder)
    out = run("decrypt", *options, "-o", "-", "f.age", cwd=folder, env=environment)
    assert out.stdout == PLAIN
    shown = run("keygen", "--public", "id", *options[2:], cwd=folder, env=environment)
    assert shown.stdout.decode() == f"{public}\n"
    if not phrase:  # a key file, too
        run("encrypt", "--key", "id", "-o", "g.age", "f", cwd=folder)
        run("check", "-i", "id", "g.age", cwd=folder)


def ssh_key(key: Any, phrase: str = "") -> tuple[bytes, str]:
    """Secret and public key as ssh-keygen writes them."""
    locked: Any = serialization.NoEncryption()
    if phrase:
        locked = serialization.BestAvailableEncryption(phrase.encode())
    openssh = serialization.Encoding.OpenSSH
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, locked
    )
    public = key.public_key().public_bytes(openssh, serialization.PublicFormat.OpenSSH)
    return secret, public.decode()


def test_an_identity_that_is_not_taken_does_not_stop_the_others(folder: Path) -> None:
    (folder / "ecdsa").touch(0o600)
    (folder / "ecdsa").write_bytes(ssh_key(ec.generate_private_key(ec.SECP256R1()))[0])
    run("encrypt", "-R", "team", "f", cwd=folder)
    out = run("decrypt", "-i", "ecdsa", "-i", "me", "-o", "-", "f.age", cwd=folder)
    assert out.stdout == PLAIN
    for arguments in (
        ("decrypt", "-i", "ecdsa", "-o", "g", "f.age"),
        ("encrypt", "-i", "ecdsa", "-i", "me", "-o", "g", "f"),  # nobody is left out in silence
    ):
        done = run(*arguments, cwd=folder, expect=2)
        assert b"ecdsa: an SSH key of kind ecdsa-sha2-nistp256 is not taken" in done.stderr
        assert not (folder / "g").exists()


def test_public_keys_of_secret_ones(folder: Path) -> None:
    assert run("keygen", "--public", "me", cwd=folder).stdout.decode() == f"{ME.recipient}\n"
    both = (folder / "me").read_bytes() + YOU.to_text().encode()
    out = run("keygen", "--public", "-", cwd=folder, stdin=both).stdout.decode()
    assert out == f"{ME.recipient}\n{YOU.recipient}\n"
    out = run("keygen", "--public", "reader", cwd=folder).stdout.decode()
    assert out == (folder / "reader.pub").read_text()
    made = run_json("keygen", "--public", "me", cwd=folder)
    assert made == {"path": "me", "recipients": [str(ME.recipient)]}


@pytest.mark.parametrize("armor", [(), ("-a",)])
def test_a_file_says_what_opens_it(folder: Path, armor: tuple[str, ...]) -> None:
    run("encrypt", "-R", "team", *armor, "f", cwd=folder)
    wanted = b"f.age is a file of format age"
    opens = b"give an identity, with -i FILE: it is for 2 recipients (X25519: 2)"
    done = run("decrypt", "f.age", cwd=folder, expect=2)
    assert wanted + b": " + opens in done.stderr
    done = run("decrypt", "--key", "key", "f.age", cwd=folder, expect=3)
    assert wanted + b", and the key is one of cobblestone-256: " + opens in done.stderr
    secret = {**os.environ, "PHRASE": "correct horse"}
    phrase = ("--passphrase-env", "PHRASE")
    run("encrypt", *phrase, *armor, "-o", "p.age", "f", cwd=folder, env=secret)
    done = run("decrypt", "--key", "key", "p.age", cwd=folder, expect=3)
    assert b"give its passphrase, with --passphrase" in done.stderr
    code, shown = ask(folder, [b"correct horse"], "decrypt", "-o", "g", "p.age")
    assert code == 0, shown
    assert (folder / "g").read_bytes() == PLAIN


def test_keygen_of_age(folder: Path) -> None:
    out = run("keygen", "--format", "age", "new", cwd=folder)
    text = (folder / "new").read_text()
    (identity,) = age.identities(text)
    assert out.stdout.decode() == f"{identity.recipient}\n"
    assert f"# public key: {identity.recipient}\n" in text
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o600
    made = run_json("keygen", "--format", "age", "other", cwd=folder)
    assert made["recipient"] == str(age.identities((folder / "other").read_text())[0].recipient)
    assert "SECRET" not in str(made)
    run("keygen", "--format", "age", "new", cwd=folder, expect=2)
    assert (folder / "new").read_text() == text


def test_keygen_of_crypt4gh(folder: Path) -> None:
    assert run("keygen", "--format", "crypt4gh", "new", cwd=folder).stdout == b""
    secret = crypt4gh.SecretKey.parse((folder / "new").read_bytes())
    assert crypt4gh.PublicKey.parse((folder / "new.pub").read_bytes()) == secret.public_key
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o600
    (folder / "third.pub").write_text("")
    run("keygen", "--format", "crypt4gh", "third", cwd=folder, expect=2)
    assert not (folder / "third").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("encrypt", "f"), b"give one key, with --key FILE, or age's"),
        (("encrypt", "--key", "key", "-r", str(ME.recipient), "f"), b"give one key"),
        (("encrypt", "-r", "age1qqqq", "f"), b"-r: not a recipient of age: "),
        (("encrypt", "-r", ME.to_text(), "f"), b"an identity was given for a recipient"),
        (("encrypt", "-R", "me", "f"), b"me: line 2: an identity was given for a recipient"),
        (("encrypt", "-R", "reader", "f"), b"a private key of Crypt4GH: expected a public"),
        (("encrypt", "-R", "team", "-R", "reader.pub", "f"), b"do not go together"),
        (("encrypt", "-r", str(ME.recipient), "--passphrase-fd", "0", "f"), b"allows no other"),
        (("encrypt", "--passphrase-env", "NONE", "f"), b"none has the given name of 4 characters"),
        (("encrypt", "--passphrase-env", "EMPTY", "f"), b"the passphrase is empty"),
        (("encrypt", "-p", "--passphrase-env", "EMPTY", "f"), b"give one of --passphrase"),
        (("encrypt", "--passphrase-fd", "-1", "f"), b"number of an open descriptor, got -1"),
        (("encrypt", "--passphrase-fd", "0", "-"), b"both want standard input"),
        (("encrypt", "-i", "me", "--passphrase-fd", "0", "f"), b"no identity is encrypted"),
        (("encrypt", "-i", "me", "--context", "x", "f"), b"format age takes no context"),
        (("encrypt", "--key", "key", "-a", "f"), b"takes no armor: it belongs to format age"),
        (("decrypt", "-r", str(ME.recipient), "f"), b"-r and -R say who can decrypt"),
        (("decrypt", "-a", "-i", "me", "f"), b"--armor is for encrypt"),
        (("decrypt", "-i", "team", "f"), b"line 2: a recipient was given for an identity"),
        (("decrypt", "-i", "reader.pub", "f"), b"a public key of Crypt4GH: expected a pri"),
        (("encrypt", "-r", "team", "f"), b"team is a file: -R reads a file of recipients"),
        (("keygen", "-p", "--format", "age", "me"), b"me exists"),
        (("keygen", "--public", "--force", "me"), b"--public reads FILE"),
        (("keygen", "--public", "team"), b"a recipient was given for an identity"),
        (("encrypt", "-i", "me", "--format", "tink", "f"), b"keys of format age, not of tink"),
        (("encrypt", "-i", "me", "-o", "me", "--force", "f"), b"me is the key file"),
        (("keygen", "--passphrase-fd", "0", "new"), b"encrypts the keys of --format age"),
    ],
)
def test_what_is_refused(folder: Path, arguments: tuple[str, ...], text: bytes) -> None:
    before = names(folder)
    environment = {**os.environ, "EMPTY": ""}
    done = run(*arguments, cwd=folder, expect=2, stdin=b"secret phrase", env=environment)
    assert text in done.stderr
    assert names(folder) == before
    assert (folder / "me").read_text().endswith(f"{ME.to_text()}\n")
    for secret in (ME.to_text()[16:], "secret phrase"):
        assert secret.encode() not in done.stderr + done.stdout


def test_trees_for_people_have_a_manifest(folder: Path) -> None:
    """Its key is wrapped for the same recipients. Crypt4GH has none."""
    (folder / "t").mkdir()
    (folder / "t/x").write_bytes(PLAIN)
    (folder / "t/y").write_bytes(b"y")
    (folder / "t/link").symlink_to("x")
    people = ("-r", str(ME.recipient))
    run("encrypt", *people, "t", "-o", "o", cwd=folder)
    assert names(folder / "o") == {"x.age", "y.age", "MANIFEST.warpcipher"}
    run("check", "-i", "me", "o", cwd=folder)
    run("decrypt", "-i", "me", "o", "-o", "back", cwd=folder)
    assert (folder / "back/x").read_bytes() == PLAIN
    assert (folder / "back/link").readlink() == Path("x")
    run("decrypt", "-i", "me", "-o", "one", "o/x.age", cwd=folder)
    assert (folder / "one").read_bytes() == PLAIN
    for goes_on, text in (((), b"o exists: use --update"), (("--update",), b"add -i FILE of one")):
        done = run("encrypt", *people, *goes_on, "t", "-o", "o", cwd=folder, expect=2)
        assert text in done.stderr
    (folder / "t/y").write_bytes(b"new")
    run("encrypt", *people, "-i", "me", "--update", "t", "-o", "o", cwd=folder)
    run("encrypt", *people, "--force", "t", "-o", "o", cwd=folder)
    run("check", "-i", "me", "o", cwd=folder)
    (folder / "o/y.age").rename(folder / "o/x.age")
    done = run("decrypt", "-i", "me", "o", "-o", "no", cwd=folder, expect=3)
    assert b"exchanged or renamed: x is y" in done.stderr
    done = run("encrypt", "-i", "reader", "t", "-o", "c", cwd=folder, expect=2)
    assert b"format crypt4gh does not bind its blocks to their file" in done.stderr
    assert not (folder / "c").exists()


def test_info(folder: Path) -> None:
    run("encrypt", "-R", "team", "f", cwd=folder)
    (blind,) = run_json("info", "f.age", cwd=folder)["files"]
    (shape,) = blind["candidates"]
    assert (shape["format"], shape["plaintext_size"], blind["certain"]) == ("age", 100_000, False)
    assert "2 recipients (X25519: 2)" in shape["reason"]
    (known,) = run_json("info", "-i", "you", "f.age", cwd=folder)["files"]
    assert known["certain"]
    done = run("info", "-i", "reader", "f.age", cwd=folder, expect=3)
    assert b"a file of format age, and the key is one of crypt4gh" in done.stderr
    run("info", "-i", "me", "--key", "key", "f.age", cwd=folder, expect=2)


@pytest.mark.parametrize("armor", [False, True])
def test_a_key_of_another_format_is_explained(folder: Path, armor: bool) -> None:
    run("encrypt", "-i", "me", *(("-a",) if armor else ()), "f", cwd=folder)
    for key, named in ((("--key", "key"), b"cobblestone-256"), (("-i", "reader"), b"crypt4gh")):
        done = run("decrypt", *key, "-o", "g", "f.age", cwd=folder, expect=3)
        assert b"f.age is a file of format age, and the key is one of " + named in done.stderr
        assert not (folder / "g").exists()


def test_a_key_file_that_others_can_read_gets_a_warning(folder: Path) -> None:
    (folder / "me").chmod(0o644)
    done = run("encrypt", "-i", "me", "f", cwd=folder)
    assert b"key file me is open to others (mode 0644)" in done.stderr
    done = run("encrypt", "-R", "team", "-o", "g", "f", cwd=folder)
    assert done.stderr == b""


def test_damage_leaves_nothing(folder: Path) -> None:
    run("encrypt", "-i", "me", "f", cwd=folder)
    data = bytearray((folder / "f.age").read_bytes())
    data[-5] ^= 1
    (folder / "f.age").write_bytes(data)
    done = run("decrypt", "-i", "me", "-o", "g", "f.age", cwd=folder, expect=3)
    assert b"f.age: chunk 1 failed authentication" in done.stderr
    assert not (folder / "g").exists()
    assert "age" in formats.FORMATS

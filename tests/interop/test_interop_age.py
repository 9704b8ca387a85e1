# SPDX-License-Identifier: Apache-2.0
"""Both ways between warpcipher's age format and its peers: pyrage (Rust) and the command age
(Go)."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import Options, age

pytest.importorskip("cryptography")

CHUNK = 1 << 16
SIZES = sorted(
    {0, 1, 15, 16, 17, 1000}
    | {edge * CHUNK + step for edge in (1, 2, 3, 16, 17) for step in (-1, 0, 1)}
    | {3_000_001}
)
ME = age.Identity.generate()
YOU = age.Identity.generate()

every_size = pytest.mark.parametrize("size", SIZES)
armored = pytest.mark.parametrize("armor", [False, True], ids=["binary", "armor"])


def encrypt(plain: bytes, key: Any, *, armor: bool = False) -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), out, key, options=Options(armor=armor))
    return out.getvalue()


def decrypt(data: bytes, key: Any) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(data), out, key)
    with formats.open(io.BytesIO(data), key) as file:
        assert file.read() == out.getvalue()
    return out.getvalue()


@every_size
@armored
def test_pyrage(size: int, armor: bool) -> None:
    pyrage = pytest.importorskip("pyrage")
    me, you = (pyrage.x25519.Identity.from_str(one.to_text()) for one in (ME, YOU))
    assert str(me.to_public()) == str(ME.recipient)
    plain = paint(size)
    sealed = pyrage.encrypt(plain, [you.to_public(), me.to_public()], armored=armor)
    assert decrypt(sealed, ME) == plain
    ours = encrypt(plain, [ME.recipient, YOU.recipient], armor=armor)
    assert pyrage.decrypt(ours, [you]) == plain
    with pytest.raises(pyrage.DecryptError):
        pyrage.decrypt(ours, [pyrage.x25519.Identity.generate()])


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1])
@armored
def test_passphrases_of_pyrage(size: int, armor: bool) -> None:
    pyrage = pytest.importorskip("pyrage")
    plain = paint(size)
    quick = age.Passphrase("pässword", work_factor=2)
    assert pyrage.passphrase.decrypt(encrypt(plain, quick, armor=armor), "pässword") == plain
    if size == CHUNK + 1 and armor:  # pyrage's own work factor takes a second, there and here
        sealed = pyrage.passphrase.encrypt(plain, "pässword", armored=True)
        assert decrypt(sealed, age.Passphrase("pässword")) == plain


@pytest.fixture
def command(tmp_path: Path) -> Path:
    if shutil.which("age") is None or shutil.which("age-keygen") is None:
        pytest.skip("needs the command age")
    (tmp_path / "id.txt").write_text(f"# a comment\n{ME.to_text()}\n")
    return tmp_path


def run(*arguments: str, folder: Path, stdin: bytes = b"") -> bytes:
    done = subprocess.run(arguments, cwd=folder, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@every_size
@armored
def test_the_command_age(command: Path, size: int, armor: bool) -> None:
    plain = paint(size)
    ours = encrypt(plain, [YOU, ME], armor=armor)
    assert run("age", "-d", "-i", "id.txt", folder=command, stdin=ours) == plain
    options = ("-a",) if armor else ()
    recipients = ("-r", str(YOU.recipient), "-r", str(ME.recipient))
    sealed = run("age", *options, *recipients, folder=command, stdin=plain)
    assert decrypt(sealed, ME) == plain


def test_keys_of_age_keygen(command: Path) -> None:
    text = run("age-keygen", folder=command).decode()
    (identity,) = age.identities(text)
    assert f"# public key: {identity.recipient}" in text
    shown = run("age-keygen", "-y", "id.txt", folder=command)
    assert age.recipients(shown) == [ME.recipient]


HYBRID = age.HybridIdentity(bytes(range(32)))


def test_post_quantum_keys(command: Path) -> None:
    """Of age 1.3 or later. Those of earlier ones refuse them; test_age_vectors.py reads them."""
    (command / "pq.txt").write_text(HYBRID.to_text())
    shown = subprocess.run(["age-keygen", "-y", "pq.txt"], cwd=command, capture_output=True)
    if shown.returncode:
        pytest.skip("needs age 1.3")
    assert age.recipients(shown.stdout) == [HYBRID.recipient]
    made = run("age-keygen", "-pq", folder=command)
    (other,) = age.identities(made)
    assert f"# public key: {other.recipient}" in made.decode()
    for size in (0, 1, CHUNK, CHUNK + 1, 3 * CHUNK):
        plain = paint(size)
        recipients = ("-r", str(other.recipient), "-r", str(HYBRID.recipient))
        assert decrypt(run("age", *recipients, folder=command, stdin=plain), HYBRID) == plain
        sealed = encrypt(plain, [other, HYBRID])
        assert run("age", "-d", "-i", "pq.txt", folder=command, stdin=sealed) == plain


def test_post_quantum_keys_keep_to_themselves() -> None:
    with pytest.raises(ValueError, match="beside one that is not"):
        encrypt(b"x", [HYBRID, ME])
    sealed = encrypt(b"x", str(HYBRID.recipient))
    assert decrypt(sealed, HYBRID.to_text()) == b"x"
    with pytest.raises(InvalidTag, match="mlkem768x25519"):
        decrypt(sealed, ME)
    with pytest.raises(InvalidTag):
        decrypt(sealed, age.HybridIdentity.generate())


@pytest.fixture(params=[("ed25519", ""), ("rsa", ""), ("ed25519", "phrase")], ids=str)
def ssh_key(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A secret key, its public one beside it, and its passphrase."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs the command ssh-keygen")
    kind, phrase = request.param
    if phrase:
        pytest.importorskip("bcrypt")
    options = ("-b", "2048") if kind == "rsa" else ()
    run("ssh-keygen", "-q", "-t", kind, *options, "-N", phrase, "-f", "key", folder=tmp_path)
    return tmp_path / "key", phrase


def test_ssh_keys_of_pyrage(ssh_key: tuple[Path, str]) -> None:
    pyrage = pytest.importorskip("pyrage")
    path, phrase = ssh_key
    public = Path(f"{path}.pub").read_text()
    identities = age.identities(path.read_bytes(), phrase or None)
    sealed = pyrage.encrypt(b"plain", [pyrage.ssh.Recipient.from_str(public)])
    assert decrypt(sealed, identities) == b"plain"
    if not phrase:
        theirs = pyrage.ssh.Identity.from_buffer(path.read_bytes())
        assert pyrage.decrypt(encrypt(b"plain", public), [theirs]) == b"plain"


def test_ssh_keys_of_the_command_age(ssh_key: tuple[Path, str], command: Path) -> None:
    path, phrase = ssh_key
    identities = age.identities(path.read_bytes(), phrase or None)
    sealed = run("age", "-r", str(ME.recipient), "-R", f"{path}.pub", folder=command, stdin=b"x")
    assert decrypt(sealed, identities) == b"x"
    ours = encrypt(b"plain", [ME, *identities])
    if not phrase:  # the command asks for it on a terminal
        assert run("age", "-d", "-i", str(path), folder=command, stdin=ours) == b"plain"
    assert run("age", "-d", "-i", "id.txt", folder=command, stdin=ours) == b"plain"

# SPDX-License-Identifier: Apache-2.0
"""Files of the command, opened by pyca, Tink and openssl, and theirs by the command."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_support import make_key, names, run

PLAIN = os.urandom(1_234_567)
KEY = bytes(range(32))
IV = bytes(range(100, 116))


@pytest.mark.parametrize("bits", [128, 256])
def test_pyca_cobblestone(tmp_path: Path, bits: int) -> None:
    cobblestone = pytest.importorskip("cryptography.cobblestone")
    key = make_key(tmp_path, "key", "--format", f"cobblestone-{bits}").read_bytes()
    sealed = run("encrypt", "--key", "key", "--context", "c", "-", cwd=tmp_path, stdin=PLAIN).stdout
    decryptor = getattr(cobblestone, f"Cobblestone{bits}Decryptor")(key, b"c")
    opened = decryptor.update(sealed)
    assert opened + (decryptor.finalize() or b"") == PLAIN
    encryptor = getattr(cobblestone, f"Cobblestone{bits}Encryptor")(key, b"c")
    theirs = encryptor.update(PLAIN) + encryptor.finalize()
    done = run("decrypt", "--key", "key", "--context", "c", "-", cwd=tmp_path, stdin=theirs)
    assert done.stdout == PLAIN


@pytest.mark.parametrize("template", ["AES256_GCM_HKDF_1MB", "AES128_CTR_HMAC_SHA256_4KB"])
def test_tink(tmp_path: Path, template: str) -> None:
    tink = pytest.importorskip("tink")
    from tink import secret_key_access, streaming_aead

    streaming_aead.register()
    key = make_key(tmp_path, "key", "--format", "tink", "--template", template)
    handle = tink.json_proto_keyset_format.parse(key.read_text(), secret_key_access.TOKEN)
    primitive = handle.primitive(streaming_aead.StreamingAead)
    sealed = run("encrypt", "--key", "key", "--context", "c", "-", cwd=tmp_path, stdin=PLAIN).stdout
    with primitive.new_decrypting_stream(io.BytesIO(sealed), b"c") as stream:
        assert stream.read() == PLAIN
    target = io.BytesIO()
    target.close = lambda: None  # type: ignore[method-assign]
    with primitive.new_encrypting_stream(target, b"c") as stream:
        stream.write(PLAIN)
    done = run(
        *("decrypt", "--key", "key", "--context", "c", "-"), cwd=tmp_path, stdin=target.getvalue()
    )
    assert done.stdout == PLAIN


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("aes-256-ctr", ()),
        ("aes-128-cbc", ()),
        ("aes-192-cbc", ("--no-padding",)),
        ("aes-256-ecb", ()),
        ("aes-256-cfb", ()),
        ("aes-128-ofb", ()),
        ("des-ede3-cbc", ()),
    ],
)
def test_openssl_enc(tmp_path: Path, algorithm: str, options: tuple[str, ...]) -> None:
    size = {"128": 16, "192": 24, "256": 32}.get(algorithm[4:7], 24)
    key, iv = KEY[:size].hex(), IV[: 8 if algorithm.startswith("des") else 16].hex()
    plain = PLAIN[: len(PLAIN) // 16 * 16] if options else PLAIN
    (tmp_path / "a").write_bytes(plain)
    iv_option = () if algorithm.endswith("ecb") else ("--iv-hex", iv)
    command = ("--algorithm", algorithm, "--key-hex", key, *iv_option, *options)
    done = run("raw", "encrypt", *command, "a", cwd=tmp_path)
    assert b"warning: format raw with" in done.stderr
    assert key.encode() not in done.stderr
    theirs = subprocess.run(
        ["openssl", "enc", f"-{algorithm}", "-K", key, "-in", "a"]
        + (["-iv", iv] if iv_option else [])
        + (["-nopad"] if options else []),
        cwd=tmp_path,
        capture_output=True,
        check=True,
    ).stdout
    assert (tmp_path / "a.enc").read_bytes() == theirs
    (tmp_path / "a").unlink()
    run("raw", "decrypt", *command, "a.enc", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == plain


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
@pytest.mark.parametrize("options", [(), ("--digest", "sha512", "--iterations", "3", "-a")])
def test_openssl_enc_with_a_password(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "a").write_bytes(PLAIN)
    environment = {**os.environ, "PHRASE": "correct horse"}
    command = ("--algorithm", "aes-256-cbc", "--passphrase-env", "PHRASE")
    run("raw", "encrypt", *command, *options, "a", cwd=tmp_path, env=environment)
    flags = ["-md", "sha512", "-iter", "3", "-a"] if options else []
    openssl = ["openssl", "enc", "-aes-256-cbc", "-pbkdf2", *flags, "-pass", "env:PHRASE"]
    opened = subprocess.run(
        [*openssl, "-d", "-in", "a.enc"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=True,
    )
    assert opened.stdout == PLAIN
    subprocess.run(
        [*openssl, "-in", "a", "-out", "b.enc"], cwd=tmp_path, env=environment, check=True
    )
    both = ("a.enc", "b.enc", "-o", "back")
    run("raw", "decrypt", *command, *options[:4], *both, cwd=tmp_path, env=environment)
    assert {path.read_bytes() for path in (tmp_path / "back").iterdir()} == {PLAIN}
    done = run(
        *("raw", "decrypt", "--algorithm", "aes-256-ctr", "--key-hex", "00" * 32),
        *("--iv-hex", "00" * 16, "a.enc", "-o", "garbage"),
        cwd=tmp_path,
        expect=3,
    )
    assert b"a.enc: the file begins with Salted__: `openssl enc` made it from" in done.stderr
    assert not (tmp_path / "garbage").exists()
    done = run(
        "raw",
        "decrypt",
        *command,
        "a.enc",
        "-o",
        "x",
        cwd=tmp_path,
        env={**environment, "PHRASE": "x"},
        expect=3,
    )
    assert b"wrong password, cipher, digest or iterations, made without -pbkdf2" in done.stderr


def test_raw_gcm_is_authenticated(tmp_path: Path) -> None:
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "a").write_bytes(PLAIN)
    command = (
        "--algorithm",
        "aes-256-gcm",
        "--key",
        "key",
        "--iv-hex",
        "00" * 12,
    )
    done = run("raw", "encrypt", *command, "--context", "aad", "a", cwd=tmp_path)
    assert done.stderr == b""
    sealed = (tmp_path / "a.enc").read_bytes()
    assert sealed == aead.AESGCM(KEY).encrypt(bytes(12), PLAIN, b"aad")
    (tmp_path / "a").unlink()
    run("raw", "decrypt", *command, "--context", "other", "a.enc", cwd=tmp_path, expect=3)
    assert names(tmp_path) == {"key", "a.enc"}
    run("raw", "decrypt", *command, "--context", "aad", "a.enc", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == PLAIN


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ("--algorithm", "aes-256-ctr", "--key-hex", "00" * 16, "--iv-hex", "00" * 16),
            b"32 bytes",
        ),
        (
            ("--algorithm", "aes-256-ctr", "--key-hex", "00" * 32, "--iv-hex", "00" * 12),
            b"16 bytes",
        ),
        (("--algorithm", "aes-256-ctr", "--key-hex", "00" * 32), b"give it with --iv-hex"),
        (
            (
                *("--algorithm", "aes-256-cbc", "--key-hex", "00" * 32, "--iv-hex", "00" * 16),
                "--no-padding",
            ),
            b"a: 4 bytes are not a multiple of the 16-byte block",
        ),
        (("--algorithm", "aes-256-ecb", "--key-hex", "00" * 32, "--iv-hex", "00" * 16), b"no IV"),
        (
            ("--algorithm", "aes-128-ecb", "--key-hex", "0x" + "5e" * 16),
            b"digits, got 32 hex digits after 0x: leave 0x out",
        ),
        (
            ("--algorithm", "aes-256-ctr", "--key-hex", "5ec2e", "--iv-hex", "00" * 16),
            b"hex digits",
        ),
        (("--algorithm", "aes-256-ctr"), b"give one key: --key FILE, --key-hex HEX, or a password"),
        (("--algorithm", "aes-256-cbc", "-p", "--iv-hex", "00"), b"the IV comes from the password"),
        (("--algorithm", "aes-256-cbc", "--key-hex", "00", "-a"), b"--armor is for a password"),
        (("--algorithm", "aes-256-cbc", "--key-hex", "00", "--digest", "x"), b"--digest is for a"),
        (("--key-hex", "00"), b"Missing option '--algorithm'"),
        (("--algorithm", "aes-257-ctr", "--key-hex", "00" * 32, "--iv-hex", "00" * 16), b"aes-257"),
    ],
)
def test_raw_refuses_what_does_not_fit(
    tmp_path: Path, options: tuple[str, ...], text: bytes
) -> None:
    (tmp_path / "a").write_bytes(b"text")
    done = run("raw", "encrypt", *options, "a", cwd=tmp_path, expect=2)
    assert text in done.stderr
    assert b"5ec2e" not in done.stderr
    assert names(tmp_path) == {"a"}

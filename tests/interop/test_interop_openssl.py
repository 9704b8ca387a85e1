# SPDX-License-Identifier: Apache-2.0
"""Both ways between format raw and `openssl enc -K -iv`, and pyca for what openssl enc refuses."""

from __future__ import annotations

import io
import random
import shutil
import subprocess

import pytest
from format_cases import paint
from warpcipher import formats
from warpcipher.formats import FormatError, Options, raw
from warpcipher.formats import openssl as with_password

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="needs the openssl program")

# warpcipher's names and openssl's; single DES is in OpenSSL 3's legacy provider.
CIPHERS = {
    "aes-128": ("aes-128", 16, 16),
    "aes-192": ("aes-192", 24, 16),
    "aes-256": ("aes-256", 32, 16),
    "des": ("des", 8, 8),
    "des-ede2": ("des-ede", 16, 8),
    "des-ede3": ("des-ede3", 24, 8),
}
MODES = ("ecb", "cbc", "cfb", "cfb8", "ofb", "ctr")
ALGORITHMS = [
    (cipher, mode)
    for cipher in CIPHERS
    for mode in MODES
    # openssl has no DES-CTR, and no CFB8 of two-key triple DES.
    if not (cipher.startswith("des") and mode == "ctr") and (cipher, mode) != ("des-ede2", "cfb8")
]
SIZES = (0, 1, 7, 8, 15, 16, 17, 1000, 4096, 100_003)


def openssl(
    cipher: str, mode: str, key: bytes, iv: bytes | None, data: bytes, *flags: str
) -> bytes:
    command = ["openssl", "enc", f"-{CIPHERS[cipher][0]}-{mode}", "-K", key.hex(), *flags]
    command += ["-iv", iv.hex()] if iv is not None else []
    command += ["-provider", "legacy", "-provider", "default"] if cipher == "des" else []
    result = subprocess.run(command, input=data, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


def material(cipher: str, mode: str) -> tuple[bytes, bytes | None]:
    _, key_size, block = CIPHERS[cipher]
    source = random.Random(cipher + mode)
    key = source.randbytes(key_size)
    return key, None if mode == "ecb" else source.randbytes(block)


def run(stream: object, key: bytes, options: Options, data: bytes) -> bytes:
    out = io.BytesIO()
    stream(io.BytesIO(data), out, key, format="raw", options=options)  # type: ignore[operator]
    return out.getvalue()


@needs_openssl
@pytest.mark.parametrize("piece_size", [48, raw.PIECE_SIZE], ids=["48 B", "full"])
@pytest.mark.parametrize(("cipher", "mode"), ALGORITHMS, ids=lambda name: name)
def test_both_ways(
    cipher: str, mode: str, piece_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw, "PIECE_SIZE", piece_size)
    key, iv = material(cipher, mode)
    options = Options(algorithm=f"{cipher}-{mode}", iv=iv)
    for size in SIZES if piece_size > 48 else SIZES[:-1]:
        plain = paint(size)
        sealed = openssl(cipher, mode, key, iv, plain, "-e")
        assert run(formats.encrypt_stream, key, options, plain) == sealed, size
        assert run(formats.decrypt_stream, key, options, sealed) == plain, size


@needs_openssl
@pytest.mark.parametrize("mode", ["ecb", "cbc"])
@pytest.mark.parametrize("cipher", CIPHERS)
def test_nopad(cipher: str, mode: str) -> None:
    key, iv = material(cipher, mode)
    options = Options(algorithm=f"{cipher}-{mode}", iv=iv, padding="none")
    for size in (0, 16, 1600):
        sealed = openssl(cipher, mode, key, iv, paint(size), "-e", "-nopad")
        assert run(formats.encrypt_stream, key, options, paint(size)) == sealed
        assert run(formats.decrypt_stream, key, options, sealed) == paint(size)


def openssl_password(algorithm: str, data: bytes, *flags: str) -> bytes:
    command = ["openssl", "enc", f"-{algorithm}", "-pass", "pass:correct horse", *flags]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


PASSWORDS = [
    (algorithm, "sha256", 10_000, False)
    for algorithm in ("aes-128-ecb", "aes-192-cbc", "aes-256-ctr", "aes-256-cfb", "aes-128-ofb")
] + [
    ("aes-256-cbc", "sha512", 1, True),
    ("des-ede3-cbc", "md5", 77, False),
    ("chacha20", "sha1", 1000, True),
    ("aes-128-cfb8", "sha384", 5, True),
]


@needs_openssl
@pytest.mark.parametrize(("algorithm", "digest", "iterations", "armor"), PASSWORDS)
def test_passwords_both_ways(algorithm: str, digest: str, iterations: int, armor: bool) -> None:
    key = with_password.Password("correct horse", digest, iterations)
    options = Options(algorithm=algorithm, armor=armor)
    flags = ["-pbkdf2", "-md", digest, "-iter", str(iterations), *(["-a"] if armor else [])]
    for size in (0, 1, 16, 47, 48, 100_003, 1_500_000):
        plain = paint(size)
        sealed = openssl_password(algorithm, plain, "-e", *flags)
        assert run(formats.decrypt_stream, key, Options(algorithm=algorithm), sealed) == plain
        source = io.BytesIO(sealed)
        with formats.open(source, key, format="raw", options=options) as file:
            assert file.raw.size == size
            file.seek(size // 2)
            assert file.read() == plain[size // 2 :]
        ours = run(formats.encrypt_stream, key, options, plain)
        assert (ours[:10] == b"U2FsdGVkX1") is armor
        assert len(ours) == len(sealed)
        assert openssl_password(algorithm, ours, "-d", *flags) == plain


@needs_openssl
def test_passwords_without_pbkdf2_are_refused_where_that_can_be_seen() -> None:
    sealed = openssl_password("aes-256-cbc", paint(5000), "-e")
    key = with_password.Password("correct horse")
    with pytest.raises(FormatError, match="made without -pbkdf2"):
        run(formats.decrypt_stream, key, Options(algorithm="aes-256-cbc"), sealed)
    options = Options(algorithm="aes-256-cbc", iv=bytes(16))
    for data in (sealed, openssl_password("aes-256-ctr", paint(5000), "-e", "-a")):
        with pytest.raises(FormatError, match="begins with Salted__: `openssl enc` made it from a"):
            run(formats.decrypt_stream, bytes(32), options, data)


@needs_openssl
@pytest.mark.parametrize("iv", [b"\xff" * 16, b"\xff" * 15 + b"\xf0"])
def test_the_counter_wraps_as_openssl_wraps_it(iv: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "PIECE_SIZE", 64)
    key = bytes(range(16))
    options = Options(algorithm="aes-128-ctr", iv=iv)
    sealed = openssl("aes-128", "ctr", key, iv, paint(1000), "-e")
    assert run(formats.encrypt_stream, key, options, paint(1000)) == sealed


@pytest.mark.parametrize("bits", [128, 256])
def test_gcm_and_xts_against_pyca(bits: int) -> None:
    ciphers = pytest.importorskip(
        "cryptography.hazmat.primitives.ciphers", reason="needs cryptography"
    )
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    key, iv = bytes(range(bits // 8)), bytes(range(12))
    sealed = aead.AESGCM(key).encrypt(iv, paint(5000), b"aad")
    options = Options(algorithm=f"aes-{bits}-gcm", iv=iv, context=b"aad")
    assert run(formats.encrypt_stream, key, options, paint(5000)) == sealed
    assert run(formats.decrypt_stream, key, options, sealed) == paint(5000)

    key, tweak = bytes(range(bits // 4)), bytes(range(16))
    cipher = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.XTS(tweak)).encryptor()
    sealed = cipher.update(paint(5003)) + cipher.finalize()
    options = Options(algorithm=f"aes-{bits}-xts", iv=tweak)
    assert run(formats.encrypt_stream, key, options, paint(5003)) == sealed
    assert run(formats.decrypt_stream, key, options, sealed) == paint(5003)

# SPDX-License-Identifier: Apache-2.0
"""Keys of Crypt4GH, and the files that hold them.

    -----BEGIN CRYPT4GH [ENCRYPTED] PRIVATE KEY-----
    base64 of "c4gh-v1" | KDF | rounds u32 BE, salt (only with a KDF) | cipher | key [| comment]
    -----END CRYPT4GH [ENCRYPTED] PRIVATE KEY-----

Each part is its length, u16 BE, and its bytes. The KDF is "none", "scrypt" (N = 2^14, r = 8, p = 1)
or "pbkdf2_hmac_sha256"; the cipher is "none" or "chacha20_poly1305": nonce 12 || ciphertext || tag.
A file of a public key has its 32 bytes, and so has one of a bare secret key of htslib's agent. That
agent reads encrypted keys only as ENCRYPTED; the peers in Python, Rust and Go read both labels.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from dataclasses import dataclass, field

import warpcipher as wc

from ..._uncopied import Uncopied
from ...arguments import text_bytes
from .. import curve25519
from ..age import ssh

MAGIC = b"c4gh-v1"
PRIVATE_KIND = "PRIVATE"
PUBLIC_KIND = "PUBLIC"
LONGEST = 1 << 16
"""Bytes of the largest file of a key that is read."""
MOST_ROUNDS = 10_000_000
"""Of PBKDF2 in a file: some seconds."""
SCRYPT_LOG_N = 14
SALT_SIZE = 16
BEGINNING = b"-----BEGIN CRYPT4GH "


@dataclass(frozen=True)
class PublicKey:
    """A reader's public key: files can be encrypted to it. public: 32 bytes."""

    public: bytes

    def __post_init__(self) -> None:
        _check_size(self.public)

    @classmethod
    def parse(cls, data: bytes | str) -> PublicKey:
        """From the content of a file, of Crypt4GH or of ssh-ed25519. Raises ValueError."""
        content = text_bytes("the key", data)
        if content.startswith(b"ssh-"):
            return cls.of_ssh(ssh.SshRecipient.parse(content.decode("utf-8", "replace")))
        return cls(_body(content, PUBLIC_KIND))

    @classmethod
    def of_ssh(cls, key: ssh.SshRecipient) -> PublicKey:
        """The point of an ssh-ed25519 key on Curve25519. Raises ValueError for other kinds."""
        _check_kind(key)
        return cls(key.point())

    def to_text(self) -> str:
        """The content of a file."""
        return _text(PUBLIC_KIND, self.public)


@dataclass(frozen=True)
class SecretKey(Uncopied):
    """A reader's secret key: it opens what was encrypted to its public one. secret: 32 bytes."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_size(self.secret)

    @classmethod
    def generate(cls) -> SecretKey:
        """A fresh one."""
        return cls(os.urandom(curve25519.KEY_SIZE))

    @property
    def public_key(self) -> PublicKey:
        """The public key that files are encrypted to."""
        return PublicKey(curve25519.public_key(self.secret))

    @classmethod
    def parse(cls, data: bytes | str, passphrase: str | bytes | None = None) -> SecretKey:
        """From the content of a file, of Crypt4GH or of ssh-ed25519. passphrase: of one that is
        encrypted with it.

        Raises ValueError, which shows nothing of the key, and InvalidTag for a wrong passphrase.
        """
        content = text_bytes("the key", data)
        if ssh.is_secret_key(content):
            return cls.of_ssh(ssh.SshIdentity.parse(content, passphrase))
        return cls(_opened(_body(content, PRIVATE_KIND), passphrase))

    @classmethod
    def of_ssh(cls, key: ssh.SshIdentity) -> SecretKey:
        """The scalar of an ssh-ed25519 key. Raises ValueError for other kinds."""
        _check_kind(key.recipient)
        return cls(key.key)

    def to_text(self, passphrase: str | bytes | None = None) -> str:
        """The content of a file, encrypted where a passphrase is given: guard it."""
        if passphrase is None:
            return _text(
                PRIVATE_KIND, MAGIC + b"".join(map(_part, (b"none", b"none", self.secret)))
            )
        salt, nonce = os.urandom(SALT_SIZE), os.urandom(curve25519.NONCE_SIZE)
        key = curve25519.scrypt(_bytes(passphrase), salt, SCRYPT_LOG_N)
        sealed = nonce + curve25519.seal(key, nonce, self.secret)
        parts = (b"scrypt", bytes(4) + salt, b"chacha20_poly1305", sealed)
        return _text(f"ENCRYPTED {PRIVATE_KIND}", MAGIC + b"".join(map(_part, parts)))


def is_key(data: bytes) -> bool:
    """Whether this is the content of a file of a key, secret or public."""
    return data.lstrip().startswith(BEGINNING)


def is_secret_key(data: bytes) -> bool:
    """Whether this is the content of a file of a secret key of Crypt4GH."""
    begins = (BEGINNING + kind.encode() for kind in (PRIVATE_KIND, f"ENCRYPTED {PRIVATE_KIND}"))
    return data.lstrip().startswith(tuple(begins))


def is_encrypted(data: bytes) -> bool:
    """Whether a passphrase is needed for a file of a secret key. Raises ValueError."""
    if ssh.is_secret_key(data):
        return ssh.is_encrypted(data)
    body = _body(data, PRIVATE_KIND)
    return not _is_bare(body) and _take(_magicless(body))[0] != b"none"


def _check_kind(key: ssh.SshRecipient) -> None:
    if key.kind != ssh.ED25519:
        raise ValueError(f"format crypt4gh takes SSH keys of kind {ssh.ED25519}, not {key.kind}")


def _check_size(key: bytes) -> None:
    if len(key) != curve25519.KEY_SIZE:
        raise ValueError(f"a key of Crypt4GH has 32 bytes, got {len(key)}")


def _bytes(passphrase: str | bytes) -> bytes:
    data = passphrase.encode() if isinstance(passphrase, str) else passphrase
    if not data:
        raise ValueError("the passphrase is empty")
    return data


def _text(kind: str, data: bytes) -> str:
    body = base64.b64encode(data).decode("ascii")
    return f"-----BEGIN CRYPT4GH {kind} KEY-----\n{body}\n-----END CRYPT4GH {kind} KEY-----\n"


def _body(text: bytes, kind: str) -> bytes:
    if len(text) > LONGEST:
        raise ValueError(f"more than {LONGEST} bytes: that is not a key of Crypt4GH")
    found = re.fullmatch(
        rb"\s*-----BEGIN CRYPT4GH ((?:ENCRYPTED )?([A-Z]+)) KEY-----\s([A-Za-z0-9+/=\s]+)"
        rb"-----END CRYPT4GH \1 KEY-----\s*",
        text,
    )
    if found is None:
        raise ValueError(f"not a key of Crypt4GH: expected -----BEGIN CRYPT4GH {kind} KEY-----")
    if found[2] != kind.encode():
        raise ValueError(
            f"a {found[2].decode().lower()} key of Crypt4GH: expected a {kind.lower()} one"
        )
    try:
        return base64.b64decode(b"".join(found[3].split()), validate=True)
    except binascii.Error:
        raise ValueError("not a key of Crypt4GH: its text is not base64") from None


def _part(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def _take(data: bytes) -> tuple[bytes, bytes]:
    """The first part, and what follows it."""
    end = 2 + int.from_bytes(data[:2], "big")
    if len(data) < 2 or len(data) < end:
        raise ValueError("not a key of Crypt4GH: it ends too early")
    return data[2:end], data[end:]


def _is_bare(data: bytes) -> bool:
    return len(data) == curve25519.KEY_SIZE and not data.startswith(MAGIC)


def _magicless(data: bytes) -> bytes:
    if not data.startswith(MAGIC):
        raise ValueError("not a key of Crypt4GH: it does not begin with c4gh-v1")
    return data[len(MAGIC) :]


def _opened(data: bytes, passphrase: str | bytes | None) -> bytes:
    if _is_bare(data):
        return data
    kdf, rest = _take(_magicless(data))
    options = b""
    if kdf != b"none":
        options, rest = _take(rest)
    cipher, rest = _take(rest)
    sealed, _comment = _take(rest)
    if kdf == cipher == b"none":
        return sealed
    if cipher != b"chacha20_poly1305" or kdf == b"none":
        raise ValueError(f"the key is encrypted by {_shown(cipher)}: chacha20_poly1305 is read")
    if passphrase is None:
        raise ValueError("the key is encrypted with a passphrase: give it")
    key = _derived(kdf, _bytes(passphrase), options)
    nonce = sealed[: curve25519.NONCE_SIZE]
    if len(sealed) < curve25519.NONCE_SIZE + curve25519.TAG_SIZE:
        raise ValueError("not a key of Crypt4GH: it ends too early")
    try:
        return curve25519.unseal(key, nonce, sealed[len(nonce) :])
    except wc.InvalidTag:
        raise wc.InvalidTag(
            "the passphrase does not open the key, or its file is damaged"
        ) from None


def _derived(kdf: bytes, passphrase: bytes, options: bytes) -> bytes:
    rounds, salt = int.from_bytes(options[:4], "big"), options[4:]
    if kdf == b"scrypt":
        return curve25519.scrypt(passphrase, salt, SCRYPT_LOG_N)
    if kdf == b"pbkdf2_hmac_sha256":
        if not 1 <= rounds <= MOST_ROUNDS:
            raise ValueError(f"the key asks for {rounds} rounds of PBKDF2: 1 to {MOST_ROUNDS} are")
        return hashlib.pbkdf2_hmac("sha256", passphrase, salt, rounds, curve25519.KEY_SIZE)
    raise ValueError(
        f"the key's passphrase goes through {_shown(kdf)}: scrypt and pbkdf2_hmac_sha256 are read"
    )


def _shown(name: bytes) -> str:
    return ascii(name[:30].decode("ascii", "replace"))

# SPDX-License-Identifier: Apache-2.0
"""Wrapping of file keys, as in age and Crypt4GH: X25519, scrypt, and ChaCha20-Poly1305 of a
short text. The first two come from pyca/cryptography, which is imported when they are needed."""

from __future__ import annotations

from typing import Any, Final

import warpcipher as wc

from .. import _later

KEY_SIZE = 32
NONCE_SIZE = 12
TAG_SIZE = 16
ALGORITHM: Final = "chacha20-poly1305"

SCRYPT_BLOCK = 8
"""The parameter r: both formats have it."""


def primitives(name: str) -> Any:
    """A module of pyca/cryptography."""
    says = "formats age and crypt4gh need the package cryptography: pip install 'warpcipher[age]'"
    return _later.needed(f"cryptography.hazmat.primitives.{name}", says)


def _x25519() -> Any:
    return primitives("asymmetric.x25519")


def public_key(secret: bytes) -> bytes:
    """The public key of a secret one, both 32 bytes: RFC 7748, section 6.1."""
    key: bytes = (
        _x25519().X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    )
    return key


def exchange(secret: bytes, public: bytes) -> bytes:
    """The shared secret of a secret and a public key, 32 bytes each. ValueError where it is zero:
    the public key is a point of low order, which no honest sender uses."""
    module = _x25519()
    key = module.X25519PrivateKey.from_private_bytes(secret)
    try:
        shared: bytes = key.exchange(module.X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise ValueError("the public key is a point of low order") from None
    return shared


def scrypt(passphrase: bytes, salt: bytes, log_n: int) -> bytes:
    """32 bytes by scrypt (RFC 7914) with N = 2^log_n, r = 8, p = 1: it takes 2^log_n KiB of
    memory. MemoryError without that much."""
    scrypt = primitives("kdf.scrypt").Scrypt
    made = scrypt(salt=salt, length=KEY_SIZE, n=1 << log_n, r=SCRYPT_BLOCK, p=1)
    derived: bytes = made.derive(passphrase)
    return derived


def seal(key: bytes, nonce: bytes, text: bytes) -> bytes:
    """A short text by ChaCha20-Poly1305 without associated data: ciphertext || tag."""
    return wc.aead.ChaCha20Poly1305(key).encrypt(nonce, text, None)


def unseal(key: bytes, nonce: bytes, sealed: bytes) -> bytes:
    """The text that `seal` sealed. Raises InvalidTag."""
    return wc.aead.ChaCha20Poly1305(key).decrypt(nonce, sealed, None)

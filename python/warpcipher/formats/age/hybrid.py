# SPDX-License-Identifier: Apache-2.0
"""Post-quantum keys of age 1.3: ML-KEM-768 and X25519, by HPKE (c2sp.org/age).

-> mlkem768x25519 ENC       ENC: ciphertext of ML-KEM 1088 || fresh public key of X25519 32
body      = HPKE (MLKEM768-X25519, HKDF-SHA-256, ChaCha20-Poly1305), info = INFO, of the file key
recipient = age1pq1...              public key of ML-KEM 1184 || of X25519 32
identity  = AGE-SECRET-KEY-PQ-1...  seed 32; SHAKE256(seed, 96) = seed of ML-KEM 64 || X25519 32
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import _later
from ..._uncopied import Uncopied
from .. import bech32, curve25519
from ..layout import FormatError
from .header import Stanza, decode, encode, require
from .keys import WRAPPED_SIZE, decoded

TYPE = "mlkem768x25519"
INFO = b"age-encryption.org/mlkem768x25519"
ENC_SIZE = 1120
SEED_SIZE = 32
MLKEM_SIZE = 1184
PUBLIC_SIZE = MLKEM_SIZE + curve25519.KEY_SIZE

RECIPIENT_PREFIX = "age1pq"
IDENTITY_PREFIX = "age-secret-key-pq-"


def _hpke() -> Any:
    says = "post-quantum keys of age need cryptography 50 or later: pip install -U cryptography"
    return _later.needed("cryptography.hazmat.primitives.hpke", says)


def _suite() -> Any:
    hpke = _hpke()
    return hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.CHACHA20_POLY1305)


@dataclass(frozen=True)
class HybridRecipient:
    """A post-quantum public key: files can be encrypted to it. public: 1216 bytes."""

    public: bytes

    def __post_init__(self) -> None:
        if len(self.public) != PUBLIC_SIZE:
            raise ValueError(f"a hybrid recipient has 1216 bytes, got {len(self.public)}")

    @classmethod
    def parse(cls, text: str) -> HybridRecipient:
        """From text such as age1pq1... Raises ValueError."""
        expected = "expected age1pq1 and 1952 lower-case characters"
        refusal = "not a post-quantum recipient of age"
        return cls(decoded(text, RECIPIENT_PREFIX, refusal, expected, PUBLIC_SIZE))

    def __str__(self) -> str:
        return bech32.encode(RECIPIENT_PREFIX, self.public)

    def wrap(self, file_key: bytes) -> Stanza:
        """The stanza that gives the file key to the recipient. Raises ValueError for a key that is
        none."""
        hpke = _hpke()
        kem = curve25519.primitives("asymmetric.mlkem").MLKEM768PublicKey
        curve = curve25519.primitives("asymmetric.x25519").X25519PublicKey
        public = hpke.MLKEM768X25519PublicKey(
            kem.from_public_bytes(self.public[:MLKEM_SIZE]),
            curve.from_public_bytes(self.public[MLKEM_SIZE:]),
        )
        sealed = _suite().encrypt(file_key, public, info=INFO)
        return Stanza(TYPE, (encode(sealed[:ENC_SIZE]).decode("ascii"),), sealed[ENC_SIZE:])


@dataclass(frozen=True)
class HybridIdentity(Uncopied):
    """A post-quantum secret key: it opens what was encrypted to its recipient. secret: 32 bytes.

    >>> from warpcipher.formats import age
    >>> identity = age.HybridIdentity.generate()
    >>> str(identity.recipient)[:7]
    'age1pq1'
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != SEED_SIZE:
            raise ValueError(f"a hybrid identity has 32 bytes, got {len(self.secret)}")

    @classmethod
    def generate(cls) -> HybridIdentity:
        """A fresh one."""
        return cls(os.urandom(SEED_SIZE))

    @classmethod
    def parse(cls, text: str) -> HybridIdentity:
        """From text such as AGE-SECRET-KEY-PQ-1... Raises ValueError, which shows nothing of it."""
        expected = "expected AGE-SECRET-KEY-PQ-1 and 58 upper-case characters"
        refusal = "not a post-quantum identity of age"
        return cls(decoded(text, IDENTITY_PREFIX.upper(), refusal, expected, SEED_SIZE))

    def to_text(self) -> str:
        """AGE-SECRET-KEY-PQ-1...: guard it."""
        return bech32.encode(IDENTITY_PREFIX, self.secret).upper()

    def _keys(self) -> tuple[Any, Any]:
        """Of ML-KEM and X25519."""
        seeds = hashlib.shake_256(self.secret).digest(64 + curve25519.KEY_SIZE)
        kem = curve25519.primitives("asymmetric.mlkem").MLKEM768PrivateKey
        curve = curve25519.primitives("asymmetric.x25519").X25519PrivateKey
        return kem.from_seed_bytes(seeds[:64]), curve.from_private_bytes(seeds[64:])

    @property
    def recipient(self) -> HybridRecipient:
        """The public key."""
        _hpke()
        return HybridRecipient(
            b"".join(key.public_key().public_bytes_raw() for key in self._keys())
        )

    def wrap(self, file_key: bytes) -> Stanza:
        """The stanza that gives the file key to this identity."""
        return self.recipient.wrap(file_key)

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        """The file key; None where no stanza is for this identity. Raises FormatError."""
        mine = [stanza for stanza in stanzas if stanza.type == TYPE]
        if not mine:
            return None
        hpke, (kem, curve) = _hpke(), self._keys()
        suite, private = _suite(), hpke.MLKEM768X25519PrivateKey(kem, curve)
        invalid = _later.needed("cryptography.exceptions", "").InvalidTag
        for stanza in mine:
            require(f"{TYPE} has {{}} arguments", len(stanza.arguments), 1)
            enc = decode(stanza.arguments[0].encode("ascii"), f"a share of {TYPE}")
            require(f"a share of {TYPE} has {{}} bytes", len(enc), ENC_SIZE)
            require(f"the body of {TYPE} has {{}} bytes", len(stanza.body), WRAPPED_SIZE)
            try:
                curve25519.exchange(curve.private_bytes_raw(), enc[-curve25519.KEY_SIZE :])
            except ValueError as error:
                raise FormatError(f"malformed header: a share of {TYPE}: {error}") from None
            with contextlib.suppress(invalid):
                file_key: bytes = suite.decrypt(enc + stanza.body, private, info=INFO)
                return file_key
        return None

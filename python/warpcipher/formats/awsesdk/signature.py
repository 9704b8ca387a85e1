# SPDX-License-Identifier: Apache-2.0
"""The signature at the end of a message: ECDSA over all that precedes it, header included.

    footer = length (2) | signature, in DER

Its public key, a compressed point in base64, is in the encryption context. The SDK writes
signatures of one length for each curve, so that the size of a message is known before.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import warpcipher as wc

from ..layout import FormatError
from .header import Suite
from .keys import cryptography

_CURVES = {"P-256": ("SECP256R1", "SHA256", 71), "P-384": ("SECP384R1", "SHA384", 103)}
LONGEST_FOOTER = 2 + 104
"""A signature in DER is longer by one byte for each of its numbers whose first bit is set."""


def footer_size(suite: Suite) -> int:
    """Bytes of a footer as the SDK writes it; 0: there is none."""
    return 2 + _CURVES[suite.curve][2] if suite.curve else 0


def signature_of(footer: bytes) -> bytes:
    """The signature in a footer. Raises FormatError."""
    signature = footer[2:]
    if len(footer) < 2 or int.from_bytes(footer[:2], "big") != len(signature):
        raise FormatError(
            f"the message ends with {len(footer)} bytes that are not its signature: cut or added to"
        )
    return signature


class _Hashed:
    """All that is signed, hashed as it passes."""

    def __init__(self, suite: Suite) -> None:
        self._curve_name, self._hash_name, self._size = _CURVES[suite.curve]
        self._ec = cryptography("primitives.asymmetric.ec")
        self._hash = hashlib.new(self._hash_name)
        self.update = self._hash.update

    def _scheme(self) -> Any:
        utils = cryptography("primitives.asymmetric.utils")
        hashes = cryptography("primitives.hashes")
        return self._ec.ECDSA(utils.Prehashed(getattr(hashes, self._hash_name)()))


class Signer(_Hashed):
    """Signs a message with a fresh key. public_key: for the encryption context."""

    def __init__(self, suite: Suite) -> None:
        super().__init__(suite)
        self._key = self._ec.generate_private_key(getattr(self._ec, self._curve_name)())
        encoding = cryptography("primitives.serialization")
        point = self._key.public_key().public_bytes(
            encoding.Encoding.X962, encoding.PublicFormat.CompressedPoint
        )
        self.public_key = base64.b64encode(point).decode()

    def footer(self) -> bytes:
        """The footer, which follows all that was hashed."""
        digest, signature = self._hash.digest(), b""
        while len(signature) != self._size:  # about half of them have it
            signature = self._key.sign(digest, self._scheme())
        return self._size.to_bytes(2, "big") + signature


class Verifier(_Hashed):
    """Checks the signature of a message. Raises FormatError for a public key that is none."""

    def __init__(self, suite: Suite, public_key: str) -> None:
        super().__init__(suite)
        try:
            self._key = self._ec.EllipticCurvePublicKey.from_encoded_point(
                getattr(self._ec, self._curve_name)(), base64.b64decode(public_key, validate=True)
            )
        except (ValueError, binascii.Error):
            raise FormatError("the encryption context has no public key of the suite") from None

    def check(self, footer: bytes) -> None:
        """Raises InvalidTag unless the footer signs all that was hashed."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature_of(footer), self._hash.digest(), self._scheme())
        except InvalidSignature:
            raise wc.InvalidTag(
                "the signature does not match: the message was changed by one who has its data key"
            ) from None

# SPDX-License-Identifier: Apache-2.0
"""Files that `openssl enc -pbkdf2` makes from a password, for the format raw.

    "Salted__" | salt 8 | bare ciphertext                 with -a: base64 of that, in lines of 64

    key || IV = PBKDF2-HMAC(digest, password, salt, iterations)

Nothing in a file says which cipher, digest and number of iterations it has. Without -pbkdf2 openssl
derives key and IV by EVP_BytesToKey, which is one hash a try: such files are neither read nor
written.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field

from .._uncopied import Uncopied
from .layout import FormatError
from .whole import Reader, read_whole

MAGIC = b"Salted__"
BASE64_MAGIC = b"U2FsdGVkX1"
SALT_SIZE = 8
DIGEST = "sha256"
ITERATIONS = 10_000
DIGESTS = ("sha256", "sha512", "sha384", "sha224", "sha1", "md5")
BLOCK = 1 << 16


@dataclass(frozen=True)
class Password(Uncopied):
    """A password of `openssl enc -pbkdf2`. text: str (UTF-8) or bytes; digest: -md; iterations:
    -iter. The defaults are openssl's, and 10,000 iterations are few: take 600,000 where both sides
    can."""

    text: str | bytes = field(repr=False)
    digest: str = DIGEST
    iterations: int = ITERATIONS

    def __post_init__(self) -> None:
        if not isinstance(self.text, (str, bytes)):
            raise TypeError(f"a password is str or bytes, got {type(self.text).__name__}")
        if not self.text:
            raise ValueError("the password is empty")
        if self.digest not in DIGESTS:
            raise ValueError(f"digest is {self.digest!r}: expected one of {', '.join(DIGESTS)}")
        if not 1 <= self.iterations < 1 << 31:
            raise ValueError(f"iterations is {self.iterations}: expected 1 to 2^31 - 1")

    def derive(self, salt: bytes, size: int) -> bytearray:
        """Key and IV: PBKDF2 of RFC 8018."""
        text = self.text.encode() if isinstance(self.text, str) else self.text
        return bytearray(hashlib.pbkdf2_hmac(self.digest, text, salt, self.iterations, size))


class Base64Reader:
    """The file inside of base64, in lines of any length."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._block = memoryview(bytearray(BLOCK))
        self._text = b""
        self._decoded = memoryview(b"")
        self._at_end = False

    def readinto(self, buffer: memoryview, /) -> int:
        while not self._decoded and not self._at_end:
            self._decode()
        count = min(len(buffer), len(self._decoded))
        buffer[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count

    def _decode(self) -> None:
        count = read_whole(self._reader, self._block)
        self._at_end = count < BLOCK
        text = self._text + b"".join(bytes(self._block[:count]).split())
        # The last four characters may have padding: they wait until all is read.
        whole = len(text) if self._at_end else max(len(text) - 4, 0) // 4 * 4
        part, self._text = text[:whole], text[whole:]
        try:
            if not self._at_end and b"=" in part:
                raise binascii.Error
            self._decoded = memoryview(base64.b64decode(part, validate=True))
        except binascii.Error:
            raise FormatError(
                "the base64 is malformed: it was cut, goes on after its padding, or has characters "
                "that are not base64"
            ) from None

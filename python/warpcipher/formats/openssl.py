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
from collections.abc import Iterator
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


def decoded(reader: Reader) -> Iterator[bytes]:
    """The file inside of base64 in lines of any length, in parts. Raises FormatError."""
    block = memoryview(bytearray(BLOCK))
    text, at_end = b"", False
    while not at_end:
        count = read_whole(reader, block)
        at_end = count < BLOCK
        text += b"".join(bytes(block[:count]).split())
        # The last four characters may have padding: they wait until all is read.
        whole = len(text) if at_end else max(len(text) - 4, 0) // 4 * 4
        part, text = text[:whole], text[whole:]
        try:
            if not at_end and b"=" in part:
                raise binascii.Error
            yield base64.b64decode(part, validate=True)
        except binascii.Error:
            raise FormatError(
                "the base64 is malformed: it was cut, continues after its padding, or has "
                "characters that are not base64"
            ) from None

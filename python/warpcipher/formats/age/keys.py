# SPDX-License-Identifier: Apache-2.0
"""Who an age file is for, and who opens it: X25519 keys and passphrases. ssh.py has SSH keys.

X25519   -> X25519 SHARE         SHARE: the public key of a fresh secret one
         wrap key = HKDF-SHA-256(ikm = X25519(secret, recipient), salt = SHARE || recipient,
                                 info = "age-encryption.org/v1/X25519")
scrypt   -> scrypt SALT LOG_N    by itself in its header
         wrap key = scrypt(passphrase, "age-encryption.org/v1/scrypt" || SALT, N = 2^LOG_N)

body     = ChaCha20-Poly1305(wrap key, nonce = 0, file key), 32 bytes
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import warpcipher as wc

from ..._errors import explained
from ..._uncopied import Uncopied
from ...arguments import require_text
from .. import bech32, curve25519
from ..layout import FormatError
from .header import Stanza, decode, encode, recipients_text, require

FILE_KEY_SIZE = 16
WRAPPED_SIZE = FILE_KEY_SIZE + curve25519.TAG_SIZE
SALT_SIZE = 16
ZERO_NONCE = bytes(curve25519.NONCE_SIZE)

RECIPIENT_PREFIX = "age"
IDENTITY_PREFIX = "age-secret-key-"

WORK_FACTOR = 18
"""Of what is written, as age itself does: 256 MiB and about a second."""
MOST_WORK = 22
"""Of what is read, as age itself does: 4 GiB."""

_NOT_TAKEN = "is not taken: X25519, post-quantum and SSH keys and passphrases are"

# The beginnings of keys of other kinds, and what they are. Bech32 has no 1 in its data, so that no
# X25519 recipient begins like one of these by chance.
_OTHER_RECIPIENTS = (
    ("age1tag1", "a recipient of a hardware token"),
    ("age1tagpq1", "a recipient of a hardware token"),
    ("github:", "a user of GitHub"),
)
_OTHER_IDENTITIES = (("AGE-PLUGIN-", "an identity of a plugin of age"),)


def _refuse_others(text: str) -> None:
    if text.startswith(("age1pq1", "AGE-SECRET-KEY-PQ-1")):
        raise ValueError(
            "a post-quantum key was given for one of X25519: HybridRecipient and HybridIdentity "
            "read it"
        )
    for beginning, what in (*_OTHER_RECIPIENTS, *_OTHER_IDENTITIES):
        if text.startswith(beginning):
            raise ValueError(f"{what} {_NOT_TAKEN}")
    if re.match(r"age1[a-z0-9]+1", text):
        raise ValueError(f"a recipient of a plugin of age {_NOT_TAKEN}")
    if text.startswith(("ssh-", "ecdsa-", "sk-")):
        raise ValueError("an SSH public key was given for a key of age")


def decoded(
    text: str, prefix: str, refusal: str, expected: str, size: int = curve25519.KEY_SIZE
) -> bytes:
    """The bytes of a key's text, which is in the case of its prefix. Raises ValueError."""
    found, data = "", b""
    if require_text("the key", text).startswith(f"{prefix}1"):
        with explained(refusal):
            found, data = bech32.decode(text)
    if found != prefix.lower() or len(data) != size:
        raise ValueError(f"{refusal}: {expected}")
    return data


def take(stanza: Stanza, key: bytes) -> bytes | None:
    """The file key in a stanza's body; None where the key does not open it."""
    require(f"the body of {stanza.type} has {{}} bytes", len(stanza.body), WRAPPED_SIZE)
    try:
        return curve25519.unseal(key, ZERO_NONCE, stanza.body)
    except wc.InvalidTag:
        return None


@dataclass(frozen=True)
class Recipient:
    """A public key: files can be encrypted to it. public: 32 bytes."""

    public: bytes

    def __post_init__(self) -> None:
        if len(self.public) != curve25519.KEY_SIZE:
            raise ValueError(f"a recipient has 32 bytes, got {len(self.public)}")

    @classmethod
    def parse(cls, text: str) -> Recipient:
        """From text such as age1... Raises ValueError."""
        if require_text("the key", text).upper().startswith(IDENTITY_PREFIX.upper()):
            raise ValueError(
                "an identity was given for a recipient: it is secret; -i takes it, and "
                "`warpcipher keygen --public FILE` prints its recipient, age1..."
            )
        _refuse_others(text)
        expected = "expected age1 and 58 lower-case characters"
        return cls(decoded(text, RECIPIENT_PREFIX, "not a recipient of age", expected))

    def __str__(self) -> str:
        return bech32.encode(RECIPIENT_PREFIX, self.public)

    def wrap(self, file_key: bytes) -> Stanza:
        """The stanza that gives the file key to the recipient."""
        secret = os.urandom(curve25519.KEY_SIZE)
        share = curve25519.public_key(secret)
        shared = curve25519.exchange(secret, self.public)
        body = curve25519.seal(_x25519_key(shared, share, self.public), ZERO_NONCE, file_key)
        return Stanza("X25519", (encode(share).decode("ascii"),), body)


def _x25519_key(shared: bytes, share: bytes, recipient: bytes) -> bytes:
    info = b"age-encryption.org/v1/X25519"
    return wc._native.hkdf("sha256", shared, share + recipient, info, curve25519.KEY_SIZE)


@dataclass(frozen=True)
class Identity(Uncopied):
    """A secret key: it opens what was encrypted to its recipient. secret: 32 bytes."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != curve25519.KEY_SIZE:
            raise ValueError(f"an identity has 32 bytes, got {len(self.secret)}")

    @classmethod
    def generate(cls) -> Identity:
        """A fresh one."""
        return cls(os.urandom(curve25519.KEY_SIZE))

    @classmethod
    def parse(cls, text: str) -> Identity:
        """From text such as AGE-SECRET-KEY-1... Raises ValueError, which shows nothing of it."""
        if require_text("the key", text).startswith("age1"):
            raise ValueError("a recipient was given for an identity: public, it opens nothing")
        _refuse_others(text)
        expected = "expected AGE-SECRET-KEY-1 and 58 upper-case characters"
        return cls(decoded(text, IDENTITY_PREFIX.upper(), "not an identity of age", expected))

    def to_text(self) -> str:
        """AGE-SECRET-KEY-1...: guard it."""
        return bech32.encode(IDENTITY_PREFIX, self.secret).upper()

    @property
    def recipient(self) -> Recipient:
        """The public key."""
        return Recipient(curve25519.public_key(self.secret))

    def wrap(self, file_key: bytes) -> Stanza:
        """The stanza that gives the file key to this identity."""
        return self.recipient.wrap(file_key)

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        """The file key; None where no stanza is for this identity. Raises FormatError."""
        mine = [stanza for stanza in stanzas if stanza.type == "X25519"]
        public = curve25519.public_key(self.secret) if mine else b""
        for stanza in mine:
            require("X25519 has {} arguments", len(stanza.arguments), 1)
            share = decode(stanza.arguments[0].encode("ascii"), "a share of X25519")
            require("a share of X25519 has {} bytes", len(share), curve25519.KEY_SIZE)
            with explained("malformed header: a share of X25519", FormatError):
                shared = curve25519.exchange(self.secret, share)
            file_key = take(stanza, _x25519_key(shared, share, public))
            if file_key is not None:
                return file_key
        return None


@dataclass(frozen=True)
class Passphrase(Uncopied):
    """A passphrase: encrypts and opens. text: str (UTF-8) or bytes.

    work_factor: of what is encrypted: 2^work_factor KiB of memory, 18 by default.
    most_work:   of what is read: a file that asks for more is refused.
    """

    text: str | bytes = field(repr=False)
    work_factor: int = WORK_FACTOR
    most_work: int = MOST_WORK

    def __post_init__(self) -> None:
        if not isinstance(self.text, (str, bytes)):
            raise TypeError(f"a passphrase is str or bytes, got {type(self.text).__name__}")
        if not self.text:
            raise ValueError("the passphrase is empty")
        if not 1 <= self.work_factor <= self.most_work:
            raise ValueError(
                f"work_factor is {self.work_factor}, expected 1 to most_work, {self.most_work}"
            )

    def _key(self, salt: bytes, log_n: int) -> bytes:
        text = self.text if isinstance(self.text, bytes) else self.text.encode()
        return curve25519.scrypt(text, b"age-encryption.org/v1/scrypt" + salt, log_n)

    def wrap(self, file_key: bytes) -> Stanza:
        """The stanza that gives the file key to who knows the passphrase."""
        salt = os.urandom(SALT_SIZE)
        body = curve25519.seal(self._key(salt, self.work_factor), ZERO_NONCE, file_key)
        return Stanza("scrypt", (encode(salt).decode("ascii"), str(self.work_factor)), body)

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        """The file key; None where the passphrase is another, or the file has none. Raises
        FormatError."""
        for stanza in stanzas:
            if stanza.type == "scrypt":
                return self._unwrap(stanza)
        return None

    def _unwrap(self, stanza: Stanza) -> bytes | None:
        require("scrypt has {} arguments", len(stanza.arguments), 2)
        salt = decode(stanza.arguments[0].encode("ascii"), "the salt of scrypt")
        require("the salt of scrypt has {} bytes", len(salt), SALT_SIZE)
        if not re.fullmatch(r"[1-9][0-9]{0,2}", stanza.arguments[1]):
            raise FormatError("malformed header: scrypt's work factor is not a number from 1 on")
        log_n = int(stanza.arguments[1])
        if log_n > self.most_work:
            raise FormatError(
                f"the work factor of scrypt is {log_n}, and at most {self.most_work} is taken: "
                f"the file asks for 2^{log_n} KiB of memory"
            )
        return take(stanza, self._key(salt, log_n))


@dataclass(frozen=True)
class OtherIdentity:
    """An identity of a kind that is not taken: it opens nothing, and those beside it do.

    reason: what it is, and what is taken.
    """

    reason: str

    @classmethod
    def find(cls, text: str) -> OtherIdentity | None:
        """The one that a line of a file of identities is; None for any other line."""
        for beginning, what in _OTHER_IDENTITIES:
            if text.startswith(beginning):
                return cls(f"{what} {_NOT_TAKEN}")
        return None

    def wrap(self, file_key: bytes) -> NoReturn:
        """Raises ValueError: a file that left it out would not be for all who were named."""
        raise ValueError(self.reason)

    def unwrap(self, stanzas: Sequence[Stanza]) -> None:
        """None: it opens nothing."""


class Opener(Protocol):
    """An identity or a passphrase."""

    def unwrap(self, stanzas: Sequence[Stanza], /) -> bytes | None:
        """The file key; None where no stanza is for it. Raises FormatError."""


Identities = Sequence[Opener]


def unwrap(stanzas: Sequence[Stanza], identities: Identities) -> bytes:
    """The file key. Raises FormatError for a header that no age file has, InvalidTag where none of
    the identities opens it, ValueError where none is of a kind that is taken."""
    others = [one for one in identities if isinstance(one, OtherIdentity)]
    if len(others) == len(identities):
        raise ValueError(others[0].reason)
    kinds = [stanza.type for stanza in stanzas]
    if "scrypt" in kinds and len(kinds) > 1:
        raise FormatError("malformed header: a passphrase (scrypt) allows no other recipient")
    for identity in identities:
        file_key = identity.unwrap(stanzas)
        if file_key is not None:
            return file_key
    raise wc.InvalidTag(_refusal(stanzas, identities))


def _refusal(stanzas: Sequence[Stanza], identities: Identities) -> str:
    """Why nothing that was given opens the file."""
    others = {one.reason for one in identities if isinstance(one, OtherIdentity)}
    phrases = [one for one in identities if isinstance(one, Passphrase)]
    count = sum(not isinstance(one, (OtherIdentity, Passphrase)) for one in identities)
    if any(stanza.type == "scrypt" for stanza in stanzas):
        if not phrases:
            return "the file was encrypted with a passphrase: give it"
        return "wrong key: the passphrase is another, or the header is damaged"
    if not count:
        return f"the file has no passphrase, it is for {recipients_text(stanzas)}: give an identity"
    given = "the identity opens" if count == 1 else f"the {count} identities open"
    left_out = "".join(f"; {reason}" for reason in sorted(others))
    return (
        f"wrong key: {given} nothing; the file is for {recipients_text(stanzas)}, or its header is "
        f"damaged{left_out}"
    )

# SPDX-License-Identifier: Apache-2.0
"""The header of a message of the AWS Encryption SDK. Numbers are big-endian, in brackets bytes.

    version 1: 01 | type (1) 80 | suite (2) | message id (16) | context | keys
               | content (1) | 0 (4) | IV length (1) 12 | frame length (4) || IV (12) | tag (16)
    version 2: 02 | suite (2) | message id (32) | context | keys
               | content (1) | frame length (4) | commitment (32) || tag (16)

    context = length (2) | pairs (2) | each of key and value: length (2), UTF-8; empty: length 0
    keys    = number (2) | each: provider, information, encrypted data key: length (2), bytes
    content = 1: one block, frame length 0; 2: frames

The tag is AES-GCM's of no text, under the key of the content, with all before || as associated
data, and after that the pairs of the encryption context that are required and not stored. Version 2
belongs to suites whose key is committed to:

    content key = HKDF-SHA-512(data key, salt = message id, info = suite || "DERIVEKEY")
    commitment  = HKDF-SHA-512(data key, salt = message id, info = "COMMITKEY"), 32 bytes
    others      = HKDF(data key, no salt, info = suite || message id), or the data key itself
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import warpcipher as wc

from ..layout import FormatError

IV_SIZE = 12
TAG_SIZE = 16
LONGEST = 1 << 20
"""Bytes of the largest header that is read or written."""
MOST_KEYS = 256
"""Encrypted data keys of a message: each may be a call of a KMS."""
LONGEST_FRAME = (1 << 32) - 1
LONGEST_FIELD = (1 << 16) - 1
COMMITMENT_SIZE = 32
TYPE = 0x80
BLOCK, FRAMED = 1, 2
PUBLIC_KEY = "aws-crypto-public-key"
RESERVED = "aws-crypto-"


@dataclass(frozen=True)
class Suite:
    """number: as in a message. key_size: bytes of data key and content key. kdf: the hash of HKDF;
    "": there is none. curve: of the signature, "P-256" or "P-384"; "": there is none."""

    number: int
    name: str
    key_size: int
    kdf: str
    curve: str

    @property
    def commits(self) -> bool:
        """Whether the header commits to the data key."""
        return self.number >= 0x0400

    @property
    def id(self) -> bytes:
        return self.number.to_bytes(2, "big")


def _suite(number: int, bits: int, kdf: str = "", curve: str = "", commit: str = "") -> Suite:
    parts = [f"AES_{bits}_GCM" + ("" if commit else "_IV12_TAG16")]
    if kdf:
        parts.append(f"HKDF_{kdf}")
    if commit:
        parts.append(commit)
    if curve:
        parts.append(f"ECDSA_{curve}")
    name, short = "_".join(parts), kdf.replace("SHA", "sha")
    return Suite(number, name, bits // 8, short, curve.replace("P", "P-"))


SUITES = {
    suite.number: suite
    for suite in (
        _suite(0x0014, 128),
        _suite(0x0046, 192),
        _suite(0x0078, 256),
        _suite(0x0114, 128, "SHA256"),
        _suite(0x0146, 192, "SHA256"),
        _suite(0x0178, 256, "SHA256"),
        _suite(0x0214, 128, "SHA256", "P256"),
        _suite(0x0346, 192, "SHA384", "P384"),
        _suite(0x0378, 256, "SHA384", "P384"),
        _suite(0x0478, 256, "SHA512", "", "COMMIT_KEY"),
        _suite(0x0578, 256, "SHA512", "P384", "COMMIT_KEY"),
    )
}
DEFAULT = SUITES[0x0578]


def suite_of(name: str | None) -> Suite | None:
    """The suite of that name or number in hex digits; None: for None. Raises ValueError."""
    if name is None:
        return None
    for suite in SUITES.values():
        if name.upper() == suite.name or name.lower() == f"0x{suite.number:04x}":
            return suite
    names = ", ".join(f"0x{suite.number:04x} ({suite.name})" for suite in SUITES.values())
    raise ValueError(f"algorithm is {name!r}: a message has one of {names}")


class EncryptedKey:
    """A data key, encrypted. provider, info: say by which key, as the SDK does."""

    def __init__(self, provider: bytes, info: bytes, sealed: bytes) -> None:
        self.provider, self.info, self.sealed = provider, info, sealed

    def to_bytes(self) -> bytes:
        return b"".join(map(_field, (self.provider, self.info, self.sealed)))


def _field(data: bytes) -> bytes:
    if len(data) > LONGEST_FIELD:
        raise ValueError(f"a field of {len(data)} bytes: a header has {LONGEST_FIELD} at most")
    return len(data).to_bytes(2, "big") + data


def check_context(context: object) -> None:
    """Raises TypeError and ValueError unless these are pairs of text that a caller may give."""
    if not isinstance(context, Mapping):
        raise TypeError(f"encryption_context is {type(context).__name__}: expected a dict of text")
    for pair in context.items():
        if not all(isinstance(text, str) for text in pair):
            raise TypeError("encryption_context has a key or value that is not text")
        if pair[0].startswith(RESERVED):
            raise ValueError(f"encryption_context has {pair[0]!r}: {RESERVED} is reserved")
    context_bytes(context)


def context_bytes(context: Mapping[str, str]) -> bytes:
    """The pairs as the header and the keys have them, in order of the keys; b"" for none."""
    if not context:
        return b""
    pairs = sorted((key.encode(), value.encode()) for key, value in context.items())
    found = len(pairs).to_bytes(2, "big") + b"".join(_field(k) + _field(v) for k, v in pairs)
    _field(found)
    return found


@dataclass(frozen=True)
class Header:
    """body: the bytes that are authenticated. size: of the header with its tag. frame_length: 0 of
    one block. commitment: b"" without one."""

    suite: Suite
    message_id: bytes
    context: dict[str, str]
    keys: tuple[EncryptedKey, ...]
    frame_length: int
    commitment: bytes
    body: bytes
    iv: bytes
    tag: bytes
    size: int

    def check_commitment(self, data_key: bytearray) -> None:
        """Raises InvalidTag unless this is the data key that the header commits to."""
        if self.suite.commits and not hmac.compare_digest(
            self.commitment, commitment(data_key, self.message_id)
        ):
            raise wc.InvalidTag(
                "the header's key commitment does not match its data key: a damaged header, or one "
                "made to be opened by several keys"
            )

    def check(self, content_key: bytearray, required: Mapping[str, str]) -> None:
        """Raises InvalidTag unless the header is authentic. required: pairs of the encryption
        context that it does not store."""
        tag = _tag(content_key, self.iv, self.body + context_bytes(required))
        if not hmac.compare_digest(self.tag, tag):
            raise wc.InvalidTag("the header failed authentication: it is damaged, or was changed")


def _tag(key: bytearray, iv: bytes, body: bytes) -> bytes:
    return wc.aead.AESGCM(key).encrypt(iv, b"", body)


def commitment(data_key: bytearray, message_id: bytes) -> bytes:
    """The commitment to the data key, for a header."""
    return bytes(wc._native.hkdf("sha512", data_key, message_id, b"COMMITKEY", COMMITMENT_SIZE))


def content_key(suite: Suite, data_key: bytearray, message_id: bytes) -> bytearray:
    """The key of header and content."""
    if not suite.kdf:
        return bytearray(data_key)
    if suite.commits:
        salt, info = message_id, suite.id + b"DERIVEKEY"
    else:
        salt, info = b"", suite.id + message_id
    return bytearray(wc._native.hkdf(suite.kdf, data_key, salt, info, suite.key_size))


def build(
    suite: Suite,
    message_id: bytes,
    context: Mapping[str, str],
    keys: Sequence[EncryptedKey],
    frame_length: int,
    committed: bytes,
) -> bytes:
    """The body of a header. ValueError for more than a header holds."""
    if not 1 <= len(keys) <= MOST_KEYS:
        raise ValueError(f"format awsesdk takes 1 to {MOST_KEYS} keys, got {len(keys)}")
    begin = b"\2" if suite.commits else bytes([1, TYPE])
    middle = b"" if suite.commits else bytes([0, 0, 0, 0, IV_SIZE])
    parts = (
        begin + suite.id + message_id + _field(context_bytes(context)),
        len(keys).to_bytes(2, "big") + b"".join(key.to_bytes() for key in keys),
        bytes([FRAMED if frame_length else BLOCK])
        + middle
        + frame_length.to_bytes(4, "big")
        + committed,
    )
    body = b"".join(parts)
    if len(body) > LONGEST - IV_SIZE - TAG_SIZE:
        raise ValueError(f"a header of {len(body)} bytes: {LONGEST} at most")
    return body


def sealed(suite: Suite, key: bytearray, body: bytes, required: Mapping[str, str]) -> bytes:
    """The whole header. required: as of `Header.check`."""
    iv = bytes(IV_SIZE)
    tag = _tag(key, iv, body + context_bytes(required))
    return body + (b"" if suite.commits else iv) + tag


class TruncatedError(FormatError):
    """The bytes end in the header. wanted: so many are needed to continue."""

    def __init__(self, wanted: int) -> None:
        super().__init__("truncated: the file ends in its header")
        self.wanted = wanted


class _Cursor:
    """Takes the fields of a header one after another."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > LONGEST:
            raise FormatError(f"the header is longer than {LONGEST} bytes")
        if end > len(self.data):
            raise TruncatedError(end)
        self.at = end
        return self.data[end - size : end]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def field(self) -> bytes:
        return self.take(self.number(2))


def parse(data: bytes) -> Header:
    """The header that a file begins with. FormatError; TruncatedError where more is needed."""
    cursor = _Cursor(data)
    version = cursor.number(1)
    if version not in (1, 2):
        raise FormatError(f"not a message of the AWS Encryption SDK: version {version}, not 1 or 2")
    if version == 1:
        _expect("type", cursor.number(1), TYPE)
    number = cursor.number(2)
    suite = SUITES.get(number)
    if suite is None or suite.commits != (version == 2):
        raise FormatError(f"version {version} of a message has no algorithm suite 0x{number:04x}")
    message_id = cursor.take(32 if suite.commits else 16)
    context = _context(cursor.field())
    count = cursor.number(2)
    if not 1 <= count <= MOST_KEYS:
        raise FormatError(f"the header has {count} encrypted data keys, expected 1 to {MOST_KEYS}")
    keys = tuple(EncryptedKey(cursor.field(), cursor.field(), cursor.field()) for _ in range(count))
    content = cursor.number(1)
    if content not in (BLOCK, FRAMED):
        raise FormatError(f"the header says content type {content}, expected 1 or 2")
    if version == 1:
        _expect("reserved field", cursor.number(4), 0)
        _expect("IV length", cursor.number(1), IV_SIZE)
    frame_length = cursor.number(4)
    if (frame_length == 0) != (content == BLOCK):
        raise FormatError(f"the header says content type {content} and frames of {frame_length}")
    committed = cursor.take(COMMITMENT_SIZE) if suite.commits else b""
    body = data[: cursor.at]
    iv = bytes(IV_SIZE) if suite.commits else cursor.take(IV_SIZE)
    tag = cursor.take(TAG_SIZE)
    if (PUBLIC_KEY in context) != bool(suite.curve):
        raise FormatError(
            f"suite 0x{number:04x} {'wants' if suite.curve else 'has no'} signature, and the "
            f"encryption context has {'no' if suite.curve else 'a'} public key of one"
        )
    return Header(
        suite, message_id, context, keys, frame_length, committed, body, iv, tag, cursor.at
    )


def _expect(what: str, got: int, expected: int) -> None:
    if got != expected:
        raise FormatError(f"the header's {what} is {got}, expected {expected}")


def _context(data: bytes) -> dict[str, str]:
    if not data:
        return {}
    cursor = _Cursor(data)
    pairs: dict[str, str] = {}
    try:
        count = cursor.number(2)
        for _ in range(count):
            key, value = cursor.field().decode(), cursor.field().decode()
            pairs[key] = value
    except UnicodeDecodeError:
        raise FormatError("the encryption context is not UTF-8") from None
    except TruncatedError:
        raise FormatError("the encryption context is longer than its length says") from None
    if cursor.at != len(data) or len(pairs) != count or not count:
        raise FormatError("the encryption context does not have the length and pairs that it says")
    return pairs

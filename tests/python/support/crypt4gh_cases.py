# SPDX-License-Identifier: Apache-2.0
"""Files of Crypt4GH of any content: packets, edit lists, segments under several keys."""

from __future__ import annotations

import hashlib
import os
import struct

from warpcipher.formats import crypt4gh, curve25519

ME = crypt4gh.SecretKey(bytes(range(32)))
SEGMENT = 1 << 16


def packet(text: bytes, reader: crypt4gh.SecretKey = ME) -> bytes:
    """A packet of any content."""
    secret = os.urandom(32)
    writer, public = curve25519.public_key(secret), reader.public_key.public
    shared = curve25519.exchange(secret, public)
    key = hashlib.blake2b(shared + public + writer).digest()[:32]
    sealed = bytes(12) + curve25519.seal(key, bytes(12), text)
    length = 8 + len(writer) + len(sealed)
    return length.to_bytes(4, "little") + bytes(4) + writer + sealed


def head(*packets: bytes, version: int = 1, count: int | None = None) -> bytes:
    number = len(packets) if count is None else count
    return (
        b"crypt4gh"
        + version.to_bytes(4, "little")
        + number.to_bytes(4, "little")
        + b"".join(packets)
    )


DATA_KEY = bytes(8) + bytes(range(32))


def edit_list(*lengths: int) -> bytes:
    return struct.pack(f"<II{len(lengths)}Q", 1, len(lengths), *lengths)


def segments(plain: bytes, *secrets: bytes) -> bytes:
    """Each under the next of these data keys, from the first on again."""
    out = b""
    for place, at in enumerate(range(0, len(plain), SEGMENT)):
        nonce = os.urandom(12)
        secret = secrets[place % len(secrets)]
        out += nonce + curve25519.seal(secret, nonce, plain[at : at + SEGMENT])
    return out


def edited(plain: bytes, lengths: tuple[int, ...]) -> bytes:
    """Applies an edit list, by the words of the specification."""
    out, at = b"", 0
    for place, length in enumerate(lengths):
        out += plain[at : at + length] if place % 2 else b""
        at += length
    return out + plain[at:] if len(lengths) % 2 else out

# SPDX-License-Identifier: Apache-2.0
"""The header of a Crypt4GH file, version 1 (GA4GH, crypt4gh.pdf, section 2).

    "crypt4gh" | version 1, u32 LE | number of packets, u32 LE | packet ...

    packet  = length of all of it, u32 LE | method 0, u32 LE | writer's public key 32 | nonce 12 |
              ciphertext | tag 16
    text    = type 0, u32 LE | cipher 0 (ChaCha20-Poly1305), u32 LE | data key 32
              type 1, a data edit list: type | number of lengths, u32 LE | length, u64 LE ...
    key     = BLAKE2b-512(X25519(secret, public) || reader's || writer's public key), 32 bytes of it

Each packet is for one reader; those that no key opens are for others.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import warpcipher as wc

from ..._errors import counted
from .. import curve25519
from ..layout import FormatError
from .keys import PublicKey, SecretKey

MAGIC = b"crypt4gh"
VERSION = 1
FIXED_SIZE = 16
DATA_KEY_SIZE = 32
TEXT_SIZE = 8 + DATA_KEY_SIZE
EDIT_LIST = 1
SEALED_AT = 8 + curve25519.KEY_SIZE + curve25519.NONCE_SIZE
PACKET_SIZE = SEALED_AT + TEXT_SIZE + curve25519.TAG_SIZE
"""Of a packet with a data key."""
SHORTEST_PACKET = SEALED_AT + curve25519.TAG_SIZE + 4

LONGEST = 1 << 20
"""Bytes of the largest header that is read or written."""
MOST_PACKETS = 4096
"""Of a file: each costs a Diffie-Hellman with each key that is tried."""


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def wanted(prefix: bytes) -> int:
    """Bytes of the beginning of a file that hold its header, as far as those that it begins with
    tell."""
    if len(prefix) < FIXED_SIZE:
        return FIXED_SIZE if prefix else 1024
    position = FIXED_SIZE
    for _ in range(min(_u32(prefix, 12), MOST_PACKETS)):
        if position + 4 > len(prefix):
            return min(max(position + 4, 2 * len(prefix)), LONGEST)
        position += max(_u32(prefix, position), 4)
        if position > LONGEST:
            return LONGEST
    return position


def _packets(prefix: bytes) -> Iterator[bytes]:
    """The packets that a file begins with. Raises FormatError."""
    if len(prefix) < FIXED_SIZE:
        raise FormatError(f"truncated: {len(prefix)} bytes, and a header begins with {FIXED_SIZE}")
    if not prefix.startswith(MAGIC):
        raise FormatError("not a Crypt4GH file: it does not begin with crypt4gh")
    if (version := _u32(prefix, 8)) != VERSION:
        raise FormatError(f"Crypt4GH files of version {version} are not read: version 1 is")
    count = _u32(prefix, 12)
    if not 1 <= count <= MOST_PACKETS:
        raise FormatError(f"the header has {count} packets, expected 1 to {MOST_PACKETS}")
    position = FIXED_SIZE
    for place in range(count):
        length = _u32(prefix, position)
        if position + 4 > len(prefix):
            raise FormatError("truncated: the file ends in its header")
        if length < SHORTEST_PACKET:
            raise FormatError(
                f"malformed header: packet {place} has {length} bytes, and the shortest has "
                f"{SHORTEST_PACKET}"
            )
        if position + length > LONGEST:
            raise FormatError(f"the header is longer than {LONGEST} bytes")
        if position + length > len(prefix):
            raise FormatError("truncated: the file ends in its header")
        yield prefix[position : position + length]
        position += length


@dataclass(frozen=True)
class Header:
    """packets: as they are, in order. size: bytes of the header."""

    packets: tuple[bytes, ...]
    size: int

    @classmethod
    def parse(cls, prefix: bytes) -> Header:
        """The header that a file begins with. Raises FormatError."""
        packets = tuple(_packets(prefix))
        return cls(packets, FIXED_SIZE + sum(map(len, packets)))


def _packet_key(shared: bytes, reader: bytes, writer: bytes) -> bytes:
    return hashlib.blake2b(shared + reader + writer).digest()[: curve25519.KEY_SIZE]


def text_of(data_key: bytes) -> bytes:
    """The text of the packet of a data key."""
    return bytes(8) + data_key


def build(
    texts: Sequence[bytes], readers: Sequence[PublicKey], kept: Sequence[bytes] = ()
) -> bytes:
    """The header of a file that says each text to each reader, from writers with fresh keys. kept:
    packets that it has already. ValueError for more of them than a file may have."""
    packets = [*kept, *(_sealed(text, reader) for text in texts for reader in readers)]
    if not 1 <= len(packets) <= MOST_PACKETS:
        raise ValueError(
            f"format crypt4gh takes 1 to {MOST_PACKETS} packets for readers, got {len(packets)}"
        )
    head = MAGIC + VERSION.to_bytes(4, "little") + len(packets).to_bytes(4, "little")
    head += b"".join(packets)
    if len(head) > LONGEST:
        raise ValueError(f"a header of {len(packets)} packets is longer than {LONGEST} bytes")
    return head


def _sealed(text: bytes, reader: PublicKey) -> bytes:
    """The packet of a text."""
    secret = os.urandom(curve25519.KEY_SIZE)
    writer = curve25519.public_key(secret)
    key = _packet_key(curve25519.exchange(secret, reader.public), reader.public, writer)
    nonce = os.urandom(curve25519.NONCE_SIZE)
    sealed = curve25519.seal(key, nonce, text)
    return (SEALED_AT + len(sealed)).to_bytes(4, "little") + bytes(4) + writer + nonce + sealed


def _opened(packet: bytes, key: SecretKey, public: bytes) -> bytes | None:
    """The text of a packet; None where it is for another key."""
    if _u32(packet, 4) != 0:
        return None
    writer = packet[8 : 8 + curve25519.KEY_SIZE]
    nonce = packet[8 + curve25519.KEY_SIZE : SEALED_AT]
    try:
        shared = curve25519.exchange(key.secret, writer)
        return curve25519.unseal(_packet_key(shared, public, writer), nonce, packet[SEALED_AT:])
    except (ValueError, wc.InvalidTag):
        return None


@dataclass(frozen=True)
class Content:
    """The packets that the keys open. texts: as they are. data_keys: each segment is under one
    of them. edits: the lengths of the edit list; None: there is none."""

    texts: tuple[bytes, ...] = field(repr=False)
    data_keys: tuple[bytes, ...] = field(repr=False)
    edits: tuple[int, ...] | None


def content(header: Header, keys: Sequence[SecretKey]) -> Content:
    """The header's content for these keys. Raises InvalidTag where none opens a packet, FormatError
    for what is not read."""
    texts: dict[bytes, None] = {}  # a packet may come once for each key, and order counts
    publics = [curve25519.public_key(key.secret) for key in keys]
    for packet in header.packets:
        for key, public in zip(keys, publics, strict=True):
            text = _opened(packet, key, public)
            if text is not None:
                texts[text] = None
                break
    if not texts:
        packets = counted(len(header.packets), "packet")
        given = "the key opens" if len(keys) == 1 else f"the {len(keys)} keys open"
        raise wc.InvalidTag(
            f"{given} none of the {packets} of the header: the file is for others, or damaged"
        )
    edits = [_edits_of(text) for text in texts if _u32(text, 0) == EDIT_LIST]
    data_keys = tuple(_data_key_of(text) for text in texts if _u32(text, 0) != EDIT_LIST)
    if not data_keys:
        raise FormatError("the header has an edit list and no data key for this key")
    if len(edits) > 1:
        raise FormatError(f"the header has {len(edits)} edit lists for this key: expected one")
    return Content(tuple(texts), data_keys, edits[0] if edits else None)


def _edits_of(text: bytes) -> tuple[int, ...]:
    """Number of lengths, u32 LE; the lengths, u64 LE."""
    count = _u32(text, 4)
    if len(text) < 8 + 8 * count:
        raise FormatError(f"the edit list has {count} lengths in a packet of {len(text)} bytes")
    if not count:
        raise FormatError("the edit list is empty")
    return struct.unpack_from(f"<{count}Q", text, 8)


def _data_key_of(text: bytes) -> bytes:
    kind = _u32(text, 0)
    if kind != 0:
        raise FormatError(
            f"the header has a packet of type {kind}: expected 0, a data key, or 1, an edit list"
        )
    if _u32(text, 4) != 0:
        raise FormatError(f"the data are encrypted by method {_u32(text, 4)}: expected 0")
    if len(text) != TEXT_SIZE:
        raise FormatError(f"a packet of a data key has {len(text)} bytes, expected {TEXT_SIZE}")
    return text[8:]

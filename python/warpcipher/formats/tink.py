# SPDX-License-Identifier: Apache-2.0
"""Tink streaming AEAD: AES-GCM-HKDF and AES-CTR-HMAC, keys from a Tink keyset.

    file    = header || segment 0 || segment 1 || ...
    header  = length (1) || salt (16 or 32) || nonce prefix (7)
    segment = ciphertext || tag

    keys    = HKDF(hash, ikm = key value, salt, info = associated data)
    AES-GCM-HKDF  nonce = prefix (7) || segment number (4, big-endian) || final ? 1 : 0
    AES-CTR-HMAC  nonce = the same || 00 00 00 00; 32 more bytes of HKDF are the HMAC key;
                  tag = HMAC(nonce || ciphertext), cut

Every segment but the final one ends at a multiple of the segment size C, so segment 0 is shorter by
the header. The final one has 1 to C - tag bytes of plaintext, or 0 if the file is empty. The file
has no magic number and no key id: every enabled key of the keyset is tried on the first segment.
"""

from __future__ import annotations

import os

import warpcipher as wc

from ..keys.decode import json_of_binary
from .base import Buffer, Candidate, Decryptor, Encryptor, Format, NewKey, Options, wipe
from .chunks import ChunkDecryptor, ChunkEncryptor, aes, sealing
from .layout import FormatError, Layout
from .tink_keyset import NONCE_PREFIX_SIZE, Keyset, StreamingKey

MAC_KEY_SIZE = 32
MAX_SEGMENTS = 1 << 32
MIN_TAG_SIZE = 10


def layout(key: StreamingKey) -> Layout:
    chunk = key.segment_size - key.tag_size
    return Layout(
        header_size=key.header_size,
        chunk=chunk,
        overhead=key.tag_size,
        first_chunk=chunk - key.header_size,
        final_short=False,
        max_chunks=MAX_SEGMENTS,
    )


def _sealing(key: StreamingKey, header: bytes, options: Options) -> wc._native.Sealing:
    """How the segments of the file that has this header are sealed."""
    salt = header[1 : 1 + key.derived_key_size]
    prefix = header[1 + key.derived_key_size :]
    mac_size = 0 if key.mac_hash is None else MAC_KEY_SIZE
    derived = bytearray(
        wc._native.hkdf(
            key.hkdf_hash, key.value, salt, options.context, key.derived_key_size + mac_size
        )
    )
    aes_key, mac_key = derived[: key.derived_key_size], derived[key.derived_key_size :]
    wipe(derived)
    if key.mac_hash is None:
        # number || final flag are the last 5 of 12 bytes.
        return sealing(
            layout(key),
            aes("gcm", aes_key),
            aes_key,
            options.engine,
            nonce=prefix + bytes(5),
            counter_shift=8,
            final_shift=0,
        )
    # number || final flag || 4 zero bytes are the last 9 of 16 bytes.
    return sealing(
        layout(key),
        aes("ctr", aes_key),
        aes_key,
        options.engine,
        nonce=prefix + bytes(9),
        counter_shift=40,
        final_shift=32,
        mac_hash=key.mac_hash,
        mac_key=mac_key,
    )


def as_keyset(key: object) -> Keyset:
    """A Keyset, or a cleartext one as JSON or binary."""
    if isinstance(key, Keyset):
        return key
    if isinstance(key, (str, bytes, bytearray)):
        if not isinstance(key, str) and key[:1] == b"\x08":
            return Keyset.from_binary(key)
        return Keyset.from_json(key)
    raise TypeError(f"format tink takes a Keyset or its JSON text as key, got {type(key).__name__}")


class Tink(Format):
    """`tink`; the key is a `Keyset`, or the text of a cleartext JSON keyset; the context is the
    associated data."""

    name = "tink"
    description = "Tink streaming AEAD, AES-GCM-HKDF or AES-CTR-HMAC, with a Tink JSON keyset"
    found_by_key = True
    extension = ".tink"
    proof = "first segment"
    authenticated = True
    binds_chunks = True
    takes_keyset = True
    template = "AES256_GCM_HKDF_1MB"

    def key_needed(self) -> str:
        return "a Tink keyset in JSON, with the streaming AEAD key that encrypted it"

    def make_key(self, template: str, passphrase: bytes | None) -> NewKey:
        return NewKey(Keyset.generate(template or self.template).to_json().encode())

    def knows(self, key: object) -> bool:
        if isinstance(key, str):
            return key.lstrip()[:1] == "{"
        if isinstance(key, (bytes, bytearray)):
            start = bytes(key[:64])
            # One random key of 256 begins so too, and is another format's.
            is_text = start.lstrip()[:1] == b"{" and start.isascii()
            return is_text or json_of_binary(key) is not None
        return isinstance(key, Keyset)

    def primary(self, key: object) -> object:
        primary = as_keyset(key).primary
        return Keyset((primary,), primary.key_id)

    def encryptor(self, key: object, options: Options) -> Encryptor:
        options.check(self)
        primary = as_keyset(key).primary
        header = bytes([primary.header_size]) + os.urandom(
            primary.derived_key_size + NONCE_PREFIX_SIZE
        )
        return ChunkEncryptor(layout(primary), header, _sealing(primary, header, options))

    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        first = prefix[:1]
        if first not in (b"\x18", b"\x28") or size < first[0] + MIN_TAG_SIZE:
            return None
        reason = f"the first byte is the length of a header ({first[0]}); sizes are in the keyset"
        return Candidate(self.name, reason)

    def probe_size(self, key: object, options: Options, prefix: Buffer = b"") -> int:
        # The first segment, and one byte more, which shows whether it is the final one.
        return max(one.segment_size for one in as_keyset(key).enabled) + 1

    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        options.check(self)
        keys = as_keyset(key).enabled
        shortest = min(one.header_size + one.tag_size for one in keys)
        if len(prefix) < shortest:
            raise FormatError(f"truncated: {len(prefix)} bytes: the shortest file has {shortest}")
        view = memoryview(prefix)
        for one in keys:
            if view[0] == one.header_size and len(view) >= one.header_size + one.tag_size:
                how = _sealing(one, bytes(view[: one.header_size]), options)
                if _opens_first_segment(one, how, view):
                    return ChunkDecryptor(layout(one), how)
        raise wc.InvalidTag(
            f"no enabled key of the keyset ({len(keys)} tried) opens the first segment: wrong "
            "keyset or associated data, header or first segment damaged or cut, or not a Tink file"
        )


FORMATS = (Tink(),)


def _opens_first_segment(key: StreamingKey, how: wc._native.Sealing, view: memoryview) -> bool:
    """Whether the key opens segment 0, which is the final one where nothing follows it."""
    segment = view[key.header_size : key.segment_size]
    final = len(view) <= key.segment_size
    scratch = bytearray(len(segment) - key.tag_size)
    try:
        layout(key).count_in(len(segment), 0, final, sealed=True)
        return how.open(0, 1, final, segment, scratch) is None
    finally:
        wipe(scratch)

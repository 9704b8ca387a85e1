# SPDX-License-Identifier: Apache-2.0
"""The payload of an age file: the STREAM construction over ChaCha20-Poly1305.

nonce (16) || chunk 0 || chunk 1 || ... || final chunk

payload key = HKDF-SHA-256(ikm = file key, salt = nonce, info = "payload")
chunk i     = ChaCha20-Poly1305 of 65536 bytes, nonce = i (11, big-endian) || final (1: 00, 01)
"""

from __future__ import annotations

import warpcipher as wc

from .. import curve25519
from ..chunks import ChunkDecryptor, ChunkEncryptor, sealing
from ..layout import FormatError, Layout

CHUNK_SIZE = 64 << 10
NONCE_SIZE = 16
MAX_CHUNKS = 1 << 47
"""So that 64 bits hold every place in the file; the format has more."""


def layout(header_size: int) -> Layout:
    """header_size: of the header without the payload's nonce."""
    return Layout(
        header_size=header_size + NONCE_SIZE,
        chunk=CHUNK_SIZE,
        overhead=curve25519.TAG_SIZE,
        first_chunk=CHUNK_SIZE,
        final_short=False,
        max_chunks=MAX_CHUNKS,
    )


def _sealing(chunks: Layout, file_key: bytes, nonce: bytes, engine: str) -> wc._native.Sealing:
    key = bytearray(wc._native.hkdf("sha256", file_key, nonce, b"payload", curve25519.KEY_SIZE))
    base = bytes(curve25519.NONCE_SIZE)
    return sealing(
        chunks, curve25519.ALGORITHM, key, engine, nonce=base, counter_shift=8, final_shift=0
    )


def encryptor(file_key: bytes, header: bytes, nonce: bytes, engine: str) -> ChunkEncryptor:
    chunks = layout(len(header))
    return ChunkEncryptor(chunks, header + nonce, _sealing(chunks, file_key, nonce, engine))


def decryptor(file_key: bytes, header_size: int, prefix: bytes, engine: str) -> ChunkDecryptor:
    """prefix: the beginning of the file, with the payload's nonce. Raises FormatError."""
    nonce = prefix[header_size : header_size + NONCE_SIZE]
    if len(nonce) < NONCE_SIZE:
        raise FormatError("truncated: the file ends in the nonce after its header")
    chunks = layout(header_size)
    return ChunkDecryptor(chunks, _sealing(chunks, file_key, nonce, engine))

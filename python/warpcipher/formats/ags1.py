# SPDX-License-Identifier: Apache-2.0
"""AES GCM Stream of Apache Iceberg (format/gcm-stream-spec.md): what manifests and other metadata
of encrypted tables are.

    +--------+-----------------+-----------------------------------+-----+------------------+
    | "AGS1" | block length    | block 0: nonce 12 | text | tag 16 | ... | final: may be    |
    |        | u32 LE, of text |                                   |     | shorter, or full |
    +--------+-----------------+-----------------------------------+-----+------------------+

A block is AES-GCM under the file's key and a random nonce, AAD = prefix || block number, u32 LE. An
empty text has one empty block. Nothing marks the final block: a file that was cut at the edge of a
block passes for a shorter one, unless its length is known from elsewhere, as from a manifest.
"""

from __future__ import annotations

import warpcipher as wc

from .base import Buffer, Candidate, Decryptor, Encryptor, Format, Options, ReadAt, key_bytes, wipe
from .chunks import NONCE_SIZE, TAG_SIZE, ChunkDecryptor, ChunkEncryptor, Pattern, aes, sealing
from .layout import FormatError, Layout

MAGIC = b"AGS1"
HEADER_SIZE = 8
OVERHEAD = NONCE_SIZE + TAG_SIZE
BLOCK_SIZE = 1 << 20
LONGEST_BLOCK = 64 << 20
"""Read; writers use 1 MiB. A header that lies asks for no more memory than this."""


def layout(block: int) -> Layout:
    """Where the blocks lie, of `block` bytes of text each."""
    return Layout(
        header_size=HEADER_SIZE,
        chunk=block,
        overhead=OVERHEAD,
        first_chunk=block,
        final_short=False,
        max_chunks=1 << 31,
    )


class Ags1(Format):
    """`ags1`; the key is 16, 24 or 32 bytes, the context the AAD prefix of the file."""

    name = "ags1"
    description = "Iceberg's AES GCM stream, AES-GCM in blocks of 1 MiB"
    found_by_key = False
    extension = ".ags1"
    authenticated = True
    binds_chunks = False
    magic = MAGIC
    proof = "first block"
    key_sizes = (32, 24, 16)

    def _key(self, key: object, options: Options) -> bytearray:
        options.check(self)
        return key_bytes(key, self.key_sizes, self.name)

    def encryptor(self, key: object, options: Options) -> Encryptor:
        header = MAGIC + BLOCK_SIZE.to_bytes(4, "little")
        secret = self._key(key, options)
        return ChunkEncryptor(layout(BLOCK_SIZE), header, _sealing(BLOCK_SIZE, secret, options))

    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        try:
            blocks = layout(_block_size(prefix[:HEADER_SIZE]))
            reason = f"it begins with {MAGIC.decode()}, and the size fits"
            return self.candidate(blocks, size, reason)
        except FormatError:
            return None

    def probe_size(self, key: object, options: Options, prefix: Buffer = b"") -> int:
        return HEADER_SIZE

    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        block = _block_size(bytes(prefix[:HEADER_SIZE]))
        secret = self._key(key, options)
        return ChunkDecryptor(layout(block), _sealing(block, secret, options))

    def open_checked(self, key: object, read_at: ReadAt, options: Options) -> Decryptor:
        decryptor = self.decryptor(key, read_at(0, HEADER_SIZE), options)
        block = read_at(HEADER_SIZE, decryptor.layout.chunk + OVERHEAD)
        text = bytearray(max(len(block) - OVERHEAD, 0))
        try:
            decryptor.process(memoryview(block), memoryview(text), final=True)
            decryptor.seek(0, read_at)
        except BaseException:
            decryptor.close()
            raise
        finally:
            wipe(text)
        return decryptor


def _sealing(block: int, key: bytearray, options: Options) -> wc._native.Sealing:
    algorithm = aes("gcm", key)
    number_at = len(options.context)
    aad = Pattern(options.context + bytes(4), number_at)
    return sealing(layout(block), algorithm, key, options.engine, aad=aad)


FORMATS = (Ags1(),)


def _block_size(header: bytes) -> int:
    """Bytes of text in a block, as the header says. Raises FormatError."""
    if len(header) < HEADER_SIZE:
        raise FormatError(f"truncated: {len(header)} bytes, and the header has {HEADER_SIZE}")
    if header[:4] != MAGIC:
        raise FormatError(f"not an AGS1 stream: it begins with {header[:4]!r}, not {MAGIC!r}")
    block = int.from_bytes(header[4:], "little")
    if not 0 < block <= LONGEST_BLOCK:
        raise FormatError(f"blocks of {block} bytes: expected 1 to {LONGEST_BLOCK}")
    return block

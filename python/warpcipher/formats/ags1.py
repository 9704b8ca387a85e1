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

import secrets
from itertools import accumulate

import warpcipher as wc

from .base import (
    Buffer,
    Candidate,
    Decryptor,
    Encryptor,
    Format,
    Options,
    PieceCipher,
    ReadAt,
    key_bytes,
    wipe,
)
from .chunks import native_key, open_columns, open_key
from .layout import FormatError, Layout

MAGIC = b"AGS1"
HEADER_SIZE = 8
NONCE_SIZE = 12
TAG_SIZE = 16
OVERHEAD = NONCE_SIZE + TAG_SIZE
BLOCK_SIZE = 1 << 20
LONGEST_BLOCK = 64 << 20
"""Read; writers use 1 MiB. A header that lies asks for no more memory than this."""
KEY_SIZES = (32, 24, 16)
"""The first is what `keygen` makes."""


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


class _Blocks(PieceCipher):
    """What encryption and decryption of blocks share: the key, the AADs, the place in the file."""

    def __init__(self, block: int, key: bytearray, options: Options) -> None:
        self.layout = layout(block)
        self._algorithm = f"aes-{8 * len(key)}-gcm"
        self._key: wc.Key | None = native_key(self._algorithm, key)
        self._prefix = options.context
        self._engine = options.engine
        self._next = 0

    def _take(self, count: int) -> tuple[bytes, list[int], list[int]]:
        """The AADs of the next blocks, and where each lies and how long it is."""
        first = self._next
        self._next += count
        aads = [self._prefix + i.to_bytes(4, "little") for i in range(first, first + count)]
        size = len(self._prefix) + 4
        return b"".join(aads), [size * i for i in range(count)], [size] * count

    def close(self) -> None:
        self._key = None


class _Encryptor(_Blocks, Encryptor):
    """Seals blocks under random nonces."""

    def __init__(self, key: bytearray, options: Options) -> None:
        super().__init__(BLOCK_SIZE, key, options)
        count = self.layout.chunks_per_piece()
        self.header = MAGIC + BLOCK_SIZE.to_bytes(4, "little")
        self.first_piece = self.piece = count * BLOCK_SIZE
        self.capacity = self.piece + (count + 1) * OVERHEAD

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        lengths = self.layout.lengths(len(data), self._next, final, sealed=False)
        *starts, size = accumulate((length + OVERHEAD for length in lengths), initial=0)
        nonces = secrets.token_bytes(NONCE_SIZE * len(starts))
        for i, start in enumerate(starts):
            out[start : start + NONCE_SIZE] = nonces[NONCE_SIZE * i : NONCE_SIZE * (i + 1)]
        aad, aad_offsets, aad_lengths = self._take(len(starts))
        wc.run_columns(
            self._algorithm,
            "encrypt",
            open_key(self._key),
            data,
            lengths=lengths,
            ivs=nonces,
            aad=aad,
            aad_offsets=aad_offsets,
            aad_lengths=aad_lengths,
            out=out[:size],
            out_offsets=[start + NONCE_SIZE for start in starts],
            engine=self._engine,
        ).raise_for_status()
        return size


class _Decryptor(_Blocks, Decryptor):
    """Opens blocks, in order or from any on."""

    def __init__(self, block: int, key: bytearray, options: Options) -> None:
        super().__init__(block, key, options)
        count = self.layout.chunks_per_piece()
        self.first_piece = self.piece = count * (block + OVERHEAD)
        self.capacity = count * block

    def seek(self, chunk: int, read_at: ReadAt) -> None:
        self._next = chunk

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        first = self._next
        lengths = self.layout.lengths(len(data), first, final, sealed=True)
        starts = list(accumulate(lengths, initial=0))[:-1]
        size = len(data) - OVERHEAD * len(lengths)
        aad, aad_offsets, aad_lengths = self._take(len(starts))
        open_columns(
            first,
            self._algorithm,
            open_key(self._key),
            data,
            out[:size],
            lengths=[length - NONCE_SIZE for length in lengths],
            offsets=[start + NONCE_SIZE for start in starts],
            ivs=b"".join([data[start : start + NONCE_SIZE] for start in starts]),
            aad=aad,
            aad_offsets=aad_offsets,
            aad_lengths=aad_lengths,
            engine=self._engine,
        )
        return size


class Ags1(Format):
    """`ags1`; the key is 16, 24 or 32 bytes, the context the AAD prefix of the file."""

    name = "ags1"
    description = "Iceberg's AES GCM stream, AES-GCM in blocks of 1 MiB"
    found_by_key = False
    extension = ".ags1"
    authenticated = True
    binds_chunks = False
    magic = MAGIC
    key_sizes = KEY_SIZES

    def _key(self, key: object, options: Options) -> bytearray:
        options.refuse_others(self.name, "context")
        return key_bytes(key, KEY_SIZES, self.name)

    def encryptor(self, key: object, options: Options) -> Encryptor:
        return _Encryptor(self._key(key, options), options)

    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        try:
            block = _block_size(prefix[:HEADER_SIZE])
            blocks = layout(block)
            plaintext_size, chunks = blocks.plaintext_size(size), blocks.chunk_count(size)
        except FormatError:
            return None
        reason = f"it begins with {MAGIC.decode()}, and the size fits"
        return Candidate(self.name, reason, plaintext_size, block, chunks)

    def probe_size(self, key: object, options: Options, prefix: Buffer = b"") -> int:
        return HEADER_SIZE

    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        block = _block_size(bytes(prefix[:HEADER_SIZE]))
        return _Decryptor(block, self._key(key, options), options)

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


def _block_size(header: bytes) -> int:
    """Bytes of text in a block, as the header says. Raises FormatError."""
    if len(header) < HEADER_SIZE:
        raise FormatError(f"truncated: {len(header)} bytes, and the header alone has {HEADER_SIZE}")
    if header[:4] != MAGIC:
        raise FormatError(f"not an AGS1 stream: it begins with {header[:4]!r}, not {MAGIC!r}")
    block = int.from_bytes(header[4:], "little")
    if not 0 < block <= LONGEST_BLOCK:
        raise FormatError(f"blocks of {block} bytes: expected 1 to {LONGEST_BLOCK}")
    return block

# SPDX-License-Identifier: Apache-2.0
"""The content of a message of the AWS Encryption SDK: frames, or one block. In brackets bytes.

    frame       number (4) | IV (12) | ciphertext | tag (16)
    final frame FFFFFFFF | number (4) | IV (12) | length (4) | ciphertext | tag (16)
    block       IV (12) | length (8) | ciphertext | tag (16)

    AES-GCM: IV = number, 12 bytes; associated data = message id | which of the three | number (4)
    | length (8). Numbers begin with 1 and are big-endian.

The final frame has at most the length of a frame. The SDK for Python, and this one, writes one that
is shorter, and empty where nothing is left; others may write a full one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import warpcipher as wc

from ..base import ReadAt, wipe
from ..chunks import ChunkDecryptor, ChunkEncryptor, Pattern, aes, sealing
from ..file_chunks import authentication_failed
from ..layout import FormatError, Layout
from .header import IV_SIZE, TAG_SIZE, Header
from .signature import LONGEST_FOOTER, Signer, Verifier, footer_size, signature_of

FINAL = b"\xff\xff\xff\xff"
HEAD_SIZE = 4 + IV_SIZE
FINAL_HEAD_SIZE = 4 + HEAD_SIZE + 4
OVERHEAD = HEAD_SIZE + TAG_SIZE
FINAL_MORE = FINAL_HEAD_SIZE - HEAD_SIZE
MAX_FRAMES = (1 << 32) - 2
MOST_OF_A_BLOCK = (1 << 36) - 32
BLOCK_HEAD_SIZE = IV_SIZE + 8


@dataclass(frozen=True)
class FrameLayout(Layout):
    """footer: bytes after the final frame, whose size says where it begins: 36 and its text."""

    footer: int = 0

    def count_in(self, size: int, first: int, final: bool, *, sealed: bool) -> int:
        if not (final and sealed):
            return super().count_in(size, first, final, sealed=sealed)
        return self._frames(size, first)

    def _frames(self, size: int, first: int = 0) -> int:
        count, rest = divmod(size - OVERHEAD - FINAL_MORE, self.chunk + OVERHEAD)
        if count < 0 or rest > self.chunk:
            raise FormatError(
                f"truncated: no frames of {self.chunk} bytes, with a final one, take {size} bytes"
            )
        if first + count >= self.max_chunks:
            raise self.too_long()
        return count + 1

    def chunk_count(self, file_size: int) -> int:
        return self._frames(file_size - self.header_size - self.footer)

    def plaintext_size(self, file_size: int) -> int:
        count = self.chunk_count(file_size)
        ends = self.header_size + FINAL_MORE + self.footer
        return file_size - ends - count * self.overhead


@dataclass(frozen=True)
class BlockLayout(Layout):
    """length: bytes of plaintext. footer: bytes after the block."""

    length: int = 0
    footer: int = 0

    def chunk_count(self, file_size: int) -> int:
        length = file_size - self.header_size - self.overhead - self.footer
        if length != self.length:
            raise FormatError(
                f"the message has a block of {self.length} bytes, and the file {max(length, 0)}"
            )
        return 1

    def plaintext_size(self, file_size: int) -> int:
        return self.length if self.chunk_count(file_size) else 0


def frame_layout(header: Header, header_size: int) -> FrameLayout:
    return FrameLayout(
        header_size=header_size,
        chunk=header.frame_length,
        overhead=OVERHEAD,
        first_chunk=header.frame_length,
        final_short=True,
        max_chunks=MAX_FRAMES,
        footer=footer_size(header.suite),
    )


def _aad(message_id: bytes, kind: str) -> Pattern:
    base = message_id + b"AWSKMSEncryptionClient " + kind.encode()
    return Pattern(base + bytes(12), len(base), big_endian=True, length_size=8)


def _frames_sealing(
    layout: Layout, message_id: bytes, key: bytearray, engine: str
) -> wc._native.Sealing:
    return sealing(
        layout,
        aes("gcm", key),
        key,
        engine,
        nonce=bytes(IV_SIZE),
        number_from=1,
        aad=_aad(message_id, "Frame"),
        final_aad=_aad(message_id, "Final Frame"),
        head=Pattern(bytes(HEAD_SIZE), 0, big_endian=True, nonce_at=4),
        final_head=Pattern(
            FINAL + bytes(FINAL_HEAD_SIZE - 4), 4, big_endian=True, nonce_at=8, length_size=4
        ),
    )


class FrameEncryptor(ChunkEncryptor):
    """Encrypts a message in frames. signer: has hashed the header; None: nothing is signed."""

    def __init__(
        self, header: Header, whole: bytes, key: bytearray, engine: str, signer: Signer | None
    ) -> None:
        layout = frame_layout(header, len(whole))
        super().__init__(layout, whole, _frames_sealing(layout, header.message_id, key, engine))
        self.capacity += FINAL_MORE + layout.footer
        self._signer = signer

    def chunk_sizes(self) -> tuple[int, int] | None:
        return None if self._signer else super().chunk_sizes()  # what passes is hashed

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        count = self.layout.count_in(len(data), self._next, final, sealed=False)
        size = len(data) + count * OVERHEAD + (FINAL_MORE if final else 0)
        self._sealing.seal(self._next, count, final, data, out[:size])
        self._next += count
        if self._signer is not None:
            self._signer.update(out[:size])
            if final:
                footer = self._signer.footer()
                out[size : size + len(footer)] = footer
                size += len(footer)
        return size


class FrameDecryptor(ChunkDecryptor):
    """Decrypts a message in frames. verifier: has hashed the header; it is used where all pieces
    come in order. None: nothing is signed."""

    layout: FrameLayout

    def __init__(
        self, header: Header, key: bytearray, engine: str, verifier: Verifier | None
    ) -> None:
        layout = frame_layout(header, header.size)
        super().__init__(layout, _frames_sealing(layout, header.message_id, key, engine))
        self._is_signed = verifier is not None
        self._verifier = verifier
        self._rest = bytearray()
        self._full = layout.chunk + OVERHEAD
        # Bytes that may follow the start of the final frame, whose end needs no piece of its own.
        self._ending = FINAL_MORE + (LONGEST_FOOTER if verifier else 0)
        self.capacity += layout.chunk + self._ending

    def chunk_sizes(self) -> tuple[int, int] | None:
        return None if self._verifier else super().chunk_sizes()

    def seek(self, chunk: int, read_at: ReadAt) -> None:
        super().seek(chunk, read_at)
        self._verifier = None

    def plaintext_size(self, file_size: int, read_at: ReadAt) -> int:
        if self._is_signed:
            self.layout = self._with_footer(file_size, read_at)
        return self.layout.plaintext_size(file_size)

    def _with_footer(self, file_size: int, read_at: ReadAt) -> FrameLayout:
        """The layout with the footer that the file has: a signature is not always of one size."""
        usual = self.layout.footer
        for size in (usual, *range(LONGEST_FOOTER, 2, -1)):
            layout = replace(self.layout, footer=size)
            try:
                at = layout.file_start(layout.chunk_count(file_size) - 1)
            except FormatError:
                continue
            length = layout.plaintext_size(file_size) % self.layout.chunk
            head = read_at(at, FINAL_HEAD_SIZE)
            lengths = {length, length or self.layout.chunk}
            if (
                head[:4] == FINAL
                and int.from_bytes(head[-4:], "big") in lengths
                and int.from_bytes(read_at(file_size - size, 2), "big") == size - 2
            ):
                return layout
        raise FormatError("truncated: the file does not end with a final frame and a signature")

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        if self._rest:
            self._rest += data
            if len(self._rest) > self._full + self._ending:
                raise FormatError("the message continues after its end")
            data = memoryview(self._rest)
            if not final:
                return 0
        if final:
            return self._end(data, out)
        at = self._final_at(data)
        self._rest = bytearray(data[at:])
        return self._open(data[:at], out, final=False)

    def _final_at(self, data: memoryview) -> int:
        """Where the final frame begins in a piece; its size where it does not."""
        count = len(data) // self._full
        for i in range(max(0, count - 2 - self._ending // self._full), count + 1):
            at = i * self._full
            if data[at : at + 4] == FINAL:
                return at
        return len(data)

    def _end(self, data: memoryview, out: memoryview) -> int:
        at = self._final_at(data)
        head = bytes(data[at : at + FINAL_HEAD_SIZE])
        if len(head) < FINAL_HEAD_SIZE:
            raise FormatError(
                f"truncated: the message ends after frame {self._next + at // self._full}, and "
                "has no final one"
            )
        length = int.from_bytes(head[-4:], "big")
        if length > self.layout.chunk:
            raise FormatError(
                f"the final frame says {length} bytes, and a frame has {self.layout.chunk}"
            )
        end = at + FINAL_HEAD_SIZE + length + TAG_SIZE
        if end > len(data):
            raise FormatError(f"truncated: the file ends in its final frame, of {length} bytes")
        footer = bytes(data[end:])
        if self._is_signed:
            signature_of(footer)
        elif footer:
            raise FormatError(f"{len(footer)} bytes follow the message")
        done = self._open(data[:end], out, final=True)
        if self._verifier is not None:
            try:
                self._verifier.check(footer)
            except BaseException:
                wipe(out[:done])
                raise
        return done

    def _open(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        if not data:
            return 0
        count = self.layout.count_in(len(data), self._next, final, sealed=True)
        size = len(data) - count * OVERHEAD - (FINAL_MORE if final else 0)
        bad = self._sealing.open(self._next, count, final, data, out[:size])
        if bad is not None:
            raise authentication_failed(bad)
        if self._verifier is not None:
            self._verifier.update(data)
        self._next += count
        return size


class BlockDecryptor(ChunkDecryptor):
    """Decrypts a message of one block: all of it is held in memory. head: the IV and the length of
    the block, which follow the header. Raises FormatError."""

    whole = True
    layout: BlockLayout

    def __init__(
        self, header: Header, head: bytes, key: bytearray, engine: str, verifier: Verifier | None
    ) -> None:
        iv, self._length = head[:IV_SIZE], int.from_bytes(head[IV_SIZE:], "big")
        if self._length > MOST_OF_A_BLOCK:
            wipe(key)
            raise FormatError(
                f"the block says {self._length} bytes, and one has {MOST_OF_A_BLOCK} at most"
            )
        layout = BlockLayout(
            header_size=header.size + BLOCK_HEAD_SIZE,
            chunk=max(self._length, 1),
            overhead=TAG_SIZE,
            first_chunk=max(self._length, 1),
            final_short=False,
            max_chunks=1,
            length=self._length,
            footer=footer_size(header.suite),
        )
        single = _aad(header.message_id, "Single Block")
        number = (1).to_bytes(4, "big") + self._length.to_bytes(8, "big")
        aad = Pattern(single.base[: single.number_at] + number)
        super().__init__(layout, sealing(layout, aes("gcm", key), key, engine, nonce=iv, aad=aad))
        self._verifier = verifier
        self._is_signed = verifier is not None
        self._sealed = self._length + TAG_SIZE
        self.capacity = self._sealed
        self.piece = self._sealed + (LONGEST_FOOTER if verifier else 0)
        if verifier is not None:
            verifier.update(head)

    def chunk_sizes(self) -> tuple[int, int] | None:
        return None

    def seek(self, chunk: int, read_at: ReadAt) -> None:
        super().seek(chunk, read_at)
        self._verifier = None

    def plaintext_size(self, file_size: int, read_at: ReadAt) -> int:
        if self._is_signed:
            footer = max(0, file_size - self.layout.header_size - self._sealed)
            signature_of(read_at(file_size - footer, footer))
            self.layout = replace(self.layout, footer=footer)
        return self.layout.plaintext_size(file_size)

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        block, footer = data[: self._sealed], bytes(data[self._sealed :])
        if len(block) < self._sealed:
            raise FormatError(
                f"truncated: the file has {len(block)} bytes of a block of {self._sealed}"
            )
        if self._is_signed:
            signature_of(footer)
        elif footer:
            raise FormatError(f"{len(footer)} bytes or more follow the message")
        text = out[: self._length]
        bad = self._sealing.open(0, 1, True, block, text)
        if bad is not None:
            raise authentication_failed(bad)
        if self._verifier is not None:
            self._verifier.update(block)
            try:
                self._verifier.check(footer)
            except BaseException:
                wipe(text)
                raise
        return self._length

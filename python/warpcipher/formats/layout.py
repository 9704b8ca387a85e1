# SPDX-License-Identifier: Apache-2.0
"""Where the chunks of an encrypted file lie, and how they are cut into pieces."""

from __future__ import annotations

import os
from dataclasses import dataclass

PIECE_SIZE = min(max(os.cpu_count() or 1, 2), 8) << 19
"""Bytes a piece aims at, 1 to 4 MiB: half a MiB feeds a core, and the less lies between reading and
writing, the more of it is still in a cache. A chunk larger than this is a piece of its own."""

MAX_CHUNKS_PER_PIECE = 4096
"""Bounds the columns of nonces and lengths where a keyset asks for tiny segments."""


class FormatError(ValueError):
    """The file, keyset or option is not what the format says: truncated, malformed or unknown."""


@dataclass(frozen=True)
class Layout:
    """Where the chunks of a file lie. All sizes in bytes.

    +--------+------------------------+------------------+-----+-----------------+
    | header | chunk 0                | chunk 1          | ... | final chunk     |
    |        | first_chunk + overhead | chunk + overhead |     | short, see below|
    +--------+------------------------+------------------+-----+-----------------+

    header_size: of the header.
    chunk:       plaintext of a full chunk.
    overhead:    what a chunk has more in the file: its tag, and its nonce where that is there.
    first_chunk: plaintext of the first chunk, which the header may shorten.
    final_short: the final chunk is always shorter than `chunk` and may be empty (C2SP). Otherwise
                 it may be full, and it is empty only where the plaintext is (Tink, age, raw).
    max_chunks:  the most that the format allows.
    has_empty:   an empty plaintext has one empty chunk; otherwise it has none (Crypt4GH).
    empty_final: the final chunk may be empty after full ones, too: some programs write one
                 (Crypt4GH).
    """

    header_size: int
    chunk: int
    overhead: int
    first_chunk: int
    final_short: bool
    max_chunks: int
    has_empty: bool = True
    empty_final: bool = False

    def count_in(self, size: int, first: int, final: bool, *, sealed: bool) -> int:
        """The chunks in a piece of `size` bytes that begins with chunk number `first`. All are full
        but the last of the final piece.

        sealed: the piece is ciphertext. Raises FormatError where no chunking fits: truncated.
        """
        gain = self.overhead if sealed else 0
        full = self.chunk + gain
        head = (self.first_chunk if first == 0 else self.chunk) + gain
        count, rest = divmod(size - head, full) if size >= head else (-1, size)
        count += 1
        if not final:
            if rest or not count:
                raise ValueError(
                    f"a piece of {size} bytes, not the final one, is not made of whole chunks"
                )
        elif rest or self.final_short or not (count or (first == 0 and not self.has_empty)):
            index = first + count
            may_be_empty = self.final_short or self.empty_final or (index == 0 and self.has_empty)
            if sealed and (rest < gain or (rest == gain and not may_be_empty)):
                where = f"{rest} bytes into" if rest else "before"
                raise FormatError(
                    f"truncated: the file ends {where} chunk {index}, its final chunk"
                )
            count += 1
        if first + count > self.max_chunks:
            raise self.too_long()
        return count

    def too_long(self) -> FormatError:
        """The error of a file with more chunks than the format allows."""
        return FormatError(
            f"too long: the format allows {self.max_chunks} chunks of {self.chunk} bytes"
        )

    def chunk_count(self, file_size: int) -> int:
        """Chunks of a file of `file_size` bytes. Raises FormatError where no file has that size."""
        body = file_size - self.header_size
        shortest = self.overhead if self.has_empty else 0
        if body < shortest:
            raise FormatError(
                f"truncated: {file_size} bytes, and the shortest file of this format has "
                f"{self.header_size + shortest}"
            )
        return self.count_in(body, 0, True, sealed=True)

    def plaintext_size(self, file_size: int) -> int:
        """Plaintext bytes of a file of `file_size` bytes (not yet authenticated by anything)."""
        return file_size - self.header_size - self.chunk_count(file_size) * self.overhead

    def locate(self, position: int) -> tuple[int, int]:
        """The chunk that holds plaintext byte `position`, and the place of that byte in the
        chunk."""
        index, within = divmod(position + self.chunk - self.first_chunk, self.chunk)
        return index, within if index else position

    def plaintext_start(self, index: int) -> int:
        """Plaintext position of the first byte of chunk `index`."""
        return (index - 1) * self.chunk + self.first_chunk if index else 0

    def file_start(self, index: int) -> int:
        """File offset of chunk `index`."""
        return self.header_size + self.plaintext_start(index) + index * self.overhead

    def chunks_per_piece(self) -> int:
        """Full chunks of one piece."""
        return max(1, min(MAX_CHUNKS_PER_PIECE, PIECE_SIZE // (self.chunk + self.overhead)))

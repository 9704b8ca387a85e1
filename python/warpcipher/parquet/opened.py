# SPDX-License-Identifier: Apache-2.0
"""What becomes of a chunk that is decrypted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .file import Chunk


@dataclass(slots=True)
class Opened:
    """Where a chunk lies once it is decrypted.

    start, size: in the image. data: where its first data page is there. shrunk: what the headers
    of its pages lost: nonces, tags, padding.
    """

    chunk: Chunk
    start: int
    size: int
    data: int
    shrunk: int
    # In host memory, of each page, a dictionary too: where it was and is in the chunk, the bytes of
    # header and page.
    _pages: Sequence[int] = field(default=(), repr=False)

    @property
    def pages(self) -> list[tuple[int, int, int]]:
        """Of each data page of an encrypted chunk in host memory: where its header lay in the file
        and lies in the image, and the bytes of header and page."""
        first = 3 * self.chunk.dictionary
        numbers = iter(self._pages[first:])
        return [
            (self.chunk.start + before, self.start + now, size)
            for before, now, size in zip(numbers, numbers, numbers, strict=True)
        ]

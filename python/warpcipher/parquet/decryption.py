# SPDX-License-Identifier: Apache-2.0
"""Chunks decrypted into host memory or into a GPU's, in one way: src/parquet/open_chunks.hpp."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from typing import Any

from .. import _native
from .._types import Buffer
from ..formats import FormatError
from ..formats.file_chunks import viewed
from .crypto import GCM, GCM_CTR, FileCrypto, Kind, Place, column, not_authentic
from .file import BaseFile, Chunk, DecryptedChunk

_PAGE_FIELDS = 3


class Decryption:
    """The decryption of some chunks, in two steps: `__init__` fetches the ciphertext of a file that
    has no descriptor, `run` decrypts, reading on the way where it has.

    room: for the ciphertext, until `run` is over; it has `size` bytes, as `out` must have.
    decrypted: after `run`, what became of each chunk.
    """

    def __init__(self, file: BaseFile, chunks: Sequence[Chunk], room: Buffer | None = None) -> None:
        self._file = file
        self.chunks = chunks
        self.size = sum(chunk.size for chunk in chunks)
        self.decrypted: list[DecryptedChunk] = []
        self._source: int | memoryview = file.source.descriptor
        self._positions: Sequence[int] = [chunk.start for chunk in chunks]
        if file.source.descriptor < 0:
            spans = [(chunk.start, chunk.size) for chunk in chunks]
            self._source, self._positions = file.source.read_spans(spans, room)

    def run(self, out: Any, start: int, threads: int = 0) -> int:
        """Decrypts the chunks into `out`, back to back, and returns their bytes; the rest of it is
        zeros. out: host memory, or an array on a GPU, whose pages are then never plain on the host.
        start: where it begins in the image. threads: that work; 0: one a core.

        Raises InvalidTag, FormatError and OSError, which name the module or the chunk; `out` then
        holds nothing.
        """
        crypto = self._file.crypto or FileCrypto(GCM, b"")
        keys: dict[bytes, int] = {}
        key_index = array("Q")
        sealed = array("Q")
        for chunk, position in zip(self.chunks, self._positions, strict=True):
            encrypted = chunk.key is not None
            ordinals = (chunk.ordinal, chunk.column) if encrypted else (0, 0)
            sealed.extend((position, chunk.size, *ordinals, encrypted, chunk.dictionary))
            key_index.append(0 if chunk.key is None else keys.setdefault(chunk.key, len(keys)))
        found, pages, failure = _native.open_chunks(
            self._source,
            memoryview(sealed),
            list(keys),
            key_index,
            crypto.algorithm == GCM_CTR,
            crypto.aad,
            *viewed(out, None),
            self._file.engine,
            threads,
        )
        if failure is not None:
            with self._file.finding_modules():
                _raise(self.chunks[failure[1]], *failure)
        outs, places = column(found), column(pages)
        for number, chunk in enumerate(self.chunks):
            at, size, first, count = outs[4 * number : 4 * number + 4]
            where = places[_PAGE_FIELDS * first : _PAGE_FIELDS * (first + count)]
            # Of a chunk without pages 0: the footer of the image keeps that.
            data = max(chunk.data - chunk.start, 0)
            if chunk.key is not None:
                data = where[_PAGE_FIELDS + 1] if chunk.dictionary and count > 1 else 0
            shrunk = chunk.size - size - crypto.page_overhead * count
            begin = start + at
            self.decrypted.append(DecryptedChunk(chunk, begin, size, begin + data, shrunk, where))
        return sum(each.size for each in self.decrypted)


def _module_place(chunk: Chunk, module: int) -> Place:
    """The place of a module of a chunk's pages: header, page, header, page."""
    page, is_page = divmod(module, 2)
    page -= chunk.dictionary
    if page < 0:
        return chunk.place(Kind.DICTIONARY_PAGE if is_page else Kind.DICTIONARY_PAGE_HEADER)
    return chunk.place(Kind.DATA_PAGE if is_page else Kind.DATA_PAGE_HEADER, page)


def _raise(
    chunk: Chunk, kind: str, _: int, module: int | None, why: str, position: int, error: int
) -> None:
    place = chunk.what if module is None else str(_module_place(chunk, module))
    if kind == "tag":
        raise not_authentic(place)
    if kind == "wrong":
        raise FormatError(f"{place}: {why}")
    if error:
        raise OSError(error, os.strerror(error))
    raise FormatError(f"the file ended at byte {position} while it was read")

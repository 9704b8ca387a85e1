# SPDX-License-Identifier: Apache-2.0
"""Chunks decrypted into host memory, each from the file to plaintext in a processor's cache."""

from __future__ import annotations

import contextlib
import mmap
import os
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _native
from ..formats import FormatError
from .file import Chunk, File
from .modules import (
    DATA_HEADER,
    DATA_PAGE,
    DICTIONARY_HEADER,
    DICTIONARY_PAGE,
    GCM,
    GCM_CTR,
    FileCrypto,
    Place,
    column,
    not_authentic,
)
from .opened import Opened

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PAGE_FIELDS = 3


_HUGE_PAGE = 2 << 20


def new_room(size: int) -> memoryview:
    """Zeros, in pages of 2 MiB where the kernel has them: it takes as long to hand out 92 MiB in
    pages of 4 KiB as to decrypt them."""
    memory = mmap.mmap(-1, max(size, 1))
    if size >= _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without such pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)[:size]


def module_place(chunk: Chunk, module: int) -> Place:
    """The place of a module of a chunk's pages: header, page, header, page."""
    page, is_page = divmod(module, 2)
    page -= chunk.dictionary
    if page < 0:
        return chunk.place(DICTIONARY_PAGE if is_page else DICTIONARY_HEADER)
    return chunk.place(DATA_PAGE if is_page else DATA_HEADER, page)


class HostOpening:
    """The decryption of some chunks into host memory, in two steps: `__init__` fetches the
    ciphertext of a file that has no descriptor, `run` decrypts, reading on the way where it has.

    room: for the ciphertext, until `run` is over; it has `size` bytes, as `out` must have.
    opened: after `run`, what became of each chunk.
    """

    def __init__(self, file: File, chunks: Sequence[Chunk], room: Buffer | None = None) -> None:
        self._file = file
        self.chunks = chunks
        self.size = sum(chunk.size for chunk in chunks)
        self.opened: list[Opened] = []
        self._source: int | memoryview = file.source.descriptor
        self._positions: Sequence[int] = [chunk.start for chunk in chunks]
        if file.source.descriptor < 0:
            spans = [(chunk.start, chunk.size) for chunk in chunks]
            self._source, self._positions = file.source.read_spans(spans, room)

    def run(self, out: memoryview, start: int, threads: int = 0) -> int:
        """Decrypts the chunks into `out`, back to back, and returns their bytes; the rest of it is
        zeros. start: where `out` begins in the image. threads: that work; 0: one a core.

        Raises InvalidTag, FormatError and OSError, which name the module or the chunk; `out` then
        holds nothing.
        """
        self.opened = _open(
            self._file, self.chunks, self._source, self._positions, out, start, threads
        )
        return sum(opened.size for opened in self.opened)


def _open(
    file: File,
    chunks: Sequence[Chunk],
    source: int | memoryview,
    positions: Sequence[int],
    out: memoryview,
    start: int,
    threads: int,
) -> list[Opened]:
    crypto = file.crypto or FileCrypto(GCM, b"")
    keys: dict[bytes, int] = {}
    key_index = array("Q")
    texts = array("Q")
    for chunk, position in zip(chunks, positions, strict=True):
        sealed = chunk.key is not None
        ordinals = (chunk.ordinal, chunk.column) if sealed else (0, 0)
        texts.extend((position, chunk.size, *ordinals, sealed, chunk.dictionary))
        key_index.append(0 if chunk.key is None else keys.setdefault(chunk.key, len(keys)))
    is_ctr = crypto.algorithm == GCM_CTR
    options = list(keys), key_index, is_ctr, crypto.aad, out, file.engine, threads
    found, pages, failure = _native.open_chunks(source, 0, memoryview(texts), *options)
    if failure is not None:
        with file.finding_modules():
            _raise(chunks[failure[1]], *failure)
    outs, places = column(found), column(pages)
    opened = []
    for number, chunk in enumerate(chunks):
        at, size, first, count = outs[4 * number : 4 * number + 4]
        where = places[_PAGE_FIELDS * first : _PAGE_FIELDS * (first + count)]
        # Of a chunk without pages 0: the footer of the image keeps that.
        data = max(chunk.located.data - chunk.start, 0)
        if chunk.key is not None:
            data = where[_PAGE_FIELDS + 1] if chunk.dictionary and count > 1 else 0
        begin = start + at
        shrunk = chunk.size - size - crypto.page_overhead * count
        opened.append(Opened(chunk, begin, size, begin + data, shrunk, where))
    return opened


def _raise(
    chunk: Chunk, kind: str, _: int, module: int | None, why: str, position: int, error: int
) -> None:
    place = chunk.what if module is None else str(module_place(chunk, module))
    if kind == "tag":
        raise not_authentic(place)
    if kind == "wrong":
        raise FormatError(f"{place}: {why}")
    if error:
        raise OSError(error, os.strerror(error))
    raise FormatError(f"the file ended at byte {position} while it was read")

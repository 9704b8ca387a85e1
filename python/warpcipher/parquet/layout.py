# SPDX-License-Identifier: Apache-2.0
"""Where the modules of chunks lie, and where their plaintexts go: found by the modules' lengths."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import sub
from typing import TYPE_CHECKING, NamedTuple

from .. import _native
from .file import Chunk
from .modules import GCM, Aads, FileCrypto, Place, column
from .thrift import refusing

if TYPE_CHECKING:
    from typing_extensions import Buffer


class ModuleColumns(NamedTuple):
    """The headers or the pages of all chunks: where each module is, where its plaintext goes, and
    the bytes of that."""

    modules: memoryview
    outs: memoryview
    sizes: memoryview


class ChunkOut(NamedTuple):
    """Where a chunk goes, and which pages and AADs are its: ChunkOut in
    src/parquet/page_modules.hpp."""

    out: int
    size: int
    data: int
    first_page: int
    pages: int
    first_aad: int
    aad_size: int


class Layout:
    """The modules of some chunks of a file, in columns over all of them.

    data, positions: the chunks as the file has them, and where each begins in there. crypto: None
    where nothing is encrypted. walked: what `scan` found of each chunk, whose data is then not
    read. heads, pages: the modules. outs: of each chunk; chunks follow each
    other without gaps. dictionaries: the numbers of pages that are dictionaries. Raises
    FormatError.
    """

    def __init__(
        self,
        data: Buffer,
        chunks: Sequence[Chunk],
        positions: Sequence[int],
        crypto: FileCrypto | None,
        walked: Sequence[memoryview] | None = None,
    ) -> None:
        self.chunks = chunks
        self._positions = positions
        texts = array("Q")
        for chunk, position in zip(chunks, positions, strict=True):
            encrypted = crypto is not None and chunk.key is not None
            ordinals = (chunk.ordinal, chunk.column) if encrypted else (0, 0)
            texts.extend((position, chunk.size, *ordinals, encrypted, chunk.dictionary))
        crypto = crypto or FileCrypto(GCM, b"")
        with refusing():
            found = _native.lay_out_chunks(
                data,
                memoryview(texts),
                [chunk.what for chunk in chunks],
                walked,
                crypto.aad,
                crypto.page_overhead,
            )
        heads, pages, self._head_aads, self._page_aads = found[:4]
        self.heads = ModuleColumns(*map(column, heads))
        self.pages = ModuleColumns(*map(column, pages))
        self._aad_sizes, self.dictionaries, outs = map(column, found[4:])
        fields = len(ChunkOut._fields)
        self.outs = [ChunkOut(*outs[at : at + fields]) for at in range(0, len(outs), fields)]

    def trim(self, sizes: memoryview) -> None:
        """Takes the bytes of the headers without the padding that some writers leave behind them:
        everything moves up."""
        lost = array("Q", accumulate(map(sub, self.heads.sizes, sizes), initial=0))
        if not lost[-1]:
            return
        # A header moves by what those before it lost, and its page by its own padding, too.
        moved = [
            memoryview(array("Q", map(sub, kind.outs, by)))
            for kind, by in ((self.heads, lost), (self.pages, lost[1:]))
        ]
        self.heads = ModuleColumns(self.heads.modules, moved[0], sizes)
        self.pages = self.pages._replace(outs=moved[1])
        self.outs = [self._moved(out, lost) for out in self.outs]

    @staticmethod
    def _moved(chunk: ChunkOut, lost: Sequence[int]) -> ChunkOut:
        first, end = chunk.first_page, chunk.first_page + chunk.pages
        return chunk._replace(
            out=chunk.out - lost[first],
            size=chunk.size - lost[end] + lost[first],
            data=0 if not chunk.pages else chunk.data - lost[first + (chunk.data > chunk.out)],
        )

    def runs(self) -> Iterator[tuple[bytes, slice, Aads, Aads]]:
        """Pages in a row that have one key: the key, which they are, and the AADs of their headers
        and of themselves."""
        for key, numbers in groupby(range(len(self.chunks)), lambda i: self.chunks[i].key):
            run = [self.outs[number] for number in numbers]
            which = slice(run[0].first_page, run[-1].first_page + run[-1].pages)
            if key is None or which.start == which.stop:
                continue
            bytes_ = slice(run[0].first_aad, run[-1].first_aad + run[-1].aad_size)
            sizes = self._aad_sizes[which]
            heads, pages = self._head_aads[bytes_], self._page_aads[bytes_]
            yield key, which, Aads(heads, sizes), Aads(pages, sizes)

    def place(self, page: int, dictionary: int, other: int) -> Place:
        """Of a page of all, or of its header: a module of the kind that a dictionary has, or that
        others have."""
        number = bisect_right(self.outs, page, key=lambda out: out.first_page) - 1
        chunk = self.chunks[number]
        page -= self.outs[number].first_page + chunk.dictionary
        return chunk.place(dictionary) if page < 0 else chunk.place(other, page)

# SPDX-License-Identifier: Apache-2.0
"""Chunks decrypted on a GPU: where every module of all of them lies, a batch over them, headers
mended. The GPU's memory comes from CuPy: ciphertext goes there, plaintext is made there.

In the output each chunk is contiguous, and the chunks follow each other without gaps: header, page,
header, page. Chunks that are not encrypted are copied.
"""

from __future__ import annotations

import importlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import accumulate, groupby
from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple

import warpcipher as wc

from .. import _native
from ..formats import FormatError
from .file import BaseFile, Chunk, DecryptedChunk
from .modules import (
    DATA_HEADER,
    DATA_PAGE,
    DICTIONARY_HEADER,
    DICTIONARY_PAGE,
    GCM,
    GCM_CTR,
    Aads,
    Column,
    FileCrypto,
    ModuleBatch,
    Place,
    column,
    wipe_any,
)
from .thrift import refusing

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Device:
    """One GPU. device: its CUDA ordinal, or "cuda:N"."""

    def __init__(self, device: int | str) -> None:
        ordinal = str(device).removeprefix("cuda:")
        if not ordinal.isdigit():
            raise ValueError(f"device is {device!r}: expected the number of a GPU, or 'cuda:0'")
        try:
            self._cupy: Any = importlib.import_module("cupy")
        except ImportError:
            raise ValueError("device= needs CuPy: pip install cupy-cuda13x") from None
        self._device = self._cupy.cuda.Device(int(ordinal))

    def empty(self, size: int) -> Any:
        """An array of bytes there, with any content."""
        with self._device:
            return self._cupy.empty(size, "uint8")

    def room(self, size: int) -> wc.PinnedBuffer:
        """Host memory that copies to it leave at full speed: page-locked."""
        return wc.pinned(size)

    def send(self, data: memoryview | bytearray) -> Any:
        """A copy of the bytes there, complete when this returns."""
        with self._device:
            array = self._cupy.empty(len(data), "uint8")
            if len(data):  # not through `asarray`, which copies to memory of its own on the way
                array.set(self._host(data))
                self._cupy.cuda.get_current_stream().synchronize()
            return array

    def scatter(
        self, data: memoryview, places: Sequence[tuple[Sequence[int], Sequence[int]]], out: Any
    ) -> None:
        """Writes pieces that lie back to back in `data` to where they belong in `out`. places: the
        starts of some, and their sizes."""
        import numpy

        starts, sizes = (
            numpy.concatenate([numpy.asarray(each[i], "int64") for each in places])
            if places
            else numpy.zeros(0, "int64")
            for i in (0, 1)
        )
        # Of each byte the distance from its place in `data` to that in `out`, and its own number.
        moves = starts - numpy.cumsum(sizes) + sizes
        index = numpy.repeat(moves, sizes) + numpy.arange(len(data))
        with self._device:
            out[self._cupy.asarray(index)] = self._cupy.asarray(self._host(data))

    def join(self, arrays: list[Any]) -> Any:
        """A copy of arrays of bytes there, back to back."""
        with self._device:
            return self._cupy.concatenate(arrays)

    def as_buffer(self, array: Any, rmm: Any) -> Any:
        """A copy of the bytes as an `rmm.DeviceBuffer`, complete when this returns."""
        with self._device:
            self._cupy.cuda.get_current_stream().synchronize()
            buffer = rmm.DeviceBuffer(ptr=array.data.ptr, size=array.nbytes)
            self._device.synchronize()
            return buffer

    def within(self, call: Callable[[], Any]) -> Any:
        """The call's result, with this GPU as the current one; its work there is done."""
        with self._device:
            found = call()
            self._device.synchronize()
            return found

    @staticmethod
    def _host(data: memoryview | bytearray) -> Any:
        import numpy

        return numpy.frombuffer(data, "uint8")


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


class PageLayout:
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


LONGEST_DIRECT = 255 << 20
"""Of pages that `ModuleBatch.read` reads to a GPU, encrypted."""
_HEADERS = DICTIONARY_HEADER, DATA_HEADER
_PAGES = DICTIONARY_PAGE, DATA_PAGE


class DeviceDecryption:
    """The decryption of some chunks into memory of a device, in two steps: `__init__` reads the
    ciphertext, finds every module and decrypts the page headers, `run` decrypts the pages.

    start: where the first chunk lies in the image. room: for the ciphertext, until `run` is over.
    readers: threads that read it, until `run` is over. direct: `__init__` reads page
    headers only; `run` reads pages on their way there, and the file must have a descriptor and be
    encrypted throughout, in GCM.
    decrypted: what became of each chunk. size: bytes of all.
    """

    def __init__(
        self,
        file: BaseFile,
        chunks: Sequence[Chunk],
        start: int,
        device: Device,
        room: Buffer | None,
        readers: Executor,
        direct: bool,
    ) -> None:
        self._crypto = file.crypto
        self._page_overhead = 0 if file.crypto is None else file.crypto.page_overhead
        self.start = start
        self._device = device
        self._readers = readers
        self._descriptor = file.source.descriptor
        with file.finding_modules():
            self._scanned = self._scan(chunks) if direct else None
        positions = [chunk.start for chunk in chunks]
        if self._scanned is None:
            self._data, positions = file.source.read_spans(
                [(chunk.start, chunk.size) for chunk in chunks],
                room,
                packed=True,
                readers=readers,
            )
        walked = None if self._scanned is None else self._scanned[0]
        with file.finding_modules():
            layout = PageLayout(self._data, chunks, positions, self._crypto, walked)
        self._layout = layout
        # The headers, a few bytes each, are decrypted here and sent after the pages: where those go
        # is known once the headers have lost their padding.
        head_modules = layout.heads.modules if self._scanned is None else self._scanned[1]
        self._heads = self._open_heads(head_modules, file.engine)
        self._pages = self._page_batch(file.engine)
        self._copies: list[tuple[int, int, int]] = []
        self.decrypted: list[DecryptedChunk] = []
        self.size = 0
        for chunk, position, out in zip(chunks, positions, layout.outs, strict=True):
            data = out.data
            if chunk.key is None:
                self._copies.append((position, out.out, out.size))
                # 0 where it has no page: the footer of the image keeps that.
                data = out.out + max(chunk.located.data - chunk.start, 0)
            shrunk = chunk.size - out.size - self._page_overhead * out.pages
            self.decrypted.append(
                DecryptedChunk(chunk, start + out.out, out.size, start + data, shrunk)
            )
            self.size += out.size

    def _scan(self, chunks: Sequence[Chunk]) -> tuple[list[memoryview], Column] | None:
        """Finds the modules of each chunk, and reads those of the headers, which lie in
        `self._data` at the places of the second; None where a page is too long."""
        data = bytearray()
        found: list[memoryview] = []
        places: list[int] = []
        for modules, heads, at in self._readers.map(partial(scan, self._descriptor), chunks):
            if max(map(sub, modules[1:], modules), default=0) > LONGEST_DIRECT:
                return None
            found.append(modules)
            places += [len(data) + place for place in at]
            data += heads
        self._data = memoryview(data)
        return found, places

    def _page_batch(self, engine: str) -> ModuleBatch:
        batch = ModuleBatch(engine)
        ctr = self._crypto is not None and self._crypto.algorithm == GCM_CTR
        pages = self._layout.pages
        for key, which, _, aads in self._layout.runs():
            batch.add(
                key,
                pages.modules[which],
                pages.outs[which],
                pages.sizes[which],
                None if ctr else aads,
                self._places(which.start, _PAGES),
            )
        return batch

    def _places(self, first: int, kinds: tuple[int, int]) -> Callable[[int], Place]:
        return lambda number: self._layout.place(first + number, *kinds)

    def run(self, out: Any) -> None:
        """Decrypts into `out`, `size` bytes of the device's memory.

        Raises InvalidTag, which names the module, and FormatError; `out` then holds nothing.
        """
        heads = self._layout.heads
        try:
            if self._scanned is not None:
                self._pages.read(self._descriptor, out)
            else:
                data = self._device.send(self._data)
                self._pages.run(data, out, self._data)
                for at, to, size in self._copies:
                    out[to : to + size] = data[at : at + size]
            packed = memoryview(self._heads)[: sum(heads.sizes)]
            self._device.scatter(packed, [(heads.outs, heads.sizes)], out)
        except BaseException:
            wipe_any(out)
            raise
        finally:
            wipe_any(self._heads)

    def _open_heads(self, modules: Column, engine: str) -> bytearray:
        """The headers, decrypted, mended and packed; the layout takes their sizes."""
        layout, sizes = self._layout, self._layout.heads.sizes
        heads = bytearray(sum(sizes))
        outs = [0, *accumulate(sizes)][:-1]
        batch = ModuleBatch(engine)
        for key, which, aads, _ in layout.runs():
            places = self._places(which.start, _HEADERS)
            batch.add(key, modules[which], outs[which], sizes[which], aads, places)
        batch.run(self._data, heads)
        if self._crypto is not None:
            found = _native.shrink_headers(
                heads, sizes, layout.pages.sizes, self._page_overhead, layout.dictionaries
            )
            if isinstance(found, tuple):
                wipe_any(heads)
                number, why = found
                raise FormatError(f"{layout.place(number, *_HEADERS)}: {why}")
            layout.trim(column(found))
        return heads


def scan(descriptor: int, chunk: Chunk) -> tuple[memoryview, bytes, memoryview]:
    """Where the modules of a chunk in a file begin, by their lengths, and where it ends; the
    modules of the page headers; where each begins in these. Pages are not read.

    Raises OSError, and FormatError, at once where there are more modules than the format numbers:
    nothing is authentic yet.
    """
    with refusing(chunk.what):
        found = _native.scan_pages(descriptor, chunk.start, chunk.start + chunk.size)
    return column(found[0]), found[1], column(found[2])

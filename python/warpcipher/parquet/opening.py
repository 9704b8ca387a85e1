# SPDX-License-Identifier: Apache-2.0
"""Chunks decrypted: where every module of all of them lies, a batch over them, headers mended.

In the output each chunk is contiguous, and the chunks follow each other without gaps: header, page,
header, page. Chunks that are not encrypted are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from ..formats import FormatError
from .device import Device
from .file import Chunk, File
from .modules import (
    DATA_HEADER,
    DATA_PAGE,
    DICTIONARY_HEADER,
    DICTIONARY_PAGE,
    OVERHEAD,
    Batch,
    Column,
    FileCrypto,
    Place,
    column,
    scan,
    walk,
    wipe_any,
)
from .thrift import refusing

if TYPE_CHECKING:
    from typing_extensions import Buffer

LONGEST_DIRECT = 255 << 20
"""Of pages that `Batch.read` reads to a GPU, encrypted."""


class Pages(NamedTuple):
    """The pages of a chunk, headers included: where each lay in the file and lies in the image less
    `moved`, and its bytes there."""

    before: Column
    now: Column
    heads: Column
    bodies: Column


@dataclass(slots=True)
class Opened:
    """Where a chunk lies once it is decrypted.

    start, size: in the image. data: where its first data page is there. shrunk: what the header of
    its pages lost. moved: what the places of its pages lack: of those in the file, and in the
    image.
    """

    chunk: Chunk
    start: int
    size: int
    data: int
    shrunk: int
    _pages: Pages | None = None
    _moved: tuple[int, int] = (0, 0)

    @property
    def pages(self) -> list[tuple[int, int, int]]:
        """Of each data page of an encrypted chunk: where its header lay in the file and lies in the
        image, and the bytes of header and page."""
        if self._pages is None:
            return []
        in_file, in_image = self._moved
        return [
            (before + in_file, now + in_image, head + body)
            for before, now, head, body in zip(*self._pages, strict=True)
        ][self.chunk.dictionary :]


@dataclass(slots=True)
class _Headers:
    """The page headers of a chunk: where they go, their sizes, and those of their plain pages."""

    starts: Column
    sizes: Column
    pages: Column
    dictionary: bool
    place: Callable[[int], Place]


@dataclass(slots=True)
class _Scan:
    """Where the modules of a chunk lie in the file, and those of its headers in `Opening._data`."""

    modules: memoryview
    heads: Column


class Opening:
    """The decryption of some chunks into one buffer, in two steps: `__init__` reads the ciphertext
    and finds every module, `run` decrypts.

    start: where the first chunk lies in the image. room: for the ciphertext, until `run` is over.
    readers: threads that read it, until `run` is over. direct: to a device, `__init__` reads page
    headers alone; `run` reads pages on their way there, and the file must have a descriptor and be
    encrypted throughout, in GCM.
    opened: what became of each chunk. size: bytes of all.
    """

    def __init__(
        self,
        file: File,
        chunks: Sequence[Chunk],
        start: int,
        device: Device | None = None,
        room: Buffer | None = None,
        readers: Executor | None = None,
        direct: bool = False,
    ) -> None:
        self._crypto = file.crypto
        self.start = start
        self._device = device
        self._readers = readers
        self._descriptor = file.source.descriptor
        scans: Sequence[_Scan | None] = [None] * len(chunks)
        positions = [chunk.start for chunk in chunks]
        self._is_direct = direct and self._scan(chunks)
        if self._is_direct:
            scans = self._scans
        else:
            self._data, positions = file.source.read_spans(
                [(chunk.start, chunk.size) for chunk in chunks],
                room,
                packed=device is not None,
                readers=readers,
            )
        self._pages = Batch(file.engine)
        # On a GPU the headers, a few bytes each, are decrypted here and sent behind.
        self._heads = self._pages if device is None else Batch(file.engine)
        self._head_bytes = 0
        self._headers: list[_Headers] = []
        self._copies: list[tuple[int, int, int]] = []
        self.opened: list[Opened] = []
        self.size = 0
        for chunk, position, found in zip(chunks, positions, scans, strict=True):
            self.opened.append(self._add(chunk, position, found))
            self.size += self.opened[-1].size

    def _scan(self, chunks: Sequence[Chunk]) -> bool:
        """Finds the modules, and reads those of the headers; False where a page is too long."""
        find = map if self._readers is None else self._readers.map
        data = bytearray()
        self._scans = []
        for modules, heads, places in find(partial(scan, self._descriptor), chunks):
            longest = max(map(sub, modules[1:], modules), default=0)
            if longest > LONGEST_DIRECT:
                return False
            self._scans.append(_Scan(modules, [len(data) + at for at in places]))
            data += heads
        self._data = memoryview(data)
        return True

    def _add(self, chunk: Chunk, position: int, found: _Scan | None) -> Opened:
        if chunk.key is not None and self._crypto is not None:
            return self._add_encrypted(chunk, chunk.key, self._crypto, position, found)
        self._copies.append((position, self.size, chunk.size))
        start = self.start + self.size
        return Opened(chunk, start, chunk.size, start + chunk.data - chunk.start, 0)

    def _add_encrypted(
        self, chunk: Chunk, key: bytes, crypto: FileCrypto, position: int, found: _Scan | None
    ) -> Opened:
        what = f"column {chunk.name}, row group {chunk.row_group}"
        modules = (
            walk(self._data, position, position + chunk.size, what)
            if found is None
            else found.modules
        )
        overhead = crypto.page_overhead
        with refusing(what):
            head_bytes, page_bytes, end = _native.lay_out_pages(
                modules, chunk.dictionary, overhead, self.size
            )
        heads, head_outs, head_sizes = map(column, head_bytes)
        pages, page_outs, page_sizes = map(column, page_bytes)
        count = len(heads)
        head_aads, page_aads = crypto.page_aads(
            chunk.ordinal, chunk.column, chunk.dictionary, count
        )
        head_place = _places(chunk, DICTIONARY_HEADER, DATA_HEADER)
        head_at: Column = head_outs
        if self._device is not None:
            *head_at, self._head_bytes = accumulate(head_sizes, initial=self._head_bytes)
        head_modules = heads if found is None else found.heads
        self._heads.add(key, head_modules, head_at, head_sizes, head_aads, head_place)
        ctr = overhead != OVERHEAD
        page_place = _places(chunk, DICTIONARY_PAGE, DATA_PAGE)
        self._pages.add(key, pages, page_outs, page_sizes, None if ctr else page_aads, page_place)
        self._headers.append(
            _Headers(head_outs, head_sizes, page_sizes, chunk.dictionary, head_place)
        )
        data = head_outs[1] if chunk.dictionary and count > 1 else self.size
        return Opened(
            chunk,
            self.start + self.size,
            end - self.size,
            self.start + data,
            OVERHEAD * count,
            Pages(heads, head_outs, head_sizes, page_sizes),
            (chunk.start - position, self.start),
        )

    def run(self, out: Any) -> None:
        """Decrypts into `out`, `size` bytes of host memory, or of the device's.

        Raises InvalidTag, which names the module, and FormatError; `out` then holds nothing.
        """
        try:
            if self._device is None:
                self._pages.run(self._data, out)
                for at, to, size in self._copies:
                    out[to : to + size] = self._data[at : at + size]
                self._shrink(out, None)
            else:
                self._run_on_device(self._device, out)
        except BaseException:
            wipe_any(out)
            raise

    def _run_on_device(self, device: Device, out: Any) -> None:
        heads = bytearray(self._head_bytes)
        try:
            if self._is_direct and self._readers is not None:
                coming = self._readers.submit(self._open_heads, heads)
                try:
                    self._pages.read(self._descriptor, out)
                finally:
                    wait([coming])
                places = coming.result()
            else:
                places = self._open_heads(heads)
                data = device.send(self._data)
                self._pages.run(data, out, self._data)
                for at, to, size in self._copies:
                    out[to : to + size] = data[at : at + size]
            device.scatter(heads, places, out)
        finally:
            wipe_any(heads)

    def _open_heads(self, heads: bytearray) -> list[tuple[Column, Column]]:
        """Decrypts the headers, and returns where they belong: see `_shrink`."""
        self._heads.run(self._data, heads)
        return self._shrink(memoryview(heads), 0)

    def _shrink(self, out: memoryview, packed: int | None) -> list[tuple[Column, Column]]:
        """Mends the headers, which lie where they belong, or packed from there on; returns for
        packed ones of each chunk where they belong, and their sizes."""
        overhead = self._crypto.page_overhead if self._crypto is not None else 0
        places: list[tuple[Column, Column]] = []
        for headers in self._headers:
            starts = headers.starts
            if packed is not None:
                places.append((starts, headers.sizes))
                *starts, packed = accumulate(headers.sizes, initial=packed)
            wrong = _native.shrink_headers(
                out, starts, headers.sizes, headers.pages, overhead, headers.dictionary
            )
            if wrong is not None:
                raise FormatError(f"{headers.place(wrong[0])}: {wrong[1]}")
        return places


def _places(chunk: Chunk, first: int, rest: int) -> Callable[[int], Place]:
    """The place of each module of a kind, by its number in the chunk."""

    def place(number: int) -> Place:
        page = number - chunk.dictionary
        return chunk.place(first) if page < 0 else chunk.place(rest, page)

    return place

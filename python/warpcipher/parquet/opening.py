# SPDX-License-Identifier: Apache-2.0
"""Chunks decrypted on a GPU: where every module of all of them lies, a batch over them, headers
mended.

In the output each chunk is contiguous, and the chunks follow each other without gaps: header, page,
header, page. Chunks that are not encrypted are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING, Any

from .. import _native
from ..formats import FormatError
from .device import Device
from .file import Chunk, File
from .layout import Layout
from .modules import (
    DATA_HEADER,
    DATA_PAGE,
    DICTIONARY_HEADER,
    DICTIONARY_PAGE,
    GCM_CTR,
    Batch,
    Column,
    Place,
    column,
    scan,
    wipe_any,
)
from .opened import Opened

if TYPE_CHECKING:
    from typing_extensions import Buffer

LONGEST_DIRECT = 255 << 20
"""Of pages that `Batch.read` reads to a GPU, encrypted."""
_HEADERS = DICTIONARY_HEADER, DATA_HEADER
_PAGES = DICTIONARY_PAGE, DATA_PAGE


class Opening:
    """The decryption of some chunks into memory of a device, in two steps: `__init__` reads the
    ciphertext, finds every module and decrypts the page headers, `run` decrypts the pages.

    start: where the first chunk lies in the image. room: for the ciphertext, until `run` is over.
    readers: threads that read it, until `run` is over. direct: `__init__` reads page
    headers only; `run` reads pages on their way there, and the file must have a descriptor and be
    encrypted throughout, in GCM.
    opened: what became of each chunk. size: bytes of all.
    """

    def __init__(
        self,
        file: File,
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
            layout = Layout(self._data, chunks, positions, self._crypto, walked)
        self._layout = layout
        # The headers, a few bytes each, are decrypted here and sent after the pages: where those go
        # is known once the headers have lost their padding.
        head_modules = layout.heads.modules if self._scanned is None else self._scanned[1]
        self._heads = self._open_heads(head_modules, file.engine)
        self._pages = self._page_batch(file.engine)
        self._copies: list[tuple[int, int, int]] = []
        self.opened: list[Opened] = []
        self.size = 0
        for chunk, position, out in zip(chunks, positions, layout.outs, strict=True):
            data = out.data
            if chunk.key is None:
                self._copies.append((position, out.out, out.size))
                # 0 where it has no page: the footer of the image keeps that.
                data = out.out + max(chunk.located.data - chunk.start, 0)
            shrunk = chunk.size - out.size - self._page_overhead * out.pages
            self.opened.append(Opened(chunk, start + out.out, out.size, start + data, shrunk))
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

    def _page_batch(self, engine: str) -> Batch:
        batch = Batch(engine)
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
        batch = Batch(engine)
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

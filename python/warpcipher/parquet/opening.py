# SPDX-License-Identifier: Apache-2.0
"""Chunks decrypted on a GPU: where every module of all of them lies, a batch over them, headers
mended.

In the output each chunk is contiguous, and the chunks follow each other without gaps: header, page,
header, page. Chunks that are not encrypted are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
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
    OVERHEAD,
    Batch,
    Column,
    Place,
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
    ciphertext and finds every module, `run` decrypts.

    start: where the first chunk lies in the image. room: for the ciphertext, until `run` is over.
    readers: threads that read it, until `run` is over. direct: `__init__` reads page
    headers alone; `run` reads pages on their way there, and the file must have a descriptor and be
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
        self.start = start
        self._device = device
        self._readers = readers
        self._descriptor = file.source.descriptor
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
        self._layout = layout = Layout(self._data, chunks, positions, self._crypto, walked)
        self._head_modules = layout.heads.modules if self._scanned is None else self._scanned[1]
        # The headers, a few bytes each, are decrypted here and sent after.
        self._head_outs = [0, *accumulate(layout.heads.sizes)][:-1]
        self._make_batches(file.engine)
        self._copies: list[tuple[int, int, int]] = []
        self.opened: list[Opened] = []
        self.size = 0
        for chunk, position, out in zip(chunks, positions, layout.outs, strict=True):
            data = out.data
            if chunk.key is None:
                self._copies.append((position, out.out, out.size))
                # 0 where it has no page: the footer of the image keeps that.
                data = out.out + max(chunk.located.data - chunk.start, 0)
            places = start + out.out, out.size, start + data, OVERHEAD * out.pages
            self.opened.append(Opened(chunk, *places))
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

    def _make_batches(self, engine: str) -> None:
        self._pages = Batch(engine)
        self._heads = Batch(engine)
        ctr = self._crypto is not None and self._crypto.algorithm == GCM_CTR
        heads, pages = self._layout.heads, self._layout.pages
        for key, which, head_aads, page_aads in self._layout.runs():
            self._heads.add(
                key,
                self._head_modules[which],
                self._head_outs[which],
                heads.sizes[which],
                head_aads,
                self._places(which.start, _HEADERS),
            )
            self._pages.add(
                key,
                pages.modules[which],
                pages.outs[which],
                pages.sizes[which],
                None if ctr else page_aads,
                self._places(which.start, _PAGES),
            )

    def _places(self, first: int, kinds: tuple[int, int]) -> Callable[[int], Place]:
        return lambda number: self._layout.place(first + number, *kinds)

    def run(self, out: Any) -> None:
        """Decrypts into `out`, `size` bytes of the device's memory.

        Raises InvalidTag, which names the module, and FormatError; `out` then holds nothing.
        """
        sizes = self._layout.heads.sizes
        heads = bytearray(sum(sizes))
        try:
            if self._scanned is not None:
                coming = self._readers.submit(self._open_heads, heads)
                try:
                    self._pages.read(self._descriptor, out)
                finally:
                    wait([coming])
                coming.result()
            else:
                self._open_heads(heads)
                data = self._device.send(self._data)
                self._pages.run(data, out, self._data)
                for at, to, size in self._copies:
                    out[to : to + size] = data[at : at + size]
            self._device.scatter(heads, [(self._layout.heads.outs, sizes)], out)
        except BaseException:
            wipe_any(out)
            raise
        finally:
            wipe_any(heads)

    def _open_heads(self, heads: bytearray) -> None:
        """Decrypts the headers, packed."""
        self._heads.run(self._data, heads)
        self._shrink(memoryview(heads))

    def _shrink(self, out: memoryview) -> None:
        """Mends the headers."""
        if self._crypto is None:
            return
        layout, overhead = self._layout, self._crypto.page_overhead
        sizes = layout.heads.sizes, layout.pages.sizes
        wrong = _native.shrink_headers(out, self._head_outs, *sizes, overhead, layout.dictionaries)
        if wrong is not None:
            raise FormatError(f"{layout.place(wrong[0], *_HEADERS)}: {wrong[1]}")

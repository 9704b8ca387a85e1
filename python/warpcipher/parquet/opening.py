# SPDX-License-Identifier: Apache-2.0
"""Chunks decrypted: where every module of all of them lies, a batch over them, headers mended.

In the output each chunk is contiguous, and the chunks follow each other without gaps: header, page,
header, page. Chunks that are not encrypted are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..formats import FormatError
from . import metadata as md
from .device import Device
from .file import Chunk, File
from .headers import shrink
from .modules import (
    DATA_HEADER,
    DATA_PAGE,
    DICTIONARY_HEADER,
    DICTIONARY_PAGE,
    MOST_ORDINAL,
    OVERHEAD,
    Batch,
    FileCrypto,
    Place,
    walk,
    wipe_any,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer


@dataclass(slots=True)
class Opened:
    """Where a chunk lies once it is decrypted.

    start, size: in the image. data: where its first data page is there. pages: of each data page of
    an encrypted chunk where its header lay in the file and lies in the image, and the bytes of
    header and page. shrunk: what the header of its pages lost.
    """

    chunk: Chunk
    start: int
    size: int
    data: int
    pages: list[tuple[int, int, int]]
    shrunk: int


@dataclass(slots=True)
class _Headers:
    """The page headers of a chunk: where they go, their sizes, and those of their pages."""

    starts: list[int]
    sizes: list[int]
    pages: list[int]
    place: Callable[[int], Place]


class Opening:
    """The decryption of some chunks into one buffer, in two steps: `__init__` reads the ciphertext
    and finds every module, `run` decrypts.

    start: where the first chunk lies in the image. room: for the ciphertext, until `run` is over.
    readers: threads that read it.
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
    ) -> None:
        self._crypto = file.crypto
        self.start = start
        self._device = device
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
        for chunk, position in zip(chunks, positions, strict=True):
            self.opened.append(self._add(chunk, position))
            self.size += self.opened[-1].size

    def _add(self, chunk: Chunk, position: int) -> Opened:
        if chunk.key is not None and self._crypto is not None:
            return self._add_encrypted(chunk, chunk.key, self._crypto, position)
        self._copies.append((position, self.size, chunk.size))
        first = md.integer(chunk.meta, md.DATA_PAGE_OFFSET, "an offset") - chunk.start
        start = self.start + self.size
        return Opened(chunk, start, chunk.size, start + first, [], 0)

    def _add_encrypted(self, chunk: Chunk, key: bytes, crypto: FileCrypto, position: int) -> Opened:
        what = f"column {chunk.name}, row group {chunk.row_group}"
        modules = walk(self._data, position, position + chunk.size, what)
        count, odd = divmod(len(modules) - 1, 2)
        dictionary = int(chunk.dictionary)
        if odd or not dictionary <= count <= MOST_ORDINAL + 1 + dictionary:
            raise FormatError(
                f"{what}: {len(modules) - 1} modules: expected a header and a page for each of up "
                f"to {MOST_ORDINAL + 1} pages"
            )
        heads, pages, ends = modules[:-1:2], modules[1::2], modules[2::2]
        overhead = crypto.page_overhead
        head_sizes = [page - head - OVERHEAD for head, page in zip(heads, pages, strict=True)]
        page_sizes = [end - page - overhead for page, end in zip(pages, ends, strict=True)]
        if count and min(*head_sizes, *page_sizes) < 0:
            raise FormatError(f"{what}: a module is shorter than its nonce and tag")
        both = [head + page for head, page in zip(head_sizes, page_sizes, strict=True)]
        *head_outs, end = accumulate(both, initial=self.size)
        page_outs = [out + size for out, size in zip(head_outs, head_sizes, strict=True)]
        head_aads, page_aads = crypto.page_aads(
            chunk.ordinal, chunk.column, chunk.dictionary, count
        )
        head_place = _places(chunk, DICTIONARY_HEADER, DATA_HEADER)
        head_at = head_outs
        if self._device is not None:
            *head_at, self._head_bytes = accumulate(head_sizes, initial=self._head_bytes)
        self._heads.add(key, heads, head_at, head_sizes, head_aads, head_place)
        ctr = overhead != OVERHEAD
        page_place = _places(chunk, DICTIONARY_PAGE, DATA_PAGE)
        self._pages.add(key, pages, page_outs, page_sizes, None if ctr else page_aads, page_place)
        sealed = [size + overhead for size in page_sizes]
        self._headers.append(_Headers(head_outs, head_sizes, sealed, head_place))
        in_file, start = chunk.start - position, self.start
        return Opened(
            chunk,
            start + self.size,
            end - self.size,
            start + (head_outs[1] if dictionary and count > 1 else self.size),
            [
                (head + in_file, start + out, size)
                for head, out, size in zip(
                    heads[dictionary:], head_outs[dictionary:], both[dictionary:], strict=True
                )
            ],
            OVERHEAD * count,
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
            self._heads.run(self._data, heads)
            places = self._shrink(memoryview(heads), 0)
            data = device.send(self._data)
            self._pages.run(data, out, self._data)
            for at, to, size in self._copies:
                out[to : to + size] = data[at : at + size]
            device.scatter(heads, places, out)
        finally:
            wipe_any(heads)

    def _shrink(self, out: memoryview, packed: int | None) -> list[tuple[int, int]]:
        """Mends the headers, which lie where they belong, or packed from there on; returns for each
        where it belongs, and its size."""
        overhead = self._crypto.page_overhead if self._crypto is not None else 0
        places = []
        for headers in self._headers:
            for i, (start, size, sealed) in enumerate(
                zip(headers.starts, headers.sizes, headers.pages, strict=True)
            ):
                at = start if packed is None else packed
                out[at : at + size] = shrink(
                    out[at : at + size], sealed, sealed - overhead, headers.place, i
                )
                if packed is not None:
                    places.append((start, size))
                    packed += size
        return places


def _places(chunk: Chunk, first: int, rest: int) -> Callable[[int], Place]:
    """The place of each module of a kind, by its number in the chunk."""

    def place(number: int) -> Place:
        page = number - chunk.dictionary
        return chunk.place(first) if page < 0 else chunk.place(rest, page)

    return place

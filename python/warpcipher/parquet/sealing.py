# SPDX-License-Identifier: Apache-2.0
"""Chunks encrypted: the pages of plain chunks found by their headers, and a batch over them all."""

from __future__ import annotations

from dataclasses import dataclass

from ..formats import FormatError
from . import metadata as md
from .crypto import MOST_ORDINAL, OVERHEAD, FileCrypto, ModuleBatch
from .file import DecryptedChunk
from .thrift import read, read_whole, write


def seal_header(header: bytes, what: str, overhead: int) -> tuple[bytes, int, int, int]:
    """A plain page's header for the encrypted page, with the type of the page, its plain size and
    the size that its content will unpack to. The CRC would cover the ciphertext: it is left out."""
    fields = read_whole(header, md.PAGE_HEADER_SHAPE, what)
    kind = md.integer(fields, md.PAGE_TYPE, f"{what}: the type of the page")
    size = md.integer(fields, md.COMPRESSED_PAGE_SIZE, f"{what}: the size of the page")
    unpacked = md.integer(fields, md.UNCOMPRESSED_PAGE_SIZE, f"{what}: the size of the page")
    if size + overhead > 0x7FFFFFFF:
        raise FormatError(f"{what}: a page of {size} bytes has no room for encryption")
    fields.pop(md.CRC, None)
    md.set_integer(fields, md.COMPRESSED_PAGE_SIZE, size + overhead)
    return write(fields), kind, size, unpacked


_DATA_PAGES = (0, 3)
_FIRST_LOOK = 256


@dataclass(slots=True)
class Sealed:
    """A chunk in the encrypted file.

    decrypted: the plain chunk. start, size: in the file. data: where its first data page is. pages:
    of each data page where its header lay in the plain image and lies in the file, and the bytes of
    both modules. unpacked: total_uncompressed_size. modules: how many it has.
    """

    decrypted: DecryptedChunk
    start: int
    size: int
    data: int
    dictionary: bool
    pages: list[tuple[int, int, int]]
    unpacked: int
    modules: int


class Sealing:
    """The encryption of plain chunks that lie in one buffer.

    plain: the buffer. base: where its first byte lies in the plain image. start: where the first
    chunk goes in the file.
    """

    def __init__(
        self, plain: memoryview, base: int, start: int, crypto: FileCrypto, engine: str
    ) -> None:
        self._plain = plain
        self._base = base
        self._crypto = crypto
        self._pages = ModuleBatch(engine)
        self._heads = ModuleBatch(engine)
        self._head_bytes = bytearray()
        self._copies: list[tuple[int, int, int]] = []
        self.start = start
        self.size = 0

    def copy(self, decrypted: DecryptedChunk) -> Sealed:
        """Takes a chunk as it is."""
        self._copies.append((decrypted.start - self._base, self.size, decrypted.size))
        start = self.start + self.size
        self.size += decrypted.size
        unpacked = (
            md.integer(decrypted.chunk.meta, md.UNCOMPRESSED_SIZE, "a size") - decrypted.shrunk
        )
        # 0, of a row group without rows, means without a data page, and stays so.
        data = start + decrypted.data - decrypted.start if decrypted.chunk.data else 0
        moved = [
            (before, start + before - decrypted.start, size) for _, before, size in decrypted.pages
        ]
        has_dictionary, unpacked = bool(decrypted.chunk.dictionary), max(unpacked, 0)
        return Sealed(decrypted, start, decrypted.size, data, has_dictionary, moved, unpacked, 0)

    def add(self, decrypted: DecryptedChunk, ordinal: int, key: bytes) -> Sealed:
        """Takes a chunk to encrypt; `ordinal`: of its row group.

        Raises FormatError where its pages cannot be found, ValueError where they are too many.
        """
        chunk = decrypted.chunk
        what = chunk.what
        crypto, overhead = self._crypto, self._crypto.page_overhead
        headers: list[bytes] = []
        pages: list[tuple[int, int, int]] = []  # header, page, size of the page: in the buffer
        unpacked = 0
        dictionary = False
        at = decrypted.start - self._base
        end = at + decrypted.size
        while at < end:
            length = _header_length(self._plain, at, end, what)
            header, kind, size, plain_size = seal_header(
                bytes(self._plain[at : at + length]), f"{what}: a page header", overhead
            )
            if kind == md.DICTIONARY_PAGE and not pages:
                dictionary = True
            elif kind not in _DATA_PAGES:
                raise FormatError(f"{what}: a page of type {kind} as its number {len(pages)}")
            if size > end - at - length:
                raise FormatError(f"{what}: a page of {size} bytes goes beyond its chunk")
            headers.append(header)
            pages.append((at, at + length, size))
            unpacked += len(header) + OVERHEAD + plain_size
            at += length + size
        count = len(pages)
        if count - dictionary > MOST_ORDINAL + 1:
            raise ValueError(
                f"{what}: {count - dictionary} pages: the format numbers {MOST_ORDINAL + 1}"
            )
        head_at, page_at, texts = [], [], []
        text = len(self._head_bytes)
        out = self.size
        for header, (_, _, size) in zip(headers, pages, strict=True):
            head_at.append(out)
            texts.append(text)
            text += len(header)
            page_at.append(out + len(header) + OVERHEAD)
            out = page_at[-1] + size + overhead
        head_aads, page_aads = crypto.page_aads(ordinal, chunk.column, dictionary, count)

        self._heads.add(key, head_at, texts, [len(header) for header in headers], head_aads)
        self._head_bytes += b"".join(headers)
        self._pages.add(
            key,
            page_at,
            [page for _, page, _ in pages],
            [size for _, _, size in pages],
            page_aads if overhead == OVERHEAD else None,
        )
        start = self.start + self.size
        size = out - self.size
        ends = [*head_at, out][1:]
        moved = [
            (page[0] + self._base, self.start + head, after - head)
            for page, head, after in zip(pages, head_at, ends, strict=True)
        ]
        # 0: there is a dictionary, and no data page after it.
        data = start if not dictionary else moved[1][1] if count > 1 else 0
        self.size = out
        return Sealed(
            decrypted, start, size, data, dictionary, moved[dictionary:], unpacked, 2 * count
        )

    def run(self, out: memoryview) -> None:
        """Encrypts into `out`, of `size` bytes, under fresh nonces."""
        self._pages.run(self._plain, out)
        self._heads.run(bytes(self._head_bytes), out)
        for at, to, size in self._copies:
            out[to : to + size] = self._plain[at : at + size]


def _header_length(plain: memoryview, start: int, end: int, what: str) -> int:
    """Bytes of the page header at `start`: statistics may make it long."""
    window = _FIRST_LOOK
    while True:
        part = bytes(plain[start : min(start + window, end)])
        try:
            return read(part, {}, f"{what}: a page header")[1]
        except FormatError:
            if start + window >= end:
                raise
        window *= 16

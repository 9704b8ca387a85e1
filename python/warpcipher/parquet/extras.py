# SPDX-License-Identifier: Apache-2.0
"""The parts of a chunk that lie outside of it: column index, offset index, Bloom filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ..formats import FormatError
from . import metadata as md
from .crypto import LENGTH, OVERHEAD, Kind, open_modules
from .file import ABSENT, BaseFile, Chunk, DecryptedChunk
from .thrift import Struct, first_struct, read

_LONGEST_BLOOM_HEADER = 64
_Parts: TypeAlias = dict[Kind, bytes | None]


class Extras(NamedTuple):
    """The plain bytes of each, None where a chunk has none. offset_index: decoded, with the offsets
    of the file. bloom: header and bits."""

    column_index: bytes | None
    offset_index: Struct | None
    bloom: tuple[bytes, bytes] | None


def read_extras(file: BaseFile, chunks: Sequence[Chunk]) -> list[Extras]:
    """The extras of these chunks, all modules of all in one batch."""
    parts = [
        {
            Kind.COLUMN_INDEX: _index(file, chunk.column_index, chunk.column_index_size),
            Kind.OFFSET_INDEX: _index(file, chunk.offset_index, chunk.offset_index_size),
            **_bloom(file, chunk),
        }
        for chunk in chunks
    ]
    if file.crypto is not None:
        sealed = [
            (found, kind, (part, chunk.key, chunk.place(kind)))
            for chunk, found in zip(chunks, parts, strict=True)
            if chunk.key is not None
            for kind, part in found.items()
            if part is not None
        ]
        plain = open_modules([module for _, _, module in sealed], file.crypto, file.engine)
        for (found, kind, _), text in zip(sealed, plain, strict=True):
            found[kind] = text
    return [_decoded(chunk, found) for chunk, found in zip(chunks, parts, strict=True)]


def _decoded(chunk: Chunk, found: _Parts) -> Extras:
    def struct(kind: Kind) -> bytes | None:
        text = found.get(kind)
        return None if text is None else first_struct(text, str(chunk.place(kind)))

    header, bits = struct(Kind.BLOOM_FILTER_HEADER), found.get(Kind.BLOOM_FILTER_BITSET)
    decoded = None
    if (index := found[Kind.OFFSET_INDEX]) is not None:
        decoded, _ = read(index, md.OFFSET_INDEX_SHAPE, str(chunk.place(Kind.OFFSET_INDEX)))
    bloom = None if header is None or bits is None else (header, bits)
    return Extras(struct(Kind.COLUMN_INDEX), decoded, bloom)


def _index(file: BaseFile, offset: int, length: int) -> bytes | None:
    return None if ABSENT in (offset, length) else bytes(file.source.read(offset, length))


def _bloom(file: BaseFile, chunk: Chunk) -> _Parts:
    offset = chunk.bloom
    if offset == ABSENT:
        return {}
    place = chunk.place(Kind.BLOOM_FILTER_HEADER)
    if chunk.key is None:
        left = max(file.source.size - offset, 0)
        head = bytes(file.source.read(offset, min(_LONGEST_BLOOM_HEADER, left)))
        fields, end = read(head, md.BLOOM_SHAPE, str(place))
        size = md.integer(fields, md.BLOOM_BYTES, f"{place}: the size of its bits")
        bits = bytes(file.source.read(offset + end, size))
        return {Kind.BLOOM_FILTER_HEADER: head[:end], Kind.BLOOM_FILTER_BITSET: bits}
    found: _Parts = {}
    for kind in (Kind.BLOOM_FILTER_HEADER, Kind.BLOOM_FILTER_BITSET):
        length = int.from_bytes(file.source.read(offset, LENGTH), "little") + LENGTH
        if length < OVERHEAD:
            raise FormatError(f"{chunk.place(kind)}: a module of {length} bytes")
        found[kind] = bytes(file.source.read(offset, length))
        offset += length
    return found


def move_offset_index(index: Struct, decrypted: DecryptedChunk) -> Struct:
    """An OffsetIndex whose pages lie where the image has them."""
    chunk = decrypted.chunk
    what = str(chunk.place(Kind.OFFSET_INDEX))
    if chunk.key is None:
        return shift_pages(index, decrypted.start - chunk.start, what)
    return place_pages(index, decrypted.pages, what)


def shift_pages(index: Struct, by: int, what: str) -> Struct:
    """An OffsetIndex with each page moved by so many bytes."""
    for location in md.structs(index, md.PAGE_LOCATIONS, what):
        offset = md.integer(location, md.LOCATION_OFFSET, f"{what}: an offset")
        md.set_integer(location, md.LOCATION_OFFSET, max(offset + by, 0))
    return index


def place_pages(index: Struct, pages: Sequence[tuple[int, int, int]], what: str) -> Struct:
    """An OffsetIndex with each page (where it was, where it is, its size now) moved.

    Raises FormatError where it does not have these pages.
    """
    locations = md.structs(index, md.PAGE_LOCATIONS, what)
    if len(locations) != len(pages):
        raise FormatError(f"{what}: it has {len(locations)} pages, and the chunk {len(pages)}")
    for location, (before, now, size) in zip(locations, pages, strict=True):
        if md.integer(location, md.LOCATION_OFFSET, f"{what}: an offset") != before:
            raise FormatError(f"{what}: a page is not where it says")
        md.set_integer(location, md.LOCATION_OFFSET, now)
        md.set_integer(location, md.LOCATION_SIZE, size)
    return index

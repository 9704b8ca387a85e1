# SPDX-License-Identifier: Apache-2.0
"""What belongs to a chunk and lies outside of it: column index, offset index, Bloom filter."""

from __future__ import annotations

from ..formats import FormatError
from . import metadata as md
from .file import Chunk, File
from .modules import (
    BLOOM_BITSET,
    BLOOM_HEADER,
    COLUMN_INDEX,
    LENGTH,
    OFFSET_INDEX,
    OVERHEAD,
    open_module,
)
from .opening import Opened
from .plain_metadata import move_offset_index
from .thrift import read

_LONGEST_BLOOM_HEADER = 64


def column_index(file: File, chunk: Chunk) -> bytes | None:
    """The ColumnIndex of a chunk, decrypted; None where it has none."""
    return _index(file, chunk, COLUMN_INDEX, md.COLUMN_INDEX_OFFSET, md.COLUMN_INDEX_LENGTH)


def offset_index(file: File, chunk: Chunk) -> bytes | None:
    """The OffsetIndex of a chunk, decrypted; None where it has none. Its offsets are the file's."""
    return _index(file, chunk, OFFSET_INDEX, md.OFFSET_INDEX_OFFSET, md.OFFSET_INDEX_LENGTH)


def moved_offset_index(file: File, opened: Opened) -> bytes | None:
    """The OffsetIndex of a chunk as an image has it."""
    data = offset_index(file, opened.chunk)
    if data is None:
        return None
    return move_offset_index(data, opened, str(opened.chunk.place(OFFSET_INDEX)))


def _index(
    file: File, chunk: Chunk, kind: int, offset_field: int, length_field: int
) -> bytes | None:
    if offset_field not in chunk.fields or length_field not in chunk.fields:
        return None
    place = chunk.place(kind)
    offset = md.integer(chunk.fields, offset_field, f"{place}: its offset")
    length = md.integer(chunk.fields, length_field, f"{place}: its length")
    data = file.source.read(offset, length)
    if chunk.key is None or file.crypto is None:
        return bytes(data)
    return open_module(data, chunk.key, file.crypto, place, file.engine)


def bloom(file: File, chunk: Chunk) -> tuple[bytes, bytes] | None:
    """The Bloom filter of a chunk, header and bits, decrypted; None where it has none."""
    if md.BLOOM_OFFSET not in chunk.meta:
        return None
    place = chunk.place(BLOOM_HEADER)
    offset = md.integer(chunk.meta, md.BLOOM_OFFSET, f"{place}: its offset")
    if chunk.key is None or file.crypto is None:
        left = file.source.size - offset
        head = bytes(file.source.read(offset, min(_LONGEST_BLOOM_HEADER, left)))
        fields, end = read(head, md.BLOOM_SHAPE, str(place))
        size = md.integer(fields, md.BLOOM_BYTES, f"{place}: the size of its bits")
        return head[:end], bytes(file.source.read(offset + end, size))
    found = []
    for kind in (BLOOM_HEADER, BLOOM_BITSET):
        length = int.from_bytes(file.source.read(offset, LENGTH), "little") + LENGTH
        if length < OVERHEAD:
            raise FormatError(f"{chunk.place(kind)}: a module of {length} bytes")
        module = file.source.read(offset, length)
        found.append(open_module(module, chunk.key, file.crypto, chunk.place(kind), file.engine))
        offset += length
    return found[0], found[1]

# SPDX-License-Identifier: Apache-2.0
"""The metadata of a plain image: a footer without encryption, with every offset and size as it is
there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import metadata as md
from .file import Chunk, File
from .opening import Opened
from .thrift import I32, I64, LIST, STRUCT, Struct, write

_ENCRYPTION = (md.CRYPTO_METADATA, md.ENCRYPTED_METADATA)
_INDEXES = (
    md.OFFSET_INDEX_OFFSET,
    md.OFFSET_INDEX_LENGTH,
    md.COLUMN_INDEX_OFFSET,
    md.COLUMN_INDEX_LENGTH,
)


class Places(NamedTuple):
    """Where what belongs to a chunk lies in the image, (offset, length) each; None: not there."""

    column_index: tuple[int, int] | None = None
    offset_index: tuple[int, int] | None = None
    bloom: tuple[int, int] | None = None


NOWHERE = Places()


def plain_chunk(opened: Opened, places: Places) -> Struct:
    """The ColumnChunk of a chunk in an image."""
    chunk = opened.chunk
    fields = dict(chunk.fields)
    for number in (*_ENCRYPTION, *_INDEXES):
        fields.pop(number, None)
    had_offset = md.integer(fields, md.FILE_OFFSET, "an offset", 0)
    md.set_integer(fields, md.FILE_OFFSET, opened.start if had_offset else 0)
    fields[md.META_DATA] = STRUCT, _plain_meta(opened, places)
    for entry, offset, length in (
        (places.offset_index, md.OFFSET_INDEX_OFFSET, md.OFFSET_INDEX_LENGTH),
        (places.column_index, md.COLUMN_INDEX_OFFSET, md.COLUMN_INDEX_LENGTH),
    ):
        if entry is not None:
            fields[offset] = I64, entry[0]
            fields[length] = I32, entry[1]
    return fields


def _plain_meta(opened: Opened, places: Places) -> Struct:
    chunk = opened.chunk
    meta = dict(chunk.meta)
    meta.pop(md.BLOOM_OFFSET, None)
    meta.pop(md.BLOOM_LENGTH, None)
    if places.bloom is not None:
        meta[md.BLOOM_OFFSET] = I64, places.bloom[0]
        meta[md.BLOOM_LENGTH] = I32, places.bloom[1]
    # It counts what the encryption of the page headers added, but not that of the pages.
    unpacked = md.integer(meta, md.UNCOMPRESSED_SIZE, "a size") - opened.shrunk
    md.set_integer(meta, md.UNCOMPRESSED_SIZE, max(unpacked, 0))
    md.set_integer(meta, md.COMPRESSED_SIZE, opened.size)
    if md.integer(meta, md.DATA_PAGE_OFFSET, "an offset"):
        md.set_integer(meta, md.DATA_PAGE_OFFSET, opened.data)
    if chunk.dictionary:
        md.set_integer(meta, md.DICTIONARY_PAGE_OFFSET, opened.start)
    if md.INDEX_PAGE_OFFSET in meta:
        index = md.integer(meta, md.INDEX_PAGE_OFFSET, "an offset")
        if chunk.key is not None or not chunk.start <= index < chunk.start + chunk.size:
            del meta[md.INDEX_PAGE_OFFSET]
        else:
            md.set_integer(meta, md.INDEX_PAGE_OFFSET, index - chunk.start + opened.start)
    return meta


def plain_footer(
    file: File,
    row_groups: Sequence[int],
    opened: Mapping[tuple[int, int], Opened],
    places: Mapping[tuple[int, int], Places],
) -> bytes:
    """The footer of an image of these row groups; columns that are not in `opened` are empty."""
    fields = dict(file.footer.fields)
    fields.pop(md.ENCRYPTION_ALGORITHM, None)
    fields.pop(md.FOOTER_KEY_METADATA, None)
    groups = []
    rows = 0
    for ordinal, number in enumerate(row_groups):
        group = dict(file.row_groups[number])
        columns: list[Struct] = []
        unpacked = packed = 0
        first = None
        for column in range(len(file.leaves)):
            found = opened.get((number, column))
            if found is None:
                meta = file.stub(number, column)
                columns.append({md.FILE_OFFSET: (I64, 0), md.META_DATA: (STRUCT, meta)})
                continue
            chunk = plain_chunk(found, places.get((number, column), NOWHERE))
            columns.append(chunk)
            unpacked += chunk[md.META_DATA][1][md.UNCOMPRESSED_SIZE][1]
            packed += found.size
            first = found.start if first is None else min(first, found.start)
        group[md.COLUMNS] = LIST, (STRUCT, columns)
        md.set_integer(group, md.TOTAL_BYTE_SIZE, unpacked)
        for field, value in (
            (md.GROUP_OFFSET, first or 4),
            (md.GROUP_COMPRESSED_SIZE, packed),
            (md.ORDINAL, ordinal),
        ):
            if field in group:
                md.set_integer(group, field, value)
        rows += md.integer(group, md.GROUP_ROWS, "the rows of a row group")
        groups.append(group)
    fields[md.ROW_GROUPS] = LIST, (STRUCT, groups)
    md.set_integer(fields, md.NUM_ROWS, rows)
    return write(fields)


def overview(file: File) -> bytes:
    """The footer with nothing but the encryption taken out: what is known before data is read.
    Sizes and offsets are those of the file; columns without a key are empty."""
    groups = range(len(file.row_groups))
    return plain_footer(file, groups, in_place(file.chunks(groups, file.readable())), {})


def in_place(chunks: Sequence[Chunk]) -> dict[tuple[int, int], Opened]:
    """Chunks where they lie in the encrypted file, as if they were as long there."""
    found = {}
    for chunk in chunks:
        first = md.integer(chunk.meta, md.DATA_PAGE_OFFSET, "an offset")
        opened = Opened(chunk, chunk.start, chunk.size, first, 0)
        found[chunk.row_group, chunk.column] = opened
    return found

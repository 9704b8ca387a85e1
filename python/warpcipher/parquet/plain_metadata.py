# SPDX-License-Identifier: Apache-2.0
"""The metadata of a plain image: a footer without encryption, with every offset and size as it is
there."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import metadata as md
from .file import ABSENT, File
from .opened import Opened
from .thrift import LIST, refusing, write


class Places(NamedTuple):
    """Where what belongs to a chunk lies in the image, (offset, length) each; None: not there."""

    column_index: tuple[int, int] | None = None
    offset_index: tuple[int, int] | None = None
    bloom: tuple[int, int] | None = None


NOWHERE = Places()
_FIELDS = 12
_LEFT_OUT = array("Q", bytes(8 * _FIELDS))


def _entry(opened: Opened, places: Places) -> tuple[int, ...]:
    """A chunk as `_native.RowGroups.write_plain` takes it: PlainChunk in
    src/parquet/row_groups.hpp."""
    chunk = opened.chunk
    numbers = [1, chunk.key is not None, opened.start, opened.size, opened.data, opened.shrunk]
    for place in places:
        numbers += (ABSENT, 0) if place is None else place
    return tuple(numbers)


def plain_footer(
    file: File,
    row_groups: Sequence[int],
    opened: Mapping[tuple[int, int], Opened],
    places: Mapping[tuple[int, int], Places],
) -> bytes:
    """The footer of an image of these row groups; columns that are not in `opened` are empty."""
    chunks = array("Q")
    for number in row_groups:
        for column in range(len(file.leaves)):
            found = opened.get((number, column))
            chunks.extend(
                _LEFT_OUT if found is None else _entry(found, places.get((number, column), NOWHERE))
            )
    return _write(file, row_groups, memoryview(chunks))


def footer_in_place(file: File, row_groups: Sequence[int], columns: Sequence[int]) -> bytes:
    """The footer with nothing but the encryption taken out: what is known before data is read.
    Sizes and offsets are those of the file; other columns are empty."""
    file.open_metadata(row_groups, columns)
    with refusing():
        chunks = file.groups.in_place(row_groups, columns, file.source.size)
    return _write(file, row_groups, memoryview(chunks).cast("Q"))


def overview(file: File) -> bytes:
    """The same of all row groups and the columns whose keys are there."""
    return footer_in_place(file, range(file.num_row_groups), file.readable())


def _write(file: File, row_groups: Sequence[int], chunks: memoryview) -> bytes:
    fields = dict(file.footer.outline)
    fields.pop(md.ENCRYPTION_ALGORITHM, None)
    fields.pop(md.FOOTER_KEY_METADATA, None)
    with refusing():
        text = file.groups.write_plain(row_groups, chunks, [md.stub(leaf) for leaf in file.leaves])
        rows = sum(map(file.groups.rows, row_groups))
    fields[md.ROW_GROUPS] = -LIST, text
    md.set_integer(fields, md.NUM_ROWS, rows)
    return write(fields)

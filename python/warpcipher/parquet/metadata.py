# SPDX-License-Identifier: Apache-2.0
"""The fields of Parquet's metadata that encryption touches, by their numbers in parquet.thrift;
every other field passes through as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..formats import FormatError
from .thrift import BINARY, I16, I32, I64, LIST, Shape, Struct, write

# FileMetaData
SCHEMA, NUM_ROWS, ROW_GROUPS, CREATED_BY = 2, 3, 4, 6
ENCRYPTION_ALGORITHM, FOOTER_KEY_METADATA = 8, 9
# SchemaElement
ELEMENT_TYPE, ELEMENT_NAME, ELEMENT_CHILDREN = 1, 4, 5
# RowGroup
COLUMNS, TOTAL_BYTE_SIZE, GROUP_ROWS = 1, 2, 3
GROUP_OFFSET, GROUP_COMPRESSED_SIZE, ORDINAL = 5, 6, 7
# ColumnChunk
FILE_PATH, FILE_OFFSET, META_DATA = 1, 2, 3
OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH = 4, 5
COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH = 6, 7
CRYPTO_METADATA, ENCRYPTED_METADATA = 8, 9
# ColumnMetaData
TYPE, ENCODINGS, PATH, CODEC = 1, 2, 3, 4
UNCOMPRESSED_SIZE, COMPRESSED_SIZE, DATA_PAGE_OFFSET = 6, 7, 9
INDEX_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET = 10, 11
BLOOM_OFFSET, BLOOM_LENGTH = 14, 15
SENSITIVE = (8, 12, 13, 16, 17)
"""Key-value metadata, statistics, encoding, size and geospatial statistics: a plaintext footer
must not say these of an encrypted column."""
# PageHeader
PAGE_TYPE, UNCOMPRESSED_PAGE_SIZE, COMPRESSED_PAGE_SIZE, CRC = 1, 2, 3, 4
DICTIONARY_PAGE = 2
# OffsetIndex and PageLocation
PAGE_LOCATIONS = 1
LOCATION_OFFSET, LOCATION_SIZE = 1, 2
# BloomFilterHeader
BLOOM_BYTES = 1
# EncryptionAlgorithm, AesGcmV1, FileCryptoMetaData, ColumnCryptoMetaData
AAD_PREFIX, AAD_FILE_UNIQUE, SUPPLY_AAD_PREFIX = 1, 2, 3
CRYPTO_ALGORITHM, CRYPTO_KEY_METADATA = 1, 2
WITH_FOOTER_KEY, WITH_COLUMN_KEY = 1, 2
COLUMN_KEY_PATH, COLUMN_KEY_METADATA = 1, 2


def _fields(*numbers: int) -> dict[int, Shape | None]:
    """The shape that asks for these fields, none of which is a struct."""
    return dict.fromkeys(numbers)


COLUMN_META_SHAPE: Shape = {
    **_fields(TYPE, UNCOMPRESSED_SIZE, COMPRESSED_SIZE, DATA_PAGE_OFFSET, INDEX_PAGE_OFFSET),
    **_fields(DICTIONARY_PAGE_OFFSET, BLOOM_OFFSET, BLOOM_LENGTH),
}
_ALGORITHM: Shape = _fields(AAD_PREFIX, AAD_FILE_UNIQUE, SUPPLY_AAD_PREFIX)
ALGORITHM_SHAPE: Shape = {1: _ALGORITHM, 2: _ALGORITHM}
CRYPTO_SHAPE: Shape = {WITH_FOOTER_KEY: {}, WITH_COLUMN_KEY: _fields(COLUMN_KEY_METADATA)}
COLUMN_CHUNK_SHAPE: Shape = {
    **_fields(FILE_PATH, FILE_OFFSET, OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH),
    **_fields(COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH, ENCRYPTED_METADATA),
    META_DATA: COLUMN_META_SHAPE,
    CRYPTO_METADATA: CRYPTO_SHAPE,
}
ROW_GROUP_SHAPE: Shape = {
    **_fields(TOTAL_BYTE_SIZE, GROUP_ROWS, GROUP_OFFSET, GROUP_COMPRESSED_SIZE, ORDINAL),
    COLUMNS: COLUMN_CHUNK_SHAPE,
}
OUTLINE_SHAPE: Shape = {
    **_fields(NUM_ROWS, CREATED_BY, FOOTER_KEY_METADATA),
    SCHEMA: _fields(ELEMENT_TYPE, ELEMENT_NAME, ELEMENT_CHILDREN),
    ENCRYPTION_ALGORITHM: ALGORITHM_SHAPE,
}
FOOTER_SHAPE: Shape = {**OUTLINE_SHAPE, ROW_GROUPS: ROW_GROUP_SHAPE}
FILE_CRYPTO_SHAPE: Shape = {CRYPTO_ALGORITHM: ALGORITHM_SHAPE, CRYPTO_KEY_METADATA: None}
PAGE_HEADER_SHAPE: Shape = _fields(PAGE_TYPE, UNCOMPRESSED_PAGE_SIZE, COMPRESSED_PAGE_SIZE, CRC)
OFFSET_INDEX_SHAPE: Shape = {PAGE_LOCATIONS: _fields(LOCATION_OFFSET, LOCATION_SIZE)}
BLOOM_SHAPE: Shape = _fields(BLOOM_BYTES)


class Leaf(NamedTuple):
    """A column: the names from the top of the schema down to it, and its physical type."""

    path: tuple[str, ...]
    type: int

    @property
    def name(self) -> str:
        """The path as readers write it."""
        return ".".join(self.path)


def integer(fields: Struct, number: int, what: str, default: int | None = None) -> int:
    """A field that counts something; FormatError where it is missing, negative or no integer."""
    kind, value = fields.get(number, (0, default))
    if type(value) is not int or value < 0 or kind < 0:
        given = "missing" if value is None else f"{value!r:.40}"
        raise FormatError(f"{what} is {given}: expected an integer that is not negative")
    return value


def binary(fields: Struct, number: int, what: str) -> bytes | None:
    """A field of bytes, None where it is not there."""
    kind, value = fields.get(number, (BINARY, None))
    if kind != BINARY:
        raise FormatError(f"{what} has type {abs(kind)}: expected binary")
    return value  # type: ignore[no-any-return]


def structs(fields: Struct, number: int, what: str) -> list[Struct]:
    """A field that is a list of structs."""
    kind, value = fields.get(number, (0, None))
    if kind != LIST or (value[1] and not isinstance(value[1][0], dict)):
        raise FormatError(f"{what}: expected a list of structs")
    return value[1]  # type: ignore[no-any-return]


def substruct(fields: Struct, number: int) -> Struct | None:
    """A field that is a struct, None where it is not there."""
    value: Any = fields.get(number, (0, None))[1]
    return value if isinstance(value, dict) else None


def set_integer(fields: Struct, number: int, value: int, kind: int = I64) -> None:
    """Sets a field, of its own type where it is there already; FormatError where that is none of
    an integer."""
    own = fields[number][0] if number in fields else kind
    if own not in (I16, I32, I64):
        raise FormatError(
            f"field {number} of the metadata has type {abs(own)}: expected an integer"
        )
    fields[number] = own, value


def leaves(footer: Struct) -> tuple[Leaf, ...]:
    """The columns in the order of the schema, which is a tree in depth-first order."""
    elements = structs(footer, SCHEMA, "the schema")
    found: list[Leaf] = []
    open_groups: list[tuple[tuple[str, ...], int]] = []  # path, children still to come
    for number, element in enumerate(elements):
        children = integer(element, ELEMENT_CHILDREN, "a number of children", 0)
        while open_groups and open_groups[-1][1] == 0:
            open_groups.pop()
        path: tuple[str, ...] = ()
        if number:
            if not open_groups:
                raise FormatError(f"the schema has {len(elements)} elements, too many for its tree")
            above, left = open_groups[-1]
            open_groups[-1] = above, left - 1
            name = binary(element, ELEMENT_NAME, "a name in the schema") or b""
            path = (*above, name.decode("utf-8", "replace"))
        if len(path) > _DEEPEST_SCHEMA:
            raise FormatError(f"the schema is more than {_DEEPEST_SCHEMA} deep")
        if number == 0 or (children and ELEMENT_TYPE not in element):
            open_groups.append((path, children))
        elif ELEMENT_TYPE in element:
            found.append(Leaf(path, integer(element, ELEMENT_TYPE, "a type in the schema")))
    if not elements or any(left for _, left in open_groups):
        raise FormatError(f"the schema has {len(elements)} elements, too few for its tree")
    return tuple(found)


_DEEPEST_SCHEMA = 256


def stub(leaf: Leaf) -> bytes:
    """ColumnMetaData of a column that is not in an image, up to its codec and without an end."""
    fields: Struct = {
        TYPE: (I32, leaf.type),
        ENCODINGS: (LIST, (I32, [0])),
        PATH: (LIST, (BINARY, [part.encode() for part in leaf.path])),
        CODEC: (I32, 0),
    }
    return write(fields)[:-1]

# SPDX-License-Identifier: Apache-2.0
"""Encrypted Iceberg tables: the key metadata of manifests, and the data files that it opens.

    key metadata = version 1 | Avro record of
        encryption_key bytes, aad_prefix (null or bytes), file_length (null or long)

Data files are uniform Parquet encryption whose AAD prefix is not in the file. Manifests, their
lists and files of other formats are AGS1 streams (`warpcipher.formats`, format "ags1").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._protobuf import varint
from .._types import Buffer
from .._uncopied import Uncopied
from ..arguments import view_bytes
from ..formats import FormatError
from .keyring import check_key
from .reading import ParquetFile, open, read_table
from .storage import SourceLike

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

_VERSION = 1
_LONGEST = 10
_KEY = "the key of the key metadata"


@dataclass(frozen=True)
class StandardKeyMetadata(Uncopied):
    """The text of a manifest about the key of a file: `StandardKeyMetadata` of Iceberg.

    encryption_key: 16, 24 or 32 bytes; others are a ValueError. aad_prefix: None where there is
    none. file_length: in bytes, of the encrypted file, None if it is not known; a shorter file
    was cut.
    """

    encryption_key: bytes = field(repr=False)
    aad_prefix: bytes | None = None
    file_length: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "encryption_key", check_key(self.encryption_key, _KEY))
        if self.file_length is not None and self.file_length < 0:
            raise ValueError(f"file_length is {self.file_length}: expected 0 or more bytes")

    @classmethod
    def from_bytes(cls, data: Buffer) -> StandardKeyMetadata:
        """Reads it as a manifest has it. Raises FormatError."""
        reader = _Reader(bytes(view_bytes("key_metadata", data)))
        version = reader.byte()
        if version != _VERSION:
            raise FormatError(f"key metadata of version {version}: expected {_VERSION}")
        key = reader.bytes()
        prefix = reader.bytes() if reader.is_there() else None
        # Older writers know of no length.
        length = reader.long() if reader.left and reader.is_there() else None
        if reader.left:
            raise FormatError(f"key metadata: {reader.left} bytes follow its end")
        if length is not None and length < 0:
            raise FormatError(f"key metadata: a file of {length} bytes")
        return cls(key, prefix, length)

    def to_bytes(self) -> bytes:
        """As a manifest has it."""
        out = bytes([_VERSION]) + _bytes(self.encryption_key)
        out += b"\0" if self.aad_prefix is None else b"\2" + _bytes(self.aad_prefix)
        return out + (b"\0" if self.file_length is None else b"\2" + _long(self.file_length))


def open_data_file(
    source: SourceLike, key_metadata: Buffer, *, engine: str = "auto"
) -> ParquetFile:
    """Opens an encrypted data file of a table, as `open` does.

    key_metadata: of its entry in the manifest. Raises as `open`; FormatError where the file has not
    the length that the manifest says.
    """
    known = StandardKeyMetadata.from_bytes(key_metadata)
    file = open(source, known.encryption_key, aad_prefix=known.aad_prefix, engine=engine)
    if known.file_length not in (None, file.source.size):
        size = file.source.size
        file.close()
        raise FormatError(f"the file has {size} bytes, and {known.file_length} by its key metadata")
    return file


def read_data_file(
    source: SourceLike,
    key_metadata: Buffer,
    columns: Iterable[str] | None = None,
    *,
    engine: str = "auto",
) -> pyarrow.Table:
    """The table in an encrypted data file. Arguments as for `open_data_file` and `read_table`."""
    with open_data_file(source, key_metadata, engine=engine) as file:
        return read_table(file, columns=columns)


class _Reader:
    """Avro's binary encoding, as far as the record needs it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def byte(self) -> int:
        if not self.left:
            raise FormatError(f"key metadata: cut short after {len(self._data)} bytes")
        self._at += 1
        return self._data[self._at - 1]

    def long(self) -> int:
        value = 0
        for shift in range(0, 7 * _LONGEST, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value >> 1 ^ -(value & 1)
        raise FormatError("key metadata: an integer of more than 64 bits")

    def bytes(self) -> bytes:
        size = self.long()
        if not 0 <= size <= self.left:
            raise FormatError(f"key metadata: {size} bytes where {self.left} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def is_there(self) -> bool:
        """The branch of a union of null and something."""
        branch = self.long()
        if branch not in (0, 1):
            raise FormatError(f"key metadata: branch {branch} of a union of two")
        return branch == 1


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


def _long(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)  # zigzag, as thrift has it

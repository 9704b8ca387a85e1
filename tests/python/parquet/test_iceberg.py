# SPDX-License-Identifier: Apache-2.0
"""Iceberg's key metadata, against an Avro library, and the data files that it opens."""

from __future__ import annotations

import io
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import KEY, KEYS, table, write
from warpcipher import parquet
from warpcipher.formats import FormatError
from warpcipher.parquet import StandardKeyMetadata

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "StandardKeyMetadata",
    "fields": [
        {"name": "encryption_key", "type": "bytes"},
        {"name": "aad_prefix", "type": ["null", "bytes"]},
        {"name": "file_length", "type": ["null", "long"]},
    ],
}


@pytest.mark.parametrize("size", KEYS)
@pytest.mark.parametrize("prefix", [None, b"", b"p" * 200])
@pytest.mark.parametrize("length", [None, 0, 63, 64, 1 << 40])
def test_against_an_avro_library(size: int, prefix: bytes | None, length: int | None) -> None:
    fastavro = pytest.importorskip("fastavro")
    known = StandardKeyMetadata(KEYS[size], prefix, length)
    sink = io.BytesIO(b"\1")
    sink.seek(1)
    record = {"encryption_key": KEYS[size], "aad_prefix": prefix, "file_length": length}
    fastavro.schemaless_writer(sink, SCHEMA, record)
    assert known.to_bytes() == sink.getvalue()
    assert StandardKeyMetadata.from_bytes(sink.getvalue()) == known
    assert KEYS[size].hex() not in repr(known)
    assert repr(KEYS[size])[2:-1] not in repr(known)


def test_metadata_of_writers_that_know_no_length() -> None:
    data = StandardKeyMetadata(KEY, b"p").to_bytes()[:-1]
    assert StandardKeyMetadata.from_bytes(data) == StandardKeyMetadata(KEY, b"p")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "cut short after 0 bytes"),
        (b"\2", "of version 2: expected 1"),
        (b"\1\x20abc", "16 bytes where 3 are left"),
        (b"\1\x1fabc", "-16 bytes where 3 are left"),
        (b"\1" + b"\xff" * 12, "more than 64 bits"),
        (b"\1\x20" + KEY, "cut short after 18 bytes"),
        (b"\1\x20" + KEY + b"\4", "branch 2 of a union of two"),
        (b"\1\x20" + KEY + b"\0\2\1", "a file of -1 bytes"),
        (b"\1\x20" + KEY + b"\0\0x", "1 bytes follow its end"),
        (b"\1\6abc\0\0", "has 3 bytes: AES takes 16, 24 or 32"),
    ],
)
def test_what_is_no_key_metadata(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        StandardKeyMetadata.from_bytes(data)


@pytest.mark.parametrize("size", [0, 15, 17, 33])
def test_metadata_of_no_aes_key_cannot_be_made(size: int) -> None:
    with pytest.raises(ValueError, match=f"has {size} bytes: AES takes 16, 24 or 32"):
        StandardKeyMetadata(bytes(size))
    with pytest.raises(ValueError, match="file_length is -1"):
        StandardKeyMetadata(KEY, file_length=-1)


def test_data_files() -> None:
    prefix = b"an id of the file"
    data = write(table(), aad_prefix=prefix, store_aad_prefix=False)
    known = StandardKeyMetadata(KEY, prefix, len(data)).to_bytes()
    assert parquet.read_data_file(data, known).equals(table())
    assert parquet.read_data_file(data, known, ["a"]).equals(table().select(["a"]))
    with parquet.open_data_file(data, known) as file:
        assert file.num_rows == 500
    other = StandardKeyMetadata(KEY, b"another", len(data)).to_bytes()
    with pytest.raises(wc.InvalidTag):
        parquet.read_data_file(data, other)
    longer = StandardKeyMetadata(KEY, prefix, len(data) + 1).to_bytes()
    with pytest.raises(FormatError, match=rf"has {len(data)} bytes, and {len(data) + 1} by its"):
        parquet.read_data_file(data, longer)

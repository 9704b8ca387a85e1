# SPDX-License-Identifier: Apache-2.0
"""Parquet files with modular encryption, read and written without decoding a page.

    from warpcipher import parquet

    table = parquet.read_table("t.parquet", key)               # pyarrow.Table
    parquet.to_plain("t.parquet", key, "plain.parquet")        # for any other reader
    with parquet.open("t.parquet", {b"key-id": key}) as file:
        chunks = file.column_chunks(columns=["a"], device=0)

Everything of the format: AES_GCM_V1 and AES_GCM_CTR_V1, uniform files and column keys, encrypted
and signed plaintext footers, AAD prefixes, page indexes, Bloom filters. docs/parquet.md explains.
"""

from .file import ColumnInfo
from .keyring import MissingKeyError
from .reading import ChunkData, ColumnChunks, ParquetFile, open, read_table, to_plain

__all__ = [
    "ChunkData",
    "ColumnChunks",
    "ColumnInfo",
    "MissingKeyError",
    "ParquetFile",
    "open",
    "read_table",
    "to_plain",
]

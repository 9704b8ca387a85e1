# SPDX-License-Identifier: Apache-2.0
"""Parquet files with modular encryption, read and written without decoding a page.

    from warpcipher import parquet

    table = parquet.read_table("t.parquet", key)               # pyarrow.Table
    parquet.to_plain("t.parquet", key, "plain.parquet")        # for any other reader
    parquet.encrypt("plain.parquet", "t.parquet", parquet.EncryptionConfig(key))
    with parquet.open("t.parquet", {b"key-id": key}) as file:
        chunks = file.column_chunks(columns=["a"], device=0)

Everything of the format: AES_GCM_V1 and AES_GCM_CTR_V1, uniform files and column keys, encrypted
and signed plaintext footers, AAD prefixes, page indexes, Bloom filters. docs/parquet.md explains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _later
from .config import EncryptionConfig
from .encrypting import encrypt, rekey
from .file import ColumnInfo
from .iceberg import StandardKeyMetadata, open_data_file, read_data_file
from .keyring import MissingKeyError
from .kms import KmsClient, KmsKeys
from .many import find_files, read_dataset, read_tables
from .reading import (
    ChunkData,
    ColumnChunks,
    FileInfo,
    ParquetFile,
    column_chunks,
    inspect,
    open,
    read_table,
    to_plain,
)
from .rewrap import rewrap

if TYPE_CHECKING:
    from ..cluster.tables import read_ray

__all__ = [
    "ChunkData", "ColumnChunks", "ColumnInfo", "EncryptionConfig", "FileInfo", "KmsClient",
    "KmsKeys", "MissingKeyError", "ParquetFile", "StandardKeyMetadata", "column_chunks", "encrypt",
    "find_files", "inspect", "open", "open_data_file", "read_data_file", "read_dataset", "read_ray",
    "read_table", "read_tables", "rekey", "rewrap", "to_plain",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "read_ray":  # of a layer above, and for few
        return _later.load("cluster.tables").read_ray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

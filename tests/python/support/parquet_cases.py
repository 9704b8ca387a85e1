# SPDX-License-Identifier: Apache-2.0
"""Encrypted Parquet files as the tests see them, written by pyarrow, and a look inside."""

from __future__ import annotations

import io
import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from warpcipher import parquet
from warpcipher.formats import FormatError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
encryption = pytest.importorskip("pyarrow.parquet.encryption")
if not hasattr(encryption, "create_encryption_properties"):
    pytest.skip("needs pyarrow 25, which encrypts without a KMS", allow_module_level=True)

REFUSED = (wc.InvalidTag, FormatError)
KEYS = {size: bytes(range(size)) for size in (16, 24, 32)}
KEY = KEYS[16]
GCM, CTR = "AES_GCM_V1", "AES_GCM_CTR_V1"


def table(rows: int = 500) -> Any:
    """Flat, dictionary-encoded and nested columns, with nulls."""
    return pa.table(
        {
            "a": pa.array(range(rows), pa.int64()),
            "s": pa.array([None if i % 11 == 0 else f"name {i % 7}" for i in range(rows)]),
            "l": pa.array(
                [[i, i + 1] if i % 3 else None for i in range(rows)], pa.list_(pa.int32())
            ),
            "t": pa.array([{"u": i / 2, "v": {"w": str(i)}} for i in range(rows)]),
        }
    )


def write(content: Any, key: bytes | None = KEY, **options: Any) -> bytes:
    """The bytes of a file with several row groups and many pages."""
    given: dict[str, Any] = {}
    if key is not None:
        names = ("encryption_algorithm", "plaintext_footer", "aad_prefix", "store_aad_prefix")
        given = {name: options.pop(name) for name in names if name in options}
        given = {"encryption_properties": encryption.create_encryption_properties(key, **given)}
    sink = io.BytesIO()
    shape = {"row_group_size": 200, "data_page_size": 400, "write_batch_size": 40}
    pq.write_table(content, sink, **{**shape, **given, **options})
    return sink.getvalue()


def read_by_pyarrow(data: bytes, key: bytes, prefix: bytes | None = None) -> Any:
    """The table in an encrypted file, by pyarrow."""
    options = {} if prefix is None else {"aad_prefix": prefix}
    properties = encryption.create_decryption_properties(key, **options)
    return pq.read_table(io.BytesIO(data), decryption_properties=properties)


def read_plain(data: Any) -> Any:
    """The table in a plain file, by pyarrow."""
    return pq.read_table(io.BytesIO(data))


@dataclass(frozen=True)
class Module:
    """A module of an encrypted file: what it is, and where it lies with its length."""

    name: str
    start: int
    end: int
    authenticated: bool = True


def module_starts(data: bytes | bytearray, start: int, end: int) -> list[int]:
    """Where the modules between start and end begin, by their lengths, and `end`. ValueError: what
    the library says, too."""
    places = []
    at = start
    while end - at >= 4:
        length = int.from_bytes(data[at : at + 4], "little")
        if length < 12:
            raise ValueError(f"a module of {length} bytes is shorter than its nonce")
        places.append(at)
        at += 4 + length
    if at != end:
        raise ValueError(f"the lengths of its modules do not add up to its {end - start} bytes")
    return [*places, end]


def modules_of(data: bytes, key: Any, **options: Any) -> list[Module]:
    """All modules of a file: in its chunks, its indexes and filters, its footer."""
    found = []
    with parquet.open(data, key, **options) as file:
        ctr = file.crypto is not None and file.crypto.algorithm == CTR
        groups = list(range(file.num_row_groups))
        for chunk in file.chunks(groups, range(len(file.names))):
            name = f"{chunk.name} {chunk.row_group}"
            if chunk.key is not None:
                places = module_starts(data, chunk.start, chunk.start + chunk.size)
                for i, (start, end) in enumerate(itertools.pairwise(places)):
                    kind = ("header", "page")[i % 2]
                    found.append(Module(f"{name} {kind} {i // 2}", start, end, not (ctr and i % 2)))
            for what, offset, length in (("offset index", 4, 5), ("column index", 6, 7)):
                if chunk.key is not None and offset in chunk.fields:
                    start = chunk.fields[offset][1]
                    end = start + chunk.fields[length][1]
                    found.append(Module(f"{name} {what}", start, end))
            if chunk.key is not None and 14 in chunk.meta:
                start = chunk.meta[14][1]
                middle = start + 4 + int.from_bytes(data[start : start + 4], "little")
                end = start + chunk.meta[15][1]
                found.append(Module(f"{name} filter header", start, middle))
                found.append(Module(f"{name} filter bits", middle, end))
    length = int.from_bytes(data[-8:-4], "little")
    found.append(Module("footer", len(data) - 8 - length, len(data) - 8))
    return found


def bloomed() -> bytes:
    """A plain file with dictionaries and Bloom filters."""
    duckdb = pytest.importorskip("duckdb")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bloom"
        content = "select range % 50 as a, 'v' || (range % 9) as s from range(3000)"
        duckdb.sql(content).write_parquet(str(path), row_group_size=2048)
        return path.read_bytes()

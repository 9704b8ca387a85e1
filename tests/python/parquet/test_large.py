# SPDX-License-Identifier: Apache-2.0
"""Parquet files at the edges of the format: offsets beyond 4 GiB, as many row groups as there are
ordinals."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from parquet_cases import KEY, pa, pq, read_plain, table, write
from warpcipher import parquet
from warpcipher.parquet import EncryptionConfig, footer, thrift
from warpcipher.parquet import metadata as md
from warpcipher.parquet.crypto import Kind, Place, seal_modules
from warpcipher.parquet.storage import Source

HOLE = 5 << 30


def test_chunks_beyond_4_gib(tmp_path: Path) -> None:
    """A file with a hole before its chunks, and a footer that says so."""
    data = write(table(), write_page_index=False)
    with parquet.open(data, KEY) as file:
        fields, crypto = file.footer.fields, file.crypto
    assert crypto is not None
    for group in md.structs(fields, md.ROW_GROUPS, "row groups"):
        for chunk in md.structs(group, md.COLUMNS, "columns"):
            meta = chunk[md.META_DATA][1]
            for number in (md.DATA_PAGE_OFFSET, md.DICTIONARY_PAGE_OFFSET):
                if number in meta:
                    md.set_integer(meta, number, meta[number][1] + HOLE)
    text = footer.tail(Source(data))[1]
    _, size = thrift.read(text, md.FILE_CRYPTO_SHAPE, "outer")
    sealed = seal_modules([(thrift.write(fields), KEY, Place(Kind.FOOTER))], crypto)[0]
    end = text[:size] + sealed
    path = tmp_path / "holed.parquet"
    with path.open("wb") as out:
        out.write(data[:4])
        out.seek(HOLE + 4)
        out.write(data[4 : -8 - len(text)])
        out.write(end + len(end).to_bytes(4, "little") + data[-4:])
    assert path.stat().st_size > HOLE
    assert parquet.read_table(path, KEY).equals(table())
    assert read_plain(parquet.to_plain(path, KEY)).equals(table())
    again = tmp_path / "again.parquet"
    parquet.rekey(path, again, KEY, EncryptionConfig(bytes(32)))
    assert again.stat().st_size < 1 << 20
    assert parquet.read_table(again, bytes(32)).equals(table())


@pytest.mark.skipif("WARPCIPHER_TEST_LONG" not in os.environ, reason="takes a minute")
@pytest.mark.parametrize(("groups", "fits"), [(32_768, True), (32_769, False)])
def test_as_many_row_groups_as_there_are_ordinals(groups: int, fits: bool) -> None:
    plain = io.BytesIO()
    content = pa.table({"a": pa.array(range(groups), pa.int32())})
    options = {"use_dictionary": False, "write_statistics": False, "compression": "none"}
    pq.write_table(content, plain, row_group_size=1, **options)
    sink = io.BytesIO()
    if not fits:
        with pytest.raises(ValueError, match="32769 row groups: the format numbers 32768"):
            parquet.encrypt(plain.getvalue(), sink, EncryptionConfig(KEY))
        assert not sink.getvalue()
        return
    parquet.encrypt(plain.getvalue(), sink, EncryptionConfig(KEY))
    assert parquet.read_table(sink.getvalue(), KEY).equals(content)

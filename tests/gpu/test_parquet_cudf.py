# SPDX-License-Identifier: Apache-2.0
"""Encrypted tables decoded on a GPU by pylibcudf, where it is installed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from parquet_cases import CTR, GCM, KEY, KEYS, pa, pq, table, write
from warpcipher import parquet

cupy = pytest.importorskip("cupy")
plc = pytest.importorskip("pylibcudf")
hybrid_scan = pytest.importorskip("pylibcudf.io.experimental.hybrid_scan")


def as_arrow(found: Any) -> Any:
    return pa.table(found.tbl.to_arrow(metadata=found.column_names()))


def assert_equal(found: Any, expected: Any) -> None:
    """pylibcudf's table has these rows; its structs have no names."""
    names = found.column_names()
    assert sorted(names) == sorted(expected.column_names)
    rows = as_arrow(found)
    for name in names:
        one, other = (each.column(name).combine_chunks() for each in (rows, expected))
        if pa.types.is_struct(other.type):
            one, other = one.field(0), other.field(0)
        assert one.to_pylist() == other.to_pylist(), name


def in_memory(data: bytes) -> Any:
    return plc.io.parquet.ParquetReaderOptions.builder(plc.io.SourceInfo([io.BytesIO(data)]))


@pytest.mark.parametrize("algorithm", [GCM, CTR])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("in_file", [False, True])
def test_a_table_is_that_of_pyarrow(
    algorithm: str, version: str, compression: str, in_file: bool, tmp_path: Path
) -> None:
    options = {"data_page_version": version, "compression": compression}
    data = write(table(), encryption_algorithm=algorithm, **options)
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    source: Any = path if in_file else data
    assert_equal(parquet.read_table(source, KEY, device=0), table())
    some = parquet.read_table(source, KEY, ["l", "a"], device=0)
    assert_equal(some, table().select(["a", "l"]))
    groups = parquet.read_table(source, KEY, ["a"], device=0, row_groups=[2, 0])
    assert as_arrow(groups)["a"].to_pylist() == [*range(400, 500), *range(200)]


def test_columns_with_keys_of_their_own_and_plain_ones(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    config = parquet.EncryptionConfig(KEY, column_keys={"a": KEYS[32]}, columns=["s"])
    parquet.encrypt(write(table(), None), path, config)
    keys = {b"": KEY, "a": KEYS[32]}
    assert_equal(parquet.read_table(path, keys, device=0), table())


@pytest.mark.parametrize("rows", [0, 1, 200_000])
def test_tables_of_any_length(rows: int) -> None:
    content = table(rows).select(["a", "s"])
    data = write(content, row_group_size=100_000, data_page_size=20_000)
    assert_equal(parquet.read_table(data, KEY, device=0), content)


@pytest.mark.parametrize("columns", [None, ["s", "a"]])
def test_chunks_and_footer_are_what_a_hybrid_scan_takes(columns: list[str] | None) -> None:
    data = write(table(), write_page_index=True)
    with parquet.open(data, KEY) as file:
        found = file.column_chunks(columns=columns, device=0)
        options = in_memory(file.metadata).build()
    expected = table() if columns is None else table().select(columns)
    if columns is not None:
        options.set_column_names(columns)
    reader = hybrid_scan.HybridScanReader(found.footer, options)
    groups = reader.all_row_groups(options)
    ranges = reader.all_column_chunks_byte_ranges(groups, options)
    places = {(each.offset, each.size) for each in ranges}
    assert places == {(chunk.offset, chunk.data.nbytes) for chunk in found.chunks}
    # In the order in which the reader asks for them.
    by_offset = {chunk.offset: chunk.data for chunk in found.chunks}
    spans = [plc.gpumemoryview(by_offset[each.offset]) for each in ranges]
    assert_equal(reader.materialize_all_columns(groups, spans, options), expected)


@pytest.mark.parametrize("checksum", [False, True])
def test_a_plain_image_is_read(checksum: bool, tmp_path: Path) -> None:
    data = write(table(), write_page_index=True, write_page_checksum=checksum)
    path = tmp_path / "plain.parquet"
    parquet.to_plain(data, KEY, path)
    for options in (
        plc.io.parquet.ParquetReaderOptions.builder(plc.io.SourceInfo([str(path)])),
        in_memory(path.read_bytes()),
    ):
        assert_equal(plc.io.parquet.read_parquet(options.build()), table())
    assert pq.read_table(path).equals(table())

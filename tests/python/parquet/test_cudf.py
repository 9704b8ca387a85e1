# SPDX-License-Identifier: Apache-2.0
"""Plain footers in libcudf, where pylibcudf is installed: its hybrid scan reads metadata
without a GPU. tests/gpu decodes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from parquet_cases import CTR, GCM, KEY, KEYS, table, write
from warpcipher import parquet

try:
    import pylibcudf as plc  # type: ignore[import-not-found,unused-ignore]
    from pylibcudf.io.experimental import hybrid_scan  # type: ignore[import-not-found,unused-ignore]
except Exception as reason:  # it loads CUDA's libraries, and fails in ways of its own without
    pytest.skip(f"needs pylibcudf: {reason}", allow_module_level=True)


def ranges_of(footer: bytes, columns: list[str] | None) -> list[tuple[int, int]]:
    """Where the reader wants the chunks to begin, and their sizes, in the order it takes them."""
    source = plc.io.SourceInfo([io.BytesIO(b"PAR1")])
    options = plc.io.parquet.ParquetReaderOptions.builder(source).build()
    if columns is not None:
        options.set_column_names(columns)
    reader = hybrid_scan.HybridScanReader(footer, options)
    found = reader.all_column_chunks_byte_ranges(reader.all_row_groups(options), options)
    return [(each.offset, each.size) for each in found]


@pytest.mark.parametrize("algorithm", [GCM, CTR])
@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("columns", [None, ["a"], ["l", "a"]])
@pytest.mark.parametrize("row_groups", [None, [2, 0]])
def test_chunks_are_where_the_footer_says(
    algorithm: str, more: bool, columns: list[str] | None, row_groups: list[int] | None
) -> None:
    options: dict[str, Any] = {"write_page_index": more, "write_page_checksum": more}
    data = write(table(), encryption_algorithm=algorithm, **options)
    found = parquet.column_chunks(data, KEY, columns, row_groups=row_groups)
    expected = [(chunk.offset, len(chunk.data)) for chunk in found.chunks]
    assert sorted(ranges_of(found.footer, columns)) == sorted(expected)


def test_files_that_mix_plain_and_encrypted_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    config = parquet.EncryptionConfig(KEY, column_keys={"a": KEYS[32]}, columns=["s"])
    parquet.encrypt(write(table(), None), path, config)
    found = parquet.column_chunks(path, {b"": KEY, "a": KEYS[32]})
    expected = [(chunk.offset, len(chunk.data)) for chunk in found.chunks]
    assert ranges_of(found.footer, None) == expected

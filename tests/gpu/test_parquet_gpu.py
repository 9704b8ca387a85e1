# SPDX-License-Identifier: Apache-2.0
"""Parquet chunks that are decrypted on a GPU: the same as in host memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import warpcipher as wc
from parquet_cases import CTR, GCM, KEY, table, write
from warpcipher import parquet

cupy = pytest.importorskip("cupy")


@pytest.mark.parametrize("algorithm", [GCM, CTR])
@pytest.mark.parametrize("rows", [500, 200_000])
@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_chunks_are_those_of_host_memory(
    algorithm: str, rows: int, in_file: bool, version: str, tmp_path: Path
) -> None:
    data = write(
        table(rows),
        encryption_algorithm=algorithm,
        row_group_size=100_000,
        data_page_version=version,
    )
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with parquet.open(path if in_file else data, KEY) as file:
        there, here = file.column_chunks(device=0), file.column_chunks()
    assert there.footer == here.footer
    for one, other in zip(there.chunks, here.chunks, strict=True):
        assert one.data.device.id == 0
        assert cupy.asnumpy(one.data).tobytes() == bytes(other.data)


@pytest.mark.parametrize("in_file", [False, True])
def test_a_changed_page_is_refused(in_file: bool, tmp_path: Path) -> None:
    damaged = bytearray(write(table()))
    damaged[600] ^= 1
    path = tmp_path / "t.parquet"
    path.write_bytes(damaged)
    with pytest.raises(wc.InvalidTag, match="column a, row"):
        parquet.column_chunks(path if in_file else damaged, KEY, device=0)


@pytest.mark.parametrize("name", ["uniform", "columns", "signed"])
@pytest.mark.parametrize("in_file", [False, True])
def test_files_of_spark_lose_the_padding_of_their_headers(name: str, in_file: bool) -> None:
    kms = pytest.importorskip("parquet_java").Kms()
    path = Path(__file__).parent.parent / "vectors" / "spark" / f"{name}.parquet"
    keys = parquet.KmsKeys(kms, path)
    with parquet.open(path if in_file else path.read_bytes(), keys) as file:
        there, here = file.column_chunks(device=0), file.column_chunks()
    assert there.footer == here.footer
    for one, other in zip(there.chunks, here.chunks, strict=True):
        assert one.offset == other.offset
        assert cupy.asnumpy(one.data).tobytes() == bytes(other.data)

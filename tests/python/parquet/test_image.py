# SPDX-License-Identifier: Apache-2.0
"""Plain images of encrypted files: what every reader finds in them, and where they are written."""

from __future__ import annotations

import io
import itertools
import os
from pathlib import Path

import pytest
import warpcipher as wc
from parquet_cases import KEY, KEYS, pq, read_plain, table, write
from warpcipher import parquet
from warpcipher.parquet import metadata as md
from warpcipher.parquet.thrift import read_whole


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("checksum", [False, True])
def test_a_plain_image_is_read_by_all(tmp_path: Path, version: str, checksum: bool) -> None:
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    data = write(
        table(), data_page_version=version, write_page_checksum=checksum, write_page_index=True
    )
    path = tmp_path / "plain.parquet"
    assert parquet.to_plain(data, KEY, path) == path.stat().st_size
    assert path.read_bytes() == bytes(parquet.to_plain(data, KEY))
    assert pq.read_table(path, page_checksum_verification=True).equals(table())
    assert polars.read_parquet(path).equals(polars.from_arrow(table()))
    rows = duckdb.sql(f"select a, s, l, t from '{path}' order by a").fetchall()  # noqa: S608
    expected = table().to_pylist()
    assert [dict(zip("aslt", row, strict=True)) for row in rows] == expected


def test_an_image_says_what_it_holds() -> None:
    """Sizes and offsets of the footer and of the offset index are the image's."""
    data = write(table(), write_page_index=True)
    plain = write(table(), None, write_page_index=True)
    image = bytes(parquet.to_plain(data, KEY))
    ours, theirs = (pq.read_metadata(io.BytesIO(each)) for each in (image, plain))
    assert ours.schema.equals(theirs.schema)
    for group, column in itertools.product(range(ours.num_row_groups), range(ours.num_columns)):
        mine, other = (each.row_group(group).column(column).to_dict() for each in (ours, theirs))
        for name in ("file_offset", "data_page_offset", "dictionary_page_offset"):
            mine.pop(name), other.pop(name)
        # Headers keep their length, which may be a byte more than they need.
        for name in ("total_compressed_size", "total_uncompressed_size"):
            assert 0 <= mine.pop(name) - other.pop(name) < 100
        assert mine == other
    with parquet.open(image) as file:
        for chunk in file.chunks(range(file.num_row_groups), range(len(file.names))):
            start, length = (chunk.fields[number][1] for number in (4, 5))
            index = read_whole(image[start : start + length], md.OFFSET_INDEX_SHAPE, "index")
            end = chunk.meta[md.DATA_PAGE_OFFSET][1]
            for location in index[md.PAGE_LOCATIONS][1][1]:
                assert location[md.LOCATION_OFFSET][1] == end
                end += location[md.LOCATION_SIZE][1]
            assert end == chunk.start + chunk.size


def test_page_indexes_of_an_image_serve_a_filter() -> None:
    polars = pytest.importorskip("polars")
    image = bytes(parquet.to_plain(write(table(), write_page_index=True), KEY))
    found = polars.scan_parquet(io.BytesIO(image)).filter(polars.col("a") == 333).collect()
    assert found["a"].to_list() == [333]
    assert pq.read_table(io.BytesIO(image), filters=[("a", "=", 333)]).num_rows == 1


def test_every_kind_of_destination(tmp_path: Path) -> None:
    data = write(table())
    expected = bytes(parquet.to_plain(data, KEY))
    sink = io.BytesIO()
    done: list[int] = []
    assert parquet.to_plain(data, KEY, sink, progress=done.append) == len(expected)
    assert sink.getvalue() == expected
    assert done == sorted(done)
    assert len(data) > done[-1] > len(data) // 2
    path = tmp_path / "plain"
    path.write_bytes(b"before")
    damaged = bytearray(data)
    damaged[200] ^= 1
    with pytest.raises(wc.InvalidTag):
        parquet.to_plain(damaged, KEY, path)
    assert path.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == ["plain"]
    with pytest.raises(TypeError, match="the file is 3: expected a path or a URL"):
        parquet.to_plain(data, KEY, 3)  # type: ignore[arg-type]


def test_an_object_of_a_url_is_replaced_whole_or_not_at_all() -> None:
    fsspec = pytest.importorskip("fsspec")
    data = write(table())
    url = "memory://warpcipher-tests/plain.parquet"
    system = fsspec.filesystem("memory")
    system.pipe(url, b"before")
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    with pytest.raises(wc.InvalidTag):
        parquet.to_plain(damaged, KEY, url)
    assert system.cat(url) == b"before"
    with pytest.raises(wc.InvalidTag):
        parquet.rekey(damaged, url, KEY, parquet.EncryptionConfig(KEYS[32]))
    assert system.cat(url) == b"before"
    assert len(system.ls("/warpcipher-tests")) == 1
    parquet.to_plain(data, KEY, url)
    assert read_plain(system.cat(url)).equals(table())
    system.rm("/warpcipher-tests", recursive=True)


def test_a_path_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plain"
    there: list[tuple[int, bool]] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        fsync(descriptor)
        there.append((os.fstat(descriptor).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", spy)
    size = parquet.to_plain(write(table()), KEY, path)
    assert there[0] == (size, False)
    assert all(exists for _, exists in there[1:])  # the folder


def test_many_groups_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpcipher.parquet import image

    data = write(table())
    whole = bytes(parquet.to_plain(data, KEY))
    groups_of = image.groups_of
    monkeypatch.setattr(image, "groups_of", lambda chunks: groups_of(chunks, 1))
    sink = io.BytesIO()
    parquet.to_plain(data, KEY, sink)
    assert sink.getvalue() == whole
    assert parquet.read_table(data, KEY).equals(table())

# SPDX-License-Identifier: Apache-2.0
"""Files encrypted here, read by pyarrow, Polars and here again."""

from __future__ import annotations

import importlib.util
import io
import itertools
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import (
    CTR,
    GCM,
    KEY,
    KEYS,
    modules_of,
    pq,
    read_by_pyarrow,
    read_plain,
    table,
    write,
)
from warpcipher import parquet
from warpcipher.formats import FormatError
from warpcipher.parquet import EncryptionConfig, crypto, encrypting, footer, thrift
from warpcipher.parquet import metadata as md
from warpcipher.parquet.storage import Source


def sealed(plain: bytes, config: EncryptionConfig) -> bytes:
    sink = io.BytesIO()
    assert parquet.encrypt(plain, sink, config) == len(sink.getvalue())
    return sink.getvalue()


@pytest.mark.parametrize("algorithm", [GCM, CTR])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("size", KEYS)
@pytest.mark.parametrize("prefix", [b"", b"table 1"])
@pytest.mark.parametrize("stored", [True, False])
def test_every_way_to_encrypt_is_read_by_pyarrow(
    algorithm: str, plaintext_footer: bool, size: int, prefix: bytes, stored: bool
) -> None:
    if not prefix and not stored:
        pytest.skip("there is nothing to store")
    content = table()
    config = EncryptionConfig(
        KEYS[size],
        algorithm=algorithm,
        plaintext_footer=plaintext_footer,
        aad_prefix=prefix,
        store_aad_prefix=stored,
    )
    for version, more in itertools.product(("1.0", "2.0"), (False, True)):
        plain = write(
            content,
            None,
            data_page_version=version,
            write_page_index=more,
            write_page_checksum=more,
        )
        data = sealed(plain, config)
        assert read_by_pyarrow(data, KEYS[size], prefix or None).equals(content)
        assert parquet.read_table(data, KEYS[size], aad_prefix=prefix or None).equals(content)
        image = parquet.to_plain(data, KEYS[size], aad_prefix=prefix or None)
        assert read_plain(image).equals(content)


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("columns", [(), None, ("s",)])
def test_column_keys_are_read_by_polars(
    plaintext_footer: bool, columns: tuple[str, ...] | None
) -> None:
    polars = pytest.importorskip("polars")
    content = table().select(["a", "s", "l"])
    plain = write(content, None, write_page_index=True)
    other = bytes(16)  # Polars takes no keys of 24 bytes
    own = {"a": KEYS[32], "l": other}
    config = EncryptionConfig(
        KEY,
        column_keys=own,
        column_key_metadata={"l": b"key of l"},
        footer_key_metadata=b"of the footer",
        columns=columns,
        plaintext_footer=plaintext_footer,
        aad_prefix=b"p",
    )
    data = sealed(plain, config)
    if columns == ():  # Polars knows columns with keys of their own, and plain ones
        frame = polars.read_parquet(
            io.BytesIO(data),
            decryption=polars.ParquetDecryptionProperties(
                footer_key=KEY, column_keys={"a": KEYS[32], "l.list.element": other}
            ),
        )
        assert frame.equals(polars.from_arrow(content))
    keys = {b"of the footer": KEY, "a": KEYS[32], b"key of l": other}
    assert parquet.read_table(data, keys).equals(content)
    with parquet.open(data, keys) as file:
        found = {each.name: each for each in file.columns()}
        seen = pq.read_metadata(io.BytesIO(file.metadata))
    assert found["a"] == ("a", "column key", b"")
    assert found["l.list.element"] == ("l.list.element", "column key", b"key of l")
    assert found["s"].encryption == ("none" if columns == () else "footer key")
    assert seen.row_group(0).column(0).statistics.max == 199
    if plaintext_footer:
        # Statistics are in the plain footer for columns that are plain.
        fields, _ = thrift.read(footer.tail(Source(data))[1], md.FOOTER_SHAPE, "footer")
        chunks = fields[md.ROW_GROUPS][1][1][0][md.COLUMNS][1][1]
        shown = [12 in chunk[md.META_DATA][1] for chunk in chunks]
        assert shown == [False, columns == (), False]
    for name in ("a", "s", "l"):
        assert parquet.read_table(data, keys, [name]).equals(content.select([name]))


def test_what_pyarrow_wrote_and_what_is_encrypted_here_have_the_same_parts() -> None:
    options: dict[str, Any] = {"write_page_index": True}
    theirs = write(table(), **options)
    ours = sealed(write(table(), None, **options), EncryptionConfig(KEY))
    names = [[m.name for m in modules_of(data, KEY)] for data in (theirs, ours)]
    assert names[0] == names[1]
    both = [modules_of(data, KEY)[:-1] for data in (theirs, ours)]
    for mine, other in zip(*both, strict=True):
        assert abs((mine.end - mine.start) - (other.end - other.start)) <= 8, mine.name
    metadata = []
    for data in (theirs, ours):
        with parquet.open(data, KEY) as file:
            metadata.append(pq.read_metadata(io.BytesIO(file.metadata)).row_group(0).to_dict())
    for column, other in zip(*(entry["columns"] for entry in metadata), strict=True):
        assert column["total_uncompressed_size"] == other["total_uncompressed_size"]
        assert column["total_compressed_size"] == other["total_compressed_size"]
        assert column["statistics"] == other["statistics"]


def bloom_file(folder: Path) -> bytes:
    """A plain file with Bloom filters and dictionaries, by DuckDB."""
    duckdb = pytest.importorskip("duckdb")
    path = folder / "bloom.parquet"
    content = "select (range % 50) * 3 as k, 'v' || (range % 9) as v from range(3000)"
    duckdb.sql(content).write_parquet(str(path), row_group_size=2048)
    return path.read_bytes()


@pytest.mark.parametrize("algorithm", [GCM, CTR])
def test_bloom_filters_stay(tmp_path: Path, algorithm: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    plain = bloom_file(tmp_path)
    data = sealed(plain, EncryptionConfig(KEY, algorithm=algorithm))
    assert any("filter bits" in module.name for module in modules_of(data, KEY))
    path = tmp_path / "again.parquet"
    parquet.to_plain(data, KEY, path)
    query = f"select bloom_filter_excludes from parquet_bloom_probe('{path}', 'k', 151)"  # noqa: S608
    assert {row[0] for row in duckdb.sql(query).fetchall()} == {True}
    query = query.replace("151", "30")
    assert {row[0] for row in duckdb.sql(query).fetchall()} == {False}
    assert read_plain(path.read_bytes()).equals(read_plain(plain))
    # And from a plain file to a plain file.
    assert read_plain(parquet.to_plain(plain)).equals(read_plain(plain))


def test_a_table_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(write(table()))
    path.chmod(0o600)
    parquet.rekey(path, path, KEY, EncryptionConfig(KEYS[32]))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.parquet"]


def test_rekey_changes_everything_that_config_says(tmp_path: Path) -> None:
    content = table()
    first = write(content, aad_prefix=b"p", write_page_index=True)
    path = tmp_path / "second"
    parquet.rekey(first, path, KEY, EncryptionConfig(KEYS[32], algorithm=CTR))
    second = path.read_bytes()
    assert read_by_pyarrow(second, KEYS[32]).equals(content)
    with pytest.raises(wc.InvalidTag):
        parquet.open(second, KEY)
    sink = io.BytesIO()
    config = EncryptionConfig(KEY, column_keys={"a": KEYS[24]}, columns=["s", "t.v"])
    parquet.rekey(second, sink, KEYS[32], config)
    third = sink.getvalue()
    keys = {b"": KEY, "a": KEYS[24]}
    assert parquet.read_table(third, keys).equals(content)
    assert read_plain(parquet.to_plain(third, keys)).equals(content)
    with parquet.open(third, keys) as file:
        assert [each.encryption for each in file.columns()] == [
            "column key",
            "footer key",
            "none",
            "none",
            "footer key",
        ]
    for encrypted in (second, third):
        with pytest.raises(ValueError, match="encrypted already: `rekey` gives it other keys"):
            parquet.encrypt(encrypted, io.BytesIO(), config)
    with pytest.raises(ValueError, match="the file is not encrypted: `encrypt`"):
        parquet.rekey(write(content, None), io.BytesIO(), None, config)


def test_the_source_is_no_dest(tmp_path: Path) -> None:
    plain, whole, link = (tmp_path / name for name in ("plain", "whole", "link"))
    plain.write_bytes(write(table(), None))
    whole.write_bytes(write(table(), KEY))
    link.hardlink_to(plain)
    before = plain.read_bytes(), whole.read_bytes()
    config = EncryptionConfig(KEY)
    for dest in (plain, str(plain), link):
        with pytest.raises(ValueError, match=r"dest is the source, .*plain: give another path"):
            parquet.encrypt(plain, dest, config)
    with plain.open("r+b") as file, pytest.raises(ValueError, match="dest is the source"):
        parquet.encrypt(file, file, config)
    with whole.open("r+b") as file, pytest.raises(ValueError, match="dest is the source"):
        parquet.rekey(file, file, KEY, config)
    with pytest.raises(ValueError, match="dest is the source"):
        parquet.to_plain(whole, KEY, whole)
    url = whole.as_uri()
    if importlib.util.find_spec("fsspec"):
        with pytest.raises(ValueError, match="dest is the source"):
            parquet.to_plain(url, KEY, url)
        with pytest.raises(ValueError, match="dest is the source"):
            parquet.to_plain(whole, KEY, url)
        with pytest.raises(ValueError, match="dest is the source"):
            parquet.encrypt(link.as_uri(), plain, config)
        with pytest.raises(OSError, match="not a regular file"):
            parquet.to_plain(whole, KEY, "file:///dev/null")
    assert (plain.read_bytes(), whole.read_bytes()) == before
    assert len(list(tmp_path.iterdir())) == 3
    parquet.to_plain(whole, KEY, plain)  # another file is replaced
    assert parquet.read_table(plain).equals(table())


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("algorithm", [GCM, CTR])
def test_the_smallest_tables(rows: int, algorithm: str) -> None:
    config = EncryptionConfig(KEY, algorithm=algorithm)
    for content in (table(rows), table(rows).select([])):
        plain = write(content, None)
        expected = pq.ParquetFile(io.BytesIO(plain)).read()
        data = sealed(plain, config)
        assert parquet.read_table(data, KEY).equals(expected)
        assert read_by_pyarrow(data, KEY).equals(read_plain(plain))


def test_no_nonce_comes_twice() -> None:
    plain = write(table(), None, write_page_index=True)
    nonces = []
    for _ in range(2):
        data = sealed(plain, EncryptionConfig(KEY))
        found = modules_of(data, KEY)[:-1]
        nonces += [data[module.start + 4 : module.start + 16] for module in found]
    assert len(nonces) > 200
    assert len(set(nonces)) == len(nonces)


def test_beyond_the_limits_of_the_format(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = write(table(), None)
    path = tmp_path / "out"
    monkeypatch.setattr(encrypting, "MOST_MESSAGES", 20)
    with pytest.raises(ValueError, match="more than 20 modules under one key"):
        parquet.encrypt(plain, path, EncryptionConfig(KEY))
    monkeypatch.undo()
    for name, most, says in (
        ("warpcipher.parquet.encrypting.MOST_ORDINAL", 1, "3 row groups: the format numbers 2"),
        ("warpcipher.parquet.encrypting.MOST_ORDINAL", 3, "5 columns: the format numbers 4"),
        ("warpcipher.parquet.sealing.MOST_ORDINAL", 3, "pages: the format numbers 4"),
    ):
        monkeypatch.setattr(name, most)
        with pytest.raises(ValueError, match=says):
            parquet.encrypt(plain, path, EncryptionConfig(KEY))
        monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    assert crypto.MOST_ORDINAL == 32767


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"footer_key": b"short"}, ValueError, "the footer's key has 5 bytes"),
        ({"algorithm": "AES"}, ValueError, "algorithm is 'AES': expected AES_GCM_V1 or"),
        ({"columns": ["x"]}, ValueError, "no column 'x'"),
        ({"columns": "a"}, TypeError, "columns is a str"),
        ({"column_keys": {"x": KEY}}, ValueError, "no column 'x'"),
        ({"column_key_metadata": {"a": b"x"}}, ValueError, "column_keys does not"),
        ({"store_aad_prefix": False}, ValueError, "without an aad_prefix"),
        ({"aad_prefix": "a"}, TypeError, "aad_prefix is str: expected bytes"),
        ({"footer_key_metadata": "a"}, TypeError, "footer_key_metadata is str: expected bytes"),
        ({"column_keys": {"a": KEY}, "column_key_metadata": {"a": ""}}, TypeError, "'a' is str"),
    ],
)
def test_configurations_that_cannot_be(
    options: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        parquet.encrypt(
            write(table(), None), tmp_path / "x", EncryptionConfig(**{"footer_key": KEY, **options})
        )
    assert list(tmp_path.iterdir()) == []
    assert KEY.hex() not in repr(EncryptionConfig(KEY))
    assert repr(KEY) not in repr(EncryptionConfig(KEY))


@pytest.mark.parametrize("metadata", [{}, {"t": b"of t", "t.u": b"of u", "l": b"of l"}])
def test_names_stand_for_the_same_columns_in_both_directions(metadata: dict[str, bytes]) -> None:
    """The start of a path names its column, and the longest name counts."""
    own: dict[bytes | str, bytes] = {"t": KEYS[24], "t.u": KEYS[32], "l": KEYS[16][::-1]}
    config = EncryptionConfig(KEY, column_keys=own, column_key_metadata=metadata)  # type: ignore[arg-type]
    data = sealed(write(table(), None), config)
    assert parquet.read_table(data, {b"": KEY, **own}).equals(table())
    with parquet.open(data, {b"": KEY, **own}) as file:
        found = {chunk.name: chunk.key for chunk in file.chunks([0], range(5))}
    assert found == {
        "a": KEY,
        "s": KEY,
        "l.list.element": own["l"],
        "t.u": own["t.u"],
        "t.v.w": own["t"],
    }
    with pytest.raises(parquet.MissingKeyError, match=r"no key for column t\.v\.w"):
        parquet.read_table(data, {b"": KEY, "t.u": KEYS[32], "t.v.w.x": KEYS[24], "l": own["l"]})
    # One who has the names only of some reads these, by pyarrow's names of lists or not.
    with parquet.open(data, {b"": KEY, "l.list": own["l"]}) as file:
        assert parquet.read_table(file, columns=["l"]).equals(table().select(["l"]))


def test_an_empty_name_of_key_metadata_is_the_footer_key_that_counts() -> None:
    """Else who has a column's key could make whole files under it."""
    plain = write(table(), None)
    forged = sealed(plain, EncryptionConfig(KEYS[24], b"of s"))
    keys: dict[bytes | str, bytes] = {b"of the footer": KEY, b"of s": KEYS[24]}
    assert parquet.read_table(forged, keys).equals(table())  # the file chose among the keys
    with pytest.raises(wc.InvalidTag):
        parquet.open(forged, {b"": KEY, b"of s": KEYS[24]})
    config = EncryptionConfig(KEY, b"of the footer", {"s": KEYS[24]}, {"s": b"of s"})
    right = sealed(plain, config)
    for mapping in (keys, {b"": KEY, b"of s": KEYS[24]}, {b"": lambda _: KEY, "s": KEYS[24]}):
        assert parquet.read_table(right, mapping).equals(table())


def test_arguments_of_another_type_are_named(tmp_path: Path) -> None:
    plain = write(table(3), None)
    says = (
        r"config is bytes: expected an EncryptionConfig; for one key that is EncryptionConfig\(key"
    )
    with pytest.raises(TypeError, match=says):
        parquet.encrypt(plain, tmp_path / "x", KEY)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=says):
        parquet.rekey(write(table(3)), tmp_path / "x", KEY, KEYS[32])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="file is str: expected a file that `open` opened"):
        EncryptionConfig.like("x", KEY)  # type: ignore[arg-type]
    for call in (parquet.read_table, parquet.open, parquet.to_plain, parquet.inspect):
        with pytest.raises(IsADirectoryError, match="read_dataset reads its files"):
            call(tmp_path)  # type: ignore[operator]
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_plain_file_is_refused() -> None:
    plain = bytearray(write(table(), None))
    plain[4:12] = b"\xff" * 8  # the first page header
    with pytest.raises(FormatError, match="column a, row group 0: a page header"):
        sealed(bytes(plain), EncryptionConfig(KEY))


@pytest.mark.parametrize("dictionary", [True, False])
def test_plain_columns_of_a_row_group_without_rows(dictionary: bool) -> None:
    """pyarrow gives them 0 as the offset of their data."""
    sink = io.BytesIO()
    content = table(5).select(["a", "s"])
    with pq.ParquetWriter(sink, content.schema, use_dictionary=dictionary) as writer:
        writer.write_table(content.slice(0, 0))
        writer.write_table(content)
    plain = sink.getvalue()
    data = sealed(plain, EncryptionConfig(KEY, columns=["a"]))
    with parquet.open(plain) as before, parquet.open(data, KEY) as after:
        was, now = (file.chunks([0], [1])[0].meta for file in (before, after))
    assert was[md.DATA_PAGE_OFFSET] == now[md.DATA_PAGE_OFFSET] == (thrift.I64, 0)
    assert parquet.read_table(data, KEY).equals(content)
    assert read_by_pyarrow(data, KEY).equals(content)


@pytest.mark.parametrize("number", [md.TOTAL_BYTE_SIZE, md.GROUP_COMPRESSED_SIZE, md.ORDINAL])
def test_plain_files_with_other_types_in_their_footer(number: int) -> None:
    plain = write(table(50), None)
    text = footer.tail(Source(plain))[1]
    with parquet.open(plain) as file:
        fields = file.footer.fields
    fields[md.ROW_GROUPS][1][1][0][number] = thrift.BINARY, b"x"
    changed = thrift.write(fields)
    data = plain[: -8 - len(text)] + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    sink = io.BytesIO()
    with pytest.raises(FormatError, match=f"metadata field {number}|expected an integer"):
        parquet.encrypt(data, sink, EncryptionConfig(KEY))


def test_a_table_that_takes_the_name_meanwhile_stays(tmp_path: Path) -> None:
    path, other = tmp_path / "t", tmp_path / "other"
    path.write_bytes(write(table()))

    def and_replace(_: int) -> None:
        if not other.exists():
            other.write_bytes(b"other")
            path.unlink()
            path.hardlink_to(other)

    with pytest.raises(OSError, match="another program changed it meanwhile"):
        parquet.rekey(path, path, KEY, EncryptionConfig(KEYS[32]), progress=and_replace)
    assert path.read_bytes() == b"other"
    assert len(list(tmp_path.iterdir())) == 2

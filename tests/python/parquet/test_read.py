# SPDX-License-Identifier: Apache-2.0
"""Files of pyarrow and Polars read here: tables equal to their own."""

from __future__ import annotations

import io
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import (
    CTR,
    GCM,
    KEY,
    KEYS,
    REFUSED,
    pa,
    pq,
    read_by_pyarrow,
    read_plain,
    table,
    write,
)
from warpcipher import parquet
from warpcipher._memory import allocate as new_room
from warpcipher.formats import FormatError
from warpcipher.parquet import decode, decryption

PREFIXES: tuple[dict[str, Any], ...] = (
    {},
    {"aad_prefix": b"table 1"},
    {"aad_prefix": b"table 1", "store_aad_prefix": False},
)


@pytest.mark.parametrize("algorithm", [GCM, CTR])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("size", KEYS)
@pytest.mark.parametrize("prefix", PREFIXES, ids=["no prefix", "stored", "supplied"])
def test_every_way_to_encrypt(
    algorithm: str, plaintext_footer: bool, size: int, prefix: dict[str, Any]
) -> None:
    content = table()
    options = {"encryption_algorithm": algorithm, "plaintext_footer": plaintext_footer}
    aad = prefix.get("aad_prefix")
    for version, more in itertools.product(("1.0", "2.0"), (False, True)):
        data = write(
            content,
            KEYS[size],
            **options,
            **prefix,
            data_page_version=version,
            write_page_index=more,
            write_page_checksum=more,
        )
        if algorithm == CTR and parquet.inspect(data).algorithm == GCM:
            # pyarrow before 26.0.1: its signed footers promise tags that the pages do not have.
            with pytest.raises(OSError, match="ecrypt"):
                read_by_pyarrow(data, KEYS[size], aad)
            with pytest.raises(REFUSED, match="column "):
                parquet.read_table(data, KEYS[size], aad_prefix=aad)
            continue
        assert parquet.read_table(data, KEYS[size], aad_prefix=aad).equals(content)
        image = parquet.to_plain(data, KEYS[size], aad_prefix=aad)
        assert read_plain(image).equals(content)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_every_compression(compression: str) -> None:
    data = write(table(), compression=compression)
    assert parquet.read_table(data, KEY).equals(table())


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("prefix", [None, b"part 0"])
@pytest.mark.parametrize("columns", [None, ["a"], ["a", "l.list.element"]])
def test_files_of_polars(
    plaintext_footer: bool, prefix: bytes | None, columns: list[str] | None
) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table().select(["a", "s", "l"]))
    keys: dict[bytes | str, bytes] = {b"": KEY}
    own = {name: bytes([i]) * (16, 32)[i % 2] for i, name in enumerate(columns or ())}
    keys |= own
    sink = io.BytesIO()
    frame.write_parquet(
        sink,
        row_group_size=200,
        encryption=polars.ParquetEncryptionProperties(
            footer_key=KEY,
            column_keys=own or None,
            plaintext_footer=plaintext_footer,
            aad_prefix=prefix,
        ),
    )
    data = sink.getvalue()
    assert polars.from_arrow(parquet.read_table(data, keys, aad_prefix=prefix)).equals(frame)
    image = bytes(parquet.to_plain(data, keys, aad_prefix=prefix))
    assert polars.read_parquet(io.BytesIO(image)).equals(frame)
    with parquet.open(data, keys, aad_prefix=prefix) as file:
        kinds = {each.name: each.encryption for each in file.columns()}
    if columns is None:
        assert set(kinds.values()) == {"footer key"}
    else:
        assert kinds == {name: "column key" if name in columns else "none" for name in kinds}


def test_a_column_without_its_key_can_be_left_out() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table().select(["a", "s"]))
    sink = io.BytesIO()
    frame.write_parquet(
        sink,
        encryption=polars.ParquetEncryptionProperties(
            footer_key=KEY, column_keys={"a": KEYS[32]}, plaintext_footer=True
        ),
    )
    data = sink.getvalue()
    with parquet.open(data, {b"": KEY}) as file:
        assert parquet.read_table(file, columns=["s"]).num_columns == 1
        with pytest.raises(parquet.MissingKeyError, match="no key for column a"):
            parquet.read_table(file)
        with pytest.raises(parquet.MissingKeyError, match="no key for column a"):
            parquet.to_plain(file)
        assert pq.read_metadata(io.BytesIO(file.metadata)).num_rows == 500
    with pytest.raises(parquet.MissingKeyError, match="one key was given for the whole file"):
        parquet.read_table(data, KEY)
    # And who has only the column's key leaves the signature unverified.
    with pytest.raises(parquet.MissingKeyError, match=r"no key for the footer.*check_footer=False"):
        parquet.open(data, {"a": KEYS[32]})
    with parquet.open(data, {"a": KEYS[32]}, check_footer=False) as file:
        assert parquet.read_table(file, columns=["a"]).num_rows == 500


def test_projection_and_row_groups() -> None:
    content = table()
    data = write(content)
    whole = read_plain(parquet.to_plain(data, KEY))
    assert parquet.read_table(data, KEY, ["s", "a"]).equals(content.select(["s", "a"]))
    some = parquet.read_table(data, KEY, ["t.v"])
    assert some.equals(pq.ParquetFile(io.BytesIO(parquet.to_plain(data, KEY))).read(["t.v"]))
    assert parquet.read_table(data, KEY, row_groups=[1]).equals(whole.slice(200, 200))
    assert parquet.read_table(data, KEY, row_groups=[2, 0])["a"].to_pylist() == [
        *range(400, 500),
        *range(200),
    ]
    assert parquet.read_table(data, KEY, []).num_columns == 0
    for bad, says in (({"columns": ["x"]}, "no column 'x'"), ({"row_groups": [3]}, "no row group")):
        with pytest.raises(ValueError, match=says):
            parquet.read_table(data, KEY, **bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names one twice"):
        parquet.read_table(data, KEY, row_groups=[1, 1])
    with pytest.raises(TypeError, match="columns is str: expected a sequence of names"):
        parquet.read_table(data, KEY, "a")
    with pytest.raises(TypeError, match="aad_prefix is str: expected bytes"):
        parquet.read_table(data, KEY, aad_prefix="a")  # type: ignore[arg-type]


def test_several_columns_of_one_name() -> None:
    twice = pa.table([[1, 2], ["x", "y"], [3, 4]], names=["a", "a", "b"])
    data = write(twice)
    assert parquet.read_table(data, KEY, ["a"]).equals(twice.select([0, 1]))
    assert parquet.read_table(data, KEY, ["a", "b"]).equals(twice)


def test_column_chunks_are_what_their_footer_says() -> None:
    data = write(table())
    with parquet.open(data, KEY) as file:
        found = file.column_chunks([0, 2], ["a", "t"])
        names = [(chunk.row_group, chunk.column) for chunk in found.chunks]
    assert names == [(g, n) for g in (0, 2) for n in ("a", "t.u", "t.v.w")]
    # Chunks laid down where the footer says make a file.
    size = max(chunk.offset + len(chunk.data) for chunk in found.chunks)
    image = bytearray(size)
    image[:4] = b"PAR1"
    for chunk in found.chunks:
        image[chunk.offset : chunk.offset + len(chunk.data)] = chunk.data
    image += found.footer + len(found.footer).to_bytes(4, "little") + b"PAR1"
    again = pq.ParquetFile(io.BytesIO(image))
    assert again.metadata.num_rows == 300
    assert again.read(["a"])["a"].to_pylist() == [*range(200), *range(400, 500)]


def test_an_open_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    path.write_bytes(write(table()))
    with parquet.open(path, KEY) as file:
        assert file.schema.equals(table().schema)
        assert repr(file) == (
            f"<ParquetFile {path}: rows 500, row groups 3, columns 5, AES_GCM_V1>"
        )
    with parquet.open(write(table(3), None)) as file:
        assert repr(file).endswith(": rows 3, row groups 1, columns 5, not encrypted>")


def test_metadata_is_readable_before_data_is_read() -> None:
    data = write(table(), write_statistics=True)
    with parquet.open(data, KEY) as file:
        assert (file.num_rows, file.num_row_groups) == (500, 3)
        assert file.names == ("a", "s", "l.list.element", "t.u", "t.v.w")
        seen = pq.read_metadata(io.BytesIO(file.metadata))
    assert (seen.num_rows, seen.num_columns) == (500, 5)
    assert seen.row_group(1).column(0).statistics.min == 200


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("key", [KEY, None])
def test_the_smallest_tables(rows: int, key: bytes | None) -> None:
    data = write(table(rows), key)
    assert parquet.read_table(data, key).equals(table(rows))
    assert read_plain(parquet.to_plain(data, key)).equals(table(rows))


def test_a_table_without_columns() -> None:
    data = write(table().select([]))
    assert parquet.read_table(data, KEY).num_columns == 0
    assert read_plain(parquet.to_plain(data, KEY)).num_columns == 0


def test_every_kind_of_source(tmp_path: Path) -> None:
    data = write(table())
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with path.open("rb") as file:
        for source in (path, str(path), data, bytearray(data), memoryview(data), file):
            assert parquet.read_table(source, KEY).equals(table())
        assert not file.closed
    pytest.importorskip("fsspec")
    assert parquet.read_table(f"file://{path}", KEY).equals(table())
    with pytest.raises(TypeError, match="the file is 3: expected a path or a URL"):
        parquet.open(3, KEY)
    with pytest.raises(FileNotFoundError):
        parquet.open(tmp_path / "none", KEY)


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_table_is_the_same_whether_its_chunks_are_short_or_long(
    monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    content = table()
    data = write(content)
    seen: list[str] = []
    for owner, name in ((decode.LazyImage, "read"), (decode.Image, "fill")):
        call = getattr(owner, name)

        def spy(self: Any, *args: Any, call: Any = call, name: str = name) -> Any:
            seen.append(name)
            return call(self, *args)

        monkeypatch.setattr(owner, name, spy)
    if not in_memory:
        monkeypatch.setattr(decode, "SHORT_CHUNK", 1)
    assert parquet.read_table(data, KEY).equals(content)
    assert parquet.read_table(data, KEY, ["t", "a"]).equals(content.select(["t", "a"]))
    assert set(seen) == {"fill" if in_memory else "read"}
    damaged = bytearray(data)
    damaged[600] ^= 1
    with pytest.raises(wc.InvalidTag, match="column a, row group 0, dictionary page"):
        parquet.read_table(damaged, KEY)


def test_each_chunk_is_decrypted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[int, int]] = []

    def spy(file: Any, chunks: Any, *args: Any) -> Any:
        opened.extend((chunk.row_group, chunk.column) for chunk in chunks)
        return decryption.Decryption(file, chunks, *args)

    monkeypatch.setattr(decode, "Decryption", spy)
    monkeypatch.setattr(decode, "SHORT_CHUNK", 1)
    assert parquet.read_table(write(table()), KEY).equals(table())
    assert sorted(opened) == list(itertools.product(range(3), range(5)))


def test_what_a_buffer_held_before_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each chunk is a gap, as long as what encryption added."""

    class Dirty(decode.Rooms):
        def take(self) -> memoryview:
            room = super().take()
            room[:] = b"\xee" * len(room)
            return room

    data = write(table())
    with parquet.open(data, KEY) as file:
        chunks = file.chunks([0, 1], [0, 2])
        longest = max(chunk.size for chunk in chunks)
        image = decode.LazyImage(file, chunks, b"tail", Dirty(longest, new_room))
        whole = bytes(image.read())
        assert whole.endswith(b"tail")
        for chunk in chunks:
            for start, size in ((chunk.start, chunk.size), (chunk.start + 50, chunk.size)):
                image.seek(start)
                assert image.read(size) == whole[start : start + size]


def test_a_buffer_serves_the_next_chunk_once_nobody_reads_it() -> None:
    with parquet.open(write(table()), KEY) as file:
        chunks = file.chunks([0, 1], [0, 1])
        rooms = decode.Rooms(max(chunk.size for chunk in chunks), new_room)
        image = decode.LazyImage(file, chunks, b"", rooms)

        def read(number: int) -> tuple[pa.Buffer, object]:
            image.seek(chunks[number].start)
            view = image.read(chunks[number].size)
            return pa.py_buffer(view), view.obj

        held, kept = read(0)
        before = held.to_pybytes()
        after, free = read(1)
        assert free is not kept
        del after
        assert read(2)[1] is free
        assert held.to_pybytes() == before


def test_long_chunks_in_the_child_of_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that read them do not live there: the pool is made again."""
    monkeypatch.setattr(decode, "SHORT_CHUNK", 1)
    data = write(table())
    assert parquet.read_table(data, KEY).equals(table())
    assert decode._pools
    program = os.fork()
    if program == 0:
        os._exit(1 if decode._pools else 0)
    assert os.waitpid(program, 0)[1] == 0


def test_keys_from_a_function() -> None:
    asked: list[bytes] = []

    def find(metadata: bytes) -> bytes:
        asked.append(metadata)
        return KEY

    assert parquet.read_table(write(table()), find).num_rows == 500
    assert asked == [b""]


def test_keys_from_a_source(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.touch(0o600)
    path.write_text(KEY.hex())
    source = wc.keys.from_file(path)
    assert parquet.read_table(write(table()), source).num_rows == 500
    assert parquet.read_table(write(table()), {b"": source}).num_rows == 500


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        (KEYS[32], wc.InvalidTag, "the footer: failed authentication"),
        ({"footer": KEY}, parquet.MissingKeyError, r"no key for the footer.*: give it by b\"\""),
        ({b"": b"short"}, ValueError, "has 5 bytes: AES takes 16, 24 or 32"),
        (lambda _: "text", TypeError, "the key is str: give bytes"),
        (lambda _: {}[1], parquet.MissingKeyError, "the key of the footer is not known"),
        (None, ValueError, "the footer is encrypted: give keys"),
    ],
)
def test_wrong_and_missing_keys(keys: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        parquet.read_table(write(table()), keys)
    assert KEY.hex() not in str(caught.value)


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(write(table()))
    for call, error in (
        (lambda: parquet.read_table(path, KEYS[32]), wc.InvalidTag),
        (lambda: parquet.read_table(path, KEY, ["zz"]), ValueError),
        (lambda: parquet.read_table(parquet.open(path, KEY), columns=["zz"]), ValueError),
        (lambda: parquet.to_plain(path), ValueError),
        (lambda: parquet.encrypt(path, io.BytesIO(), parquet.EncryptionConfig(KEY)), ValueError),
        (lambda: parquet.inspect(Path(__file__)), FormatError),
        (lambda: parquet.rewrap(path, KEYS[32], {}), wc.InvalidTag),  # type: ignore[arg-type]
    ):
        with pytest.raises(error, match=r"^\S+/(t\.parquet|test_read\.py): (?!\S+: )"):
            call()


def test_prefixes_that_are_wrong() -> None:
    given = {"aad_prefix": b"one"}
    stored, supplied = write(table(), **given), write(table(), **given, store_aad_prefix=False)
    with pytest.raises(ValueError, match="the file's AAD prefix is b'one', given was b'two'"):
        parquet.open(stored, KEY, aad_prefix=b"two")
    with pytest.raises(ValueError, match="an AAD prefix that is not in it"):
        parquet.open(supplied, KEY)
    with pytest.raises(wc.InvalidTag, match="the footer"):
        parquet.open(supplied, KEY, aad_prefix=b"two")
    with pytest.raises(ValueError, match="the file was written without one"):
        parquet.open(write(table()), KEY, aad_prefix=b"one")
    parquet.open(stored, KEY, aad_prefix=b"one").close()


def test_a_plain_file_is_no_encrypted_one() -> None:
    plain = write(table(), None)
    assert parquet.read_table(plain).equals(table())
    with pytest.raises(ValueError, match="the file is not encrypted, and keys"):
        parquet.read_table(plain, KEY)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(20), b"PAR1" + bytes(8) + b"PARE"])
def test_what_is_no_parquet_file(data: bytes) -> None:
    with pytest.raises(FormatError, match="Parquet file"):
        parquet.open(data, KEY)

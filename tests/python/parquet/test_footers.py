# SPDX-License-Identifier: Apache-2.0
"""Ends of Parquet files that mean harm: cut at each byte, bombs, algorithms that are not those of
the pages."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
import warpcipher as wc
from parquet_cases import (
    CTR,
    GCM,
    KEY,
    KEYS,
    REFUSED,
    modules_of,
    pq,
    read_by_pyarrow,
    table,
    write,
)
from warpcipher import parquet
from warpcipher.formats import FormatError
from warpcipher.parquet import footer, thrift
from warpcipher.parquet import metadata as md
from warpcipher.parquet.crypto import Kind, Place, seal_modules
from warpcipher.parquet.storage import Source

SIGNED, SEALED = b"PAR1", b"PARE"


def parts(data: bytes) -> tuple[bytes, bytes]:
    """A file up to its footer, and the footer without its length and magic."""
    text = footer.tail(Source(data))[1]
    return data[: -8 - len(text)], text


def ended(before: bytes, text: bytes, magic: bytes) -> bytes:
    return before + text + len(text).to_bytes(4, "little") + magic


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_a_footer_that_is_cut_at_each_byte_is_refused(plaintext_footer: bool) -> None:
    data = write(table(30).select(["a", "s"]), plaintext_footer=plaintext_footer)
    before, text = parts(data)
    magic = SIGNED if plaintext_footer else SEALED
    assert parquet.read_table(ended(before, text, magic), KEY).num_rows == 30
    with pytest.raises(FormatError, match="a Parquet file that was cut short: it begins with"):
        parquet.open(data[:-5], KEY)
    with pytest.raises(FormatError, match="not a Parquet file: it begins with"):
        parquet.open(data[5:], KEY)
    for size in range(len(text)):
        with pytest.raises((*REFUSED, ValueError)):
            parquet.open(ended(before, text[:size], magic), KEY)
        with pytest.raises((*REFUSED, ValueError)):  # and with its length, which then lies
            parquet.open(before + text[:size] + data[-8:], KEY)


def test_metadata_that_is_cut_at_each_byte_is_refused() -> None:
    """By someone who has the key: the module is authentic."""
    data = write(table(30).select(["a", "s"]), None)
    before, plain = parts(data)
    assert parquet.read_table(ended(before, plain, SIGNED)).num_rows == 30
    for size in range(len(plain)):
        with pytest.raises(FormatError):
            parquet.read_table(ended(before, plain[:size], SIGNED))
    sealed = write(table(30).select(["a", "s"]))
    before, text = parts(sealed)
    _, outer = thrift.read(text, md.FILE_CRYPTO_SHAPE, "outer")
    with parquet.open(sealed, KEY) as file:
        crypto, fields = file.crypto, thrift.write(file.footer.fields)
    assert crypto is not None
    for size in range(0, len(fields), 7):
        module = seal_modules([(fields[:size], KEY, Place(Kind.FOOTER))], crypto)[0]
        with pytest.raises(FormatError):
            parquet.read_table(ended(before, text[:outer] + module, SEALED), KEY)


BOMBS = {
    "structs": b"\x1c" * 200_000,
    "lists": b"\x19" * 200_000,
    "a list": b"\x29\xfc\xff\xff\xff\xff\x0f" + bytes(50),
    "a binary": b"\x28\xff\xff\xff\xff\x0f" + bytes(50),
    "a map": b"\x2b\xff\xff\xff\xff\x0f\x88" + bytes(50),
    "an integer": b"\x15" + b"\xff" * 100,
    "row groups": b"\x15\x02\x19\x1c\x48\x01a\x00\x16\x00\x19\xfc\xff\xff\xff\x7f",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("magic", [SIGNED, SEALED])
def test_bombs_in_footers_are_refused_at_once(name: str, magic: bytes) -> None:
    data = ended(magic, BOMBS[name], magic)
    with pytest.raises(FormatError):
        parquet.open(data, KEY)
    with pytest.raises(FormatError):
        parquet.inspect(data)
    if magic == SIGNED:
        with pytest.raises(FormatError):
            parquet.open(data)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_in_authentic_footers_are_refused(name: str) -> None:
    sealed = write(table(3).select(["a"]))
    before, text = parts(sealed)
    _, outer = thrift.read(text, md.FILE_CRYPTO_SHAPE, "outer")
    with parquet.open(sealed, KEY) as file:
        crypto = file.crypto
    assert crypto is not None
    module = seal_modules([(BOMBS[name], KEY, Place(Kind.FOOTER))], crypto)[0]
    with pytest.raises(FormatError):
        parquet.open(ended(before, text[:outer] + module, SEALED), KEY)


def renamed(data: bytes, algorithm: str) -> bytes:
    """The file with another algorithm named in its end, signed again where that is plain."""
    before, text = parts(data)
    with parquet.open(data, KEY) as file:
        encrypted, crypto, fields = file.footer.encrypted, file.crypto, file.footer.fields
    assert crypto is not None
    other = crypto._replace(algorithm=algorithm)
    named = thrift.STRUCT, footer.algorithm_struct(other, b"", True)
    if encrypted:
        outer, size = thrift.read(text, md.FILE_CRYPTO_SHAPE, "outer")
        outer[md.CRYPTO_ALGORITHM] = named
        return ended(before, thrift.write(outer) + text[size:], SEALED)
    fields[md.ENCRYPTION_ALGORITHM] = named
    plain = thrift.write(fields)
    return ended(before, plain + footer.signature(plain, KEY, other, bytes(12)), SIGNED)


def test_a_footer_that_promises_tags_is_held_to_them() -> None:
    """As pyarrow before 26.0.1 signs files in CTR: nobody may take the tags off by a footer."""
    content = table().select(["a"])
    data = write(content, encryption_algorithm=CTR, plaintext_footer=True)
    assert read_by_pyarrow(renamed(data, CTR), KEY).equals(content)
    lying = renamed(data, GCM)
    assert parquet.inspect(lying).algorithm == GCM
    with pytest.raises(wc.InvalidTag, match="column a, row group 0, dictionary page"):
        parquet.read_table(lying, KEY)
    with pytest.raises(OSError, match="ecrypt"):
        read_by_pyarrow(lying, KEY)


def test_a_signed_footer_binds_the_algorithm() -> None:
    data = write(table(), plaintext_footer=True)
    before, text = parts(renamed(data, CTR))
    changed = ended(before, text[:-28] + parts(data)[1][-28:], SIGNED)
    with pytest.raises(wc.InvalidTag, match="the footer"):
        parquet.open(changed, KEY)


def test_modules_of_every_kind_from_another_file_are_refused() -> None:
    content = table(60).select(["a", "s"])
    first, second = (write(content, write_page_index=True) for _ in range(2))
    pairs = zip(modules_of(first, KEY)[:-1], modules_of(second, KEY)[:-1], strict=True)
    kinds = set()
    for one, other in pairs:
        if one.end - one.start != other.end - other.start:
            continue
        changed = first[: one.start] + second[other.start : other.end] + first[one.end :]
        with pytest.raises(wc.InvalidTag):
            parquet.to_plain(changed, KEY)
        kinds.add(one.name.split()[2])
    assert kinds == {"header", "page", "offset", "column"}


def split_anew(data: bytes, prefix: bytes | None, unique: bytes) -> bytes:
    """An encrypted file with another split of its AAD, which its end has unauthenticated. prefix:
    None leaves it to the reader."""
    before, text = parts(data)
    outer, end = thrift.read(text, md.FILE_CRYPTO_SHAPE, "outer")
    fields: thrift.Struct = {md.AAD_FILE_UNIQUE: (thrift.BINARY, unique)}
    if prefix is None:
        fields[md.SUPPLY_AAD_PREFIX] = thrift.TRUE, True
    else:
        fields[md.AAD_PREFIX] = thrift.BINARY, prefix
    outer[md.CRYPTO_ALGORITHM] = thrift.STRUCT, {1: (thrift.STRUCT, fields)}
    return ended(before, thrift.write(outer) + text[end:], SEALED)


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("prefix", [b"tenant", b"tenant10", b"tenant1"])
def test_a_file_of_another_prefix_does_not_pass_for_one_of_this(prefix: bytes, store: bool) -> None:
    data = write(table(3), aad_prefix=b"tenant1", store_aad_prefix=store)
    with parquet.open(data, KEY, aad_prefix=b"tenant1") as file:
        assert file.crypto is not None
        whole = file.crypto.aad
    if prefix == b"tenant10":  # by chance, or by a holder of the key: the next byte is a 0
        whole = b"tenant10" + whole[8:]
    forged = split_anew(data, prefix if store else None, whole[len(prefix) :])
    if prefix == b"tenant1":
        assert parquet.read_table(forged, KEY, aad_prefix=prefix).equals(table(3))
        return
    size = len(whole) - len(prefix)
    with pytest.raises(FormatError, match=rf"AADs has {size} bytes.*expected 8"):
        parquet.open(forged, KEY, aad_prefix=prefix)
    if prefix == b"tenant" and store:
        # Who asks for no prefix reads it, but does not make it a file of that prefix.
        with parquet.open(forged, KEY) as file, pytest.raises(FormatError, match="has 9 bytes"):
            parquet.EncryptionConfig.like(file, KEYS[32])


def test_a_file_without_aads_is_called_so(tmp_path: Path) -> None:
    """As DuckDB writes them, which leaves out the AADs: duckdb issue 18524."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    with contextlib.suppress(duckdb.Error):  # newer ones want another library to encrypt by
        connection.execute("SET force_mbedtls_unsafe = 'true'")
    connection.execute("PRAGMA add_parquet_key('k', 'kkkkkkkkkkkkkkkk')")
    path = tmp_path / "t.parquet"
    options = f"TO '{path}' (FORMAT parquet, ENCRYPTION_CONFIG {{footer_key: 'k'}})"
    connection.execute("COPY (SELECT range a FROM range(9)) " + options)  # noqa: S608
    with pytest.raises(wc.InvalidTag, match=r"key is right.*no AADs.*DuckDB"):
        parquet.open(path, b"k" * 16)
    with pytest.raises(wc.InvalidTag, match="wrong key or AAD prefix"):
        parquet.open(path, b"x" * 16)


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("prefix", [b"", b"prefix"])
def test_whether_a_reader_supplies_the_prefix_is_always_said(
    plaintext_footer: bool, prefix: bytes
) -> None:
    """arrow-go 18.2 crashes on a file without the field, which the format makes optional."""
    for stored in (False, True) if prefix else (True,):
        config = parquet.EncryptionConfig(
            KEY, plaintext_footer=plaintext_footer, aad_prefix=prefix, store_aad_prefix=stored
        )
        source, out = io.BytesIO(), io.BytesIO()
        pq.write_table(table(10).select(["a"]), source)
        parquet.encrypt(source, out, config)
        _, text = parts(out.getvalue())
        shape = md.OUTLINE_SHAPE if plaintext_footer else md.FILE_CRYPTO_SHAPE
        fields, _ = thrift.read(text, shape, "the footer")
        place = md.ENCRYPTION_ALGORITHM if plaintext_footer else md.CRYPTO_ALGORITHM
        (_, algorithm), *_ = fields[place][1].values()
        assert algorithm[md.SUPPLY_AAD_PREFIX][1] is (bool(prefix) and not stored)

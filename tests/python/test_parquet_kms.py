# SPDX-License-Identifier: Apache-2.0
"""Keys from a KMS: files of pyarrow read here and files of here read by pyarrow, in every way to
keep key material."""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import encryption, pq, table, write
from warpcipher import parquet
from warpcipher.formats import FormatError
from warpcipher.parquet.kms import material_path


class Kms(encryption.KmsClient):  # type: ignore[misc]
    """A KMS of the tests: master keys are AES keys, and it counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def _box(self, master: str) -> wc.aead.AESGCM:
        if master not in ("footer master", "column master"):
            raise PermissionError(f"no master key {master}")
        return wc.aead.AESGCM(master.encode().ljust(16)[:16])

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        nonce = len(self.asked).to_bytes(12, "big")
        sealed = self._box(master_key_identifier).encrypt(nonce, key_bytes, None)
        return base64.b64encode(nonce + sealed)

    def unwrap_key(self, wrapped_key: Any, master_key_identifier: str) -> bytes:
        self.asked.append(master_key_identifier)
        data = base64.b64decode(wrapped_key)
        return self._box(master_key_identifier).decrypt(data[:12], data[12:], None)


MASTERS = {"footer": "footer master", "columns": {"a": "column master", "s": "column master"}}


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("plaintext_footer", [True, False])
@pytest.mark.parametrize("bits", [128, 256])
def test_files_of_pyarrow(
    tmp_path: Path, double: bool, internal: bool, plaintext_footer: bool, bits: int
) -> None:
    path = tmp_path / "t.parquet"
    factory = encryption.CryptoFactory(lambda _: Kms())
    config = encryption.EncryptionConfiguration(
        footer_key="footer master",
        column_keys={"column master": ["a", "s"]},
        double_wrapping=double,
        internal_key_material=internal,
        plaintext_footer=plaintext_footer,
        data_key_length_bits=bits,
    )
    where = () if internal else (path,)
    properties = factory.file_encryption_properties(
        encryption.KmsConnectionConfig(), config, *where
    )
    content = table().select(["a", "s"])
    pq.write_table(content, path, encryption_properties=properties)
    client = Kms()
    keys = parquet.KmsKeys(client, None if internal else path)
    assert parquet.read_table(path, keys).equals(content)
    # With double wrapping the KMS unwraps one key for each master key.
    assert len(client.asked) == (2 if double else 3)
    assert material_path(path).exists() != internal


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_pyarrow_reads_what_is_encrypted_here(
    tmp_path: Path, double: bool, internal: bool, plaintext_footer: bool
) -> None:
    path = tmp_path / "t.parquet"
    keys = parquet.KmsKeys(Kms(), None if internal else path)
    content = table().select(["a", "s"])
    config = keys.config(**MASTERS, double_wrapping=double, plaintext_footer=plaintext_footer)
    parquet.encrypt(write(content, None), path, config)
    if not internal:
        keys.save()
    factory = encryption.CryptoFactory(lambda _: Kms())
    where = () if internal else (path,)
    properties = factory.file_decryption_properties(
        encryption.KmsConnectionConfig(), encryption.DecryptionConfiguration(), *where
    )
    # Not as a data set, which finds the key material beside it to be a table.
    assert pq.ParquetFile(path, decryption_properties=properties).read().equals(content)
    assert parquet.read_table(path, keys).equals(content)


def test_where_material_is_missing_or_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    keys = parquet.KmsKeys(Kms(), path)
    key, metadata = keys.new_key("footer master", footer=True)
    with pytest.raises(ValueError, match=r"name the table with KmsKeys\(client, table"):
        parquet.KmsKeys(Kms())(metadata)
    with pytest.raises(FileNotFoundError):
        keys(metadata)
    keys.save()
    assert keys(metadata) == key
    again = parquet.KmsKeys(Kms(), path)
    reference = json.dumps({"internalStorage": False, "keyReference": "columnKey7"}).encode()
    with pytest.raises(FormatError, match="has no key 'columnKey7'"):
        again(reference)
    with pytest.raises(ValueError, match="there is no key material to write"):
        parquet.KmsKeys(Kms()).save()
    with pytest.raises(ValueError, match="bits is 100"):
        keys.new_key("footer master", bits=100)
    with pytest.raises(PermissionError, match="no master key other"):
        keys.new_key("other")
    assert key.hex() not in repr(keys)


def test_no_key_is_lost_where_a_table_has_material_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    keys = parquet.KmsKeys(Kms(), path)
    key, metadata = keys.new_key("footer master", footer=True)
    with pytest.raises(ValueError, match="there is a new footer key already"):
        keys.new_key("footer master", footer=True)
    keys.save()
    other = parquet.KmsKeys(Kms(), path)
    other_key, other_metadata = other.new_key("footer master", footer=True)
    with pytest.raises(FileExistsError, match="a file may need its keys"):
        other.save()
    assert parquet.KmsKeys(Kms(), path)(metadata) == key
    assert other(metadata) == key
    other.save(replace=True)
    assert other(other_metadata) == parquet.KmsKeys(Kms(), path)(other_metadata) == other_key
    assert [each.name for each in tmp_path.iterdir()] == [material_path(path).name]
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    other.save(replace=True)
    assert len(synced) == 2  # the file, then its folder


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda material: b"text", FormatError, "is no JSON"),
        (lambda material: b"[1]", FormatError, "is no JSON object"),
        (lambda material: b"[" * 100_000, FormatError, "is no JSON"),
        ({"keyMaterialType": "PKMT2"}, FormatError, "of type 'PKMT2': expected PKMT1"),
        ({"wrappedDEK": 3}, FormatError, "key material without wrappedDEK"),
        ({"masterKeyID": None}, FormatError, "key material without masterKeyID"),
        ({"wrappedKEK": None}, FormatError, "key material without wrappedKEK"),
        ({"wrappedDEK": "%"}, FormatError, "wrappedDEK is no base64"),
        ({"wrappedDEK": "AAAA"}, FormatError, "wrappedDEK has 3 bytes"),
        ({"keyEncryptionKeyID": "AAAA"}, wc.InvalidTag, "under master key 'footer master'"),
    ],
)
def test_key_material_that_is_none(change: Any, error: type[Exception], says: str) -> None:
    keys = parquet.KmsKeys(Kms())
    _, metadata = keys.new_key("footer master")
    material = change(metadata) if callable(change) else {**json.loads(metadata), **change}
    text = material if isinstance(material, bytes) else json.dumps(material).encode()
    with pytest.raises(error, match=says):
        keys(text)


def test_the_kms_refuses() -> None:
    sink = io.BytesIO()
    keys = parquet.KmsKeys(Kms())
    parquet.encrypt(write(table(), None), sink, keys.config("footer master"))

    class Closed(Kms):
        def unwrap_key(self, wrapped_key: Any, master_key_identifier: str) -> bytes:
            raise PermissionError("not today")

    with pytest.raises(PermissionError, match="not today"):
        parquet.open(sink.getvalue(), parquet.KmsKeys(Closed()))

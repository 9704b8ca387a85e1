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
        if master not in ("footer master", "column master", "master of 2027"):
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
    assert Path(material_path(path)).exists() != internal


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


@pytest.mark.parametrize("double", [True, False])
def test_master_keys_are_rotated_without_a_change_of_the_table(
    tmp_path: Path, double: bool
) -> None:
    """And what one program rotated the other reads, and rotates again."""
    path = tmp_path / "t.parquet"
    keys = parquet.KmsKeys(Kms(), path)
    content = table().select(["a", "s"])
    config = keys.config(**MASTERS, double_wrapping=double)
    parquet.encrypt(write(content, None), path, config)
    keys.save()
    data, before = path.read_bytes(), json.loads(Path(material_path(path)).read_text())
    assert keys.rotate_master_keys({"column master": "master of 2027"}) == 3
    after = json.loads(Path(material_path(path)).read_text())
    assert after.keys() == before.keys()
    for name, master in (("footerKey", "footer master"), ("columnKey0", "master of 2027")):
        old, new = (json.loads(each[name]) for each in (before, after))
        changed = {field for field in old if old[field] != new[field]}
        assert changed - {"masterKeyID"} == (
            {"wrappedDEK", "wrappedKEK", "keyEncryptionKeyID"} if double else {"wrappedDEK"}
        )
        assert (new["masterKeyID"], new["doubleWrapping"]) == (master, double)

    def read_both() -> None:
        assert path.read_bytes() == data
        for mine in (keys, parquet.KmsKeys(Kms(), path)):
            assert parquet.read_table(path, mine).equals(content)
        properties = factory.file_decryption_properties(
            encryption.KmsConnectionConfig(), encryption.DecryptionConfiguration(), path
        )
        assert pq.ParquetFile(path, decryption_properties=properties).read().equals(content)

    factory = encryption.CryptoFactory(lambda _: Kms())
    read_both()
    if hasattr(factory, "rotate_master_keys"):
        config = encryption.KmsConnectionConfig()
        factory.rotate_master_keys(config, str(path), double_wrapping=double)
        read_both()
        assert parquet.KmsKeys(Kms(), path).rotate_master_keys() == 3
        read_both()


def test_a_rotation_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    keys = parquet.KmsKeys(Kms(), path)
    with pytest.raises(FileNotFoundError):
        keys.rotate_master_keys()
    keys.config(**MASTERS)
    keys.save()
    before = Path(material_path(path)).read_bytes()
    with pytest.raises(ValueError, match="no key under master key 'x': it has column master, foot"):
        keys.rotate_master_keys({"x": "master of 2027"})
    with pytest.raises(PermissionError, match="no master key other"):
        keys.rotate_master_keys({"footer master": "other"})
    with pytest.raises(ValueError, match=r"beside a table.*`rewrap`"):
        parquet.KmsKeys(Kms()).rotate_master_keys()
    assert Path(material_path(path)).read_bytes() == before

    class Other(Kms):
        def _box(self, master: str) -> wc.aead.AESGCM:
            return wc.aead.AESGCM(b"another KMS".ljust(16))

    footer = json.loads(json.loads(before)["footerKey"])
    key = parquet.KmsKeys(Kms())(json.dumps(footer).encode())
    keys.rotate_master_keys(client=Other())
    again = parquet.KmsKeys(Other(), path)
    reference = {"internalStorage": False, "keyReference": "footerKey"}
    assert again(json.dumps(reference).encode()) == key


def test_where_material_is_missing_or_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    keys = parquet.KmsKeys(Kms(), path)
    key, metadata = keys.new_key("footer master", footer=True)
    with pytest.raises(ValueError, match=r"with KmsKeys\(client, table"):
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
    assert [each.name for each in tmp_path.iterdir()] == [Path(material_path(path)).name]
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    other.save(replace=True)
    assert len(synced) == 2  # the file, then its folder


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda material: b"text", FormatError, "is not JSON"),
        (lambda material: b"[1]", FormatError, "is not a JSON object"),
        (lambda material: b"[" * 100_000, FormatError, "is not JSON"),
        ({"keyMaterialType": "PKMT2"}, FormatError, "of type 'PKMT2': expected PKMT1"),
        ({"wrappedDEK": 3}, FormatError, "key material without wrappedDEK"),
        ({"masterKeyID": None}, FormatError, "key material without masterKeyID"),
        ({"wrappedKEK": None}, FormatError, "key material without wrappedKEK"),
        ({"wrappedDEK": "%"}, FormatError, "wrappedDEK is not base64"),
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


def test_material_beside_each_of_several_files_is_found(tmp_path: Path) -> None:
    """As Spark leaves it in a directory; what the files share is unwrapped once."""
    plain = write(table(), None)
    for name in ("one", "two"):
        path = tmp_path / f"{name}.parquet"
        keys = parquet.KmsKeys(Kms(), path)
        parquet.encrypt(plain, path, keys.config("footer master", {"s": "column master"}))
        keys.save()
    found = parquet.read_dataset(tmp_path, parquet.KmsKeys(Kms()))
    assert found.num_rows == 2 * table().num_rows
    mapping = {b"": parquet.KmsKeys(Kms()), "s": parquet.KmsKeys(Kms())}
    assert parquet.read_table(tmp_path / "two.parquet", mapping).equals(table())
    data = (tmp_path / "one.parquet").read_bytes()
    with pytest.raises(ValueError, match=r"no path or URL here: name its copy with KmsKe"):
        parquet.read_table(data, parquet.KmsKeys(Kms()))
    named = parquet.KmsKeys(Kms(), tmp_path / "one.parquet")
    assert parquet.read_table(data, named).equals(table())
    (tmp_path / "_KEY_MATERIAL_FOR_two.parquet.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"_KEY_MATERIAL_FOR_two\.parquet\.json"):
        parquet.read_dataset(tmp_path, parquet.KmsKeys(Kms()))

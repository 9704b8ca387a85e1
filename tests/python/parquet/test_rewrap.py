# SPDX-License-Identifier: Apache-2.0
"""Data keys of tables under other master keys: only footers and key material are written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from parquet_cases import KEY, encryption, pq, table, write
from test_kms import MASTERS, Kms
from warpcipher import InvalidTag, parquet
from warpcipher.formats import FormatError
from warpcipher.parquet.kms import material_path

CONTENT = table().select(["a", "s"])
NEW = {"column master": "master of 2027"}


def by_pyarrow(path: Path, *, internal: bool) -> Any:
    factory = encryption.CryptoFactory(lambda _: Kms())
    where = () if internal else (path,)
    properties = factory.file_decryption_properties(
        encryption.KmsConnectionConfig(), encryption.DecryptionConfiguration(), *where
    )
    return pq.ParquetFile(path, decryption_properties=properties).read()


def of_pyarrow(path: Path, **options: Any) -> None:
    factory = encryption.CryptoFactory(lambda _: Kms())
    config = encryption.EncryptionConfiguration(
        footer_key="footer master", column_keys={"column master": ["a", "s"]}, **options
    )
    where = () if options.get("internal_key_material", True) else (path,)
    connection = encryption.KmsConnectionConfig()
    properties = factory.file_encryption_properties(connection, config, *where)
    pq.write_table(CONTENT, path, encryption_properties=properties, row_group_size=200)


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("plaintext_footer", [True, False])
@pytest.mark.parametrize("peer", [True, False])
def test_both_read_it_under_the_new_master_key(
    tmp_path: Path, double: bool, internal: bool, plaintext_footer: bool, peer: bool
) -> None:
    path = tmp_path / "t.parquet"
    shape = {"double_wrapping": double, "plaintext_footer": plaintext_footer}
    if peer:
        of_pyarrow(path, internal_key_material=internal, **shape)
    else:
        keys = parquet.KmsKeys(Kms(), None if internal else path)
        parquet.encrypt(write(CONTENT, None), path, keys.config(**MASTERS, **shape))
        if not internal:
            keys.save()
    path.chmod(0o640)
    before = path.read_bytes()
    assert parquet.rewrap(path, parquet.KmsKeys(Kms()), NEW) == 3
    after = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640
    client = Kms()
    assert parquet.read_table(path, parquet.KmsKeys(client)).equals(CONTENT)
    assert set(client.asked) == {"footer master", "master of 2027"}
    assert by_pyarrow(path, internal=internal).equals(CONTENT)
    if internal:
        data = len(before) - 8 - int.from_bytes(before[-8:-4], "little")
        assert after[:data] == before[:data]
        assert b"column master" in before or not plaintext_footer
        assert b"column master" not in after
        assert not material_path(path).exists()
    else:
        assert after == before
    assert parquet.rewrap(path, parquet.KmsKeys(Kms()), {"master of 2027": "column master"}) == 3
    assert by_pyarrow(path, internal=internal).equals(CONTENT)


def test_to_another_file_and_with_a_prefix(tmp_path: Path) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / "new.parquet"
    keys = parquet.KmsKeys(Kms())
    for stored in (True, False):
        config = keys.config(**MASTERS, aad_prefix=b"table 7", store_aad_prefix=stored)
        parquet.encrypt(write(CONTENT, None), path, config)
        before = path.read_bytes()
        assert parquet.rewrap(path, keys, NEW, out, aad_prefix=b"table 7") == 3
        assert path.read_bytes() == before
        given = None if stored else b"table 7"
        assert parquet.read_table(out, keys, aad_prefix=given).equals(CONTENT)
        if not stored:
            with pytest.raises(ValueError, match="AAD prefix that is not in it"):
                parquet.read_table(out, keys)


def test_what_cannot_be_leaves_the_table(tmp_path: Path) -> None:
    path, plain, raw = (tmp_path / name for name in ("t", "plain", "raw"))
    keys = parquet.KmsKeys(Kms())
    of_pyarrow(path)
    plain.write_bytes(write(CONTENT, None))
    raw.write_bytes(write(CONTENT, KEY))
    before = path.read_bytes()

    class Deaf(Kms):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            raise ConnectionError("no KMS")

    refused: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (path, {"masters": {"x": "y"}}, ValueError, "no key under master key 'x': it has column"),
        (path, {"masters": {"column master": "other"}}, PermissionError, "no master key other"),
        (path, {"client": Deaf()}, ConnectionError, "no KMS"),
        (path, {"out": plain, "replace": False}, FileExistsError, "exists"),
        (path, {"aad_prefix": b"x"}, ValueError, "written without one"),
        (plain, {}, ValueError, "not encrypted"),
        (raw, {}, FormatError, "expected key material"),
        (before, {}, TypeError, "expected the path"),
        (tmp_path / "absent", {}, FileNotFoundError, "absent"),
    ]
    for place, how, kind, text in refused:
        with pytest.raises(kind, match=text):
            parquet.rewrap(place, keys, **how)
    assert path.read_bytes() == before
    start = len(before) - 8 - int.from_bytes(before[-8:-4], "little")
    for at in range(start, len(before), 7):
        for bad in (before[:at], before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :]):
            path.write_bytes(bad)
            try:
                parquet.rewrap(path, keys)
            except (InvalidTag, FormatError, ValueError, PermissionError):
                assert path.read_bytes() == bad
            else:  # such as the name of a KMS' instance, which nothing authenticates
                assert parquet.read_table(path, keys).equals(CONTENT)
    assert {one.name for one in tmp_path.iterdir()} == {"t", "plain", "raw"}


def test_material_beside_the_table_has_no_out(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    of_pyarrow(path, internal_key_material=False)
    before = json.loads(material_path(path).read_text())
    with pytest.raises(ValueError, match="out is for a table"):
        parquet.rewrap(path, parquet.KmsKeys(Kms()), out=tmp_path / "x")
    assert json.loads(material_path(path).read_text()) == before
    material_path(path).unlink()
    with pytest.raises(FileNotFoundError):
        parquet.rewrap(path, parquet.KmsKeys(Kms()))

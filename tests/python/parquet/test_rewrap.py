# SPDX-License-Identifier: Apache-2.0
"""Data keys of tables under other master keys: only footers and key material are written again."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_s3
from cli_support import run
from parquet_cases import KEY, encryption, pa, pq, table, write
from test_kms import MASTERS, Kms
from warpcipher import InvalidTag, parquet, stores
from warpcipher.formats import FormatError
from warpcipher.parquet.kms import material_path
from warpcipher.parquet.storage import Source, writing

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
        assert not Path(material_path(path)).exists()
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


@pytest.fixture
def server() -> Iterator[small_s3.Store]:
    pytest.importorskip("boto3")
    pytest.importorskip("obstore")
    with small_s3.running() as store, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield store


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("rows", [500, 1_500_000])
def test_at_a_url(server: small_s3.Store, tmp_path: Path, rows: int) -> None:
    """Of a long table the store copies the pages."""
    content = pa.table(
        {name: pa.array(random.Random(1).choices(range(1 << 40), k=rows)) for name in ("a", "s")}
    )
    path, keys, url = tmp_path / "t", parquet.KmsKeys(Kms()), "s3://bucket/t"
    config = keys.config(**MASTERS)
    parquet.encrypt(write(content, None, row_group_size=rows, data_page_size=1 << 20), path, config)
    server.put("bucket/t", path.read_bytes())
    size, is_long = path.stat().st_size, rows > 500
    assert parquet.rewrap(url, keys, NEW, "s3://bucket/out") == 3
    client = Kms()
    found = parquet.read_table("s3://bucket/out", parquet.KmsKeys(client))
    assert found.equals(content)
    assert set(client.asked) == {"footer master", "master of 2027"}
    server.seen.clear()
    assert parquet.rewrap(url, keys, NEW) == 3
    assert (server.count("copy") > 0) == is_long
    assert sum(len(request.body) for request in server.seen) < (6 << 20 if is_long else 2 * size)
    data = path.read_bytes()
    kept = size - 8 - int.from_bytes(data[-8:-4], "little")
    assert server.objects["bucket/t"][0][:kept] == data[:kept]
    with pytest.raises(FileExistsError):
        parquet.rewrap(url, keys, out="s3://bucket/out", replace=False)
    parquet.rewrap(url, keys, out=tmp_path / "back")
    assert parquet.read_table(tmp_path / "back", keys).equals(content)
    parquet.rewrap(tmp_path / "back", keys, out="s3://bucket/again")
    assert parquet.read_table("s3://bucket/again", keys).equals(content)
    assert not server.uploads


def test_material_beside_a_table_at_a_url() -> None:
    url = "memory://rewrap/t"
    beside = parquet.KmsKeys(Kms(), url)
    parquet.encrypt(write(CONTENT, None), url, beside.config(**MASTERS))
    beside.save()
    with pytest.raises(FileExistsError, match="_KEY_MATERIAL_FOR_t"):
        beside.save()
    assert parquet.rewrap(url, parquet.KmsKeys(Kms()), NEW) == 3
    client = Kms()
    assert parquet.read_table(url, parquet.KmsKeys(client)).equals(CONTENT)
    assert set(client.asked) == {"footer master", "master of 2027"}
    with stores.open_object(material_path(url)) as file:
        assert b"column master" not in file.read()


def test_a_store_that_copies_nothing() -> None:
    url, keys = "memory://rewrap/inside", parquet.KmsKeys(Kms())
    parquet.encrypt(write(CONTENT, None), url, keys.config(**MASTERS))
    with pytest.raises(ValueError, match="cannot copy all but the part"):
        parquet.rewrap(url, keys, NEW)
    assert parquet.rewrap(url, keys, NEW, copy=True) == 3
    assert parquet.read_table(url, keys).equals(CONTENT)


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    of_pyarrow(path)
    before = path.read_bytes()
    command = ("parquet", "rewrap", "--kms", "test_kms:Kms")
    master = ("--master", "column master=master of 2027")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = run(*command, *master, "-o", "new", "t.parquet", cwd=tmp_path, env=env)
    assert done.stderr.decode() == "t.parquet: 3 keys wrapped again\n"
    assert b"master of 2027" not in before
    assert parquet.read_table(tmp_path / "new", parquet.KmsKeys(Kms())).equals(CONTENT)
    for arguments, code, said in (
        ((*command, *master, "-o", "new", "t.parquet"), 4, "new: File exists"),
        ((*command, "--master", "x=y", "t.parquet"), 2, "no key under master key 'x'"),
        ((*command, "--master", "column master=y", "t.parquet"), 4, "no master key y"),
        ((*command, "--master", "x", "t.parquet"), 2, "OLD=NEW"),
        ((*command, "-o", "x", "t.parquet", "new"), 2, "one FILE"),
        ((*command[:-1], "nowhere:Kms", "t.parquet"), 2, "nowhere"),
        ((*command[:-1], "test_kms:None_", "t.parquet"), 2, "None_"),
        ((*command[:-1], "json:loads", "t.parquet"), 2, "--kms json:loads: TypeError: loads()"),
        ((*command[:-1], "..", "t.parquet"), 2, "expected MODULE:NAME"),
    ):
        done = run(*arguments, cwd=tmp_path, env=env, expect=code)
        assert said in done.stderr.decode()
    assert path.read_bytes() == before


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
    before = json.loads(Path(material_path(path)).read_text())
    with pytest.raises(ValueError, match="out is for a table"):
        parquet.rewrap(path, parquet.KmsKeys(Kms()), out=tmp_path / "x")
    assert json.loads(Path(material_path(path)).read_text()) == before
    Path(material_path(path)).unlink()
    with pytest.raises(FileNotFoundError):
        parquet.rewrap(path, parquet.KmsKeys(Kms()))


def test_a_table_that_another_program_writes_meanwhile_stays(tmp_path: Path) -> None:
    """Such as one whose keys another call has wrapped, and whose old master key is gone."""
    path, other = tmp_path / "t", tmp_path / "other"
    of_pyarrow(path)

    class Meanwhile(Kms):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            other.write_bytes(b"other")
            other.replace(path)
            return super().wrap_key(key_bytes, master_key_identifier)

    with pytest.raises(OSError, match="changed"):
        parquet.rewrap(path, parquet.KmsKeys(Kms()), NEW, client=Meanwhile())
    assert path.read_bytes() == b"other"
    assert [one.name for one in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("url", ["s3://bucket/t", "memory://meanwhile/t", "t"])
def test_material_that_another_program_writes_meanwhile_stays(
    server: small_s3.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    place = material_path(url)

    class Meanwhile(Kms):
        """Writes the material while its keys are wrapped."""

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            with writing(place) as file:
                file.write(b"{}")
            return super().wrap_key(key_bytes, master_key_identifier)

    def fault(request: small_s3.Request) -> Any:
        if request.kind == "put":
            return lambda store: store.put("bucket/_KEY_MATERIAL_FOR_t.json", b"{ }")
        return None

    keys = parquet.KmsKeys(Kms(), url)
    parquet.encrypt(write(CONTENT, None), url, keys.config(**MASTERS))
    keys.save()
    with Source(place) as file:
        before = bytes(file.read(0, file.size))
    with pytest.raises(OSError, match="changed"):
        keys.rotate_master_keys(NEW, client=Meanwhile())
    with Source(place) as file:
        assert bytes(file.read(0, file.size)) == b"{}"
    if not url.startswith("s3"):
        return
    server.put("bucket/_KEY_MATERIAL_FOR_t.json", before)
    server.fault = fault  # after all looks at it: the request itself has the condition
    with pytest.raises(OSError, match="changed"):
        keys.rotate_master_keys(NEW)
    server.fault = None
    assert server.objects["bucket/_KEY_MATERIAL_FOR_t.json"][0] == b"{ }"
    server.put("bucket/_KEY_MATERIAL_FOR_t.json", before)
    assert keys.rotate_master_keys(NEW) == 3
    assert parquet.read_table(url, keys).equals(CONTENT)

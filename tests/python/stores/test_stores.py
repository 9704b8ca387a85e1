# SPDX-License-Identifier: Apache-2.0
"""Objects of stores that work: in memory, as files, and in moto's S3 with boto3 as the peer."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import warpcipher as wc
from warpcipher import formats, stores, weights
from warpcipher.formats import age

fsspec = pytest.importorskip("fsspec")
server = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")
pytest.importorskip("obstore")

# Of botocore and werkzeug, which are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

KEY = bytes(range(32))
TEXT = os.urandom((12 << 20) + 5)


@pytest.fixture(scope="module")
def moto() -> Iterator[Any]:
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        yield client
    running.stop()


def test_objects_of_the_peer_are_read_and_ours_there(moto: Any) -> None:
    moto.put_object(Bucket="bucket", Key="in/a b.bin", Body=TEXT, Metadata={"owner": "me"})
    moto.put_object(Bucket="bucket", Key="in/", Body=b"")
    (info,) = stores.listing("s3://bucket/in")
    assert (info.url, info.size) == ("s3://bucket/in/a b.bin", len(TEXT))
    assert stores.open_object(info.url, info).read() == TEXT
    size = formats.encrypt_file(info.url, "s3://bucket/out", KEY)
    sealed = moto.get_object(Bucket="bucket", Key="out")["Body"].read()
    assert len(sealed) == size == formats.info("s3://bucket/out", KEY).size
    with formats.open("s3://bucket/out", KEY) as file:
        file.seek(7 << 20)
        assert file.read(100) == TEXT[7 << 20 : (7 << 20) + 100]
    formats.decrypt_file("s3://bucket/out", "s3://bucket/back", KEY)
    assert moto.get_object(Bucket="bucket", Key="back")["Body"].read() == TEXT
    assert stores.replace_beginning(info.url, 5, b"new", version=info.version)
    found = moto.get_object(Bucket="bucket", Key="in/a b.bin")
    assert found["Body"].read() == b"new" + TEXT[5:]
    assert found["Metadata"] == {"owner": "me"}
    with pytest.raises(FileExistsError, match="s3://bucket/out"):
        formats.encrypt_file(info.url, "s3://bucket/out", KEY, replace=False)
    with pytest.raises(FileNotFoundError, match="s3://nothing/name"):
        stores.open_object("s3://nothing/name").read()
    assert "Uploads" not in moto.list_multipart_uploads(Bucket="bucket")


@pytest.mark.parametrize("size", [1000, len(TEXT)])
def test_attributes_stay_where_keys_change(moto: Any, size: int) -> None:
    me, you = age.Identity.generate(), age.Identity.generate()
    place = {"Bucket": "bucket", "Key": "kept"}
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(TEXT[:size]), sealed, me)
    given: dict[str, Any] = {
        "ContentType": "application/age",
        "Metadata": {"owner": "me"},
        "StorageClass": "STANDARD_IA",
    }
    tags = {"class": "secret + more=1", "of": "me"}
    moto.put_object(**place, **given, Body=sealed.getvalue(), Tagging=urlencode(tags))

    def require_attributes(key: str) -> None:
        at = place | {"Key": key}
        found = moto.head_object(**at)
        assert {name: found[name] for name in given} == given
        set_of_tags = moto.get_object_tagging(**at)["TagSet"]
        assert {tag["Key"]: tag["Value"] for tag in set_of_tags} == tags

    formats.rewrap_file("s3://bucket/kept", me, you)
    require_attributes("kept")
    formats.rewrap_file("s3://bucket/kept", you, me, "s3://bucket/copy")
    require_attributes("copy")
    formats.rekey_file("s3://bucket/kept", None, you, KEY)
    require_attributes("kept")
    with formats.open("s3://bucket/kept", KEY) as file:
        assert file.read() == TEXT[:size]


def test_a_file_system_with_arguments_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fsspec.get_filesystem_class("memory")

    def cat_file(self: Any, path: str, recursive: bool = False, start: Any = None, end: Any = None):
        return read(self, path, start, end)

    read = memory.cat_file
    monkeypatch.setattr(memory, "cat_file", cat_file)
    with stores.writing("memory://order/name") as writer:
        writer.write(TEXT[:1000])
    assert stores.open_object("memory://order/name").read_at(5, 100) == TEXT[5:105]


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_files_of_other_schemes(scheme: str, tmp_path: Path) -> None:
    place = f"{scheme}://{tmp_path if scheme == 'file' else tmp_path.name}"
    (tmp_path / "plain").write_bytes(TEXT)
    sealed = f"{place}/sealed"
    formats.encrypt_file(tmp_path / "plain", sealed, KEY)
    formats.decrypt_file(sealed, f"{place}/again", KEY)
    with formats.open(f"{place}/sealed", KEY) as file:
        assert file.read() == TEXT
    with pytest.raises(FileExistsError):
        formats.encrypt_file(tmp_path / "plain", sealed, KEY, replace=False)
    with pytest.raises(ValueError, match="is the source"):
        formats.encrypt_file(sealed, sealed, KEY)
    assert stores.is_url(sealed) == (scheme == "memory")
    if scheme == "memory":
        assert stores.open_object(f"{place}/again").read() == TEXT
        opened = stores.open_object(f"{place}/again")
        with stores.writing(f"{place}/again") as writer:
            writer.write(TEXT[::-1])
        with pytest.raises(OSError, match="changed"):
            opened.read(10)
    else:
        assert (tmp_path / "again").read_bytes() == TEXT


def test_an_encrypted_model_is_loaded_from_a_url(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    tensors = {"a": numpy.arange(1000, dtype="float32"), "b": numpy.ones((3, 4))}
    path = tmp_path / "model.safetensors.cobblestone"
    weights.save_file(tensors, path, key=KEY)
    with stores.writing("memory://models/model.safetensors.cobblestone") as file:
        file.write(path.read_bytes())
    url = "memory://models/model.safetensors.cobblestone"
    loaded = weights.load_file(url, key=KEY, framework="np")
    assert all(numpy.array_equal(loaded[name], tensors[name]) for name in tensors)
    with weights.safe_open(url, "np", key=KEY) as model:
        assert numpy.array_equal(model.get_tensor("b"), tensors["b"])
    with pytest.raises(ValueError, match="No key was given"):
        weights.load_file(url, framework="np")
    with pytest.raises(wc.InvalidTag):
        weights.load_file(url, key=bytes(32), framework="np")


def test_a_host_that_is_not_there_is_not_a_missing_object() -> None:
    with pytest.raises(ValueError, match="foo://bucket: no store of this kind: expected s3://"):
        stores.stat("foo://bucket/name")
    pytest.importorskip("aiohttp")
    with pytest.raises(OSError, match="the store failed: Cannot connect") as caught:
        stores.stat("http://127.0.0.1:1/x")
    assert not isinstance(caught.value, FileNotFoundError)


def test_a_file_system_at_a_host(tmp_path: Path) -> None:
    """Of fsspec: it takes its host and user from the URL, wants the folder of a new file to be
    there, and has errors of its own."""

    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    class Refused(Exception):  # noqa: N818 - a name of the tests
        pass

    class Hosted(DirFileSystem):  # type: ignore[misc]
        protocol = "hosted"
        cachable = False

        def __init__(self, host: str, username: str = "", password: str = "", **_: Any) -> None:
            if password != "right":
                raise Refused(f"{username}:{password}")
            super().__init__(str(tmp_path / host), LocalFileSystem())

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.partition("://")[2].partition("/")[2] if "://" in path else path

        @staticmethod
        def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
            found = fsspec.utils.infer_storage_options(path)
            return {name: found[name] for name in ("host", "username", "password")}

    fsspec.register_implementation("hosted", Hosted, clobber=True)
    url = "hosted://me:right@there/a/b"
    with stores.writing(url) as file:
        file.write(b"text")
    assert (tmp_path / "there" / "a" / "b").read_bytes() == b"text"
    assert stores.open_object(url).read() == b"text"
    assert [info.size for info in stores.listing("hosted://me:right@there/a")] == [4]
    with pytest.raises(OSError, match="the store failed: Refused") as caught:
        stores.stat("hosted://me:wrong@there/a/b")
    assert "wrong" not in str(caught.value)

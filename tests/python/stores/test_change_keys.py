# SPDX-License-Identifier: Apache-2.0
"""Keys of objects in an S3 changed: what travels, and what is left when requests fail."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_s3
from click.testing import CliRunner
from warpcipher import formats, stores
from warpcipher.cli.app import cli
from warpcipher.formats import age

pytest.importorskip("boto3")
pytest.importorskip("obstore")
pytest.importorskip("cryptography")
cloud = pytest.importorskip("warpcipher.stores.cloud")

# Of botocore, which is not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

ME, YOU = (age.Identity(bytes(range(32 * i, 32 * i + 32))) for i in range(2))
URL = "s3://bucket/a"
TEXT = os.urandom((12 << 20) + 5)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[small_s3.Store]:
    """With an object of 12 MiB for ME."""
    monkeypatch.setattr(cloud, "RETRIES", 1)
    monkeypatch.setattr(cloud, "FIRST_PAUSE", 0.001)
    with small_s3.running() as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        sealed = io.BytesIO()
        formats.encrypt_stream(io.BytesIO(TEXT), sealed, ME)
        store.put("bucket/a", sealed.getvalue())
        yield store


def opened(url: str, key: Any) -> bytes:
    with formats.open(url, key) as file:
        return file.read()


@pytest.mark.parametrize("out", ["s3://bucket/b", None])
def test_the_store_copies_all_but_the_beginning(server: small_s3.Store, out: str | None) -> None:
    formats.rewrap_file(URL, ME, YOU, out)
    sent = sum(len(request.body) for request in server.seen)
    assert server.count("copy") >= 1
    assert sent < (5 << 20) + 10_000, "the least first part of S3"
    assert server.bytes_read() < (5 << 20) + (65 << 10)
    assert opened(out or URL, YOU) == TEXT
    assert not server.uploads


@pytest.mark.parametrize("kind", ["copy", "part", "complete", "get", "begin"])
@pytest.mark.parametrize("change", ["rewrap", "rekey"])
def test_requests_that_fail(server: small_s3.Store, kind: str, change: str) -> None:
    before = dict(server.objects)
    server.fault = lambda request: (500, "InternalError") if request.kind == kind else None
    call: Callable[..., Any] = formats.rewrap_file
    arguments: tuple[Any, ...] = (URL, ME, YOU)
    if change == "rekey":
        call, arguments = formats.rekey_file, (URL, None, ME, bytes(32))
    with pytest.raises(OSError, match=r"InternalError|500"):
        call(*arguments)
    assert server.objects == before
    assert not server.uploads


def test_rekey_in_place(server: small_s3.Store) -> None:
    formats.rekey_file(URL, None, ME, bytes(32))
    assert opened(URL, bytes(32)) == TEXT
    assert [info.url for info in stores.listing("s3://bucket")] == [URL]
    assert server.count("copy") >= 1
    assert not server.uploads


@pytest.mark.parametrize("size", [1000, len(TEXT)])
def test_a_write_at_the_last_moment_is_not_lost(server: small_s3.Store, size: int) -> None:
    sealed = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(TEXT[:size]), sealed, ME)
    server.put("bucket/a", sealed.getvalue())

    def exchange(request: small_s3.Request) -> Any:
        last = request.kind in ("put", "complete") and request.key == "bucket/a"
        return (lambda _: server.put("bucket/a", b"other")) if last else None

    server.fault = exchange
    with pytest.raises(OSError, match=r"changed.*s3://bucket/a"):
        formats.rekey_file(URL, None, ME, bytes(32))
    assert server.objects["bucket/a"][0] == b"other"
    assert list(server.objects) == ["bucket/a"]
    assert not server.uploads


@pytest.mark.parametrize("code", ["AccessDenied", "NotImplemented"])
def test_tags_that_cannot_be_read(server: small_s3.Store, code: str) -> None:
    status = 403 if code == "AccessDenied" else 501
    server.fault = lambda request: (status, code) if request.kind == "tags" else None
    if code == "NotImplemented":
        formats.rewrap_file(URL, ME, YOU)
        assert opened(URL, YOU) == TEXT
    else:
        with pytest.raises(PermissionError, match=r"GetObjectTagging.*s3://bucket/a"):
            formats.rewrap_file(URL, ME, YOU)
        assert opened(URL, ME) == TEXT


def test_an_object_that_changes_meanwhile(server: small_s3.Store) -> None:
    other = bytes(1000)

    def exchange(request: small_s3.Request) -> Any:
        if request.kind == "begin":
            server.fault = None
            return lambda _: server.put("bucket/a", other)
        return None

    server.fault = exchange
    with pytest.raises(OSError, match="changed"):
        formats.rewrap_file(URL, ME, YOU)
    assert server.objects["bucket/a"][0] == other
    assert not server.uploads


@pytest.mark.parametrize("change", ["rewrap", "rekey"])
def test_a_prefix_in_place(
    server: small_s3.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """By the store's own copies, on the condition that nobody has written meanwhile."""
    monkeypatch.chdir(tmp_path)
    for name, secret in (("me", ME), ("you", YOU)):
        Path(name).touch(0o600)
        Path(name).write_text(secret.to_text())
    texts = {f"p/{number}.age": os.urandom(number << 20) for number in (0, 1, 6)}
    for name, text in texts.items():
        sealed = io.BytesIO()
        formats.encrypt_stream(io.BytesIO(text), sealed, ME)
        server.put(f"bucket/{name}", sealed.getvalue())

    def exchange(request: small_s3.Request) -> Any:
        last = request.kind in ("put", "complete") and request.key == "bucket/p/1.age"
        return (lambda _: server.put("bucket/p/1.age", b"other")) if last else None

    server.fault = exchange
    given = [change, "-i", "me", "-r", str(YOU.recipient), "s3://bucket/p/", "--retry", "0"]
    done = CliRunner().invoke(cli, [*given, *(["--in-place"] if change == "rekey" else [])])
    assert done.exit_code == 4, done.output
    assert "p/1.age" in done.output
    assert server.objects["bucket/p/1.age"][0] == b"other"
    for name, text in texts.items():
        if name != "p/1.age":
            assert opened(f"s3://bucket/{name}", YOU) == text
    left = {name for name in server.objects if name.startswith("bucket/p/")}
    assert left == {*(f"bucket/{name}" for name in texts), f"bucket/p/.warpcipher-journal-{change}"}
    assert not server.uploads


def test_a_name_that_is_taken(
    server: small_s3.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("me").write_text(ME.to_text())
    server.put("bucket/b", b"other")
    given = ["rewrap", "-i", "me", "-r", str(YOU.recipient), URL, "-o", "s3://bucket/b"]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 2, done.output
    assert server.objects["bucket/b"][0] == b"other"
    assert CliRunner().invoke(cli, [*given, "--force"]).exit_code == 0
    assert opened("s3://bucket/b", YOU) == TEXT

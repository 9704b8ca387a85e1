# SPDX-License-Identifier: Apache-2.0
"""A store that fails: right bytes or a clear error, a bounded number of tries, no parts left."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import small_s3
from warpcipher import formats, stores
from warpcipher.fleet.places import is_prefix
from warpcipher.stores import cloud

pytest.importorskip("obstore")
pytest.importorskip("boto3")

# Of botocore, which is not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

SECRET = "wJalrXUtnFEMI"
KEY = bytes(range(32))
LONG = os.urandom(20 << 20)
RETRIES = 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[small_s3.Store]:
    monkeypatch.setattr(cloud, "RETRIES", RETRIES)
    monkeypatch.setattr(cloud, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(cloud, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(cloud, "TIMEOUT", 1.0)
    with small_s3.running() as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield store


def failing(kinds: str, fault: Any, times: int = 1000) -> small_s3.Fault:
    """Those kinds of requests go wrong, each the first so many times. Where a body was cut, the
    next request asks for what is left: a range with the same end."""
    seen: Counter[tuple[str, ...]] = Counter()

    def wrong(request: small_s3.Request) -> Any:
        end = request.headers.get("range", "").rpartition("-")[2]
        seen[same := (request.kind, end, request.query.get("partNumber", ""))] += 1
        return fault if request.kind in kinds.split() and seen[same] <= times else None

    return wrong


def write(url: str, data: bytes, **options: Any) -> None:
    with stores.writing(url, **options) as file:
        for begin in range(0, len(data), 1 << 20):
            file.write(memoryview(data)[begin : begin + (1 << 20)])


PASSING = ["reset", "cut", "hang", (500, "InternalError"), (503, "SlowDown")]


@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_tried_again(server: small_s3.Store, fault: Any) -> None:
    server.put("bucket/name", LONG)
    server.hang_seconds = 1.5
    server.fault = failing("get", fault, times=1)
    with stores.open_object("s3://bucket/name") as file:
        assert file.read_at(5, 10 << 20) == LONG[5 : 5 + (10 << 20)]
    assert server.count("get") == 4  # two parts, twice
    if fault != "cut":  # of an answer without a body
        server.fault = failing("part complete", fault, times=1)
        write("s3://bucket/new", LONG)
        assert server.objects["bucket/new"][0] == LONG


@pytest.mark.parametrize("fault", PASSING)
def test_what_stays_ends_after_some_tries(server: small_s3.Store, fault: Any) -> None:
    server.put("bucket/name", LONG)
    server.hang_seconds = 1.5
    server.fault = failing("get", fault)
    with (
        stores.open_object("s3://bucket/name") as file,
        pytest.raises(OSError, match="failed") as raised,
    ):
        file.read_at(5, 1000)
    assert server.count("get") == 1 + RETRIES
    assert "s3://bucket/name" in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("fault", ["reset", (500, "InternalError"), (403, "AccessDenied")])
@pytest.mark.parametrize("kind", ["part", "complete", "begin"])
def test_an_upload_that_fails_leaves_no_parts(
    server: small_s3.Store, kind: str, fault: Any, replace: bool
) -> None:
    server.fault = failing(kind, fault)
    with pytest.raises(OSError, match="s3://bucket/new") as raised:
        write("s3://bucket/new", LONG, replace=replace)
    assert isinstance(raised.value, PermissionError) == (fault == (403, "AccessDenied"))
    assert not server.objects
    assert not server.uploads
    assert server.count(kind) <= (1 if fault == (403, "AccessDenied") else 1 + RETRIES) * 4


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_leaves_nothing(
    server: small_s3.Store, error: type[BaseException], replace: bool
) -> None:
    before = server.put("bucket/old", b"before")

    def parts() -> Iterator[bytes]:
        yield LONG
        raise error

    for name, new in (("new", replace), ("old", True)):
        with pytest.raises(error), stores.writing(f"s3://bucket/{name}", replace=new) as file:
            list(map(file.write, parts()))
    assert not server.uploads
    assert server.objects == {"bucket/old": (b"before", before)}


def test_an_object_that_changes_is_an_error(server: small_s3.Store) -> None:
    server.put("bucket/name", LONG)
    (info,) = stores.listing("s3://bucket")
    server.put("bucket/name", LONG[::-1])
    with stores.open_object(info.url, info) as file, pytest.raises(OSError, match="changed"):
        file.read(10)
    with stores.open_object(info.url) as file:
        assert file.read(1 << 20) == LONG[::-1][: 1 << 20]
        server.put("bucket/name", LONG)
        with pytest.raises(OSError, match="changed"):
            file.readall()
    with stores.open_object(info.url) as file:
        stores.remove(info.url)
        with pytest.raises(OSError, match="changed"):
            file.read(10)
    with pytest.raises(FileNotFoundError, match="s3://bucket/name"):
        stores.stat(info.url)


@pytest.mark.parametrize("status", [400, 403])
@pytest.mark.parametrize("what", ["get", "put", "list"])
def test_expired_credentials_say_so(server: small_s3.Store, what: str, status: int) -> None:
    server.put("bucket/name", b"text")
    server.fault = failing(what, (status, "ExpiredToken"))
    ask: dict[str, Callable[[], object]] = {
        "get": lambda: stores.open_object("s3://bucket/name").read(),
        "put": lambda: write("s3://bucket/new", b"text"),
        "list": lambda: list(stores.listing("s3://bucket")),
    }
    with pytest.raises(PermissionError, match=r"expired.*s3://bucket") as raised:
        ask[what]()
    assert server.count(what) == 1
    assert SECRET not in str(raised.value)


def test_no_credentials_say_so(
    server: small_s3.Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    server.put("bucket/name", b"text")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(PermissionError, match="AWS_ACCESS_KEY_ID"):
        stores.stat("s3://bucket/name")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert stores.open_object("s3://bucket/name").read() == b"text"
    assert "authorization" not in server.seen[-1].headers


def test_a_new_object_replaces_none(server: small_s3.Store) -> None:
    for size in (0, 4, len(LONG)):
        write("s3://bucket/new", LONG[:size], replace=False)
        assert server.objects.pop("bucket/new")[0] == LONG[:size]
        server.fault = lambda request: (
            (lambda store: store.objects.update({"bucket/new": (b"other", '"other"')}))
            if request.kind in ("put", "complete")
            else None
        )
        with pytest.raises(FileExistsError, match="s3://bucket/new"):
            write("s3://bucket/new", LONG[:size], replace=False)
        assert server.objects["bucket/new"][0] == b"other"
        assert not server.uploads
        server.objects.clear()
        server.fault = None


@pytest.mark.parametrize("size", [10, 1000, 20 << 20])
@pytest.mark.parametrize("beginning", [b"", b"new beginning"])
def test_a_beginning_is_replaced_by_the_store(
    server: small_s3.Store, size: int, beginning: bytes
) -> None:
    server.put("bucket/name", LONG[:size])
    expected = beginning + LONG[10:size]
    assert stores.replace_beginning("s3://bucket/name", 10, beginning, dest="s3://bucket/other")
    assert server.objects["bucket/other"][0] == expected
    assert stores.replace_beginning("s3://bucket/name", 10, beginning)
    assert server.objects["bucket/name"][0] == expected
    assert server.bytes_read() <= 2 * (5 << 20)
    with pytest.raises(OSError, match="changed"):
        stores.replace_beginning("s3://bucket/name", 1, b"", version='"another"')
    server.put("bucket/name", LONG)
    server.fault = failing("copy", (403, "AccessDenied"))
    with pytest.raises(PermissionError):
        stores.replace_beginning("s3://bucket/name", 1, b"")
    assert server.objects["bucket/name"][0] == LONG
    assert not server.uploads


def test_a_range_of_a_long_object_reads_about_that(server: small_s3.Store) -> None:
    text = os.urandom(64 << 20)
    with stores.writing("s3://bucket/plain") as file:
        file.write(text)
    formats.encrypt_file("s3://bucket/plain", "s3://bucket/sealed", KEY)
    server.seen.clear()
    with formats.open("s3://bucket/sealed", KEY) as opened:
        opened.seek(40 << 20)
        assert opened.read(1 << 20) == text[40 << 20 : 41 << 20]
    assert server.bytes_read() < 3 << 20
    server.fault = failing("get", (503, "SlowDown"), times=1)
    with formats.open("s3://bucket/sealed", KEY) as opened:
        assert opened.read() == text


def test_buckets_of_google(server: small_s3.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their XML interface is that of S3, as far as obstore uses it."""
    account = {"gcs_base_url": server.endpoint, "disable_oauth": True}
    account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(account))
    for size in (5, len(LONG)):
        write(f"gs://bucket/{size}", LONG[:size], replace=False)
        assert stores.open_object(f"gs://bucket/{size}").read() == LONG[:size]
        with pytest.raises(FileExistsError):
            write(f"gs://bucket/{size}", LONG[:size], replace=False)
    assert [info.size for info in stores.listing("gs://bucket")] == [len(LONG), 5]
    assert not stores.replace_beginning(f"gs://bucket/{len(LONG)}", 0, b"")
    assert stores.replace_beginning("gs://bucket/5", 5, LONG[:5])
    with pytest.raises(OSError, match="changed"):
        stores.replace_beginning("gs://bucket/5", 5, b"lost", version='"another"')
    server.fault = lambda request: (
        (lambda store: store.put("bucket/5", b"theirs")) if request.kind == "put" else None
    )
    with pytest.raises(OSError, match="changed"):
        stores.replace_beginning("gs://bucket/5", 5, b"lost")
    server.fault = None
    assert server.objects["bucket/5"][0] == b"theirs"
    server.put("bucket/5", LONG[:5])
    file = stores.open_object("gs://bucket/5")
    server.put("bucket/5", b"other")
    with pytest.raises(OSError, match="changed"):
        file.read(1)


def test_a_server_that_ignores_or_mistakes_conditions(
    server: small_s3.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ceph 16 does: it refuses one request in buckets with versions, whatever is there, and
    ignores the condition where parts become an object, and has no list of tags then."""

    def meanwhile(kind: str) -> small_s3.Fault:
        def change(store: small_s3.Store) -> None:
            store.put("bucket/name", b"theirs")

        return lambda request: change if request.kind == kind else None

    monkeypatch.setitem(small_s3._KINDS, "tags", lambda *_: (200, b"", {}))
    server.put("bucket/name", b"before")
    server.fault = failing("put", (412, "PreconditionFailed"))
    assert stores.replace_beginning("s3://bucket/name", 6, b"after")
    assert server.objects["bucket/name"][0][:] == b"after"
    server.fault = meanwhile("put")
    with pytest.raises(OSError, match="changed"):
        stores.replace_beginning("s3://bucket/name", 5, b"lost")
    monkeypatch.setattr(small_s3, "_refused", lambda *_: False)
    server.put("bucket/name", LONG)
    server.fault = meanwhile("copy")
    with pytest.raises(OSError, match="changed"):
        stores.replace_beginning("s3://bucket/name", 5, b"lost")
    assert server.objects["bucket/name"][0] == b"theirs"
    server.fault = None
    with pytest.raises(FileExistsError):
        write("s3://bucket/name", b"lost", replace=False)
    assert server.objects["bucket/name"][0] == b"theirs"
    assert not server.uploads


def test_a_bucket_without_a_slash_is_a_prefix(server: small_s3.Store) -> None:
    assert is_prefix("s3://bucket")
    server.put("bucket/a", b"")
    assert not is_prefix("s3://bucket/a")


def test_a_damaged_object_gives_no_plaintext(server: small_s3.Store) -> None:
    server.put("bucket/plain", LONG)
    formats.encrypt_file("s3://bucket/plain", "s3://bucket/sealed", KEY)
    sealed = bytearray(server.objects["bucket/sealed"][0])
    sealed[len(sealed) // 2] ^= 1
    server.put("bucket/sealed", bytes(sealed))
    server.put("bucket/again", b"before")
    with pytest.raises(Exception, match="authentic"):
        formats.decrypt_file("s3://bucket/sealed", "s3://bucket/again", KEY)
    assert server.objects["bucket/again"][0] == b"before"
    assert not server.uploads


def test_names_of_any_shape(server: small_s3.Store) -> None:
    """obstore takes none with empty parts, . or .., or control characters; boto3 does."""
    for name in ("a//b", "a/../b", "t\t", "ü b%20#?*", "z"):
        server.put(f"bucket/{name}", b"text")
    names = [info.url.removeprefix("s3://bucket/") for info in stores.listing("s3://bucket")]
    assert names == ["a/../b", "a//b", "t\t", "z", "ü b%20#?*"]
    assert stores.open_object("s3://bucket/ü b%20#?*").read() == b"text"
    for name in ("a//b", "a/../b", "t\t"):
        url = f"s3://bucket/{name}"
        found = stores.stat(url)
        assert found._replace(modified=0) == stores.ObjectInfo(
            url, 4, 0, server.objects[url[5:]][1]
        )
        file = stores.open_object(url)
        assert file.read_at(1, 2) == b"ex"
        server.put(url[5:], b"other")
        with pytest.raises(OSError, match="changed"):
            file.read_at(0, 4)
        with stores.writing(url) as upload:
            upload.write(bytes(9 << 20))
        assert stores.stat(url).size == 9 << 20
        with pytest.raises(FileExistsError), stores.writing(url, replace=False) as upload:
            upload.write(b"more")
        with stores.writing(url + "/new", replace=False) as upload:
            upload.write(b"")
        assert stores.stat(url + "/new").size == 0
        with pytest.raises(FileNotFoundError):
            stores.stat(f"s3://bucket//{name}")
    before = dict(server.objects)
    for prefix in ("s3://bucket/new/", "s3://bucket/", "s3://bucket"):
        with pytest.raises(IsADirectoryError, match="name the object"), stores.writing(prefix):
            pass
    assert server.objects == before
    with pytest.raises(ValueError, match="expected s3://bucket/name"):
        stores.stat(f"s3://key:{SECRET}@bucket/name")

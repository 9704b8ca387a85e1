# SPDX-License-Identifier: Apache-2.0
"""Containers of Azure, at a server that has the little of its interface that obstore uses."""

from __future__ import annotations

import base64
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from job_support import invoke
from warpcipher import formats, stores
from warpcipher.formats import age, rekey

pytest.importorskip("obstore")

KEY = bytes(range(32))
LONG = os.urandom((20 << 20) + 5)
LAST = "Sun, 29 Nov 2026 12:00:00 GMT"


class Container(BaseHTTPRequestHandler):
    """blobs: content and version by name; blocks: those of uploads, by name and id."""

    protocol_version = "HTTP/1.1"
    blobs: dict[str, tuple[bytes, int]]
    blocks: dict[tuple[str, str], bytes]

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **more: str) -> None:
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _place(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        name = unquote(parts.path).removeprefix("/account/box").lstrip("/")
        return name, dict(parse_qsl(parts.query))

    def do_PUT(self) -> None:
        name, query = self._place()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if query.get("comp") == "block":
            self.blocks[name, query["blockid"]] = body
            self._answer(201)
            return
        if query.get("comp") == "blocklist":
            ids = re.findall(r"<Uncommitted>(.*?)</Uncommitted>", body.decode())
            assert ids
            assert all(base64.b64decode(one) for one in ids)
            body = b"".join(self.blocks.pop((name, one)) for one in ids)
        if self.headers.get("If-None-Match") == "*" and name in self.blobs:
            self._answer(409, b"<Error><Code>BlobAlreadyExists</Code></Error>")
            return
        version = self.blobs.get(name, (b"", 0))[1] + 1
        if self.headers.get("If-Match", f'"{version - 1}"') != f'"{version - 1}"':
            self._answer(412, b"<Error><Code>ConditionNotMet</Code></Error>")
            return
        self.blobs[name] = body, version
        self._answer(201, ETag=f'"{version}"', Last_Modified=LAST)

    def do_GET(self) -> None:
        name, query = self._place()
        if query.get("comp") == "list":
            found = sorted(each for each in self.blobs if each.startswith(query.get("prefix", "")))
            blobs = "".join(
                f"<Blob><Name>{each}</Name><Properties><Last-Modified>{LAST}</Last-Modified>"
                f"<Content-Length>{len(self.blobs[each][0])}</Content-Length>"
                "<Content-Type>application/octet-stream</Content-Type>"
                f"<Etag>{self.blobs[each][1]}</Etag></Properties></Blob>"  # as Azure lists it
                for each in found
            )
            self._answer(
                200,
                f"<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>".encode(),
                Content_Type="application/xml",
            )
            return
        if name not in self.blobs:
            self._answer(404, b"<Error><Code>BlobNotFound</Code></Error>")
            return
        data, version = self.blobs[name]
        tags = {"ETag": f'"{version}"', "Last_Modified": LAST}
        if self.headers.get("If-Match", tags["ETag"]) != tags["ETag"]:
            self._answer(412, b"<Error><Code>ConditionNotMet</Code></Error>")
            return
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span is None:
            self._answer(200, data, **tags)
            return
        first, last = int(span[1]), min(int(span[2]), len(data) - 1)
        tags["Content_Range"] = f"bytes {first}-{last}/{len(data)}"
        self._answer(206, data[first : last + 1], **tags)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        """Deletes, of which several come in one request."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = ""
        for number, name in enumerate(re.findall(r"DELETE /account/box/(\S+) HTTP", body)):
            self.blobs.pop(unquote(name), None)
            answer += "--b\r\nContent-Type: application/http\r\n"
            answer += f"Content-ID: {number}\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n"
        self._answer(202, f"{answer}--b--\r\n".encode(), Content_Type="multipart/mixed; boundary=b")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class of its handlers."""
    kind = type("Handler", (Container,), {"blobs": {}, "blocks": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"secret").decode())
    monkeypatch.setenv("AZURE_ENDPOINT", f"http://127.0.0.1:{server.server_port}/account")
    yield kind
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def blobs(server: Any) -> dict[str, tuple[bytes, int]]:
    found: dict[str, tuple[bytes, int]] = server.blobs
    return found


def test_objects(blobs: dict[str, tuple[bytes, int]]) -> None:
    for size in (5, len(LONG)):
        url = f"az://box/a/{size}"
        with stores.writing(url, replace=False) as file:
            file.write(LONG[:size])
        assert blobs[f"a/{size}"][0] == LONG[:size]
        with pytest.raises(FileExistsError), stores.writing(url, replace=False) as file:
            file.write(b"other")
        formats.encrypt_file(url, "az://box/sealed", KEY)
        with formats.open("az://box/sealed", KEY) as text:
            text.seek(size // 2)
            assert text.read() == LONG[size // 2 : size]
    assert [info.size for info in stores.listing("az://box/a")] == [len(LONG), 5]
    assert not stores.replace_beginning(f"az://box/a/{len(LONG)}", 0, b"")
    file = stores.open_object("az://box/a/5")
    with stores.writing("az://box/a/5") as again:
        again.write(b"other")
    with pytest.raises(OSError, match="changed"):
        file.read(1)
    stores.remove("az://box/a/5")
    with pytest.raises(FileNotFoundError, match="az://box/a/5"):
        stores.stat("az://box/a/5")


def test_an_object_is_replaced_only_as_it_was(
    server: Any, blobs: dict[str, tuple[bytes, int]]
) -> None:
    with stores.writing("az://box/a") as file:
        file.write(b"before")
    info = stores.stat("az://box/a")
    assert stores.replace_beginning("az://box/a", 6, b"after", version=info.version)
    with pytest.raises(OSError, match="changed"):
        stores.replace_beginning("az://box/a", 5, b"lost", version=info.version)
    assert blobs["a"][0] == b"after"

    class Changing(dict):  # type: ignore[type-arg]
        """A blob that changes as soon as its version has been asked for."""

        def __getitem__(self, name: str) -> Any:
            found = super().__getitem__(name)
            self[name] = b"other", found[1] + 1
            return found

    server.blobs = Changing(blobs)
    with pytest.raises(OSError, match="changed"):
        stores.replace_beginning("az://box/a", 5, b"lost")
    assert server.blobs.get("a")[0] == b"other"


def test_keys_change_in_place(
    blobs: dict[str, tuple[bytes, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of short objects, on the store's condition: what another program writes stays."""
    me, you = age.Identity.generate(), age.Identity.generate()
    for size in (5, 100_000):
        blobs["plain"] = LONG[:size], 1
        formats.encrypt_file("az://box/plain", "az://box/sealed", me)
        formats.rewrap_file("az://box/sealed", me, you)
        with formats.open("az://box/sealed", you) as text:
            assert text.read() == LONG[:size]
        formats.rekey_file("az://box/sealed", None, you, KEY)
        with formats.open("az://box/sealed", KEY) as text:
            assert text.read() == LONG[:size]
    move = rekey._move_object

    def late(*given: Any) -> None:
        blobs["sealed"] = b"theirs", 100
        move(*given)

    monkeypatch.setattr(rekey, "_move_object", late)
    with pytest.raises(OSError, match="changed"):
        formats.rekey_file("az://box/sealed", None, KEY, bytes(32))
    assert blobs["sealed"][0] == b"theirs"
    assert blobs.keys() == {"plain", "sealed"}


def test_a_job(blobs: dict[str, tuple[bytes, int]], tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    for number in range(5):
        blobs[f"in/a b/{number}"] = LONG[: 1000 * number], 1
    given = ("--key", str(tmp_path / "key"))
    invoke("encrypt", *given, "az://box/in/", "-o", "az://box/out/")
    invoke("check", *given, "az://box/out/")
    assert "5 complete before" in invoke(
        "encrypt", *given, "az://box/in/", "-o", "az://box/out/", "-v"
    )
    again = ("rekey", *given, "--new-key", str(tmp_path / "key"), "--in-place", "--retry", "0")
    invoke(*again, "az://box/out/")
    invoke("decrypt", *given, "az://box/out/", "-o", str(tmp_path / "back"))
    assert (tmp_path / "back" / "a b" / "4").read_bytes() == LONG[:4000]


def test_an_upload_that_ends_leaves_nothing(blobs: dict[str, tuple[bytes, int]]) -> None:
    def fail() -> None:
        with stores.writing("az://box/a") as file:
            file.write(LONG)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not blobs

# SPDX-License-Identifier: Apache-2.0
"""The little of S3 that clients of this package use, in a thread, with faults to order: a test says
of which requests what goes wrong.

    python small_s3.py PORT     serves alone, for measurements
"""

from __future__ import annotations

import hashlib
import re
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape


@dataclass
class Request:
    """One request, as faults see it. tries: how many of the same came before."""

    method: str
    key: str  # with the bucket
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""
    tries: int = 0

    @property
    def kind(self) -> str:
        """A name as those of the API, short."""
        if self.method == "GET" and "list-type" in self.query:
            return "list"
        if "tagging" in self.query:
            return "tags"
        if "uploads" in self.query:
            return "begin" if self.method == "POST" else "list-uploads"
        if "uploadId" in self.query:
            copy = "copy" if "x-amz-copy-source" in self.headers else "part"
            return {"PUT": copy, "POST": "complete", "DELETE": "abort"}[self.method]
        return self.method.lower()


Fault = Callable[[Request], Any]
"""Given a request, what is wrong with it: None: nothing; an error (status, code); "reset", "cut",
"hang"; or a callable that changes the store before the request is served."""


class Joined:
    """Parts in a row as content: what a server copies in no time takes none here."""

    def __init__(self, parts: list[Content]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def part(self, first: int, end: int) -> Joined:
        """The same memory."""
        pieces: list[Content] = []
        for one in self._parts:
            if first < len(one) and end > 0:
                low, high = max(0, first), min(end, len(one))
                is_joined = isinstance(one, Joined)
                pieces.append(one.part(low, high) if is_joined else memoryview(one)[low:high])
            first, end = first - len(one), end - len(one)
        return Joined(pieces)

    def __getitem__(self, where: slice) -> bytes:
        first, end, _ = where.indices(len(self))
        pieces = self.part(first, end)._parts
        return b"".join(one[:] if isinstance(one, Joined) else one for one in pieces)


Content = bytes | memoryview | Joined
LONG = 1 << 26
"""Of so many bytes are contents that only measurements have."""


@dataclass
class Store:
    """The objects of the server, and the requests it saw."""

    objects: dict[str, tuple[Content, str]] = field(default_factory=dict)  # content, ETag
    uploads: dict[str, tuple[str, dict[int, tuple[Content, str]]]] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)
    fault: Fault | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    endpoint: str = ""
    hang_seconds: float = 5.0
    keeps_log: bool = True

    def put(self, key: str, data: bytes) -> str:
        etag = f'"{etag_of(data)}"'
        with self.lock:
            self.objects[key] = data, etag
        return etag

    def count(self, kind: str) -> int:
        return sum(request.kind == kind for request in self.seen)

    def bytes_read(self) -> int:
        """The bytes that the ranges of all requests ask for."""
        total = 0
        for request in self.seen:
            if request.kind == "get":
                first, last = spans(request.headers["range"], 1 << 62)
                total += last - first
        return total


def etag_of(data: Content) -> str:
    """Of long content only its beginning and size: a measurement is not one of hashes."""
    return hashlib.sha256(bytes(data[: 1 << 16]) + str(len(data)).encode()).hexdigest()[:32]


def spans(text: str, size: int) -> tuple[int, int]:
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", text)
    assert found is not None
    return int(found[1]), min(int(found[2]) + 1 if found[2] else size, size)


class Handler(socketserver.StreamRequestHandler):
    rbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: Any

    def handle(self) -> None:
        store: Store = self.server.store
        try:
            while (request := self._next()) is not None:
                with store.lock:
                    same = (request.method, request.key, request.query, _range(request))
                    request.tries = self.server.tries.get(str(same), 0)
                    self.server.tries[str(same)] = request.tries + 1
                    if store.keeps_log:
                        store.seen.append(request)
                fault = store.fault(request) if store.fault else None
                if fault == "reset":
                    return
                if fault == "hang":
                    time.sleep(store.hang_seconds)
                    return
                if isinstance(fault, tuple):
                    self._answer(fault[0], error(fault[1]), head=request.method == "HEAD")
                    continue
                if callable(fault):
                    fault(store)
                status, body, headers = serve(store, request)
                if fault == "cut":
                    self._answer(status, body[: len(body) // 2], headers, size=len(body))
                    return
                self._answer(status, body, headers, head=request.method == "HEAD")
        except (ConnectionError, TimeoutError):
            return

    def _next(self) -> Request | None:
        line = self.rfile.readline()
        if not line:
            return None
        method, target, _ = line.decode().split()
        headers: dict[str, str] = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        path, _, query = target.partition("?")
        found = {k: v[0] for k, v in parse_qs(query, keep_blank_values=True).items()}
        if headers.get("expect") == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self.rfile.read(int(headers.get("content-length", 0)))
        if headers.get("content-encoding", "").startswith("aws-chunked"):
            body = _unchunked(body)
        return Request(method, unquote(path).lstrip("/"), found, headers, body)

    def _answer(
        self,
        status: int,
        body: bytes | memoryview,
        headers: dict[str, str] | None = None,
        *,
        size: int | None = None,
        head: bool = False,
    ) -> None:
        lines = [f"HTTP/1.1 {status} X", "x-amz-request-id: 1"]
        given = {"Content-Length": str(len(body) if size is None else size), **(headers or {})}
        lines += [f"{name}: {value}" for name, value in given.items()]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode())
        if not head:
            self.wfile.write(body)


def _range(request: Request) -> str:
    return request.headers.get("range", "")


def _unchunked(body: bytes) -> bytes:
    out, at = [], 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";")[0], 16)
        if not size:
            return b"".join(out)
        out.append(body[end + 2 : end + 2 + size])
        at = end + 4 + size


def error(code: str) -> bytes:
    return element("Error", Code=code, Message=code)


def element(name: str, **content: str) -> bytes:
    """An element of XML. content: elements in it, by name."""
    inner = "".join(f"<{tag}>{text}</{tag}>" for tag, text in content.items())
    return f"<{name}>{inner}</{name}>".encode()


Answer = tuple[int, Any, dict[str, str]]


def serve(store: Store, request: Request) -> Answer:
    with store.lock:
        return _KINDS[request.kind](store, request)


def _get(store: Store, request: Request) -> Answer:
    found = store.objects.get(request.key)
    if found is None:
        return 404, error("NoSuchKey"), {}
    data, etag = found
    if request.headers.get("if-match", etag).strip('"') != etag.strip('"'):
        return 412, error("PreconditionFailed"), {}
    headers = {"ETag": etag, "Last-Modified": "Sun, 29 Nov 2026 07:00:00 GMT"}
    headers["x-goog-generation"] = generation_of(etag)
    if "range" not in request.headers:
        return 200, data if request.method == "HEAD" else data[:], headers
    first, end = spans(request.headers["range"], len(data))
    if first >= len(data):
        return 416, error("InvalidRange"), {}
    headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
    return 206, data[first:end], headers


def generation_of(etag: str) -> str:
    """Google's version beside an ETag."""
    return str(int(hashlib.sha256(etag.encode()).hexdigest()[:12], 16))


def _refused(store: Store, request: Request) -> bool:
    """Whether a condition on the object that is there does not hold."""
    etag = store.objects.get(request.key, (b"", ""))[1]
    generation = request.headers.get("x-goog-if-generation-match")
    if generation not in (None, "0", generation_of(etag)):
        return True
    if "if-none-match" in request.headers:
        return bool(etag)
    return request.headers.get("if-match", etag).strip('"') != etag.strip('"')


def _tags(store: Store, request: Request) -> Answer:
    return 200, element("Tagging", TagSet=""), {}


def _put(store: Store, request: Request) -> Answer:
    if _refused(store, request):
        return 412, error("PreconditionFailed"), {}
    etag = f'"{etag_of(request.body)}"'
    store.objects[request.key] = request.body, etag
    return 200, b"", {"ETag": etag}


def _delete(store: Store, request: Request) -> Answer:
    store.objects.pop(request.key, None)
    return 204, b"", {}


def _begin(store: Store, request: Request) -> Answer:
    name = f"upload-{len(store.seen)}-{time.monotonic_ns()}"
    store.uploads[name] = request.key, {}
    return 200, element("InitiateMultipartUploadResult", UploadId=name), {}


def _part(store: Store, request: Request) -> Answer:
    if request.query["uploadId"] not in store.uploads:
        return 404, error("NoSuchUpload"), {}
    etag = f'"{etag_of(request.body)}"'
    store.uploads[request.query["uploadId"]][1][int(request.query["partNumber"])] = (
        request.body,
        etag,
    )
    return 200, b"", {"ETag": etag}


def _copy(store: Store, request: Request) -> Answer:
    source = unquote(request.headers["x-amz-copy-source"]).lstrip("/")
    data, etag = store.objects[source]
    if request.headers.get("x-amz-copy-source-if-match", etag).strip('"') != etag.strip('"'):
        return 412, error("PreconditionFailed"), {}
    first, end = spans(request.headers["x-amz-copy-source-range"], len(data))
    part = Joined([data]).part(first, end)
    new = f'"{etag_of(part)}"'
    store.uploads[request.query["uploadId"]][1][int(request.query["partNumber"])] = part, new
    return 200, element("CopyPartResult", ETag=new), {}


def _complete(store: Store, request: Request) -> Answer:
    if _refused(store, request):
        return 412, error("PreconditionFailed"), {}
    _, parts = store.uploads.pop(request.query["uploadId"])
    numbers = [int(n) for n in re.findall(rb"<PartNumber>(\d+)<", request.body)]
    if numbers != sorted(parts):
        return 400, error("InvalidPart"), {}
    if any(len(parts[number][0]) < 5 << 20 for number in numbers[:-1]):
        return 400, error("EntityTooSmall"), {}
    data: Content = Joined([parts[number][0] for number in numbers])
    if len(data) < LONG:
        data = data[:]
    store.objects[request.key] = data, f'"{etag_of(data)}-{len(numbers)}"'
    return 200, element("CompleteMultipartUploadResult", ETag=store.objects[request.key][1]), {}


def _abort(store: Store, request: Request) -> Answer:
    store.uploads.pop(request.query["uploadId"], None)
    return 204, b"", {}


def _list(store: Store, request: Request) -> Answer:
    bucket = request.key.strip("/")
    start = f"{bucket}/{request.query.get('prefix', '')}"
    after = request.query.get("continuation-token", "")
    names = sorted(k for k in store.objects if k.startswith(start) and k > after)
    most = int(request.query.get("max-keys", 1000))
    page, more = names[:most], len(names) > most
    rows = "".join(
        f"<Contents><Key>{escape(name[len(bucket) + 1 :])}</Key><Size>{len(store.objects[name][0])}"
        f"</Size><ETag>{store.objects[name][1]}</ETag>"
        "<LastModified>2026-11-29T07:00:00.000Z</LastModified></Contents>"
        for name in page
    )
    text = element(
        "ListBucketResult",
        IsTruncated=str(more).lower(),
        **({"NextContinuationToken": escape(page[-1])} if more else {}),
    )
    return 200, text.replace(b"</ListB", rows.encode() + b"</ListB"), {}


_KINDS: dict[str, Callable[[Store, Request], Answer]] = {
    "get": _get,
    "head": _get,
    "tags": _tags,
    "put": _put,
    "delete": _delete,
    "begin": _begin,
    "part": _part,
    "copy": _copy,
    "complete": _complete,
    "abort": _abort,
    "list": _list,
}


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.store = Store(endpoint=f"http://127.0.0.1:{self.server_address[1]}")
        self.tries: dict[str, int] = {}

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def running() -> Iterator[Store]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.store
        server.shutdown()


if __name__ == "__main__":
    with Server(int(sys.argv[1])) as alone:
        alone.store.keeps_log = False
        alone.serve_forever()

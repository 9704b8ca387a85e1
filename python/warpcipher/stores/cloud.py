# SPDX-License-Identifier: Apache-2.0
"""Buckets of Google and Azure by obstore, which S3 builds on: requests in Rust, with retries."""

from __future__ import annotations

import contextlib
import datetime
import errno
import importlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .store import (
    IN_FLIGHT,
    PART,
    ObjectInfo,
    Replacement,
    Store,
    Upload,
    changed,
    exists,
    failure,
    missing,
    part_size,
)

if TYPE_CHECKING:
    from .._types import Buffer

RETRIES = 6
"""After the first try. Pauses double, at random between the first and the last."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
TIMEOUT = 60.0
"""Seconds of a request, with all that it moves."""


def load(name: str, scheme: str) -> Any:
    """A package that URLs of this scheme need. Raises ValueError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        text = f"{scheme}:// needs {name}: pip install 'warpcipher[remote]'"
        raise ValueError(text) from None


_CONDITIONS = ("e_tag", "version")
"""Fields that identify an object that a new one is to replace."""


def _version(found: Any) -> str | None:
    """The ETag of an object, with the quotation marks that Azure's listings leave out, or else its
    version."""
    tag: str | None = found["e_tag"]
    if not tag:
        return found["version"]  # type: ignore[no-any-return]
    return tag if tag.endswith('"') else f'"{tag}"'


class CloudStore(Store):
    """A bucket behind obstore."""

    def __init__(self, scheme: str, bucket: str) -> None:
        super().__init__(scheme, bucket)
        self._obstore = load("obstore", scheme)
        pause = datetime.timedelta(seconds=FIRST_PAUSE)
        self._common: dict[str, Any] = {
            "client_options": {"timeout": f"{TIMEOUT}s", "allow_http": True},
            "retry_config": {
                "max_retries": RETRIES,
                "retry_timeout": datetime.timedelta(seconds=TIMEOUT * (RETRIES + 2)),
                "backoff": {
                    "init_backoff": pause,
                    "max_backoff": datetime.timedelta(seconds=LONGEST_PAUSE),
                    "base": 2,
                },
            },
        }
        with self.told(""):
            self._bucket = self._open(scheme, bucket)

    def _open(self, scheme: str, bucket: str) -> Any:
        kind = importlib.import_module("obstore.store")
        return kind.from_url(f"{scheme}://{bucket}", **self._common)

    @contextlib.contextmanager
    def told(self, path: str) -> Iterator[None]:
        """Raises errors as `translated` says."""
        try:
            yield
        except Exception as error:
            failure = self.translated(path, error)
            if failure is error:
                raise
            raise failure from None

    def translated(self, path: str, error: Exception) -> Exception:
        """Errors of obstore as errors of files: with the URL, and without headers and queries.
        Others as they are."""
        if isinstance(error, (OSError, self._obstore.exceptions.BaseError)):
            if getattr(error, "errno", None) is None:
                return self._failure(path, error)
        elif isinstance(error, ValueError) and "parse path" in str(error):
            text = "a name with empty parts, . or .. is read by no path"
            return OSError(errno.EINVAL, text, self.url(path))
        return error

    def _failure(self, path: str, error: BaseException) -> OSError:
        text, url = str(error).partition("\n\nDebug source")[0], self.url(path)
        code = re.search(r"<Code>(\w+)</Code>", text)
        status = re.search(r"status code: (\d+)", text)
        kinds = self._obstore.exceptions
        if isinstance(error, kinds.AlreadyExistsError):
            return exists(url)
        if isinstance(error, kinds.PreconditionError):
            return changed(url)
        found = code[1] if code else status[1] if status else ""
        if isinstance(error, FileNotFoundError) and not found:
            return missing(url)
        detail = re.sub(r"<\?xml.*|\?\S*", "", text, flags=re.DOTALL).strip(" :-")
        return failure(url, found, f"{detail} ({found})" if code else detail)

    def _info(self, path: str, found: Any) -> ObjectInfo:
        moment = int(found["last_modified"].timestamp() * 1_000_000) * 1000
        return ObjectInfo(self.url(path), found["size"], moment, _version(found))

    def stat(self, path: str) -> ObjectInfo:
        with self.told(path):
            return self._info(path, self._obstore.head(self._bucket, path))

    def listing(self, folder: str) -> Iterator[ObjectInfo]:
        with self.told(folder):
            for page in self._obstore.list(self._bucket, folder.rstrip("/") or None):
                for found in page:
                    yield self._info(found["path"], found)

    def read(self, path: str, offset: int, length: int, info: ObjectInfo) -> Buffer:
        options: dict[str, Any] = {"if_match": info.version}
        if length < info.size:  # some servers answer a range of all as no range, which is an error
            options["range"] = offset, offset + length
        try:  # without `told`, which takes as much time as all else here
            answer = self._obstore.get(self._bucket, path, options=options)
            data: Buffer = answer.bytes()
        except Exception as error:
            failure = self.translated(path, error)
            if isinstance(failure, FileNotFoundError):
                failure = changed(info.url)
            raise failure from None
        is_short = len(data) != length  # type: ignore[arg-type]
        if is_short or _version(answer.meta) != info.version:  # of a server without conditions
            raise changed(info.url)
        return data

    @contextlib.contextmanager
    def writing(self, path: str, *, replace: bool, size: int | None) -> Iterator[Upload]:
        upload = _CloudUpload(self, path, part_size(size), replace)
        try:
            yield upload
            upload.finish()
        except BaseException:
            upload.abort()
            raise

    def writer(self, path: str, part: int, *, replace: bool) -> Any:
        """A writer of parts of an object: write, close, and __exit__ with an error to abort. The
        name is looked at by the upload where it must be new."""
        return self._obstore.open_writer(
            self._bucket, path, buffer_size=part, max_concurrency=IN_FLIGHT
        )

    def write_short(self, path: str, data: Buffer, *, replace: bool) -> None:
        """The store checks the condition that no object exists."""
        try:
            mode = "overwrite" if replace else "create"
            self._obstore.put(self._bucket, path, data, mode=mode, use_multipart=False)
        except Exception as error:
            raise self.translated(path, error) from None

    def replace_part(self, path: str, change: Replacement, other: Store) -> bool:
        """Of short objects, through this process: no copy of a part is in obstore."""
        begin, _, data, target, _, replaces = change
        if other is not self:
            return False
        with self.told(path):
            source = self._obstore.get(self._bucket, path, options={"head": True})
            info = self._info(path, source.meta)
            size, end = info.size, change.end_in(info)
            if begin + len(data) + size - end > PART:
                return False
            head, rest = (
                bytes(self.read(path, start, stop - start, info)) if start < stop else b""
                for start, stop in ((0, begin), (end, size))
            )
        mode: Any = "overwrite"
        with self.told(target):
            if target == path or replaces:
                source = self._obstore.get(self._bucket, target, options={"head": True})
                if _version(source.meta) != (replaces or info.version):
                    raise changed(self.url(target))
                mode = {name: source.meta[name] for name in _CONDITIONS if source.meta[name]}
            how: dict[str, Any] = {"mode": mode, "attributes": source.attributes}
            self._obstore.put(self._bucket, target, head + data + rest, use_multipart=False, **how)
        return True

    def refuse(self, path: str) -> None:
        """Raises FileExistsError if an object exists."""
        with contextlib.suppress(FileNotFoundError):
            raise exists(self.stat(path).url)

    def remove(self, path: str) -> None:
        with self.told(path):
            self._obstore.delete(self._bucket, path)


class _CloudUpload:
    """An object that goes to a bucket. One that must be new is held until it is longer than a part,
    as the store has a condition for an object that comes in one request."""

    def __init__(self, store: CloudStore, path: str, part: int, replace: bool) -> None:
        self._store, self._path = store, path
        self._part, self._replace = part, replace
        self._held = bytearray()
        self._writer: Any = None
        self._size = 0
        with store.told(path):
            if replace:
                self._writer = store.writer(path, part, replace=True)
            else:
                store.refuse(path)

    def write(self, data: Buffer, /) -> int:
        view = memoryview(data).cast("B")
        with self._store.told(self._path):
            if self._writer is None and len(self._held) + len(view) > self._part:
                self._writer = self._store.writer(self._path, self._part, replace=False)
                self._writer.write(bytes(self._held))
                self._held = bytearray()
            if self._writer is None:
                self._held += view
            elif len(view):
                self._writer.write(bytes(view))  # a copy: it goes on its way after the call
        self._size += len(view)
        return len(view)

    def tell(self) -> int:
        return self._size

    def finish(self) -> None:
        if self._writer is None:
            self._store.write_short(self._path, self._held, replace=False)
            return
        with self._store.told(self._path):
            if not self._replace:
                self._store.refuse(self._path)
            self._writer.close()

    def abort(self) -> None:
        """Nothing of it stays; of no use after it was finished."""
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.__exit__(OSError, OSError(), None)

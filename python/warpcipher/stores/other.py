# SPDX-License-Identifier: Apache-2.0
"""Any store that fsspec knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .cloud import load
from .store import ObjectInfo, Store, Upload, changed, exists, failure, missing, shown


class OtherStore(Store):
    """A file system of fsspec."""

    def __init__(self, scheme: str, bucket: str) -> None:
        """bucket: the host of some file systems, and of others the first part of a path."""
        super().__init__(scheme, "")
        self._root = f"{scheme}://{bucket}"
        self._fsspec = load("fsspec", scheme)
        with self.told(self._root):
            self._system = self._open_system()

    def _open_system(self, **options: Any) -> Any:
        return self._fsspec.core.url_to_fs(self._root, **options)[0]

    @contextlib.contextmanager
    def told(self, url: str) -> Iterator[None]:
        """Turns errors of a file system into an OSError that names the URL."""
        try:
            yield
        except (FileNotFoundError, FileExistsError, PermissionError):
            raise
        except OSError as error:
            if error.filename is not None:
                raise
            raise failure(url, "", (error.strerror or str(error)).partition("\n")[0]) from None
        except ValueError as error:
            if "Protocol not known" not in str(error):
                raise
            text = "expected s3://, gs://, az:// or another that fsspec knows"
            raise ValueError(f"{shown(url)}: no store of this kind: {text}") from None
        except ImportError as error:
            raise ValueError(f"{shown(url)}: a package is missing: {error}") from None
        except Exception as error:
            raise failure(url, "", type(error).__name__) from None

    def _info(self, url: str, found: dict[str, Any]) -> ObjectInfo:
        given = found.get("LastModified", found.get("mtime", found.get("created", 0)))
        if hasattr(given, "timestamp"):  # memory:// lists a number, and says a time of one object
            given = given.timestamp()
        seconds = given if isinstance(given, (int, float)) else 0
        version = next((found[n] for n in ("ETag", "etag", "generation") if found.get(n)), None)
        if version is None and seconds:
            version = f"{found['size']}-{seconds}"
        return ObjectInfo(
            url, int(found["size"] or 0), int(seconds * 1_000_000) * 1000, version and str(version)
        )

    def stat(self, path: str) -> ObjectInfo:
        url = self.url(path)
        self._system.invalidate_cache()
        try:
            with self.told(url):
                found = self._system.info(url)
        except FileNotFoundError as error:
            if isinstance(error.__cause__, OSError):  # of http: no connection
                raise failure(url, "", str(error.__cause__)) from None
            raise missing(url) from None
        if found["type"] == "directory":
            raise missing(url)
        return self._info(url, found)

    def listing(self, folder: str) -> Iterator[ObjectInfo]:
        """Folder by folder: only the entries of open ones are in memory."""
        self._system.invalidate_cache()
        start = self._system._strip_protocol(self.url(folder))
        return self._walk(start, self.url(folder))

    def _walk(self, folder: str, url: str) -> Iterator[ObjectInfo]:
        try:
            with self.told(url):
                entries = self._system.ls(folder, detail=True)
        except FileNotFoundError:
            return
        named = {}
        for entry in entries:
            name = entry["name"].rstrip("/").rpartition("/")[2]
            is_folder = entry["type"] == "directory"
            named[name + "/" if is_folder else name] = entry
        for name in sorted(named, key=str.encode):
            entry = named[name]
            if name.endswith("/"):
                yield from self._walk(entry["name"], url + name)
            elif entry["name"].rstrip("/") != folder.rstrip("/"):
                yield self._info(url + name, entry)

    def read(self, path: str, offset: int, length: int, info: ObjectInfo) -> bytes:
        """The version is looked at after the read: a store that this class is for has no other
        way."""
        try:
            with self.told(info.url):
                data = bytes(
                    self._system.cat_file(self.url(path), start=offset, end=offset + length)
                )
        except FileNotFoundError:
            raise changed(info.url) from None
        if len(data) != length or (info.version and self.stat(path).version != info.version):
            raise changed(info.url)
        return data

    @contextlib.contextmanager
    def writing(self, path: str, *, replace: bool, size: int | None) -> Iterator[Upload]:
        """A transaction of fsspec: only closing the file would give a part of it the final name.
        The file system is one of its own, because a transaction takes in all that is written
        through it."""
        url = self.url(path)
        with self.told(url):
            if not replace and self._system.exists(url):
                raise exists(url)
            system = self._open_system(skip_instance_cache=True)
            system.makedirs(url.rpartition("/")[0], exist_ok=True)
        with contextlib.ExitStack() as stack:
            with self.told(url):
                stack.enter_context(system.transaction)
                file = stack.enter_context(system.open(url, "wb"))
            yield file
            with self.told(url):
                if not replace and self._system.exists(url):
                    raise exists(url)
                stack.pop_all().close()
        self._system.invalidate_cache()

    def remove(self, path: str) -> None:
        with self.told(self.url(path)):
            self._system.rm_file(self.url(path))

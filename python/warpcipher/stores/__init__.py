# SPDX-License-Identifier: Apache-2.0
"""Objects at URLs: what the rest takes beside a path. One interface, a small class for each kind of
store behind it.

    from warpcipher import stores

    for info in stores.listing("s3://bucket/raw/"):
        with stores.open_object(info.url, info) as file:  # an error where the object has changed
            file.read_at(0, 100)

`s3://`, `gs://`, `az://`, `memory://` and whatever else fsspec knows; `file://` becomes a path.
Credentials, endpoint and region come from where the store's own library takes them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from .files import ObjectFile
from .store import ObjectInfo, Replacement, Upload, shown

if TYPE_CHECKING:
    from .store import Store

_BUCKETS = ("s3", "gs", "az", "abfs", "abfss")
"""Schemes of buckets; all others are for fsspec."""

_SETTINGS = (b"AWS_", b"AZURE_", b"GOOGLE_", b"FSSPEC_")
"""Prefixes of environment variables that stores read when they are opened."""

_stores: dict[tuple[str, str, int], Store] = {}
_lock = threading.Lock()


def store_of(url: str) -> tuple[Store, str]:
    """The store of a URL, opened once with the settings of the environment, and the path in it.
    Raises ValueError."""
    scheme, mark, path = url.partition("://")
    if not mark or not scheme:
        raise ValueError(f"{url}: expected scheme://bucket/name")
    bucket, _, rest = path.partition("/")
    if scheme in _BUCKETS:
        path = rest
        if not bucket or (scheme in ("s3", "gs") and "@" in bucket):
            raise ValueError(f"{shown(url)}: expected {scheme}://bucket/name")
    # Past os.environ, which decodes all of it: that took half of the time of short objects.
    given: dict[bytes, bytes] = getattr(os.environ, "_data")  # noqa: B009
    settings = sorted(entry for entry in given.items() if entry[0].startswith(_SETTINGS))
    entry = scheme, bucket, hash(tuple(settings))
    with _lock:
        store = _stores.get(entry)
        if store is None:
            store = _stores[entry] = _kind_of(scheme)(scheme, bucket)
    return store, path


def _kind_of(scheme: str) -> type[Store]:
    """The class of a scheme, imported with its first URL."""
    if scheme == "s3":
        from .s3 import S3Store

        return S3Store
    if scheme in _BUCKETS:
        from .cloud import CloudStore

        return CloudStore
    from .other import OtherStore

    return OtherStore


def is_url(place: object) -> TypeGuard[str]:
    """Whether this names an object of a store, not a file of this machine.

    >>> from warpcipher import stores
    >>> stores.is_url("s3://bucket/name"), stores.is_url("name"), stores.is_url("file:///name")
    (True, False, False)
    """
    return isinstance(place, str) and "://" in place and not place.startswith(_LOCAL)


_LOCAL = ("file://", "local://")


def local_path(place: Any) -> Any:
    """A URL of a file of this machine as its path; anything else as it is.

    >>> from warpcipher import stores
    >>> stores.local_path("file:///tmp/name")
    '/tmp/name'
    """
    if isinstance(place, int):  # which Python would take for a descriptor, and close
        raise TypeError(f"the file is {place!r}: expected a path or a URL")
    if isinstance(place, str) and place.startswith(_LOCAL):
        return os.path.abspath(place.partition("://")[2])  # noqa: PTH100
    return place


def stat(url: str) -> ObjectInfo:
    """The store's facts about an object. Raises FileNotFoundError, PermissionError, OSError."""
    store, path = store_of(url)
    return store.stat(path)


def listing(url: str) -> Iterator[ObjectInfo]:
    """The objects below a folder, in order of their names: as they come, never all in memory.

    url: with or without a slash at its end. Empty objects whose name ends in a slash stand for
    folders and are left out. Nothing there: an empty listing. Raises as `stat`.

    >>> from warpcipher import stores
    >>> for name in ("b", "a/1", "a.txt"):
    ...     with stores.writing(f"memory://listed/{name}") as file:
    ...         size = file.write(b"text")
    >>> [info.url for info in stores.listing("memory://listed")]
    ['memory://listed/a.txt', 'memory://listed/a/1', 'memory://listed/b']
    """
    store, path = store_of(url)
    return store.listing(path if not path or path.endswith("/") else path + "/")


def open_object(url: str, info: ObjectInfo | None = None) -> ObjectFile:
    """An object as a seekable file, read by ranges, and ahead where reads follow each other.

    info: of an earlier `stat` or `listing`; None asks for it. Where the store holds another version
    than that, or gets one while the file is read, reads raise OSError (ESTALE): never a mix.
    Raises as `stat`.
    """
    store, path = store_of(url)
    return ObjectFile(store, path, info or store.stat(path))


@contextlib.contextmanager
def writing(url: str, *, replace: bool = True, size: int | None = None) -> Iterator[Upload]:
    """A file to write an object to, in order. The object appears when the block ends, whole; on an
    error nothing appears, and no parts are left.

    replace: False raises FileExistsError where the store has an object of that name.
    size: about the bytes to come, so that parts are long enough; None: not known, 80 GiB at most.
    Raises as `stat`; IsADirectoryError for a URL that ends in a slash, or with the bucket.

    >>> from warpcipher import stores
    >>> with stores.writing("memory://bucket/name") as file:
    ...     file.write(b"text")
    4
    >>> stores.stat("memory://bucket/name").size
    4
    """
    store, path = store_of(url)
    if not path or path.endswith("/"):
        text = "this is a prefix: name the object in it"
        raise IsADirectoryError(errno.EISDIR, text, shown(url))
    with store.writing(path, replace=replace, size=size) as upload:
        yield upload


def remove(url: str) -> None:
    """Deletes an object. Raises as `stat`."""
    store, path = store_of(url)
    store.remove(path)


def replace_beginning(
    url: str,
    old_length: int,
    beginning: bytes,
    *,
    dest: str | None = None,
    version: str | None = None,
    replaces: str | None = None,
) -> bool:
    """Writes an object again with another beginning, the rest copied by the store itself (Google
    and Azure: of up to 8 MiB, by this process); False: this store cannot, and nothing was done.

    old_length: bytes that `beginning` takes the place of. dest: the new object, in the same store;
    None: url itself. version: of ObjectInfo; OSError (ESTALE) where the store holds another.
    replaces: the same of the object at `dest`, which hands its attributes and tags on; None: those
    of `url` are copied, and whatever `dest` holds is replaced. Raises as `stat`.
    """
    store, path = store_of(url)
    other, target = (store, path) if dest is None else store_of(dest)
    return store.replace_part(
        path, Replacement(0, old_length, beginning, target, version, replaces), other
    )


def replace_end(
    url: str, begin: int, end: bytes, *, dest: str | None = None, version: str | None = None
) -> bool:
    """As `replace_beginning`: `end` takes the place of all from byte `begin` on."""
    store, path = store_of(url)
    other, target = (store, path) if dest is None else store_of(dest)
    return store.replace_part(path, Replacement(begin, None, end, target, version, None), other)


__all__ = [
    "ObjectFile",
    "ObjectInfo",
    "Upload",
    "is_url",
    "listing",
    "local_path",
    "open_object",
    "remove",
    "replace_beginning",
    "replace_end",
    "stat",
    "writing",
]

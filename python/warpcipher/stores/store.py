# SPDX-License-Identifier: Apache-2.0
"""The interface of a kind of store, and the errors that all kinds raise. A path is what
follows the bucket; of a store without buckets what follows `scheme://`."""

from __future__ import annotations

import abc
import errno
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from .._types import Buffer

PART = 8 << 20
"""The most that one request reads, and the least that one writes of a longer object."""
IN_FLIGHT = 4
"""Requests that a file has on their way at a time."""
MOST_PARTS = 10_000
"""Of an object: the limit of S3."""


class ObjectInfo(NamedTuple):
    """An object, as a store describes it.

    url:      of the object.
    size:     bytes.
    modified: nanoseconds since 1970; 0: the store does not say.
    version:  changes with the content: an ETag or a generation; None: the store has none.
    """

    url: str
    size: int
    modified: int
    version: str | None


class Replacement(NamedTuple):
    """Bytes that take the place of others, in an object of the same store or another.

    begin, end: of the bytes that go; None: to the last.
    data:       in their place.
    target:     the path of the new object.
    version:    of the old one; None: any.
    replaces:   of the one at `target`; None: any.
    """

    begin: int
    end: int | None
    data: bytes
    target: str
    version: str | None
    replaces: str | None

    def end_in(self, found: ObjectInfo) -> int:
        """The end of the bytes that go, in the object that the store has. Raises OSError (ESTALE)
        where that is another version, or shorter."""
        end = found.size if self.end is None else self.end
        if self.version not in (None, found.version) or found.size < end:
            raise changed(found.url)
        return end


class Upload(Protocol):
    """An object that is being written, in order."""

    def write(self, data: Buffer, /) -> int: ...

    def tell(self) -> int: ...


class Store(abc.ABC):
    """A bucket, or all that a file system of fsspec holds."""

    def __init__(self, scheme: str, bucket: str) -> None:
        self._prefix = f"{scheme}://{bucket}/" if bucket else f"{scheme}://"

    def url(self, path: str) -> str:
        """Of an object in this store."""
        return self._prefix + path

    @abc.abstractmethod
    def stat(self, path: str) -> ObjectInfo: ...

    @abc.abstractmethod
    def listing(self, folder: str) -> Iterator[ObjectInfo]:
        """folder: ends in a slash, or is empty."""

    @abc.abstractmethod
    def read(self, path: str, offset: int, length: int, info: ObjectInfo) -> Buffer:
        """Exactly these bytes of that version, at least one."""

    @abc.abstractmethod
    def writing(
        self, path: str, *, replace: bool, size: int | None
    ) -> AbstractContextManager[Upload]: ...

    def write_short(self, path: str, data: Buffer, *, replace: bool) -> None:
        """A short object, whole. Raises as `writing`."""
        with self.writing(path, replace=replace, size=len(memoryview(data))) as upload:
            upload.write(data)

    @abc.abstractmethod
    def remove(self, path: str) -> None: ...

    def replace_part(self, path: str, change: Replacement, other: Store) -> bool:
        """As `stores.replace_beginning`; other: the store that `change.target` lies in."""
        return False


def part_size(size: int | None) -> int:
    """Bytes of each part of an object that will have about `size` bytes; None: not known, so up to
    80 GiB."""
    least = -(-(size or 0) * 9 // (8 * MOST_PARTS))
    return max(PART, -(-least // (1 << 20)) << 20)


def shown(url: str) -> str:
    """A URL as an error may show it: without the password that it may hold."""
    return re.sub(r"//[^/@]*:[^/@]*@", "//***@", url)


def changed(url: str) -> OSError:
    """The error of an object that is not the one that was seen."""
    text = "the object has changed since it was first seen: begin again"
    return OSError(errno.ESTALE, text, shown(url))


def exists(url: str) -> FileExistsError:
    """The error of a name that is taken."""
    return FileExistsError(errno.EEXIST, "there is an object of this name", shown(url))


def missing(url: str, what: str = "object") -> FileNotFoundError:
    """The error of an object that is not there, or of its bucket."""
    return FileNotFoundError(errno.ENOENT, f"no {what} of this name", shown(url))


_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_DENIED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "Forbidden", "403", "401"}
_MISSING = {"NoSuchKey", "NotFound", "404"}
_CHANGED = {"PreconditionFailed", "412"}


def failure(url: str, code: str, detail: str) -> OSError:
    """The error of a store's answer. code: of the error, as S3 names it, or the HTTP status."""
    if code in _EXPIRED:
        text = f"the credentials have expired ({code}): get new ones"
        return PermissionError(errno.EACCES, text, shown(url))
    if code in _DENIED:
        return PermissionError(errno.EACCES, f"the store refuses access ({code})", shown(url))
    if code == "NoSuchBucket":
        return missing(url, "bucket")
    if code in _MISSING:
        return missing(url)
    if code in _CHANGED:
        return changed(url)
    if code in ("PermanentRedirect", "301"):
        text = "the bucket is in another region: set AWS_REGION to it"
        return OSError(errno.EIO, text, shown(url))
    return OSError(errno.EIO, f"the store failed: {detail}", shown(url))

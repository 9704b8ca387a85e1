# SPDX-License-Identifier: Apache-2.0
"""What a kind of store does for the rest. Paths are what follows `scheme://`, with the bucket."""

from __future__ import annotations

import abc
import errno
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from .._types import Buffer


class ObjectInfo(NamedTuple):
    """What a store says of an object.

    url:      of the object.
    size:     bytes.
    modified: nanoseconds since 1970; 0: the store does not say.
    version:  changes with the content: an ETag or a generation; None: the store has none.
    """

    url: str
    size: int
    modified: int
    version: str | None


class Upload(Protocol):
    """An object that is being written, in order."""

    def write(self, data: Buffer, /) -> int: ...

    def tell(self) -> int: ...


class Store(abc.ABC):
    """A kind of store, and where one differs from another: its account, its endpoint."""

    @abc.abstractmethod
    def stat(self, path: str) -> ObjectInfo: ...

    @abc.abstractmethod
    def listing(self, folder: str) -> Iterator[ObjectInfo]: ...

    @abc.abstractmethod
    def read(self, path: str, offset: int, length: int, info: ObjectInfo) -> bytes:
        """Exactly these bytes of that version."""

    @abc.abstractmethod
    def writing(self, path: str, *, replace: bool) -> AbstractContextManager[Upload]: ...

    @abc.abstractmethod
    def remove(self, path: str) -> None: ...

    def same_service(self, other: Store) -> bool:
        """Whether this store copies objects to that one by itself."""
        return False

    def replace_beginning(
        self,
        path: str,
        old_length: int,
        beginning: bytes,
        other: Store,
        target: str,
        version: str | None,
    ) -> bool:
        return False


def changed(url: str) -> OSError:
    """The error of an object that is not the one that was seen."""
    return OSError(errno.ESTALE, "the object has changed since it was first seen", url)


def exists(url: str) -> FileExistsError:
    """The error of a name that is taken."""
    return FileExistsError(errno.EEXIST, "there is an object of this name", url)

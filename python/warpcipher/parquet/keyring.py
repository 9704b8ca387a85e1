# SPDX-License-Identifier: Apache-2.0
"""The keys of a file, found by the file's texts about them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TypeAlias

from .._types import Buffer
from ..keys import KeySource, resolve

Key: TypeAlias = "Buffer | KeySource | Callable[[bytes], Buffer | KeySource]"
Keys: TypeAlias = "Key | Mapping[bytes | str, Key]"
"""The one key of a uniform file; or a mapping from key metadata (bytes) or, for columns, names
(str: a path or what it begins with) to keys, in which b"" is the footer's key, whatever the file
says of it; or a function or a source of `warpcipher.keys` that is asked with the key metadata."""

KEY_SIZES = (16, 24, 32)


class MissingKeyError(ValueError):
    """No key was given for a footer or a column.

    column: its name; None for the footer. key_metadata: the file's text about the key.
    """

    def __init__(self, text: str, column: str | None = None, key_metadata: bytes = b"") -> None:
        super().__init__(text)
        self.column = column
        self.key_metadata = key_metadata


class NoKeysError(ValueError):
    """The file is encrypted, and no keys were given at all."""


class KeyRing:
    """Finds keys, and asks for each once. path: of the file, or its URL, None where it has none:
    `KmsKeys` may find key material beside it."""

    def __init__(self, keys: Keys, path: str | None = None) -> None:
        self._keys = keys
        self._path = path
        self._beside: dict[int, object] = {}  # by the identity of what `keys` holds
        self._found: dict[tuple[bytes, str | None], bytes] = {}

    def find(self, metadata: bytes, column: str | None = None) -> bytes:
        """The key of a column that has one of its own; None: the footer's."""
        asked = metadata, None if self._is_asked else column
        if asked not in self._found:
            self._found[asked] = self._ask(metadata, column)
        return self._found[asked]

    @property
    def _is_asked(self) -> bool:
        return callable(self._keys) or isinstance(self._keys, KeySource)

    def _ask(self, metadata: bytes, column: str | None) -> bytes:
        who = "the footer" if column is None else f"column {column}"
        key: object = self._keys
        if isinstance(self._keys, Mapping):
            # b"" and names say who is meant, so the file cannot choose among them.
            named = b"" if column is None else closest_name(column, self._keys)
            key = self._keys.get(metadata) if metadata else None
            key = key if named is None else self._keys.get(named, key)
        elif column is not None and not self._is_asked:
            raise MissingKeyError(
                f"{who} has a key of its own (key metadata {shown(metadata)}), and one key was "
                "given for the whole file: give a mapping of key metadata to keys",
                column,
                metadata,
            )
        if key is None:
            text = f"no key for {who} (key metadata {shown(metadata)})"
            if column is None and isinstance(self._keys, Mapping) and b"" not in self._keys:
                text += ': give it by b""'
            raise MissingKeyError(text, column, metadata)
        beside = getattr(key, "beside", None)
        if beside is not None and self._path is not None:
            key = self._beside.setdefault(id(key), beside(self._path))
        return check_key(key, f"the key of {who}", metadata)


def closest_name(column: str, names: Container[str | bytes]) -> str | None:
    """Of the names that stand for a column (its path, or what that begins with) the longest."""
    while column not in names:
        column, dot, _ = column.rpartition(".")
        if not dot:
            return None
    return column


def check_key(key: object, what: str, metadata: bytes = b"") -> bytes:
    """The bytes of an AES key, asked for where it is a source or a function."""
    try:
        found = resolve(key, metadata, sizes=KEY_SIZES, keyset=False, what=what)
    except KeyError:
        raise MissingKeyError(f"{what} is not known (key metadata {shown(metadata)})") from None
    if len(found) not in KEY_SIZES:
        raise ValueError(f"{what} has {len(found)} bytes: AES takes 16, 24 or 32")
    return found


def shown(metadata: bytes) -> str:
    """Key metadata for an error: it is not a secret, but it may be long."""
    return repr(metadata) if len(metadata) <= 80 else f"{metadata[:80]!r}..."

# SPDX-License-Identifier: Apache-2.0
"""Key sources, and the one function that turns whatever was given as a key into bytes."""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection
from typing import TypeAlias

from .._types import Unpack
from .decode import Encoding, Expected, decode

KeyId: TypeAlias = "str | bytes | int | None"
"""The file's name of its key: text, bytes (Parquet's key metadata) or a number; None: nothing."""

DEPTH = 4
"""How many functions and sources may lead from one to the next."""


class KeySource(abc.ABC):
    """Where a key comes from; made by the functions of this module.

    name: its name in errors. encoding: of its content. text: it holds no raw bytes unless the
    encoding says so.
    """

    text = False

    def __init__(self, name: str, encoding: Encoding = "auto") -> None:
        self.name = name
        self.encoding = encoding

    @abc.abstractmethod
    def read(self, key_id: KeyId) -> bytes | bytearray:
        """The content of the source, not yet decoded. Raises ValueError, OSError."""

    def resolve(self, key_id: KeyId = None, **expected: Unpack[Expected]) -> bytes:
        """The key. Arguments and errors as for `warpcipher.keys.resolve`."""
        found = self.read(key_id)
        return bytes(decode(found, self.name, encoding=self.encoding, text=self.text, **expected))

    def __repr__(self) -> str:
        return f"<key of {self.name}>"


def is_deferred(key: object) -> bool:
    """Whether a key must be asked for: a source, or a function of the key's id."""
    return isinstance(key, KeySource) or callable(key)


def resolve(
    key: object,
    key_id: KeyId = None,
    *,
    sizes: Collection[int] = (),
    keyset: bool = True,
    identities: bool = False,
    what: str = "a key",
) -> bytes:
    """The bytes of a key that a caller gave in any form.

    key:    bytes-like: taken as they are, never decoded; a `KeySource`; a function that is called
            with `key_id` and returns one of these; the text of a Tink keyset in JSON.
    key_id: the file's name of its key, for functions; sources of commands see it in the
            environment variable WARPCIPHER_KEY_ID.
    sizes:  the sizes in bytes that the key may have, by which a source recognizes raw, hex and
            base64; empty: 8, 16, 24, 32 or 64. Bytes that were given are not checked by it.
    keyset: whether a Tink keyset may stand for the key; its JSON is returned.
    identities: whether secret keys of age or Crypt4GH may; their text is returned.
    what:   the expected key in an error: "a key of aes-256-gcm".
    Raises TypeError, ValueError (not such a key), OSError (it cannot be had). No
    error shows the key. The copy that is returned cannot be wiped.
    """
    for _ in range(DEPTH):
        if isinstance(key, KeySource):
            return key.resolve(key_id, sizes=sizes, keyset=keyset, identities=identities, what=what)
        if isinstance(key, str):
            if keyset and key.lstrip()[:1] == "{":
                return key.encode()
            raise TypeError(
                "the key is str: give bytes, or keys.from_file(path), keys.from_env(name)"
            )
        if isinstance(key, bytes):
            return key
        if not callable(key):
            return _buffer(key)
        key = _call(key, key_id)
    raise TypeError(f"the key is a function that leads to {DEPTH - 1} more and to no bytes")


def _call(function: Callable[[KeyId], object], key_id: KeyId) -> object:
    found = function(key_id)
    if found is None:
        given = "no id" if key_id is None else f"the id {key_id!r}"
        raise ValueError(f"the key function knows no key for {given}: it returned None")
    return found


def _buffer(key: object) -> bytes:
    try:
        view = memoryview(key)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"the key is {type(key).__name__}: expected bytes, a source of warpcipher.keys, or a "
            "function of the key's id"
        ) from None
    if view.itemsize != 1:
        raise TypeError(f"the key is {type(key).__name__} with items of {view.itemsize} bytes")
    return bytes(view)

# SPDX-License-Identifier: Apache-2.0
"""The list of file formats, and the choice of one by name or by what the key is."""

from __future__ import annotations

from typing import Any

import warpcipher as wc

from .. import keys
from .age.format import Age
from .ags1 import Ags1
from .base import Format, Options
from .cobblestone import Cobblestone
from .crypt4gh.format import Crypt4gh
from .raw import Raw
from .tink import Tink
from .tink_keyset import Keyset

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Cobblestone(128),
        Cobblestone(256),
        Tink(),
        Age(),
        Crypt4gh(),
        Ags1(),
        Raw(),
    )
}


def get(name: str) -> Format:
    """The format of that name. Raises ValueError with the names there are."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"unknown format {name!r}; there are {', '.join(FORMATS)}") from None


LONG_MAGIC = 8
"""Bytes of a magic number that no other file has by chance."""


def by_magic(prefix: bytes) -> Format | None:
    """The format whose magic number a file begins with, if that is too long for chance."""
    for entry in FORMATS.values():
        if len(entry.magic) >= LONG_MAGIC and entry.begins(prefix):
            return entry
    return None


def resolve(name: str, key: object) -> Format:
    """The format of that name; for "auto" the one the key belongs to.

    A Keyset, or text that begins as JSON does, is Tink's; 16 or 32 bytes are cobblestone-128's or
    -256's; keys of age and Crypt4GH, and lists of them, are theirs. `raw` is never chosen: it
    authenticates nothing. Raises ValueError.
    """
    if name != "auto":
        return get(name)
    if isinstance(key, (bytes, bytearray, memoryview)) and len(key) in (16, 32):
        return get(f"cobblestone-{8 * len(key)}")
    for entry in FORMATS.values():
        if entry.knows(key):
            return entry
    if isinstance(key, Keyset) or (isinstance(key, str) and key.lstrip()[:1] == "{"):
        return get("tink")
    if isinstance(key, (bytes, bytearray)) and bytes(key[:64]).lstrip()[:1] == b"{":
        return get("tink")
    given = (
        f"{len(key)} bytes"
        if isinstance(key, (bytes, bytearray, memoryview))
        else type(key).__name__
    )
    raise ValueError(
        f"no format goes with this key ({given}): 16 or 32 bytes are cobblestone's, a JSON keyset "
        "is tink's; name the format otherwise"
    )


def take(name: str, key: object, options: Options) -> tuple[Format, object]:
    """The format of that name, and the key itself where a source or a function was given for it.

    Raises what `resolve` and `warpcipher.keys.resolve` raise.
    """
    key = _asked(name, key, options)
    return resolve(name, key), key


def take_for(prefix: bytes, key: object, options: Options) -> tuple[Format, object]:
    """As `take` with "auto", for a file that begins with `prefix`: its magic number decides, where
    a format has one and the key is of a size that it takes."""
    key = _asked("auto", key, options)
    if isinstance(key, (bytes, bytearray, memoryview)):
        for entry in FORMATS.values():
            if entry.begins(prefix) and len(key) in key_sizes(entry.name, None):
                return entry, key
    return resolve("auto", key), key


def _asked(name: str, key: object, options: Options) -> object:
    """The key itself, where a source or a function was given for it."""
    if not keys.is_deferred(key):
        return key
    return keys.resolve(key, **wanted(name, options.algorithm))


def wanted(name: str, algorithm: str | None, named: str | None = None) -> dict[str, Any]:
    """What `keys.resolve` is told of the key of a format ("auto": of any). named: what an error
    calls the algorithm. Raises as `key_sizes`."""
    what = {
        "auto": "a key",
        "raw": f"a key of {named or algorithm}",
        "age": "identities of age",
        "crypt4gh": "a secret key of Crypt4GH",
    }
    return {
        "sizes": key_sizes(name, algorithm),
        "keyset": name in ("auto", "tink"),
        "identities": name in ("auto", "age", "crypt4gh"),
        "what": what.get(name, f"a {name} key"),
    }


def key_sizes(name: str, algorithm: str | None) -> tuple[int, ...]:
    """The sizes in bytes that a key of a format ("auto": of any) may have; raw: of its algorithm.

    Empty for a format whose key is no bytes (tink). Raises ValueError for an unknown algorithm.
    """
    if name == "raw":
        if algorithm is None:
            raise ValueError(
                "format raw needs an algorithm: `warpcipher info --algorithms` lists them"
            )
        for entry in wc.algorithms():
            if entry.name == algorithm:
                return (entry.key_size,)
        raise ValueError(
            f"unknown algorithm {algorithm!r}: `warpcipher info --algorithms` lists them"
        )
    several: tuple[int, ...] | None = getattr(FORMATS.get(name), "key_sizes", None)
    if several is not None:
        return several
    sizes = {
        int(getattr(entry, "key_size", 0))
        for entry in FORMATS.values()
        if name in ("auto", entry.name)
    }
    return tuple(sorted(sizes - {0}))

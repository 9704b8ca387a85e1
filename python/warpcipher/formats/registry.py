# SPDX-License-Identifier: Apache-2.0
"""The list of file formats, and the choice of one by name or by what the key is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .. import _later, keys
from .base import Format, Options


class _Row(NamedTuple):
    """Where a format is: the class `kind` of `module`, made with `arguments`. key_size: a key of so
    many bytes, of which nothing else is known, is of this format."""

    module: str
    kind: str
    arguments: tuple[int, ...] = ()
    key_size: int = 0


_ROWS = {
    "cobblestone-128": _Row("cobblestone", "Cobblestone", (128,), 16),
    "cobblestone-256": _Row("cobblestone", "Cobblestone", (256,), 32),
    "tink": _Row("tink", "Tink"),
    "age": _Row("age.format", "Age"),
    "crypt4gh": _Row("crypt4gh.format", "Crypt4gh"),
    "ags1": _Row("ags1", "Ags1"),
    "raw": _Row("raw", "Raw"),
}
_BY_KEY_SIZE = {row.key_size: name for name, row in _ROWS.items() if row.key_size}


class _Formats(Mapping[str, Format]):
    """The formats by name. One is imported when it is asked for: all of them are half of what a
    command imports."""

    def __init__(self) -> None:
        self._made: dict[str, Format] = {}

    def __getitem__(self, name: str) -> Format:
        row = _ROWS[name]
        made = self._made.get(name)
        if made is None:
            kind = getattr(_later.load(f"formats.{row.module}"), row.kind)
            made = self._made.setdefault(name, kind(*row.arguments))
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(_ROWS)

    def __len__(self) -> int:
        return len(_ROWS)

    def __contains__(self, name: object) -> bool:
        return name in _ROWS


FORMATS: Mapping[str, Format] = _Formats()


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
    if isinstance(key, (bytes, bytearray, memoryview)) and len(key) in _BY_KEY_SIZE:
        return get(_BY_KEY_SIZE[len(key)])
    for entry in FORMATS.values():
        if entry.knows(key):
            return entry
    given = (
        f"{len(key)} bytes"
        if isinstance(key, (bytes, bytearray, memoryview))
        else type(key).__name__
    )
    raise ValueError(
        f"no format goes with this key ({given}): 16 or 32 bytes are cobblestone's, a JSON keyset "
        "is tink's; name the format otherwise. warpcipher.keys reads keys of files, environment "
        "variables and commands, in hex and base64 too"
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
            if entry.begins(prefix) and len(key) in entry.key_sizes:
                return entry, key
    return resolve("auto", key), key


def _asked(name: str, key: object, options: Options) -> object:
    """The key itself, where a source or a function was given for it."""
    if not keys.is_deferred(key):
        return key
    return keys.resolve(key, **wanted(name, options.algorithm))


def wanted(name: str, algorithm: str | None, named: str | None = None) -> dict[str, Any]:
    """The arguments of `keys.resolve` for the key of a format ("auto": of any). named: what an
    error calls the algorithm. Raises as `key_sizes`."""
    sizes = key_sizes(name, algorithm)
    if name == "auto":
        return {"sizes": sizes, "keyset": True, "identities": True, "what": "a key"}
    chosen = get(name)
    return {
        "sizes": sizes,
        "keyset": chosen.takes_keyset,
        "identities": chosen.takes_identity,
        "what": chosen.name_of_key(named or algorithm),
    }


def key_sizes(name: str, algorithm: str | None) -> tuple[int, ...]:
    """The sizes in bytes that a key of a format ("auto": of any) may have; raw: of its algorithm.

    Empty for a format whose key is not bytes. Raises ValueError for an unknown format or algorithm.
    """
    return tuple(_BY_KEY_SIZE) if name == "auto" else get(name).sizes_of_key(algorithm)

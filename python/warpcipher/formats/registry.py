# SPDX-License-Identifier: Apache-2.0
"""The list of file formats, and the choice of one by name or by what the key is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from .. import _later, keys
from ..keys.decode import Expected
from .base import Buffer, Decryptor, Format, Options
from .layout import FormatError


class _Home(NamedTuple):
    """Where a format is: in the tuple FORMATS of `module`. key_size: a key of so many bytes, of
    which nothing else is known, is of this format."""

    module: str
    key_size: int = 0


# All formats of this package. The file of each has the rest.
_HOMES = {
    "cobblestone-128": _Home("cobblestone", 16),
    "cobblestone-256": _Home("cobblestone", 32),
    "awsesdk": _Home("awsesdk.format"),  # before Tink, which takes other JSON
    "tink": _Home("tink"),
    "age": _Home("age.format"),
    "crypt4gh": _Home("crypt4gh.format"),
    "ags1": _Home("ags1"),
    "raw": _Home("raw"),
}


class _Formats(Mapping[str, Format]):
    """The formats by name. One is imported when it is asked for: all of them are half of what a
    command imports."""

    def __init__(self) -> None:
        self.made: dict[str, Format] = {}

    def __getitem__(self, name: str) -> Format:
        made = self.made.get(name)
        if made is None:
            for entry in _later.load(f"formats.{_HOMES[name].module}").FORMATS:
                self.made.setdefault(entry.name, entry)
            made = self.made[name]
        return made

    def __iter__(self) -> Iterator[str]:
        return iter({**_HOMES, **self.made})

    def __len__(self) -> int:
        return len({**_HOMES, **self.made})

    def __contains__(self, name: object) -> bool:
        return name in _HOMES or name in self.made


_FORMATS = _Formats()
FORMATS: Mapping[str, Format] = _FORMATS


def register(entry: Format) -> None:
    """Adds a format to `FORMATS`, for the rest of the process: every call and the command take it.
    Raises ValueError where one has its name or its size of keys, or where its magic number is too
    long.

    >>> from warpcipher import formats
    >>> formats.register(formats.get("tink"))
    Traceback (most recent call last):
    ValueError: there is a format 'tink'
    """
    if entry.name in FORMATS or entry.name == "auto":
        raise ValueError(f"there is a format {entry.name!r}")
    if len(entry.magic) > LONGEST_MAGIC:
        raise ValueError(f"magic has {len(entry.magic)} bytes: expected {LONGEST_MAGIC} at most")
    taken = set(entry.key_sizes).intersection(key_sizes("auto", None))
    if entry.found_by_key and taken:
        raise ValueError(
            f"keys of {min(taken)} bytes belong to another format: set found_by_key to False, and "
            f"name format {entry.name!r} when files are encrypted"
        )
    _FORMATS.made[entry.name] = entry


def get(name: str) -> Format:
    """The format of that name. Raises ValueError with the names there are."""
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"unknown format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


LONG_MAGIC = 8
"""Bytes of a magic number that no other file has by chance."""
LONGEST_MAGIC = 64
"""More bytes than any magic number has, or the line that text of a format begins with."""


def by_magic(prefix: bytes) -> Format | None:
    """The format whose magic number a file begins with, if that is too long for chance."""
    for entry in FORMATS.values():
        if len(entry.magic) >= LONG_MAGIC and entry.begins(prefix):
            return entry
    return None


def decryptor_of(
    chosen: Format, key: object, options: Options, read_at: Callable[[int, int], Buffer]
) -> Decryptor:
    """The decryptor of a file. Raises as `Format.decryptor`; FormatError, where a format that
    authenticates nothing was named and the file says that it has another: it would become garbage,
    in most modes without an error."""
    prefix = chosen.beginning(key, options, read_at)
    if not chosen.authenticated:
        named = by_magic(bytes(prefix[:LONGEST_MAGIC]))
        if named not in (None, chosen):
            raise FormatError(f"the file has format {named.name}: it is not bare ciphertext")
    return chosen.decryptor(key, prefix, options)


def of_people() -> list[Format]:
    """The formats whose keys are secret and public keys of people."""
    return [entry for entry in FORMATS.values() if entry.takes_identity]


def resolve(name: str, key: object) -> Format:
    """The format of that name; for "auto" the one that knows the key.

    Bytes belong to the format whose keys are as long; a Keyset, or text that begins as JSON does,
    is Tink's; keys of people, and lists of them, belong to their format. A format that is only
    opened by its name is never chosen. Raises ValueError.
    """
    if name != "auto":
        return get(name)
    for entry in FORMATS.values():
        if entry.knows(key):
            return entry
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise ValueError(
            f"no format goes with this key ({type(key).__name__}): give bytes, or a source of "
            "warpcipher.keys, such as from_file(path), from_env(name)"
        )
    wanted = "; ".join(
        f"{entry.name} takes {entry.key_needed()}"
        for entry in FORMATS.values()
        if entry.found_by_key
    )
    raise ValueError(
        f"no format goes with this key ({len(key)} bytes): {wanted}; name the format otherwise. "
        "warpcipher.keys reads keys of files, environment variables and commands"
    )


def take(name: str, key: object, options: Options) -> tuple[Format, object]:
    """The format of that name, and the key itself where a source or a function was given for it.

    Raises what `resolve` and `warpcipher.keys.resolve` raise.
    """
    if keys.is_deferred(key):
        key = keys.resolve(key, **wanted(name, options.algorithm))
    return resolve(name, key), key


def take_for(prefix: bytes, key: object, options: Options) -> tuple[Format, object]:
    """As `take` with "auto", for a file that begins with `prefix`: its magic number decides, where
    a format has one and the key is of a size that it takes."""
    if keys.is_deferred(key):
        key = keys.resolve(key, **wanted("auto", options.algorithm))
    if isinstance(key, (bytes, bytearray, memoryview)):
        for entry in FORMATS.values():
            if entry.begins(prefix) and len(key) in entry.key_sizes:
                return entry, key
    return resolve("auto", key), key


def wanted(name: str, algorithm: str | None, named: str | None = None) -> Expected:
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
    """The sizes in bytes that a key of a format ("auto": of any) may have; of one that has several
    algorithms, the algorithm's.

    Empty for a format whose key is not bytes. Raises ValueError for an unknown format or algorithm.
    """
    if name != "auto":
        return get(name).sizes_of_key(algorithm)
    here = [home.key_size for home in _HOMES.values() if home.key_size]
    made = list(_FORMATS.made.values())  # another thread may import a format now
    added = [entry for entry in made if entry.name not in _HOMES]
    return (*here, *(size for entry in added if entry.found_by_key for size in entry.key_sizes))

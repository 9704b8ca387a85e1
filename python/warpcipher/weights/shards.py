# SPDX-License-Identifier: Apache-2.0
"""Models of several files: the index JSON that names them, or a directory.

{"metadata": {...}, "weight_map": {name of a tensor: name of a file beside the index, ...}}

An index says which files there are and which tensors they hold; nothing in it is believed beyond
that. One that is encrypted in a format of `warpcipher.formats`, as `warpcipher encrypt` leaves it
in a directory, is decrypted with the model's key.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import warpcipher as wc

from .. import formats, stores
from .._types import PathLike
from ..formats import FORMATS, FormatError
from ..formats.reader import open_place
from .cryptotensors_key import CryptotensorsKey
from .header import MAX_HEADER_SIZE, shown

LONGEST_NAME = 255
"""Bytes of a file's name: the limit of file systems."""
INDEX_SUFFIX = ".safetensors.index.json"
FILE_SUFFIX = ".safetensors"
MODEL_FORMATS = {
    name: entry
    for name, entry in FORMATS.items()
    if entry.authenticated and entry.found_by_key and entry.takes_context
}
"""Formats of models: they need only a key to open, as no other name is given to load one, and they
bind a file to its model."""
_EXTENSIONS = tuple(entry.extension for entry in MODEL_FORMATS.values())


class _Url:
    """The part of `Path` that is used here, of a URL: a prefix is a folder."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self.name = self._url.rpartition("/")[2]

    def __str__(self) -> str:
        return self._url

    @property
    def parent(self) -> _Url:
        return _Url(self._url.rpartition("/")[0])

    def __truediv__(self, name: str) -> _Url:
        return _Url(f"{self._url}/{name}")

    def with_name(self, name: str) -> _Url:
        return self.parent / name

    def exists(self) -> bool:
        try:
            stores.stat(self._url)
        except (FileNotFoundError, IsADirectoryError):
            return self.is_dir()
        return True

    def is_dir(self) -> bool:
        return next(iter(stores.listing(self._url)), None) is not None

    def iterdir(self) -> Iterator[_Url]:
        for info in stores.listing(self._url):
            if "/" not in (name := info.url[len(self._url) + 1 :]):
                yield self / name


Place: TypeAlias = "Path | _Url"


def files_of(path: PathLike, key: object, context: bytes) -> dict[str, set[str] | None]:
    """The files of the model at a path or URL: a file, an index, or a directory or prefix.

    Of each the tensors that an index promises; None without one. Raises FormatError, ValueError,
    OSError and the errors of opening an encrypted index.
    """
    path = stores.local_path(path)
    place: Place = _Url(path) if stores.is_url(path) else Path(os.fsdecode(path))
    if isinstance(place, _Url) and _bare(place.name).endswith(FILE_SUFFIX):
        return {str(path): None}  # without a request
    encrypted = _encrypted(place)
    if encrypted and not place.exists():
        raise _missing(place, f"{encrypted.name} is there: give that name, and its key")
    if place.is_dir():
        return _of_directory(place, key, context)
    if _bare(place.name).endswith(".json"):
        return _of_index(place, key, context)
    return {str(place): None}


def _bare(name: str) -> str:
    """A file's name without the extension of an encrypted file."""
    for extension in _EXTENSIONS:
        if name.endswith(extension):
            return name[: -len(extension)]
    return name


def _of_directory(folder: Place, key: object, context: bytes) -> dict[str, set[str] | None]:
    names = sorted(entry.name for entry in folder.iterdir())
    indexes = [name for name in names if _bare(name).endswith(INDEX_SUFFIX)]
    if len(indexes) > 1:
        raise ValueError(f"{folder} has several indexes: name one of {', '.join(indexes)}")
    if indexes:
        return _of_index(folder / indexes[0], key, context)
    files = [name for name in names if _bare(name).endswith(FILE_SUFFIX)]
    if not files:
        raise ValueError(f"{folder} has no file *{FILE_SUFFIX} and no *{INDEX_SUFFIX}")
    bare = [_bare(name) for name in files]
    for name in files:
        if bare.count(_bare(name)) > 1:
            raise ValueError(f"{folder} has {_bare(name)} more than once: name the file to load")
    _check_numbers(folder, bare)
    return {str(folder / name): None for name in files}


_NUMBERED = re.compile(r"(.*)-([0-9]{1,9})-of-([0-9]{1,9})" + re.escape(FILE_SUFFIX), re.DOTALL)


def _check_numbers(folder: Place, names: list[str]) -> None:
    """Raises FormatError where the names say how many files the model has, and one is missing."""
    sets: dict[tuple[str, str], set[int]] = defaultdict(set)
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            sets[match[1], match[3]].add(int(match[2]))
    for (stem, count), numbers in sets.items():
        first = min(1, *numbers, 1)  # some writers count from 0
        for number in range(first, first + int(count)):
            if number not in numbers:
                lacking = f"{stem}-{number:0{len(count)}}-of-{count}{FILE_SUFFIX}"
                raise FormatError(
                    f"{folder} has {len(numbers)} of {int(count)} files {stem}-*, and no index: "
                    f"{lacking} is missing"
                )


def _of_index(index: Place, key: object, context: bytes) -> dict[str, set[str] | None]:
    places: dict[str, set[str]] = {}
    promised: dict[str, set[str]] = {}
    for tensor, name in _weight_map(index, key, context).items():
        if name not in promised:
            # No path: an index comes from outside.
            if not _is_file_name(name):
                raise FormatError(
                    f"{index.name}: tensor {shown(tensor)} is in {shown(name)}: expected the name "
                    "of a file beside the index"
                )
            # Now, so that an index of a million names is refused at the first that is not there.
            place = _existing(index.parent / name, key)
            promised[name] = places.setdefault(place, set())
        promised[name].add(tensor)
    return {place: places[place] for place in sorted(places)}


def _is_file_name(name: str) -> bool:
    if name in ("", os.curdir, os.pardir) or "/" in name or "\0" in name:
        return False
    try:
        return len(name.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _existing(place: Place, key: object) -> str:
    """The file at a place, or the encrypted one that was made of it. Raises FileNotFoundError."""
    encrypted = _encrypted(place)
    if encrypted and key is not None and not isinstance(key, CryptotensorsKey):
        return str(encrypted)
    if not place.exists():
        hint = (
            f"{encrypted.name} is there, and no key was given" if encrypted and key is None else ""
        )
        raise _missing(place, hint)
    return str(place)


def _encrypted(place: Place) -> Place | None:
    """The encrypted file, or folder, that was made of the one at a place, if there is one."""
    for extension in dict.fromkeys(_EXTENSIONS):
        with contextlib.suppress(OSError, ValueError):  # a name too long, or none
            candidate = place.with_name(place.name + extension)
            if candidate.exists():
                return candidate
    return None


def _missing(place: Place, hint: str) -> FileNotFoundError:
    text = os.strerror(errno.ENOENT) + (f" ({hint})" if hint else "")
    return FileNotFoundError(errno.ENOENT, text, str(place))


def _weight_map(index: Place, key: object, context: bytes) -> dict[str, str]:
    text = _text(index, key, context)
    try:
        document = json.loads(text, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{index.name} is not an index of a model: {error}") from None
    found = document.get("weight_map") if isinstance(document, dict) else None
    if (
        not isinstance(found, dict)
        or not found
        or not all(isinstance(v, str) for v in found.values())
    ):
        raise FormatError(
            f'{index.name} is not an index of a model: expected "weight_map", an object of file '
            "names"
        )
    return found


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice in one object")
    return found


def _text(index: Place, key: object, context: bytes) -> bytes:
    if _bare(index.name) == index.name:
        with open_place(str(index)) as file:
            return _bounded(file, index)
    if key is None:
        raise FormatError(f"{index.name} is encrypted, and no key was given")
    if isinstance(key, CryptotensorsKey):
        raise FormatError(
            f"{index.name} is encrypted as a whole, and a CryptotensorsKey opens no such file"
        )
    options = formats.Options(context=context)
    try:
        with formats.open(str(index), key, options=options) as decrypted:
            return _bounded(decrypted, index)
    except wc.InvalidTag as error:
        raise wc.InvalidTag(f"{index.name}: {error}") from None


def _bounded(file: io.RawIOBase | io.BufferedReader, index: Place) -> bytes:
    size = file.seek(0, os.SEEK_END)
    if size > MAX_HEADER_SIZE:
        raise FormatError(f"{index.name} has {size} bytes, an index at most {MAX_HEADER_SIZE}")
    file.seek(0)
    return file.read()

# SPDX-License-Identifier: Apache-2.0
"""The manifest of a tree of any size, written and read in order and never all in memory:
docs/trees.md draws it.

Up to PART entries it is the manifest of `trees`. With more, or where a file has the name of a
folder, it has parts, each a file of the tree's format with up to PART entries; the file of the
manifest's name lists these.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from .._tree_names import NAME
from .layout import FormatError
from .trees import NAMES, Entry, Manifest, ManifestError, check_fields, context_of_manifest
from .whole import Digested, Reader, Writer

if TYPE_CHECKING:
    from .sealed import Sealed

LONGEST = 1 << 30
"""Bytes of the largest manifest that is read."""
PART = 100_000
"""Entries of a part."""
LABEL_IN_PARTS = "warpcipher.tree.v2"
AT_ONCE = 1000
"""Lines of a part that are parsed in one go."""

Opened = Callable[[str], AbstractContextManager[Reader]]
"""Opens a file of the tree for reading, by its name."""
Written = Callable[[str], AbstractContextManager[Writer]]
"""The same for writing; the file is there when the block ends."""


def name_of_part(identity: str, number: int) -> str:
    """The name of a part of the manifest with that id."""
    return f"{NAME}.{identity}.{number:06d}"


def context_of_part(context: bytes, identity: str, number: int) -> bytes:
    """The context of a part: the user's, 00, "warpcipher.tree.v2/part", 00, the manifest's id, 00,
    the part's number in decimal."""
    return context + f"\0{LABEL_IN_PARTS}/part\0{identity}\0{number}".encode()


def order(name: str, extension: str) -> bytes:
    """By which entries come: the bytes of a file's name in the encrypted tree, as it is listed."""
    return os.fsencode(name + extension)


@dataclass(frozen=True)
class Part:
    """A part of a manifest. first, last: names; size, digest: of its file, SHA-256 in hex."""

    part: int
    first: str
    last: str
    entries: int
    size: int
    sha256: str


def write(
    sealed: Sealed, entries: Iterable[Entry], writing: Written, others: Iterable[Entry] = ()
) -> str:
    """Writes the manifest of files that come in `order`; returns its id. others: folders and links,
    which only a manifest in one part lists. Raises OSError."""
    rest, others = iter(entries), list(others)
    some = list(itertools.islice(rest, None if others else PART + 1))
    folders = _folders_of(some)
    # In a store an object may have the name of a folder, which no tree of files has.
    fits = len(some) <= PART and folders.keys().isdisjoint(entry.name for entry in some)
    if fits or others:
        entries_of = {**folders, **{entry.name: entry for entry in (*others, *some)}}
        manifest = Manifest(sealed.format.name, entries_of, made=int(time.time()))
        with writing(NAME) as writer:
            sealed.write(writer, manifest, "manifest")
        return manifest.id
    identity, count = os.urandom(16).hex(), 0
    parts: list[Part] = []
    rest = itertools.chain(some, rest)
    del some
    while (part := _write_part(sealed, identity, len(parts), rest, writing)) is not None:
        parts.append(part)
        count += part.entries
    first = {
        "tree": LABEL_IN_PARTS,
        "id": identity,
        "base": None,
        "made": int(time.time()),
        "format": sealed.format.name,
        "entries": count,
        "parts": len(parts),
    }
    lines = [json.dumps(first), *(json.dumps(vars(part)) for part in parts)]
    text = ("\n".join(lines) + "\n").encode("ascii")
    with writing(NAME) as writer:
        sealed.seal_text(text, context_of_manifest(sealed.options.context, "manifest"), writer)
    return identity


def _folders_of(files: list[Entry]) -> dict[str, Entry]:
    """The folders that the names of files have: a store has none."""
    now = time.time_ns()
    made = {"": Entry("", "folder", 0o755, now)}
    for entry in files:
        above = entry.name.rpartition("/")[0]
        while above not in made:
            made[above] = Entry(above, "folder", 0o755, now)
            above = above.rpartition("/")[0]
    return made


def _write_part(
    sealed: Sealed, identity: str, number: int, entries: Iterator[Entry], writing: Written
) -> Part | None:
    text, count = io.BytesIO(), 0
    first = last = ""
    for entry in itertools.islice(entries, PART):
        check_fields(entry)
        text.write(json.dumps(entry.to_json()).encode("ascii") + b"\n")
        first, last, count = first if count else entry.name, entry.name, count + 1
    if not count:
        return None
    context = context_of_part(sealed.options.context, identity, number)
    with writing(name_of_part(identity, number)) as file:
        hashed = Digested(file)
        sealed.seal_text(text.getvalue(), context, hashed)
    return Part(number, first, last, count, hashed.count, hashed.digest.hex())


class Listed:
    """The manifest of a tree, as it is read. id, base, made, format: as of `Manifest`."""

    def __init__(self, sealed: Sealed, opened: Opened, kind: str = "manifest") -> None:
        """kind: "journal" for the journal of a run over files. Raises FileNotFoundError where there
        is none, InvalidTag, FormatError, OSError."""
        self._sealed, self._opened = sealed, opened
        self._parts: list[Part] = []
        with opened(NAMES[kind]) as file:
            if (getattr(file, "size", 0) or 0) > LONGEST:
                raise ManifestError(f"more than {LONGEST} bytes, which no {kind} has")
            context = context_of_manifest(sealed.options.context, kind)
            self._text = sealed.open_text(file, context)
        first = json_of(self._text.partition(b"\n")[0])
        self.in_parts = first.get("tree") == LABEL_IN_PARTS
        if not self.in_parts:
            return
        try:
            _, *lines = map(json_of, self._text.decode("ascii").splitlines())
            self.id, self.base = str(first["id"]), first["base"]
            self.made, self.format = int(first["made"]), str(first["format"])
            self._parts = [Part(**fields) for fields in lines]
            numbers = [part.part for part in self._parts]
            if (
                not re.fullmatch("[0-9a-f]{32}", self.id)
                or numbers != list(range(int(first["parts"])))
                or sum(part.entries for part in self._parts) != int(first["entries"])
            ):
                raise ManifestError("the manifest does not list its parts one by one")
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ManifestError):
                raise
            raise ManifestError("the manifest is not of the form of a manifest") from None

    def others(self) -> list[Entry]:
        """Folders and links: one in parts has none."""
        if self.in_parts:
            return []
        return [entry for entry in self._manifest.entries.values() if entry.kind != "file"]

    @functools.cached_property
    def _manifest(self) -> Manifest:
        return Manifest.from_bytes(self._text)

    def all(self) -> Manifest:
        """All of it, in memory, with the folders that the names of files have."""
        if not self.in_parts:
            return self._manifest
        files = list(self.files())
        entries = {**_folders_of(files), **{entry.name: entry for entry in files}}
        return Manifest(self.format, entries, self.id, self.base, self.made)

    def files(self) -> Iterator[Entry]:
        """The files, in `order`. Raises InvalidTag, FormatError, OSError: the parts are read one
        after another, and each is compared with what is said of it."""
        extension = self._sealed.format.extension
        if not self.in_parts:
            yield from sorted(
                self._manifest.of_kind("file"), key=lambda entry: order(entry.name, extension)
            )
            return
        before = b""
        for part in self._parts:
            for entry in self._read(part):
                check_fields(entry)
                place = order(entry.name, extension)
                if entry.kind != "file" or place <= before:
                    raise ManifestError(f"part {part.part} of the manifest is not in order")
                before = place
                yield entry

    def find(self, name: str) -> Entry | None:
        """The file of that name. Only its line is parsed, or the part that would list it: trees
        have up to millions. Raises as `files`."""
        extension = self._sealed.format.extension
        place = order(name, extension)
        for part in self._parts:
            if order(part.first, extension) <= place <= order(part.last, extension):
                return next((entry for entry in self._read(part) if entry.name == name), None)
        start = f"\n{json.dumps({'name': name, 'kind': 'file'})[:-1]}, ".encode("ascii")
        at = self._text.find(start)
        if self.in_parts or at < 0:
            return None
        try:
            return Entry(**json_of(self._text[at + 1 : self._text.index(b"\n", at + 1)]))
        except TypeError:
            raise ManifestError("the manifest has an entry that no manifest has") from None

    def _read(self, part: Part) -> Iterator[Entry]:
        name = name_of_part(self.id, part.part)
        try:
            with self._opened(name) as file:
                hashed = Digested(file)
                context = context_of_part(self._sealed.options.context, self.id, part.part)
                text = self._sealed.open_text(hashed, context)
        except FileNotFoundError:
            raise ManifestError(f"{name}, a part of the manifest, is missing") from None
        except (wc.InvalidTag, FormatError):
            raise ManifestError(f"{name} is not that part of the manifest, or damaged") from None
        if (hashed.count, hashed.digest.hex()) != (part.size, part.sha256):
            raise ManifestError(f"{name} is not the part that the manifest lists")
        lines = io.BytesIO(text)
        count, last = 0, None
        while some := list(itertools.islice(lines, AT_ONCE)):
            for fields in json_of(b"[" + b",".join(some) + b"]", list):
                try:
                    last = Entry(**fields)
                except TypeError:
                    raise ManifestError("the manifest has an entry that no manifest has") from None
                if not count and last.name != part.first:
                    break
                count += 1
                yield last
        if count != part.entries or last is None or last.name != part.last:
            raise ManifestError(f"{name} does not hold what the manifest says of it")


def json_of(text: bytes | str, kind: type = dict) -> Any:
    """The JSON value of that kind. Raises ManifestError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise ManifestError("the manifest is not of the form of a manifest")
    return value


__all__ = ["PART", "Listed", "Part", "context_of_part", "name_of_part", "order", "write"]

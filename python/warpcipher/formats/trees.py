# SPDX-License-Identifier: Apache-2.0
"""The manifest of an encrypted tree: what belongs to it, under which name; docs/trees.md draws it.

It is a file of the tree's own format, under the tree's key, at the root of the tree. Its plaintext
is one JSON object a line: one for the tree, then one for each folder, file and symbolic link.

A file's `head` is the SHA-256 of the first 128 bytes of its encrypted form. These hold the random
salt that its keys are derived from, so that no other file which was encrypted with the key has the
same; every later byte is authenticated under these keys, with its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .._tree_names import HEAD_SIZE, JOURNAL, NAME
from ..stores.store import shown
from .layout import FormatError

LABEL = "warpcipher.tree.v1"
KINDS = ("folder", "file", "link")
NAMES = {"manifest": NAME, "journal": JOURNAL}


class ManifestError(FormatError):
    """An authentic manifest that this version does not understand."""


def context_of_file(context: bytes, name: str) -> bytes:
    """The context of a file of a tree: the user's, 00, "warpcipher.tree.v1/file", 00, its name.

    name: relative to the root, as it is before encryption, parts parted by "/". No name has a zero
    byte, so that no two pairs of context and name give one context.
    """
    return context + b"\0" + LABEL.encode() + b"/file\0" + os.fsencode(name)


def context_of_manifest(context: bytes, kind: str) -> bytes:
    """The context of NAME (kind "manifest") and of JOURNAL (kind "journal")."""
    return context + b"\0" + f"{LABEL}/{kind}".encode() + b"\0"


def foreign_manifest(place: str, kind: str = "manifest") -> str:
    """Why the file there is not taken for a manifest."""
    return (
        f"{shown(place)} is not the {kind} of a tree with this key and context, or was changed: "
        "nothing of the tree is trusted"
    )


def is_file_name(text: str) -> bool:
    """Whether the system takes it in a name: no zero byte, no surrogate that stands for no byte."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def head_of(data: bytes) -> str:
    """The head of the encrypted file that begins with these bytes."""
    import hashlib

    return hashlib.sha256(data[:HEAD_SIZE]).hexdigest()


@dataclass(slots=True)
class Entry:
    """Something in the tree. name: empty for the root. mtime: nanoseconds since 1970.

    size, sealed: bytes before and after encryption; head: see above; holes: blocks of zeros are
    not stored. target: of a link.
    """

    name: str
    kind: str
    mode: int = 0
    mtime: int = 0
    size: int = 0
    sealed: int = 0
    head: str = ""
    target: str = ""
    holes: bool = False

    def is_of(self, begins: bytes, sealed: int | None = None) -> bool:
        """Whether this is the entry of an encrypted file, of its first bytes, and of that size."""
        return head_of(begins) == self.head and sealed in (None, self.sealed)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.kind == "link":
            return {**document, "target": self.target}
        document |= {"mode": self.mode, "mtime": self.mtime}
        if self.kind == "file":
            document |= {"size": self.size, "sealed": self.sealed, "head": self.head}
        if self.holes:
            document["holes"] = True
        return document


@dataclass
class Manifest:
    """A tree. id: random, of this manifest; base: id of the one it was made from; format: of
    its files; made: seconds since 1970."""

    format: str
    entries: dict[str, Entry] = field(default_factory=dict)
    id: str = field(default_factory=lambda: os.urandom(16).hex())
    base: str | None = None
    made: int = 0

    def of_kind(self, kind: str) -> Iterable[Entry]:
        return (entry for entry in self.entries.values() if entry.kind == kind)

    def to_bytes(self) -> bytes:
        """Raises ManifestError for entries that `from_bytes` would not accept."""
        import json  # a run without trees goes without it

        first = {
            "tree": LABEL,
            "id": self.id,
            "base": self.base,
            "made": self.made,
            "format": self.format,
            "entries": len(self.entries),
        }
        ordered = sorted(self.entries.values(), key=lambda entry: entry.name)
        for entry in ordered:
            self._check(entry)
        lines = [json.dumps(first), *(json.dumps(entry.to_json()) for entry in ordered)]
        return ("\n".join(lines) + "\n").encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Raises ManifestError; what it accepts has names that stay in the tree."""
        import json

        try:
            lines = data.decode("ascii").splitlines()
            first = json.loads(lines[0])
            if first["tree"] != LABEL:
                raise ManifestError(
                    f"the manifest is of version {first['tree']!r}, and this one reads {LABEL}"
                )
            made = cls(
                str(first["format"]), {}, str(first["id"]), first["base"], int(first["made"])
            )
            count = int(first["entries"])
            listed = json.loads(f"[{','.join(lines[1:])}]")  # at once: several times as fast
            if len(listed) != len(lines) - 1:
                raise ManifestError("the manifest has not one entry a line")
            for fields in listed:
                entry = Entry(**fields)
                made.entries[entry.name] = entry
        except ManifestError:
            raise
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError):
            raise ManifestError("the manifest is not of the form of a manifest") from None
        if len(made.entries) != count or len(lines) != count + 1:
            raise ManifestError(f"the manifest lists {len(lines) - 1} entries and promises {count}")
        for entry in made.entries.values():
            made._check(entry)
        return made

    def _check(self, entry: Entry) -> None:
        check_fields(entry)
        folder = entry.name.rpartition("/")[0]
        above = self.entries.get(folder)
        if folder and (above is None or above.kind != "folder"):
            raise ManifestError("the manifest has a name that leads out of the tree")


def check_fields(entry: Entry) -> None:
    """Raises ManifestError for an entry that no tree has, or whose name leads out of it."""
    numbers = {type(entry.mode), type(entry.mtime), type(entry.size), type(entry.sealed)}
    texts = {type(entry.name), type(entry.target), type(entry.head)}
    if (
        entry.kind not in KINDS
        or numbers != {int}
        or texts != {str}
        or type(entry.holes) is not bool
        or not (is_file_name(entry.name) and is_file_name(entry.target))
        or not 0 <= entry.mode <= (0o3777 if entry.kind == "folder" else 0o777)
        or min(entry.size, entry.sealed) < 0
        or not -(1 << 63) <= entry.mtime // 10**9 < 1 << 63
    ):
        raise ManifestError("the manifest has an entry that no manifest has")
    is_root = not entry.name and entry.kind == "folder"
    if not is_root and not {"", ".", ".."}.isdisjoint(entry.name.split("/")):
        raise ManifestError("the manifest has a name that leads out of the tree")

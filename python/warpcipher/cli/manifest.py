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
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .tree_names import HEAD_SIZE

LABEL = "warpcipher.tree.v1"
KINDS = ("folder", "file", "link")


class ManifestError(ValueError):
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


def open_regular(path: str, folder: int | None = None) -> int | None:
    """A descriptor of a regular file that is no link; None for anything else, without waiting for
    the other end of a pipe. folder: a descriptor that `path` is relative to. Raises OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


@dataclass(slots=True)
class Entry:
    """Something in the tree. name: empty for the root. mtime: nanoseconds since 1970.

    size, sealed: bytes before and after encryption; head: see above. target: of a link.
    """

    name: str
    kind: str
    mode: int = 0
    mtime: int = 0
    size: int = 0
    sealed: int = 0
    head: str = ""
    target: str = ""

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.kind == "link":
            return {**document, "target": self.target}
        document |= {"mode": self.mode, "mtime": self.mtime}
        if self.kind == "file":
            document |= {"size": self.size, "sealed": self.sealed, "head": self.head}
        return document


@dataclass
class Manifest:
    """A tree. id: random, of this manifest; base: that of the manifest it was made from; format: of
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
        import json

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
        numbers = {type(entry.mode), type(entry.mtime), type(entry.size), type(entry.sealed)}
        texts = {type(entry.name), type(entry.target), type(entry.head)}
        if (
            entry.kind not in KINDS
            or numbers != {int}
            or texts != {str}
            or not (is_file_name(entry.name) and is_file_name(entry.target))
            or not 0 <= entry.mode <= 0o777
            or min(entry.size, entry.sealed) < 0
            or not -(1 << 63) <= entry.mtime // 10**9 < 1 << 63
        ):
            raise ManifestError("the manifest has an entry that no manifest has")
        if not entry.name and entry.kind == "folder":
            return
        folder, _, last = entry.name.rpartition("/")
        above = self.entries.get(folder)
        inside = not entry.name.startswith("/") and last not in ("", ".", "..")
        if not inside or (folder and (above is None or above.kind != "folder")):
            raise ManifestError("the manifest has a name that leads out of the tree")

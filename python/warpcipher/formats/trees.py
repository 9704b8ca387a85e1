# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as in the command:
# ruff: noqa: PTH118, PTH123
"""The manifest of an encrypted tree: what belongs to it, under which name; docs/trees.md draws it.

It is a file of the tree's own format, under the tree's key, at the root of the tree. Its plaintext
is one JSON object a line: one for the tree, then one for each folder, file and symbolic link.

A file's `head` is the SHA-256 of the first 128 bytes of its encrypted form. These hold the random
salt that its keys are derived from, so that no other file which was encrypted with the key has the
same; every later byte is authenticated under these keys, with its place.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from .._descriptors import open_seekable
from .._tree_names import HEAD_SIZE, JOURNAL, NAME, names_of, root_above
from .layout import FormatError
from .stream import decrypt_stream, encrypt_stream

if TYPE_CHECKING:
    from .base import Format, Options, ReadAt
    from .whole import Reader, Writer

LONGEST = 1 << 30
"""Bytes of the largest manifest that is read."""
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
    """A descriptor of a regular file, not of a link; None for anything else, without waiting for
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


class Sealed:
    """The key, format and options that the files of trees are encrypted with."""

    def __init__(self, key: object, chosen: Format, options: Options) -> None:
        self.format = chosen
        self.options = options
        self._key = key
        self._opening = chosen.opening(key)

    @property
    def can_open(self) -> bool:
        """Whether the key opens what it encrypts."""
        return self._opening != []

    def options_of(self, name: str) -> Options:
        """The options of the file of that name in a tree that has a manifest."""
        return self._bound(context_of_file(self.options.context, name))

    def _bound(self, context: bytes) -> Options:
        return replace(self.options, context=context) if self.format.takes_context else self.options

    def encrypt(self, reader: Reader, writer: Writer, options: Options) -> None:
        """Raises as `encrypt_stream`."""
        encrypt_stream(reader, writer, self._key, format=self.format.name, options=options)

    def decrypt(self, reader: Reader, writer: Writer, options: Options) -> None:
        """Raises as `decrypt_stream`."""
        decrypt_stream(reader, writer, self._opening, format=self.format.name, options=options)

    def seal_text(self, text: bytes, context: bytes, writer: Writer) -> None:
        """Writes a file with that plaintext and context. Raises OSError."""
        self.encrypt(io.BytesIO(text), writer, self._bound(context))

    def open_text(self, sealed: bytes | Reader, context: bytes) -> bytes:
        """The plaintext of a file with that context. Raises InvalidTag, FormatError, OSError."""
        text = io.BytesIO()
        reader = io.BytesIO(sealed) if isinstance(sealed, bytes) else sealed
        self.decrypt(reader, text, self._bound(context))
        return text.getvalue()

    def opens(self, source: int | ReadAt, options: Options) -> bool:
        """Whether the key opens the beginning of a file. source: a descriptor, which stays where it
        is, or what reads a number of bytes at a place."""

        def read_at(at: int, size: int) -> bytes:
            return os.pread(source, size, at) if isinstance(source, int) else source(at, size)

        try:
            if self.can_open:
                self.format.open_checked(self._opening, read_at, options).close()
        except (wc.InvalidTag, FormatError, OSError):
            return False
        return self.can_open

    def read(self, root: str | os.PathLike[str], kind: str) -> bytes | None:
        """The plaintext of the manifest (kind "manifest") or journal ("journal") of a tree; None:
        it has none. Raises InvalidTag, FormatError, OSError."""
        try:
            descriptor = open_regular(os.path.join(root, NAMES[kind]))
        except FileNotFoundError:
            return None
        if descriptor is None:
            raise ManifestError(f"not a regular file, as a {kind} is")
        with open(descriptor, "rb", buffering=0) as file:
            if os.fstat(descriptor).st_size > LONGEST:
                raise ManifestError(f"more than {LONGEST} bytes, which no {kind} has")
            return self.open_text(file, context_of_manifest(self.options.context, kind))

    def write(self, writer: Writer, manifest: Manifest, kind: str) -> None:
        """Writes a manifest or journal. Raises ManifestError, OSError."""
        context = context_of_manifest(self.options.context, kind)
        self.seal_text(manifest.to_bytes(), context, writer)

    def options_in_place(self, path: str | os.PathLike[str]) -> Options | None:
        """The options of a file that does not open by itself, if it is one of an encrypted tree.

        Its tree is that of the nearest manifest above it, which must list it. None: it has no tree.
        Raises InvalidTag for a file that is not where its manifest has it, or is without one;
        OSError.
        """
        if not (self.format.takes_context and self.format.binds_chunks):
            return None
        path = os.fsdecode(path)
        root = root_above(path)
        names = names_of(path, self.format.extension)
        if root is not None:
            self._check_listed(path, root, names[0])
            return self.options_of(names[0])
        with open(path, "rb", opener=open_seekable) as file:
            for name in names:
                if self.opens(file.fileno(), self.options_of(name)):
                    raise wc.InvalidTag(
                        f"the file is part of a tree, {name!r} there, and no folder above it has "
                        f"the tree's {NAME}: move it back, or take `warpcipher decrypt "
                        "--no-manifest`, which decrypts it without a look at what belongs to the "
                        "tree"
                    )
        return None

    def _check_listed(self, path: str, root: str, name: str) -> None:
        """Raises InvalidTag where the manifest of a tree does not list a file as it is now,
        ManifestError if its line is malformed.

        Only its line of the manifest is read: trees have up to millions.
        """
        try:
            text = self.read(root, "manifest")
        except (wc.InvalidTag, FormatError):
            raise wc.InvalidTag(
                f"the file is part of the tree {root!r}, whose manifest this key and context do "
                "not open: wrong key or context, or the manifest was changed"
            ) from None
        import json

        start = f"\n{json.dumps({'name': name, 'kind': 'file'})[:-1]}, ".encode("ascii")
        at = -1 if text is None else text.find(start)
        if text is None or at < 0:
            raise wc.InvalidTag(
                f"the file lies in the tree {root!r}, whose manifest lists no file {name!r}: it "
                "was renamed, moved or added"
            )
        try:
            entry = Entry(**json.loads(text[at + 1 : text.index(b"\n", at + 1)]))
        except (ValueError, TypeError, RecursionError):
            raise ManifestError("the manifest has an entry that no manifest has") from None
        with open(path, "rb", opener=open_seekable) as file:
            size = os.fstat(file.fileno()).st_size
            if size != entry.sealed or head_of(file.read(HEAD_SIZE)) != entry.head:
                raise wc.InvalidTag(
                    f"this is not the file that the manifest of the tree {root!r} lists there: it "
                    "was exchanged, cut or damaged, or is of another time"
                )

# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as in the command:
# ruff: noqa: PTH118
"""The key, format and options of an encrypted tree: what seals and opens its files."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import warpcipher as wc

from .. import stores
from .._tree_names import HEAD_SIZE, NAME, names_of, root_above
from .._types import PathLike
from ..stores.store import shown
from .base import wipe
from .layout import FormatError
from .registry import decryptor_of
from .source import Regular, open_source
from .stream import Progress, decrypt_stream, encrypt_stream
from .trees import Manifest, ManifestError, context_of_file, context_of_manifest

if TYPE_CHECKING:
    from .base import Format, Options, PieceCipher, ReadAt
    from .reader import DecryptedFile, SeekableReader
    from .tree_parts import Opened
    from .whole import Reader, Writer


MARK = b"\0warpcipher.job.v1/key\0"
"""The end of the context of a mark."""


def open_regular(path: str, folder: int | None = None) -> int | None:
    """A descriptor of a regular file, not of a link; None for anything else, without waiting for
    the other end of a pipe. folder: a descriptor that `path` is relative to. Raises OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


class Source(Protocol):
    """A file or object that is open."""

    @property
    def size(self) -> int: ...
    def read_at(self, offset: int, length: int) -> bytes: ...


class Probed:
    """A source whose first bytes are read once: all names that it may have are tried on them."""

    def __init__(self, source: Source) -> None:
        self.size = source.size
        self._source = source
        self._beginning = source.read_at(0, min(self.size, 1 << 16))

    def read_at(self, offset: int, length: int) -> bytes:
        end = offset + length
        if end <= len(self._beginning):
            return self._beginning[offset:end]
        return bytes(self._source.read_at(offset, length))


def opened_in(root: PathLike) -> Opened:
    """Opens the files of a tree by their names in it. root: a path, or a URL without a slash at
    its end."""

    @contextlib.contextmanager
    def opened(name: str) -> Iterator[Reader]:
        if stores.is_url(root):
            with stores.open_object(f"{root}/{name}") as found:
                yield found
            return
        descriptor = open_regular(os.path.join(root, name))
        if descriptor is None:
            raise ManifestError("not a regular file, as a manifest is")
        with Regular(descriptor) as file:
            yield file

    return opened


def _prefixes_above(url: str, extension: str) -> Iterator[tuple[str, str]]:
    """The prefixes that an object lies in, the nearest first, and its name in a tree there."""
    scheme, _, path = url.partition("://")
    parts = path.removesuffix(extension).split("/")
    for count in range(1, len(parts)):
        yield f"{scheme}://{'/'.join(parts[:-count])}", "/".join(parts[-count:])


def _tree_of(place: str, extension: str) -> tuple[str | None, list[str]]:
    """The root of the tree that a file lies in, and its name there; without a manifest above it
    None, and the names that it may have. Raises OSError."""
    if not stores.is_url(place):
        return root_above(place), names_of(place, extension)
    above = list(_prefixes_above(place, extension))
    for root, name in above:
        # A store that does not list objects to this user forbids those that are not there.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            stores.stat(f"{root}/{NAME}")
            return root, [name]
    return None, [name for _, name in above]


class Sealed:
    """The key, format and options that the files of trees are encrypted with. new: those that they
    get, where a job changes keys."""

    def __init__(
        self, key: object, chosen: Format, options: Options, new: Sealed | None = None
    ) -> None:
        self.format = chosen
        self.options = options
        self.new = new
        self.key = key
        self._opening = chosen.opening(key)

    def wipe(self) -> None:
        """Wipes a key that is bytes."""
        if isinstance(self.key, bytearray):
            wipe(self.key)

    @property
    def can_open(self) -> bool:
        """Whether the key opens what it encrypts."""
        return self._opening != []

    def options_of(self, name: str) -> Options:
        """The options of the file of that name in a tree that has a manifest."""
        return self._bound(context_of_file(self.options.context, name))

    def _bound(self, context: bytes) -> Options:
        return replace(self.options, context=context) if self.format.takes_context else self.options

    def encrypt(
        self, reader: Reader, writer: Writer, options: Options, progress: Progress | None = None
    ) -> None:
        """Raises as `encrypt_stream`."""
        name = self.format.name
        encrypt_stream(reader, writer, self.key, format=name, options=options, progress=progress)

    def decrypt(
        self, reader: Reader, writer: Writer, options: Options, progress: Progress | None = None
    ) -> None:
        """Raises as `decrypt_stream`."""
        key, name = self._opening, self.format.name
        decrypt_stream(reader, writer, key, format=name, options=options, progress=progress)

    def encrypt_short(self, text: memoryview, options: Options) -> memoryview:
        """A whole file, of a short text, from memory to memory: of many of them the buffers and
        threads of a stream take more time than the cipher. Raises as `encrypt_stream`."""
        if not options.armor:
            with self.format.encryptor(self.key, options) as encryptor:
                if (out := _whole(encryptor, text, encryptor.header)) is not None:
                    return out
        sealed = io.BytesIO()
        self.encrypt(io.BytesIO(text), sealed, options)
        return sealed.getbuffer()

    def decrypt_short(self, file: memoryview, options: Options) -> memoryview:
        """The text of a short file. Raises as `decrypt_stream`."""
        if not self.format.unwrap_size:  # of no format that may be text
            with decryptor_of(
                self.format, self._opening, options, lambda at, size: file[at : at + size]
            ) as decryptor:
                text = file[decryptor.layout.header_size :]
                if decryptor.edits is None and (out := _whole(decryptor, text)) is not None:
                    return out
        plain = io.BytesIO()
        self.decrypt(io.BytesIO(file), plain, options)
        return plain.getbuffer()

    def opened(self, source: SeekableReader, options: Options) -> DecryptedFile:
        """The text of a file. Raises as `DecryptingReader`."""
        from .reader import DecryptedFile, DecryptingReader

        return DecryptedFile(
            DecryptingReader(source, self.format, self._opening, options, close_source=False)
        )

    def seal_text(self, text: bytes, context: bytes, writer: Writer) -> None:
        """Writes a file with that plaintext and context. Raises OSError."""
        self.encrypt(io.BytesIO(text), writer, self._bound(context))

    def open_text(self, sealed: bytes | Reader, context: bytes) -> bytes:
        """The plaintext of a file with that context. Raises InvalidTag, FormatError, OSError."""
        text = io.BytesIO()
        reader = io.BytesIO(sealed) if isinstance(sealed, bytes) else sealed
        self.decrypt(reader, text, self._bound(context))
        return text.getvalue()

    def mark(self) -> str:
        """Text by which `made` knows this key again; "" of one that does not open what it encrypts,
        as a KMS key for encryption only. It says nothing of a secret key."""
        import base64  # as hashlib: only jobs that change keys need them
        import hashlib

        if not self.can_open:
            keys = self.key if isinstance(self.key, (list, tuple)) else [self.key]
            return hashlib.sha256("\n".join(sorted(map(str, keys))).encode()).hexdigest()
        sealed = io.BytesIO()
        self.seal_text(b"", self.options.context + MARK, sealed)
        mark = base64.b64encode(sealed.getvalue()).decode()
        with contextlib.suppress(OSError):
            return mark if self.made(mark) else ""
        return ""

    def made(self, mark: str) -> bool:
        """Whether a mark is one of this key. Raises OSError."""
        import base64

        if not self.can_open:
            return mark == self.mark()
        with contextlib.suppress(wc.InvalidTag, FormatError, ValueError):
            self.open_text(base64.b64decode(mark), self.options.context + MARK)
            return True
        return False

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

    def read(self, root: PathLike, kind: str) -> Manifest | None:
        """The manifest (kind "manifest") or journal ("journal") of a tree on this machine; None: it
        has none. Raises InvalidTag, FormatError, OSError."""
        from .tree_parts import Listed  # a run without trees goes without it

        try:
            return Listed(self, opened_in(root), kind).all()
        except FileNotFoundError:
            return None

    def write(self, writer: Writer, manifest: Manifest, kind: str) -> None:
        """Writes a manifest or journal. Raises ManifestError, OSError."""
        self.seal_text(manifest.to_bytes(), context_of_manifest(self.options.context, kind), writer)

    def options_at(
        self, place: PathLike, source: Source, *, listed: bool = True, name: str | None = None
    ) -> Options:
        """The options of a file that is open: its own where they open it, else as
        `options_in_place`. name: the only one that it may have in a tree, where that is known."""
        if not (self.format.takes_context and self.format.binds_chunks):
            return self.options
        probed = Probed(source)
        if self.opens(probed.read_at, self.options):
            return self.options
        if name is not None:
            bound = self.options_of(name)
            return bound if self.opens(probed.read_at, bound) else self.options
        return self.options_in_place(place, probed, listed=listed) or self.options

    def options_in_place(
        self, place: PathLike, source: Probed | None = None, *, listed: bool = True
    ) -> Options | None:
        """The options of a file that does not open by itself, if it is one of an encrypted tree.

        place: a path or URL; source: the file, where it is open. Its tree is that of the nearest
        manifest above it, which must list it, unless `listed` is False. None: it has no tree.
        Raises InvalidTag for a file that is not where its manifest has it, or is without one;
        OSError.
        """
        place = stores.local_path(place)
        if not (self.format.takes_context and self.format.binds_chunks):
            return None
        if source is None:
            with open_source(place) as file:
                return self.options_in_place(place, Probed(file), listed=listed)
        place = os.fsdecode(place)
        root, names = _tree_of(place, self.format.extension)
        if root is not None and listed:
            self._check_listed(source, root, names[0])
            return self.options_of(names[0])
        for name in names:
            bound = self.options_of(name)
            if not self.opens(source.read_at, bound):
                continue
            if not listed:
                return bound
            raise wc.InvalidTag(
                f"the file is part of a tree, {name!r} there, and no folder above it has the "
                f"tree's {NAME}: move it back, or take `warpcipher decrypt --no-manifest`, which "
                "decrypts it without a look at what belongs to the tree"
            )
        return None

    def _check_listed(self, source: Probed, root: str, name: str) -> None:
        """Raises InvalidTag where the manifest of a tree does not list a file as it is now,
        ManifestError if its line is malformed."""
        from .tree_parts import Listed

        tree = shown(root)
        try:
            entry = Listed(self, opened_in(root)).find(name)
        except ManifestError:
            raise
        except (wc.InvalidTag, FormatError):
            raise wc.InvalidTag(
                f"the file is part of the tree {tree!r}, whose manifest this key and context do "
                "not open: wrong key or context, or the manifest was changed"
            ) from None
        if entry is None:
            raise wc.InvalidTag(
                f"the file lies in the tree {tree!r}, whose manifest lists no file {name!r}: it "
                "was renamed, moved or added"
            )
        if not entry.is_of(source.read_at(0, HEAD_SIZE), source.size):
            raise wc.InvalidTag(
                f"this is not the file that the manifest of the tree {tree!r} lists there: it "
                "was exchanged, cut or damaged, or is of another time"
            )


def _whole(cipher: PieceCipher, data: memoryview, header: bytes = b"") -> memoryview | None:
    """The result for data of one piece, after the header; None: they are more."""
    if len(data) > (cipher.piece if cipher.whole else cipher.first_piece - 1):
        return None
    begin, more = len(header), cipher.layout.overhead
    if not cipher.whole:
        more = max(0, cipher.capacity - max(cipher.first_piece, cipher.piece))
    out = memoryview(bytearray(begin + len(data) + more))
    out[:begin] = header
    return out[: begin + cipher.process(data, out[begin:], final=True)]

# SPDX-License-Identifier: Apache-2.0
"""Encrypted files: chunked, authenticated, random access, each format with a peer that reads and
writes it.

    from warpcipher import formats

    formats.encrypt_file("plain", "secret", key)
    with formats.open("secret", key) as file:  # seek, read, readinto: decrypts the chunks needed
        file.seek(1 << 30)
        file.read(100)

Formats: `cobblestone-128`, `cobblestone-256`, `tink`, `age`, `crypt4gh`, `awsesdk`,
`ags1`, `raw`;
docs/formats.md draws them.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import warpcipher as wc

from .. import _later
from .._types import PathLike
from ..arguments import view_bytes
from .base import Buffer, Candidate, Decryptor, Encryptor, Format, Options, PieceCipher, ReadAt
from .edits import Kept
from .file_chunks import read_chunks
from .files import decrypt_file, encrypt_file, options_in_a_tree, reading
from .layout import FormatError, Layout
from .reader import DecryptedFile, DecryptingReader, SeekableReader, open_place
from .registry import FORMATS, by_magic, get, key_sizes, register, resolve, take, take_for
from .rekey import rekey_file
from .rewrap import rewrap_file
from .stream import checked_options, decrypt_stream, encrypt_stream

if TYPE_CHECKING:
    from . import age as age
    from . import awsesdk as awsesdk
    from . import crypt4gh as crypt4gh
    from . import openssl as openssl
    from .foreign import Foreign
    from .tink_keyset import TEMPLATES, Keyset


def open(
    file: PathLike | SeekableReader,
    key: object,
    *,
    format: str = "auto",
    options: Options | None = None,
) -> DecryptedFile:
    """Opens an encrypted file as a buffered, seekable, read-only binary file object, which also
    reads into arrays, in host memory or on a GPU.

    file: a path, a URL (docs/guides/storage.md), or a seekable binary file object opened for
    reading, which stays open after close(). A path in an encrypted tree (docs/trees.md) is
    opened as the file that its manifest lists there.
    key: 16 or 32 bytes (cobblestone), a `Keyset` or its JSON text (tink), identities and
    passphrases of `formats.age`, secret keys of `formats.crypt4gh`, one or several, the algorithm's
    key (raw); or what `warpcipher.keys` takes for one: a source, a function.
    format: a name in `FORMATS`; "auto" takes it from the key, see `resolve`.
    The size is authenticated here (ags1, crypt4gh, raw: not at all) and each chunk when it is read
    (raw: not, except for GCM). `.raw.size` is the size of the plaintext. Raises InvalidTag,
    FormatError, ValueError, OSError; so may every read.

    >>> import io
    >>> from warpcipher import formats
    >>> sealed = io.BytesIO()
    >>> size = formats.encrypt_stream(io.BytesIO(b"some text"), sealed, bytes(32))
    >>> with formats.open(sealed, bytes(32)) as file:
    ...     place = file.seek(5)
    ...     file.read()
    b'text'
    """
    options = checked_options(options)
    chosen, key = take(format, key, options)
    if isinstance(file, (str, os.PathLike)):
        raw = reading(file, key, chosen, options)
    elif not hasattr(file, "seek") or isinstance(file, io.TextIOBase):
        raise TypeError(
            f"file is {type(file).__name__}: expected a path, or a seekable file opened in binary"
        )
    else:
        raw = DecryptingReader(file, chosen, key, options, close_source=False)
    return DecryptedFile(raw)


def detect(header: Buffer, key: object, *, context: bytes = b"") -> str | None:
    """The format of the file that begins with `header` and belongs to `key`, or None.

    age, crypt4gh and ags1 have magic numbers; bytes say nothing of the others. A Cobblestone
    header commits to its key: 56 bytes settle it; the headers of age and crypt4gh are of any
    length: give all of one. A Tink file is found by its first segment: give `probe_size` bytes of
    the file, or all of it; an ags1 file by its first block: 36 bytes and the block length that it
    begins with, or all of it; armored files of age are given whole. `raw` is never found.

    >>> import io
    >>> from warpcipher import formats
    >>> sealed = io.BytesIO()
    >>> size = formats.encrypt_stream(io.BytesIO(b"text"), sealed, bytes(32))
    >>> formats.detect(sealed.getvalue(), bytes(32))
    'cobblestone-256'
    """
    data = bytes(view_bytes("header", header))
    options = Options(context=context)
    chosen, key = take_for(data, key, options)
    try:
        if context and not chosen.takes_context:
            return None
        _open_checked(chosen, key, io.BytesIO(data), options)[0].close()
    except (wc.InvalidTag, FormatError):
        return None
    return chosen.name


@dataclass(frozen=True)
class FileInfo:
    """Facts about a file. certain: a key was given and opens it; otherwise candidates only
    fit by shape. foreign: what it is of another program, or which key, by its beginning; None:
    nothing known. refusal: why it does not open: the error that `open` raises; None: it opens, or
    no key was given."""

    size: int
    certain: bool
    candidates: tuple[Candidate, ...]
    foreign: Foreign | None = None
    refusal: wc.InvalidTag | FormatError | None = None


def info(path: PathLike, key: object = None, *, context: bytes = b"") -> FileInfo:
    """The formats of a file: without a key each one that fits, with a key the one it is.

    path: or a URL. Raises OSError, FormatError where the key opens a file that is cut short, and
    InvalidTag for the file of an encrypted tree that is not in its place. With a key that opens
    nothing there are no candidates but a format whose magic number the file has.

    >>> import pathlib
    >>> from warpcipher import formats
    >>> size = pathlib.Path("secret.enc").write_bytes(b"Salted__" + bytes(24))
    >>> formats.info("secret.enc").foreign.name
    'openssl'
    """
    from .foreign import ENDING_SIZE, PREFIX_SIZE, identify

    with io.BufferedReader(open_place(path)) as file:
        size = file.seek(0, os.SEEK_END)
        read_at = _reading(file)
        beginning = read_at(0, PREFIX_SIZE)
        named = _named(beginning, size, read_at)
        ending = read_at(max(size - ENDING_SIZE, 0), ENDING_SIZE)
        foreign = None if named else identify(beginning, size, ending)
        if key is None:
            if named or (foreign is not None and foreign.certain):
                return FileInfo(size, False, named, foreign)
            shapes = (entry.shape(beginning, size) for entry in FORMATS.values())
            fit = tuple(shape for shape in shapes if shape is not None)
            return FileInfo(size, False, fit, foreign)
        options = Options(context=context)
        chosen, key = take_for(beginning, key, options)
        try:
            decryptor, source = _open_checked(chosen, key, file, options)
        except (wc.InvalidTag, FormatError) as refusal:
            if (bound := options_in_a_tree(path, key, chosen, options)) is None:
                error: wc.InvalidTag | FormatError = refusal
                if named and named[0].format != chosen.name:
                    error = FormatError(
                        f"a file of format {named[0].format}, and the key is one of {chosen.name}"
                    )
                return FileInfo(size, False, named, foreign, error)
            decryptor, source = _open_checked(chosen, key, file, bound)
        size_inside = source.seek(0, os.SEEK_END)
        content = decryptor.plaintext_size(size_inside, _reading(source))
    decryptor.close()
    layout = decryptor.layout
    found = chosen.candidate(layout, size_inside, f"the key opens its {chosen.proof}")
    found = replace(found, plaintext_size=Kept(content, decryptor.edits).size)
    return FileInfo(size, True, (found,))


def _open_checked(
    chosen: Format, key: object, file: io.BufferedIOBase, options: Options
) -> tuple[Decryptor, io.BufferedIOBase]:
    """The decryptor of a file that the key opens for certain, and the file: that inside of a
    text."""
    prefix = _reading(file)(0, chosen.unwrap_size)
    file.seek(0)
    source = chosen.decoded(file, prefix) or file
    return chosen.open_checked(key, _reading(source), options), source


def _reading(file: io.BufferedIOBase) -> ReadAt:
    """Reads of a file at any place."""

    def read_at(at: int, length: int) -> bytes:
        file.seek(at)
        return file.read(length)

    return read_at


def _named(beginning: bytes, size: int, read_at: ReadAt) -> tuple[Candidate, ...]:
    """The format whose magic number a file begins with."""
    entry = by_magic(beginning)
    if entry is None:
        return ()
    shape = entry.shape(bytes(entry.beginning(None, Options(), read_at)), size)
    return () if shape is None else (shape,)


# Loaded when first used, as the formats themselves are.
_LATER = {
    "Foreign": "foreign", "Keyset": "tink_keyset", "TEMPLATES": "tink_keyset", "age": "age",
    "awsesdk": "awsesdk", "crypt4gh": "crypt4gh", "foreign": "foreign", "openssl": "openssl",
}  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name in _LATER:
        module = _later.load(f"formats.{_LATER[name]}")
        return module if name == _LATER[name] else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "FORMATS", "TEMPLATES", "Buffer", "Candidate", "DecryptedFile", "Decryptor", "Encryptor",
    "FileInfo", "Foreign", "Format", "FormatError", "Keyset", "Layout", "Options", "PieceCipher",
    "decrypt_file", "decrypt_stream", "detect", "encrypt_file", "encrypt_stream", "get", "info",
    "key_sizes", "open", "read_chunks", "register", "rekey_file", "resolve", "rewrap_file", "take",
]  # fmt: skip

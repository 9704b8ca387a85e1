# SPDX-License-Identifier: Apache-2.0
"""Encrypts and decrypts from one path to another: the target is whole, or it is not there."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO, TypeAlias

import warpcipher as wc

from .. import stores
from .._descriptors import open_seekable
from .._new_file import replaced
from .base import Format, Options
from .layout import FormatError
from .reader import DecryptingReader
from .registry import take
from .stream import Progress, decrypt_stream, encrypt_stream

PathLike: TypeAlias = "str | os.PathLike[str]"


def encrypt_file(
    source: PathLike,
    target: PathLike,
    key: object,
    *,
    format: str = "auto",
    options: Options | None = None,
    progress: Progress | None = None,
    replace: bool = True,
) -> int:
    """Encrypts the file `source` to the file `target`; returns the bytes written.

    target: gets its name when all of it is written and on the disk; on an error nothing is left,
            and a file that had the name stays. It has the permissions of the file that it replaces,
            else those of the source.
    replace: False raises FileExistsError where something has the name.
    The other arguments and errors are those of `encrypt_stream`. ValueError: target is the source.

    >>> import pathlib
    >>> from warpcipher import formats
    >>> size = pathlib.Path("notes.txt").write_bytes(b"text")
    >>> formats.encrypt_file("notes.txt", "notes.txt.cobblestone", bytes(32))
    76
    """

    with _opened(source, target, replace) as (reader, writer):
        return encrypt_stream(
            reader, writer, key, format=format, options=options, progress=progress
        )


def decrypt_file(
    source: PathLike,
    target: PathLike,
    key: object,
    *,
    format: str = "auto",
    options: Options | None = None,
    progress: Progress | None = None,
    replace: bool = True,
) -> int:
    """Decrypts the file `source` to the file `target`; returns the bytes written. Arguments as for
    `encrypt_file`, errors as for `decrypt_stream`: the target appears only when all of it is
    authentic. A source in an encrypted tree (docs/trees.md) is the file that its manifest lists
    there.

    >>> import pathlib
    >>> from warpcipher import formats
    >>> size = pathlib.Path("notes.txt").write_bytes(b"text")
    >>> size = formats.encrypt_file("notes.txt", "notes.txt.cobblestone", bytes(32))
    >>> formats.decrypt_file("notes.txt.cobblestone", "again.txt", bytes(32))
    4
    """
    options = options or Options()
    chosen, key = take(format, key, options)
    with _opened(source, target, replace) as (reader, writer):
        try:
            return decrypt_stream(
                reader, writer, key, format=chosen.name, options=options, progress=progress
            )
        except (wc.InvalidTag, FormatError):
            if not reader.seekable() or writer.tell():
                raise
            from .sealed import Sealed

            if (bound := Sealed(key, chosen, options).options_in_place(source)) is None:
                raise
            reader.seek(0)
            return decrypt_stream(
                reader, writer, key, format=chosen.name, options=bound, progress=progress
            )


def reading(path: PathLike, key: object, chosen: Format, options: Options) -> DecryptingReader:
    """The text of an encrypted file, or of an object at a URL. A file in an encrypted tree is the
    one that the manifest lists there."""
    path = stores.local_path(path)
    if stores.is_url(path):
        file = stores.open_object(path)
        return DecryptingReader(file, chosen, key, options, close_source=True)

    def opened(options: Options) -> DecryptingReader:
        source = io.FileIO(path, opener=open_seekable)
        return DecryptingReader(source, chosen, key, options, close_source=True)

    try:
        return opened(options)
    except (wc.InvalidTag, FormatError):
        from .sealed import Sealed

        if (bound := Sealed(key, chosen, options).options_in_place(path)) is None:
            raise
        return opened(bound)


@contextlib.contextmanager
def _opened(
    source: PathLike, target: PathLike, replace: bool
) -> Iterator[tuple[io.FileIO, BinaryIO]]:
    """Both files; the target has its name when the block ends."""
    for name, path in (("source", source), ("target", target)):
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(
                f"{name} is {type(path).__name__}: expected a path; for file objects "
                "there are encrypt_stream and decrypt_stream"
            )
    with open(source, "rb", buffering=0) as reader:  # noqa: PTH123
        status = os.fstat(reader.fileno())
        with contextlib.suppress(OSError):
            if os.path.samestat(status, os.stat(target)):  # noqa: PTH116
                raise ValueError(f"{os.fspath(target)} is the source: name another target")
        permissions = status.st_mode & 0o777 if stat.S_ISREG(status.st_mode) else None
        with replaced(target, replace=replace, permissions=permissions) as writer:
            yield reader, writer

# SPDX-License-Identifier: Apache-2.0
"""Encrypts and decrypts from one path or URL to another: the target is whole, or not there."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

import warpcipher as wc

from .. import stores
from .._types import PathLike
from .base import Format, Options
from .layout import FormatError
from .reader import DecryptingReader, open_place
from .registry import take
from .source import created
from .stream import Progress, checked_options, decrypt_stream, encrypt_stream


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

    source, target: paths, or URLs (docs/guides/storage.md).
    target: gets its name when all of it is written and on the disk; on an error nothing is left,
            and a file that had the name stays. A file has the permissions of the one that it
            replaces, else the source's.
    replace: False raises FileExistsError where something has the name.
    The other arguments and errors are as of `encrypt_stream`. ValueError: target is the source.

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
    options = checked_options(options)
    chosen, key = take(format, key, options)
    with _opened(source, target, replace) as (reader, writer):
        try:
            return decrypt_stream(
                reader, writer, key, format=chosen.name, options=options, progress=progress
            )
        except (wc.InvalidTag, FormatError):
            if not reader.seekable() or writer.tell():
                raise
            if (bound := options_in_a_tree(source, key, chosen, options)) is None:
                raise
            reader.seek(0)
            return decrypt_stream(
                reader, writer, key, format=chosen.name, options=bound, progress=progress
            )


def reading(path: PathLike, key: object, chosen: Format, options: Options) -> DecryptingReader:
    """The text of an encrypted file, or of an object at a URL. A file in an encrypted tree is the
    one that the manifest lists there."""

    def opened(options: Options) -> DecryptingReader:
        return DecryptingReader(open_place(path), chosen, key, options, close_source=True)

    try:
        return opened(options)
    except (wc.InvalidTag, FormatError):
        if (bound := options_in_a_tree(path, key, chosen, options)) is None:
            raise
        return opened(bound)


def options_in_a_tree(
    path: PathLike, key: object, chosen: Format, options: Options
) -> Options | None:
    """The options of a file that does not open by itself; None where it has no tree."""
    from .sealed import Sealed  # most files are in none

    return Sealed(key, chosen, options).options_in_place(path)


@contextlib.contextmanager
def _opened(
    source: PathLike, target: PathLike, replace: bool
) -> Iterator[tuple[io.RawIOBase, BinaryIO | stores.Upload]]:
    """Both files; the target has its name when the block ends."""
    for name, path in (("source", source), ("target", target)):
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(
                f"{name} is {type(path).__name__}: expected a path or a URL; for file objects "
                "there are encrypt_stream and decrypt_stream"
            )
    source, target = stores.local_path(source), stores.local_path(target)
    if source == target and stores.is_url(target):
        raise ValueError(f"{target} is the source: name another target")
    with open_place(source, opener=None) as reader, contextlib.ExitStack() as stack:
        size = permissions = None
        if isinstance(reader, stores.ObjectFile):
            size = reader.size
        else:
            status = os.fstat(reader.fileno())
            size = status.st_size
            with contextlib.suppress(OSError):
                if os.path.samestat(status, os.stat(target)):  # noqa: PTH116
                    raise ValueError(f"{os.fspath(target)} is the source: name another target")
            permissions = status.st_mode & 0o777 if stat.S_ISREG(status.st_mode) else None
        yield reader, stack.enter_context(created(target, replace, size, permissions))

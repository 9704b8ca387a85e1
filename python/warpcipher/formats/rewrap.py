# SPDX-License-Identifier: Apache-2.0
"""Wraps the data key of a file for other keys: only its header is written again."""

from __future__ import annotations

import io
import os
from dataclasses import replace as changed
from typing import TypeAlias

from .._descriptors import copy_range, open_seekable, steady
from .._new_file import replaced
from .._tree_names import require_no_tree
from .base import Options
from .registry import take, take_for
from .stream import Source, checked_options
from .whole import Writer, read_whole, write_whole

PathLike: TypeAlias = "str | os.PathLike[str]"
PROBE = 64
BLOCK = 1 << 18


def rewrap_file(
    path: PathLike,
    key: object,
    new_key: object,
    out: PathLike | None = None,
    *,
    format: str = "auto",
    options: Options | None = None,
    keep: bool = False,
    replace: bool = True,
) -> None:
    """Changes who opens a file, of a format that wraps a data key for its readers (age, Crypt4GH).

    key:     opens the file as it is: an identity, a passphrase, a secret key, or several.
    new_key: opens it afterwards: recipients, a passphrase, public keys, or several.
    out:     the file that is written; None replaces the file at `path` in one step; it keeps its
             permissions, and where `path` is a symbolic link the link stays.
    format:  a name in `FORMATS`; "auto" takes it from the file's beginning and the key.
    keep:    the readers that the file has go on opening it, and the new ones are added.
    replace: whether a file that is there is replaced by `out`; else FileExistsError.

    The header is authenticated and made again; the data is not decrypted: the kernel copies it, and
    the text of armor is written again. The data key stays the same, so anyone who kept it, or the
    old header and a key, can still read the data: `rekey_file` takes a fresh one. Raises
    InvalidTag, FormatError, ValueError (a format without a wrapping key, a file of an encrypted
    tree, whose manifest has its header), OSError; then nothing was written.

    >>> import pathlib
    >>> from warpcipher import formats
    >>> old, new = formats.age.Identity.generate(), formats.age.Identity.generate()
    >>> size = pathlib.Path("notes.txt").write_bytes(b"text")
    >>> size = formats.encrypt_file("notes.txt", "notes.age", old.recipient)
    >>> formats.rewrap_file("notes.age", old, new.recipient)
    >>> with formats.open("notes.age", new) as file:
    ...     file.read()
    b'text'
    """
    options = checked_options(options)
    if out is None:
        require_no_tree(path)
        out, replace = path, True
    with io.FileIO(path, opener=open_seekable) as file:
        before = os.fstat(file.fileno())
        prefix = file.read(PROBE) or b""
        chosen, key = (
            take_for(prefix, key, options) if format == "auto" else take(format, key, options)
        )
        file.seek(0)
        source = Source(file, b"")
        inner = chosen.unwrapped(bytes(source.peek(chosen.unwrap_size)), source)
        text = inner is not None
        if inner is not None:
            source = Source(inner, b"")
        head = chosen.beginning(key, options, lambda _, size: source.peek(size))
        size, header = chosen.rewrapped(key, new_key, head, options, keep=keep)
        permissions = before.st_mode & 0o777
        with (
            replaced(out, replace=replace, permissions=permissions) as target,
            steady(file.fileno(), before),
        ):
            wrapper = chosen.wrapped(target, changed(options, armor=True)) if text else None
            write_whole(wrapper or target, memoryview(header))
            if wrapper is not None:
                source.skip(size)
                _move(source, wrapper)
                wrapper.finish()
            else:
                copy_range(file.fileno(), target.fileno(), size, before.st_size)


def _move(source: Source, writer: Writer) -> None:
    block = memoryview(bytearray(BLOCK))
    while count := read_whole(source, block):
        write_whole(writer, block[:count])

# SPDX-License-Identifier: Apache-2.0
"""Wraps the data key of a file for other keys: only its header is written again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

from .. import stores
from .._tree_names import NAME, in_a_tree, require_no_tree
from .._types import PathLike
from .base import Options
from .registry import take, take_for
from .source import in_place_of, is_made_by_store, open_source, write_changed
from .stream import Source, checked_options
from .whole import Writer, copy_whole, write_whole

PROBE = 64
HEAD = 64 << 10
"""Bytes of an object that hold most headers."""


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
    copy: bool = False,
) -> None:
    """Changes who opens a file, of a format that wraps a data key for its readers (age, Crypt4GH).

    key:     opens the file as it is: an identity, a passphrase, a secret key, or several.
    new_key: opens it afterwards: recipients, a passphrase, public keys, or several.
    out:     the file that is written; None replaces the file at `path` in one step; it keeps its
             permissions, and where `path` is a symbolic link the link stays.
    format:  a name in `FORMATS`; "auto" takes it from the file's beginning and the key.
    keep:    the readers that the file has can still open it, and the new ones are added.
    replace: whether a file that is there is replaced by `out`; else FileExistsError.
    copy:    an object at a URL is read and written, all of it, where its store cannot copy it.

    `path` and `out` may be URLs: the store copies all but the header where it can (S3), so that
    only the header travels.
    The header is authenticated and made again; the data is not decrypted: the kernel copies it, and
    the text of armor is written again. The data key stays the same, so anyone who kept it, or the
    old header and a key, can still read the data: `rekey_file` takes a fresh one. Raises
    InvalidTag, FormatError, ValueError (a format without a wrapping key, a new file in an encrypted
    tree, whose manifest has the headers), OSError; then nothing was written.

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
    path, out = stores.local_path(path), stores.local_path(out)
    if out is None:
        out, replace = path, True
    require_no_tree_at(out)
    with open_source(path) as file:
        made = new_header(file, key, new_key, format, options, keep=keep)
        made.write(path, file, out, replace=replace, copy=copy)


@dataclass(frozen=True)
class NewHeader:
    """A header in the place of the first `size` bytes of a file.

    begins:     the first bytes of the new file, header and more; of a header that was made before
                there may be none.
    write_text: writes the new file, of one that is text and so written whole. None: it is not.
    """

    size: int
    header: bytes
    begins: bytes = b""
    write_text: Callable[[Writer], None] | None = None

    def write(
        self,
        path: PathLike,
        source: Any,
        out: PathLike,
        *,
        replace: bool,
        copy: bool,
        within: AbstractContextManager[Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Writes the file, open as `source`, with this header: as `write_changed`."""
        where: Any = {"replace": replace, "copy": copy}
        if self.write_text is None:
            kept, new = (self.size, source.size), self.header
            where |= {"within": within, "check": check}
            write_changed(path, source, out, kept, beginning=new, **where)
        elif not is_made_by_store(path, out, lambda *_: False, **where):
            with within or in_place_of(path, source, out, replace=replace) as target:
                self.write_text(target)


def new_header(
    file: Any, key: object, new_key: object, format: str, options: Options, *, keep: bool
) -> NewHeader:
    """The header of a file, made again. No more than its beginning is read, of one that is not
    text. Raises as `rewrap_file`."""
    beginning = file.read_at(0, HEAD)
    file.seek(len(beginning))
    source = Source(file, beginning)
    prefix = bytes(source.peek(PROBE))
    chosen, key = take_for(prefix, key, options) if format == "auto" else take(format, key, options)
    inner = chosen.unwrapped(bytes(source.peek(chosen.unwrap_size)), source)
    if inner is not None:
        source = Source(inner, b"")
    head = chosen.beginning(key, options, lambda _, size: source.peek(size))
    size, header = chosen.rewrapped(key, new_key, head, options, keep=keep)

    def write_text(target: Writer) -> None:
        wrapper: Any = chosen.wrapped(target, changed(options, armor=True))
        write_whole(wrapper, memoryview(header))
        source.skip(size)
        copy_whole(source, wrapper)
        wrapper.finish()

    begins = header + bytes(beginning[size:])
    return NewHeader(size, header, begins, None if inner is None else write_text)


def require_no_tree_at(path: PathLike) -> None:
    """As `require_no_tree`; of an object by asking for a manifest in each folder above it."""
    if not stores.is_url(path):
        require_no_tree(path)
        return
    url = path
    start = url.index("://") + 3
    folder = url
    while (end := folder.rfind("/", start)) >= 0:
        folder = folder[:end]
        with contextlib.suppress(FileNotFoundError):
            stores.stat(f"{folder}/{NAME}")
            raise ValueError(in_a_tree(url, folder))

# SPDX-License-Identifier: Apache-2.0
"""Wraps the data key of a file for other keys: only its header is written again."""

from __future__ import annotations

import contextlib
from dataclasses import replace as changed
from typing import Any

from .. import stores
from .._tree_names import NAME, in_a_tree, require_no_tree
from .._types import PathLike
from .base import Buffer, Options
from .registry import take, take_for
from .source import in_place_of, is_made_by_store, open_source, write_changed
from .stream import Source, checked_options
from .whole import Reader, Writer, copy_whole, write_whole

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
    keep:    the readers that the file has go on opening it, and the new ones are added.
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
        how = key, new_key, format, options, keep
        if isinstance(file, stores.ObjectFile):
            made = Rewrapped.of_object(file, *how)
        else:
            made = Rewrapped(file, *how)
        if not made.is_text:
            kept, beginning = (made.size, file.size), made.header
            write_changed(path, file, out, kept, beginning=beginning, replace=replace, copy=copy)
        elif not made.is_copied_by_store(path, out, None, replace=replace, copy=copy):
            with in_place_of(file, out, replace=replace) as target:
                made.write_to(target)


class Rewrapped:
    """A file whose header is made again. size: bytes of the old header; is_text: all of the file
    is written again, as lines of text."""

    def __init__(
        self,
        file: Reader,
        key: object,
        new_key: object,
        format: str,
        options: Options,
        keep: bool,
        beginning: Buffer = b"",
    ) -> None:
        """beginning: bytes that were read from the file before."""
        source = Source(file, beginning)
        prefix = bytes(source.peek(PROBE))
        chosen, key = (
            take_for(prefix, key, options) if format == "auto" else take(format, key, options)
        )
        inner = chosen.unwrapped(bytes(source.peek(chosen.unwrap_size)), source)
        self.is_text = inner is not None
        if inner is not None:
            source = Source(inner, b"")
        head = chosen.beginning(key, options, lambda _, size: source.peek(size))
        self.size, self.header = chosen.rewrapped(key, new_key, head, options, keep=keep)
        self.begins = self.header + bytes(beginning[self.size :])
        """The first bytes of the new file, as far as those of the old one were given."""
        self._source, self._chosen, self._options = source, chosen, options

    @classmethod
    def of_object(
        cls, file: Any, key: object, new_key: object, format: str, options: Options, keep: bool
    ) -> Rewrapped:
        """As the class, with one request: no more of the object is asked for."""
        beginning = file.read_at(0, HEAD)
        file.seek(len(beginning))
        return cls(file, key, new_key, format, options, keep, beginning)

    @classmethod
    def of_header(cls, file: Any, size: int, header: bytes) -> Rewrapped:
        """A header that was made before for the file, in the place of `size` bytes."""
        made = cls.__new__(cls)
        made.is_text, made.size, made.header, made.begins = False, size, header, header
        file.seek(size)
        made._source, made._options = Source(file, b""), Options()
        return made

    def is_copied_by_store(
        self, path: PathLike, out: PathLike, version: str | None, *, replace: bool, copy: bool
    ) -> bool:
        """Has the store make the new object of that version of the old one, as
        `is_made_by_store`."""

        def change(url: str, dest: str) -> bool:
            how = {"dest": dest, "version": version}
            return not self.is_text and stores.replace_beginning(url, self.size, self.header, **how)

        return is_made_by_store(path, out, change, replace=replace, copy=copy)

    def write_to(self, target: Writer) -> None:
        """Writes the new file, all of it through this process."""
        options = changed(self._options, armor=True) if self.is_text else self._options
        wrapper = self._chosen.wrapped(target, options) if self.is_text else None
        write_whole(wrapper or target, memoryview(self.header))
        self._source.skip(self.size)
        copy_whole(self._source, wrapper or target)
        if wrapper is not None:
            wrapper.finish()


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

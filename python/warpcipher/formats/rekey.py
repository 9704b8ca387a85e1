# SPDX-License-Identifier: Apache-2.0
"""Encrypts files again under another key, and proves that before the old file goes.

    old file -> decrypted, each chunk authentic -> encrypted -> new file -> read back, decrypted:
    its text has the SHA-256 of what was encrypted -> the new file gets its name

The text is only in memory, some pieces at a time. The disk reads the new file back, not a cache,
where the system takes such advice.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Callable

from .. import stores
from .._descriptors import closing, open_seekable
from .._new_file import replaced
from .._types import PathLike
from .base import Format, Options
from .files import reading
from .reader import DecryptedFile, DecryptingReader, SeekableReader
from .registry import take
from .rewrap import require_no_tree_at
from .source import is_same_file
from .stream import Progress, checked_options, encrypt_stream
from .whole import Digested, Reader, Writer, copy_whole, read_all


class Rekeyed:
    """A file that is encrypted again, before it gets its name. size: bytes of plaintext; sealed:
    those written."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        key: object,
        chosen: Format,
        options: Options,
        progress: Progress | None = None,
    ) -> None:
        """Encrypts all of a text. Raises as `encrypt_stream`, and what `reader` raises: what was
        written is then of no use."""
        self._key = key
        self._format = chosen
        self._options = options
        source, sink = Digested(reader), Digested(writer)
        encrypt_stream(source, sink, key, format=chosen.name, options=options, progress=progress)
        self._digest, self.size = source.digest, source.count
        self._sealed_digest, self.sealed = sink.digest, sink.count

    def copy(self, file: Reader, writer: Writer) -> None:
        """Copies what was proved. OSError where it is something else."""
        again = Digested(file)
        copy_whole(again, writer)
        if (again.digest, again.count) != (self._sealed_digest, self.sealed):
            raise OSError("the new file reads back as something else: the old file stays")

    def prove(self, file: SeekableReader) -> None:
        """Reads back what was written: decrypted it must be the text; where the new key only
        encrypts, as recipients do, it must be what was written. OSError where it is not."""
        opening = self._format.opening(self._key)
        if opening == []:
            file.seek(0)
            again, expected = Digested(file), (self._sealed_digest, self.sealed)
            read_all(again)
        else:
            raw = DecryptingReader(file, self._format, opening, self._options, close_source=False)
            with DecryptedFile(raw) as opened:
                again, expected = Digested(opened), (self._digest, self.size)
                read_all(again)
        if (again.digest, again.count) != expected:
            raise OSError(
                "the new file reads back as something else: the old file stays, and the new "
                "one does not appear"
            )


def from_disk(descriptor: int) -> io.FileIO:
    """A file that was written, to be read back: from the disk, where the system lets go of what it
    has in memory of it."""
    os.fsync(descriptor)
    with contextlib.suppress(OSError, AttributeError):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    return io.FileIO(descriptor, closefd=False)


def _beside(url: str) -> str:
    """A URL for an object that is not finished."""
    return f"{url.rpartition('/')[0]}/.warpcipher-{os.urandom(8).hex()}.part"


def _move_object(source: str, target: str, there: stores.ObjectInfo, made: Rekeyed) -> None:
    """Gives an object that was proved another's place: by the store's own copy, where it has one,
    on the condition that the other is still the one that was there."""
    if stores.replace_beginning(source, 0, b"", dest=target, replaces=there.version):
        if stores.stat(target).size != made.sealed:
            raise OSError(f"the store's copy of {source} to {target} has another size")
    else:
        with stores.open_object(source) as file, stores.writing(target, size=made.sealed) as writer:
            made.copy(file, writer)
    stores.remove(source)


def rekey_to_object(
    target: str,
    size: int,
    replace: bool,
    encrypted: Callable[[Writer], Rekeyed],
    check: Callable[[], None],
) -> Rekeyed:
    """A new object, proved before it takes the place of one that is there. size: of the text."""
    there = None
    with contextlib.suppress(FileNotFoundError):
        there = stores.stat(target)
    if there and not replace:
        raise FileExistsError(errno.EEXIST, "there is an object of this name", target)
    place = _beside(target) if there else target
    with stores.writing(place, replace=False, size=size) as upload:
        made = encrypted(upload)
        check()
    try:
        with stores.open_object(place) as file:
            made.prove(file)
        check()
        if there:
            _move_object(place, target, there, made)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            stores.remove(place)
        raise
    return made


def _unchanged(source: PathLike) -> Callable[[], None]:
    """A function that raises OSError where the source has changed since."""

    def look() -> object:
        if stores.is_url(source):
            return stores.stat(source)
        status = os.stat(source)  # noqa: PTH116
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    before = look()

    def check() -> None:
        if look() != before:
            name = os.fspath(source)
            raise OSError(errno.EBUSY, f"{name} changed while it was read: nothing was written")

    return check


def rekey_file(
    source: PathLike,
    target: PathLike | None,
    key: object,
    new_key: object,
    *,
    format: str = "auto",
    new_format: str = "auto",
    options: Options | None = None,
    new_options: Options | None = None,
    progress: Callable[[int], object] | None = None,
    replace: bool = True,
) -> int:
    """Encrypts an encrypted file again, under another key or in another format; returns the bytes
    written. A fresh data key is taken: nobody who knew the old one reads the new file.

    source:  a path, or the URL of an object.
    target:  the new file or object; None replaces the source in one step: an object by another that
             was proved, and where its bucket keeps versions the old one is one of them.
    key, format, options: of the file as it is, as `formats.open` takes them.
    new_key, new_format, new_options: of the new one, as `encrypt_file` takes them.
    replace: False raises FileExistsError where something has the name.
    The text is in memory only, some pieces at a time. Before the new file gets its name it is read
    back and decrypted, and its text compared by SHA-256; where the new key cannot decrypt
    (recipients, public keys), it is compared with what was written. Raises as `formats.open` and
    `encrypt_file`; ValueError for a new file in an encrypted tree, whose manifest lists its files;
    OSError where the source changed meanwhile; then nothing was written.

    >>> import pathlib
    >>> from warpcipher import formats
    >>> size = pathlib.Path("notes.txt").write_bytes(b"text")
    >>> size = formats.encrypt_file("notes.txt", "notes.enc", bytes(32))
    >>> formats.rekey_file("notes.enc", None, bytes(32), bytes(range(16)))
    76
    >>> with formats.open("notes.enc", bytes(range(16))) as file:
    ...     file.read()
    b'text'
    """
    options, new_options = checked_options(options), checked_options(new_options)
    chosen, key = take(format, key, options)
    new_chosen, new_key = take(new_format, new_key, new_options)
    source, target = stores.local_path(source), stores.local_path(target)
    if target is None:
        target, replace = source, True
    require_no_tree_at(target)
    check = _unchanged(source)
    is_in_place = not stores.is_url(source) and is_same_file(source, target)
    with (
        closing(open_seekable(source)) if is_in_place else contextlib.nullcontext(-1) as old,
        DecryptedFile(reading(source, key, chosen, options)) as file,
    ):

        def encrypted(writer: Writer) -> Rekeyed:
            return Rekeyed(file, writer, new_key, new_chosen, new_options, progress)

        if stores.is_url(target):
            return rekey_to_object(target, file.raw.size, replace, encrypted, check).sealed
        mode = None if stores.is_url(source) else os.stat(source).st_mode & 0o777  # noqa: PTH116
        with replaced(target, replace=replace, permissions=mode, of=old) as writer:
            made = encrypted(writer)
            with from_disk(writer.fileno()) as written:
                made.prove(written)
            check()
    return made.sealed

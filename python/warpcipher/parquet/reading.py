# SPDX-License-Identifier: Apache-2.0
"""The calls that read: `open`, `read_table`, `to_plain`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .._memory import allocate
from ..arguments import require_items
from .crypto import wipe_any
from .decode import ArrowDecoder
from .device import CudfDecoder, Device
from .file import BaseFile
from .footer import PLAIN_MAGIC, describe
from .image import Image, Progress, enclosed, footer_in_place
from .keyring import Keys
from .storage import Dest, Source, SourceLike, naming, refuse_source, writing

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]


@dataclass(frozen=True)
class ChunkData:
    """A column of a row group without encryption.

    row_group, column: which. data: its bytes as a plain file has them, pages with their headers: a
    memoryview, or an array on the device. offset: where the footer says that they begin.
    """

    row_group: int
    column: str
    offset: int
    data: Any = field(repr=False)


@dataclass(frozen=True)
class ColumnChunks:
    """The result of `ParquetFile.column_chunks`.

    footer: the plain FileMetaData that describes the chunks.
    """

    chunks: tuple[ChunkData, ...]
    footer: bytes = field(repr=False)


class ParquetFile(BaseFile):
    """An open Parquet file, encrypted or not. `open` makes it.

    Nothing but the footer is read until data is asked for. Close it, or use it in a `with`.
    """

    @property
    def metadata(self) -> bytes:
        """The shortest plain Parquet file with this schema, these statistics and no data, for
        `pyarrow.parquet.read_metadata(io.BytesIO(...))`. Sizes and offsets are those of the
        encrypted file; columns without a key are empty in it."""
        footer = footer_in_place(self, range(self.num_row_groups), self.readable())
        return PLAIN_MAGIC + enclosed(footer)

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns and their types, as pyarrow has them. Needs no key but the footer's."""
        return ArrowDecoder().schema(self)

    def __repr__(self) -> str:
        crypto = self.crypto
        algorithm = "not encrypted" if crypto is None else crypto.algorithm
        return (
            f"<ParquetFile {self.source.name}: rows {self.num_rows}, row groups "
            f"{self.num_row_groups}, columns {len(self.leaves)}, {algorithm}>"
        )

    def column_chunks(
        self,
        row_groups: Iterable[int] | None = None,
        columns: Iterable[str] | None = None,
        *,
        device: int | str | None = None,
    ) -> ColumnChunks:
        """The decrypted chunks of these row groups and columns (None: all), in the order asked for.

        columns: whole paths ("a.b") or what they begin with ("a"). device: the number of a GPU, or
        "cuda:N": pages are decrypted there and host memory sees only their ciphertext; needs CuPy.
        The footer has the chosen row groups; columns that were not chosen are empty in it. All
        chunks are authentic (pages of AES_GCM_CTR_V1, and columns that are not encrypted, have no
        tags), or none is returned. Raises as `open`; InvalidTag names column, row group and page.
        """
        image = Image(self, self.choose_row_groups(row_groups), self.choose_columns(columns))
        if device is None:
            memory: Any = allocate(image.room)
            memory = memory[: image.fill(memory)]
        else:
            memory = Device(device).filled(image)
        try:
            footer = image.footer()
        except BaseException:
            wipe_any(memory)
            raise
        found = []
        for chunk in image.chunks:
            decrypted = image.decrypted[chunk.row_group, chunk.column]
            data = memory[decrypted.start : decrypted.start + decrypted.size]
            found.append(ChunkData(chunk.row_group, chunk.name, decrypted.start, data))
        return ColumnChunks(tuple(found), footer)


def open(
    source: SourceLike,
    keys: Keys | None = None,
    *,
    aad_prefix: bytes | None = None,
    check_footer: bool = True,
    engine: str = "auto",
) -> ParquetFile:
    """Opens a Parquet file with modular encryption; reads its footer and nothing else.

    source:       a path, a URL ("s3://..."), bytes, or a binary file object that can seek, which
                  stays open.
    keys:         bytes: the one key of a file whose columns have no keys of their own; a mapping of
                  key metadata (bytes) or, for columns, names (str) to keys; or a function of the
                  key metadata. Keys have 16, 24 or 32 bytes. None: the file is not encrypted; an
                  encrypted one is refused, and so is a plain one where keys are given.
    aad_prefix:   the prefix that the file was written with. Needed where the file does not hold it;
                  compared where it does.
    check_footer: False leaves the signature of a plaintext footer unverified: for readers with only
                  the keys of columns. Sizes, offsets and statistics may then be anyone's.
    engine:       what decrypts: "auto" or a name of `warpcipher.engines()`.

    Raises InvalidTag (not authentic: wrong key or prefix, damage),
    FormatError (not a Parquet file, cut short), MissingKeyError, ValueError, OSError.
    """
    with naming(source):
        return ParquetFile(
            source, keys, aad_prefix=aad_prefix, check_footer=check_footer, engine=engine
        )


class FileInfo(NamedTuple):
    """A file's description that needs no key.

    encryption:     "none", "encrypted footer", or "signed footer": columns may be encrypted, and
                    the footer is plain.
    algorithm:      "AES_GCM_V1" or "AES_GCM_CTR_V1"; "" without encryption.
    key_metadata:   of the footer's key.
    aad_prefix:     where the file holds one. needs_prefix: the reader must be given it.
    """

    encryption: str
    algorithm: str
    key_metadata: bytes
    aad_prefix: bytes
    needs_prefix: bool


def inspect(source: SourceLike) -> FileInfo:
    """A file's description that needs no key. It is not verified. Raises FormatError, OSError."""
    with naming(source), Source(source) as file:
        return FileInfo(*describe(file))


def read_table(
    source: SourceLike | ParquetFile,
    keys: Keys | None = None,
    columns: Iterable[str] | None = None,
    aad_prefix: bytes | None = None,
    device: int | str | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    engine: str = "auto",
) -> pyarrow.Table:
    """The table in a file, as `pyarrow.Table`; pyarrow decodes the decrypted chunks.

    source: as `open` takes it, or a file that is open. columns, row_groups: None is all; nothing
    else is read, and no other keys are needed. device: a GPU, as for `ParquetFile.column_chunks`,
    which decrypts and decodes; the result is then a `pylibcudf.io.types.TableWithMetadata`, whose
    `tbl` is the table, and ImportError says that pylibcudf is not installed. Raises as
    `ParquetFile.column_chunks`.
    """
    decoder = ArrowDecoder() if device is None else CudfDecoder(device)
    with opened_file(source, keys, aad_prefix, engine) as file:
        names: Any = columns
        if names is not None:
            names = require_items("columns", names, "a sequence of names")
        image = Image(file, file.choose_row_groups(row_groups), file.choose_columns(names))
        table = decoder.table(image, names)
    if device is not None:
        return table
    return arranged(table, names)


def arranged(table: pyarrow.Table, names: Sequence[str] | None) -> pyarrow.Table:
    """The columns in the order of their names, where each name stands for one."""
    there = table.column_names
    if names is None or set(names) != set(there) or len(set(there)) < len(there):
        return table
    return table.select(names)


def column_chunks(
    source: SourceLike | ParquetFile,
    keys: Keys | None = None,
    columns: Iterable[str] | None = None,
    aad_prefix: bytes | None = None,
    device: int | str | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    engine: str = "auto",
) -> ColumnChunks:
    """The decrypted chunks of a file: `ParquetFile.column_chunks`, with the arguments of
    `read_table`. Raises as both."""
    with opened_file(source, keys, aad_prefix, engine) as file:
        return file.column_chunks(row_groups, columns, device=device)


def to_plain(
    source: SourceLike | ParquetFile,
    keys: Keys | None = None,
    dest: Dest | None = None,
    *,
    aad_prefix: bytes | None = None,
    engine: str = "auto",
    progress: Progress | None = None,
) -> bytearray | int:
    """A plain Parquet file with the content of an encrypted one, which any reader reads.

    Pages are not decoded: encodings, compression, statistics, indexes and Bloom filters stay.
    dest: a path, which is replaced when all is written, and is not the source's; a URL; a
    binary file object; None returns the file as a bytearray. Otherwise returns the bytes
    written. progress: called with the number of encrypted bytes that are done. Raises as
    `ParquetFile.column_chunks`; what a file object took until then is incomplete: discard it.
    """
    with opened_file(source, keys, aad_prefix, engine) as file:
        refuse_source(file.source, dest)
        image = Image(file, file.choose_row_groups(None), file.choose_columns(None))
        if dest is not None:
            with writing(dest) as writer:
                return image.write(writer, progress)
        whole = bytearray(image.room)
        try:
            with memoryview(whole) as memory:
                end = image.fill(memory)
            whole[end:] = image.tail(end)
        except BaseException:
            wipe_any(whole)
            raise
        return whole


@contextlib.contextmanager
def opened_file(
    source: SourceLike | ParquetFile, keys: Keys | None, aad_prefix: bytes | None, engine: str
) -> Iterator[ParquetFile]:
    """A file for a `with`: opened for it, or open before and after. Errors name it."""
    if not isinstance(source, ParquetFile):
        with open(source, keys, aad_prefix=aad_prefix, engine=engine) as file, naming(source):
            yield file
        return
    if keys is not None or aad_prefix is not None:
        raise ValueError("the file is open: keys and AAD prefix were given to `open`")
    with naming(source.source.place):
        yield source

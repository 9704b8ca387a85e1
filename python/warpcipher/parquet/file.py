# SPDX-License-Identifier: Apache-2.0
"""A file that is open: its columns and row groups, and the chunks that a caller chose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .._uncopied import Uncopied
from ..formats import FormatError
from . import metadata as md
from .footer import read_footer
from .keyring import Keys, MissingKeyError
from .modules import COLUMN_METADATA, MOST_ORDINAL, FileCrypto, Place, open_modules
from .source import Source, SourceLike
from .thrift import Struct, read_whole

if TYPE_CHECKING:
    from typing_extensions import Self


class ColumnInfo(NamedTuple):
    """A column, as the first row group has it.

    name:         its path in the schema, with dots.
    encryption:   "none", "footer key" or "column key".
    key_metadata: what the file says of its own key; b"" where it has none.
    """

    name: str
    encryption: str
    key_metadata: bytes


@dataclass(slots=True)
class Chunk:
    """One column of one row group.

    fields: ColumnChunk. meta: its ColumnMetaData, decrypted. key: None where it is not encrypted.
    start, size: where it lies in the file. dictionary: whether it begins with a dictionary page.
    """

    row_group: int
    ordinal: int
    column: int
    name: str
    fields: Struct
    meta: Struct
    key: bytes | None
    start: int
    size: int
    dictionary: bool

    def place(self, kind: int, page: int = -1) -> Place:
        """The place of one of its modules."""
        return Place(kind, self.ordinal, self.column, self.name, page)


class File(Uncopied):
    """The footer of an open file, and its keys; `ParquetFile` is its public face."""

    def __init__(
        self,
        source: SourceLike,
        keys: Keys | None,
        *,
        aad_prefix: bytes | None,
        check_footer: bool,
        engine: str,
    ) -> None:
        self.source = Source(source)
        self.engine = engine
        try:
            self.footer, self._ring = read_footer(
                self.source, keys, aad_prefix, check_footer=check_footer, engine=engine
            )
            self.leaves = md.leaves(self.footer.fields)
            self.row_groups = md.structs(self.footer.fields, md.ROW_GROUPS, "the row groups")
            self._check_groups()
        except BaseException:
            self.source.close()
            raise

    def _check_groups(self) -> None:
        for number, group in enumerate(self.row_groups):
            count = len(md.structs(group, md.COLUMNS, f"the columns of row group {number}"))
            if count != len(self.leaves):
                raise FormatError(
                    f"row group {number} has {count} columns, the schema has {len(self.leaves)}"
                )

    @property
    def crypto(self) -> FileCrypto | None:
        """None where the file is not encrypted."""
        return self.footer.crypto

    @property
    def num_rows(self) -> int:
        """Rows of all row groups."""
        return md.integer(self.footer.fields, md.NUM_ROWS, "the number of rows")

    @property
    def num_row_groups(self) -> int:
        """The number of row groups."""
        return len(self.row_groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns: their paths in the schema, with dots."""
        return tuple(leaf.name for leaf in self.leaves)

    def columns(self) -> tuple[ColumnInfo, ...]:
        """What the file says of its columns."""
        if not self.row_groups:
            return tuple(ColumnInfo(name, "none", b"") for name in self.names)
        chunks = md.structs(self.row_groups[0], md.COLUMNS, "columns")
        return tuple(
            ColumnInfo(name, *_encryption(chunk))
            for name, chunk in zip(self.names, chunks, strict=True)
        )

    def choose_columns(self, columns: Iterable[str] | None) -> list[int]:
        """The numbers of the columns that names stand for: a whole path, or what it begins with."""
        if columns is None:
            return list(range(len(self.leaves)))
        if isinstance(columns, str):
            raise TypeError("columns is a str: expected a sequence of names")
        names = self.names
        chosen: set[int] = set()
        for wanted in columns:
            found = [
                i for i, name in enumerate(names) if name == wanted or name.startswith(f"{wanted}.")
            ]
            if not found:
                raise ValueError(f"no column {wanted!r}: there are {', '.join(names)}")
            chosen.update(found)
        return sorted(chosen)

    def choose_row_groups(self, row_groups: Iterable[int] | None) -> list[int]:
        """The row groups asked for, each once, in the order given."""
        if row_groups is None:
            return list(range(len(self.row_groups)))
        chosen = list(row_groups)
        for number in chosen:
            if not 0 <= number < len(self.row_groups):
                raise ValueError(f"no row group {number}: there are {len(self.row_groups)}")
        if len(set(chosen)) != len(chosen):
            raise ValueError("row_groups names one twice")
        return chosen

    def chunks(self, row_groups: Sequence[int], columns: Sequence[int]) -> list[Chunk]:
        """The chunks of these columns, row group by row group, their metadata decrypted.

        Raises MissingKeyError, InvalidTag, FormatError.
        """
        found = [
            (number, column, md.structs(self.row_groups[number], md.COLUMNS, "columns")[column])
            for number in row_groups
            for column in columns
        ]
        keys = [self._key(fields, self.leaves[column].name) for _, column, fields in found]
        metas = self._metas(found, keys)
        return [
            self._chunk(number, column, fields, meta, key)
            for (number, column, fields), meta, key in zip(found, metas, keys, strict=True)
        ]

    def _key(self, fields: Struct, name: str) -> bytes | None:
        """The key of a chunk; None where it is not encrypted."""
        crypto = md.substruct(fields, md.CRYPTO_METADATA)
        if crypto is None:
            return None
        if self.crypto is None or self._ring is None:
            raise FormatError(f"column {name} is encrypted, and the file names no algorithm")
        own = md.substruct(crypto, md.WITH_COLUMN_KEY)
        if own is not None:
            metadata = md.binary(own, md.COLUMN_KEY_METADATA, f"the key metadata of column {name}")
            return self._ring.column(name, metadata or b"")
        if md.WITH_FOOTER_KEY not in crypto:
            raise FormatError(f"column {name}: unknown kind of encryption {sorted(crypto)}")
        return self.footer.key or self._ring.footer(self.footer.key_metadata)

    def _ordinal(self, number: int) -> int:
        return md.integer(self.row_groups[number], md.ORDINAL, "an ordinal", number)

    def _metas(
        self, found: list[tuple[int, int, Struct]], keys: list[bytes | None]
    ) -> list[Struct]:
        """The ColumnMetaData of each chunk; those that are modules of their own in one batch."""
        modules = []
        metas: list[Struct | None] = []
        for (number, column, fields), key in zip(found, keys, strict=True):
            module = md.binary(fields, md.ENCRYPTED_METADATA, "encrypted column metadata")
            name = self.leaves[column].name
            if key is None or module is None:
                meta = md.substruct(fields, md.META_DATA)
                if meta is None:
                    raise FormatError(f"column {name}, row group {number}: there is no metadata")
                metas.append(meta)
                continue
            place = Place(COLUMN_METADATA, self._ordinal(number), column, name)
            modules.append((module, key, place))
            metas.append(None)
        if self.crypto is None:
            return [meta for meta in metas if meta is not None]
        texts = iter(zip(open_modules(modules, self.crypto, self.engine), modules, strict=True))
        decoded = []
        for meta in metas:
            if meta is None:
                text, (_, _, place) = next(texts)
                meta = read_whole(text, md.COLUMN_META_SHAPE, str(place))
            decoded.append(meta)
        return decoded

    def _chunk(
        self, number: int, column: int, fields: Struct, meta: Struct, key: bytes | None
    ) -> Chunk:
        name = self.leaves[column].name
        what = f"column {name}, row group {number}"
        if md.binary(fields, md.FILE_PATH, f"{what}: the path of its file"):
            raise FormatError(f"{what}: its data lies in another file")
        start = md.integer(meta, md.DATA_PAGE_OFFSET, f"{what}: the offset of its data")
        dictionary = md.integer(meta, md.DICTIONARY_PAGE_OFFSET, f"{what}: an offset", 0)
        size = md.integer(meta, md.COMPRESSED_SIZE, f"{what}: its size")
        # A dictionary without a data page behind it, of a row group without rows, leaves that at 0.
        has_dictionary = dictionary > 0 and (dictionary < start or not start)
        first = start
        if has_dictionary:
            start = dictionary
        if start + size > self.source.size:
            raise FormatError(
                f"{what}: {size} bytes at {start} are not in the file, which has {self.source.size}"
            )
        if first > start + size:
            raise FormatError(f"{what}: its data pages begin at {first}, behind its end")
        ordinal = self._ordinal(number)
        if key is not None and max(ordinal, column) > MOST_ORDINAL:
            raise FormatError(f"{what}: ordinals of encrypted chunks end at {MOST_ORDINAL}")
        return Chunk(
            number,
            ordinal,
            column,
            name,
            fields,
            meta,
            key,
            start,
            size,
            has_dictionary,
        )

    def stub(self, number: int, column: int) -> Struct:
        """The metadata of a chunk that an image leaves out."""
        rows = md.integer(self.row_groups[number], md.GROUP_ROWS, "the rows of a row group")
        return md.stub(self.leaves[column], rows)

    def readable(self) -> list[int]:
        """The numbers of the columns whose keys are there."""
        found = []
        for column in range(len(self.leaves)):
            try:
                for group in self.row_groups:
                    fields = md.structs(group, md.COLUMNS, "columns")[column]
                    self._key(fields, self.leaves[column].name)
            except MissingKeyError:
                continue
            found.append(column)
        return found

    def close(self) -> None:
        """Closes what `open` opened."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _encryption(chunk: Struct) -> tuple[str, bytes]:
    crypto = md.substruct(chunk, md.CRYPTO_METADATA)
    if crypto is None:
        return "none", b""
    own = md.substruct(crypto, md.WITH_COLUMN_KEY)
    if own is None:
        return "footer key", b""
    return "column key", md.binary(own, md.COLUMN_KEY_METADATA, "key metadata") or b""

# SPDX-License-Identifier: Apache-2.0
"""A file that is open: its columns and row groups, and the chunks that a caller chose."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .. import _native
from .._uncopied import Closed
from ..arguments import require_engine, require_int, require_items
from ..formats import FormatError
from . import metadata as md
from .crypto import MOST_ORDINAL, FileCrypto, Kind, Place, column, open_modules
from .footer import read_footer
from .keyring import Keys, MissingKeyError
from .storage import Source, SourceLike
from .thrift import LIST, Struct, read_whole, refusing


class ColumnInfo(NamedTuple):
    """A column, as the first row group has it.

    name:         its path in the schema, with dots.
    encryption:   "none", "footer key" or "column key".
    key_metadata: what the file says of its own key; b"" where it has none.
    """

    name: str
    encryption: str
    key_metadata: bytes


ABSENT = (1 << 64) - 1
_FIELDS_OF_RANGE = 10
_LEVELS_OUTSIDE = (
    "parquet-java puts the levels of data pages v2 before the encrypted module, against the format "
    "(its pull request 3935): write the file with parquet.writer.version=v1"
)


@dataclass(slots=True)
class Chunk:
    """One column of one row group.

    key: None where it is not encrypted. The others are ChunkRange of src/parquet/row_groups.hpp:
    where its parts lie in the file. data: where its data pages begin. ordinal: of its row group in
    AADs. dictionary: whether it begins with a dictionary page. Offsets and sizes of what it does
    not have are ABSENT.
    """

    groups: _native.RowGroups
    row_group: int
    column: int
    name: str
    key: bytes | None
    start: int
    size: int
    data: int
    ordinal: int
    dictionary: int
    offset_index: int
    offset_index_size: int
    column_index: int
    column_index_size: int
    bloom: int

    @property
    def fields(self) -> Struct:
        """Its ColumnChunk."""
        text = self.groups.chunk(self.row_group, self.column)
        return read_whole(text, md.COLUMN_CHUNK_SHAPE, self.what)

    @property
    def meta(self) -> Struct:
        """Its ColumnMetaData, decrypted."""
        text = self.groups.metadata(self.row_group, self.column)
        return read_whole(text, md.COLUMN_META_SHAPE, self.what)

    @property
    def what(self) -> str:
        """Its name in errors."""
        return f"column {self.name}, row group {self.row_group}"

    def place(self, kind: Kind, page: int = -1) -> Place:
        """The place of one of its modules."""
        return Place(kind, self.ordinal, self.column, self.name, page)


@dataclass(slots=True)
class DecryptedChunk:
    """Where a chunk lies once it is decrypted.

    start, size: in the image. data: where its first data page is there. shrunk: what the headers
    of its pages lost: nonces, tags, padding.
    """

    chunk: Chunk
    start: int
    size: int
    data: int
    shrunk: int
    # In host memory, of each page, a dictionary too: where it was and is in the chunk, the bytes of
    # header and page.
    _pages: Sequence[int] = field(default=(), repr=False)

    @property
    def pages(self) -> list[tuple[int, int, int]]:
        """Of each data page of an encrypted chunk in host memory: where its header lay in the file
        and lies in the image, and the bytes of header and page."""
        first = 3 * self.chunk.dictionary
        numbers = iter(self._pages[first:])
        return [
            (self.chunk.start + before, self.start + now, size)
            for before, now, size in zip(numbers, numbers, numbers, strict=True)
        ]


class BaseFile(Closed):
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
        self.engine = require_engine(engine)
        self.source = Source(source)
        try:
            self.footer, self._ring = read_footer(
                self.source, keys, aad_prefix, check_footer=check_footer, engine=engine
            )
            self.leaves = md.leaves(self.footer.outline)
            self.groups = self._read_groups()
        except BaseException:
            self.source.close()
            raise
        self._found_keys: dict[tuple[int, bytes], bytes | None] = {}
        self._opened: set[tuple[int, int]] = set()

    def _read_groups(self) -> _native.RowGroups:
        kind, text = self.footer.outline.get(md.ROW_GROUPS, (0, b""))
        if kind != -LIST:
            raise FormatError("the row groups: expected a list of structs")
        with refusing():
            return _native.RowGroups(text, self.names)

    @property
    def row_groups(self) -> list[Struct]:
        """The row groups, decoded."""
        return md.structs(self.footer.fields, md.ROW_GROUPS, "the row groups")

    @property
    def crypto(self) -> FileCrypto | None:
        """None where the file is not encrypted."""
        return self.footer.crypto

    @property
    def num_rows(self) -> int:
        """Rows of all row groups."""
        return md.integer(self.footer.outline, md.NUM_ROWS, "the number of rows")

    @property
    def num_row_groups(self) -> int:
        """The number of row groups."""
        return len(self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns: their paths in the schema, with dots."""
        return tuple(leaf.name for leaf in self.leaves)

    def columns(self) -> tuple[ColumnInfo, ...]:
        """The columns, as the file describes them."""
        if not self.num_row_groups:
            return tuple(ColumnInfo(name, "none", b"") for name in self.names)
        found = self.groups.crypto([0], range(len(self.names)))
        return tuple(
            ColumnInfo(name, *_encryption(crypto, name))
            for name, crypto in zip(self.names, found, strict=True)
        )

    @contextlib.contextmanager
    def finding_modules(self) -> Iterator[None]:
        """Says of modules that are not where they should be that the writer is known for that."""
        try:
            yield
        except FormatError as error:
            writer = md.binary(self.footer.outline, md.CREATED_BY, "the name of the writer") or b""
            if not writer.startswith(b"parquet-mr"):
                raise
            raise FormatError(f"{error}; {_LEVELS_OUTSIDE}") from None

    def choose_columns(self, columns: Iterable[str] | None) -> list[int]:
        """The numbers of the columns that names stand for: a whole path, or its beginning."""
        if columns is None:
            return list(range(len(self.leaves)))
        chosen: set[int] = set()
        for wanted in require_items("columns", columns, "a sequence of names"):
            found = self._named(wanted)
            if not found:
                raise ValueError(f"no column {wanted!r}: there are {', '.join(self.names)}")
            chosen.update(found)
        return sorted(chosen)

    def has_column(self, name: str) -> bool:
        """Whether a name stands for columns of the file."""
        return bool(self._named(name))

    def _named(self, wanted: object) -> list[int]:
        return [
            i
            for i, name in enumerate(self.names)
            if name == wanted or name.startswith(f"{wanted}.")
        ]

    def choose_row_groups(self, row_groups: Iterable[int] | None) -> list[int]:
        """The row groups asked for, each once, in the order given."""
        if row_groups is None:
            return list(range(len(self.groups)))
        given = require_items("row_groups", row_groups, "a sequence of numbers")
        chosen = [require_int("row_groups", number) for number in given]
        for number in chosen:
            if not 0 <= number < len(self.groups):
                raise ValueError(f"no row group {number}: there are {len(self.groups)}")
        if len(set(chosen)) != len(chosen):
            raise ValueError("row_groups names one twice")
        return chosen

    def chunks(self, row_groups: Sequence[int], columns: Sequence[int]) -> list[Chunk]:
        """The chunks of these columns, row group by row group, their metadata decrypted.

        Raises MissingKeyError, InvalidTag, FormatError.
        """
        keys = self.open_metadata(row_groups, columns)
        with refusing():
            located = column(self.groups.locate(row_groups, columns, self.source.size))
        names = self.names
        ranges = zip(*[iter(located)] * _FIELDS_OF_RANGE, strict=True)
        found = []
        for (number, where), key, place in zip(
            itertools.product(row_groups, columns), keys, ranges, strict=True
        ):
            chunk = Chunk(self.groups, number, where, names[where], key, *place)
            if key is not None and max(chunk.ordinal, where) > MOST_ORDINAL:
                raise FormatError(
                    f"{chunk.what}: ordinals of encrypted chunks end at {MOST_ORDINAL}"
                )
            found.append(chunk)
        return found

    def open_metadata(
        self, row_groups: Sequence[int], columns: Sequence[int]
    ) -> list[bytes | None]:
        """The keys of these chunks, None for those that are not encrypted. Their ColumnMetaData is
        decrypted, what are modules of their own in one batch."""
        crypto = self.groups.crypto(row_groups, columns)
        places = list(itertools.product(row_groups, columns))
        keys = [
            None if each is None else self._key(where, each)
            for (_, where), each in zip(places, crypto, strict=True)
        ]
        if self.crypto is None:
            return keys
        with refusing():
            sealed = self.groups.sealed_metadata(row_groups, columns)
        modules = []
        todo = []
        for at, module, key in zip(places, sealed, keys, strict=True):
            if module is None or key is None or at in self._opened:
                continue
            number, where = at
            ordinal = self.groups.ordinal(number)
            if max(ordinal, where) > MOST_ORDINAL:
                continue  # `chunks` refuses it
            todo.append(at)
            place = Place(Kind.COLUMN_METADATA, ordinal, where, self.leaves[where].name)
            modules.append((module, key, place))
        texts = open_modules(modules, self.crypto, self.engine)
        for at, text in zip(todo, texts, strict=True):
            with refusing():
                self.groups.set_metadata(*at, text)
            self._opened.add(at)
        return keys

    def _key(self, where: int, crypto: bytes) -> bytes | None:
        """The key of a column's chunk by its ColumnCryptoMetaData."""
        if (where, crypto) not in self._found_keys:
            self._found_keys[where, crypto] = self._find_key(self.leaves[where].name, crypto)
        return self._found_keys[where, crypto]

    def _find_key(self, name: str, text: bytes) -> bytes | None:
        if self.crypto is None or self._ring is None:
            raise FormatError(f"column {name} is encrypted, and the file names no algorithm")
        crypto = read_whole(text, md.CRYPTO_SHAPE, f"the crypto metadata of column {name}")
        own = md.substruct(crypto, md.WITH_COLUMN_KEY)
        if own is not None:
            metadata = md.binary(own, md.COLUMN_KEY_METADATA, f"the key metadata of column {name}")
            return self._ring.find(metadata or b"", name)
        if md.WITH_FOOTER_KEY not in crypto:
            raise FormatError(f"column {name}: unknown kind of encryption {sorted(crypto)}")
        return self.footer.key or self._ring.find(self.footer.key_metadata)

    def readable(self) -> list[int]:
        """The numbers of the columns whose keys are there."""
        found = []
        groups = range(self.num_row_groups)
        for where in range(len(self.leaves)):
            try:
                for crypto in set(self.groups.crypto(groups, [where])) - {None}:
                    self._key(where, crypto or b"")
            except MissingKeyError:
                continue
            found.append(where)
        return found

    def close(self) -> None:
        """Closes what `open` opened."""
        self.source.close()


def _encryption(text: bytes | None, name: str) -> tuple[str, bytes]:
    if text is None:
        return "none", b""
    crypto = read_whole(text, md.CRYPTO_SHAPE, f"the crypto metadata of column {name}")
    own = md.substruct(crypto, md.WITH_COLUMN_KEY)
    if own is None:
        return "footer key", b""
    return "column key", md.binary(own, md.COLUMN_KEY_METADATA, "key metadata") or b""

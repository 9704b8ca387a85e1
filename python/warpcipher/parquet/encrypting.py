# SPDX-License-Identifier: Apache-2.0
"""The calls that write: `encrypt` and `rekey`. Pages are encrypted as they are, not decoded."""

from __future__ import annotations

import secrets
from collections import Counter

from ..formats.whole import Writer, write_whole
from . import metadata as md
from .config import ColumnKey, EncryptionConfig
from .crypto import MOST_ORDINAL, UNIQUE, FileCrypto, Kind, Place, seal_modules
from .decryption import Decryption
from .extras import place_pages, read_extras, shift_pages
from .file import BaseFile, DecryptedChunk
from .footer import ENCRYPTED_MAGIC, PLAIN_MAGIC, seal_footer
from .image import Image, Progress, Turns
from .keyring import Keys, NoKeysError
from .reading import ParquetFile, opened_file
from .sealing import Sealed, Sealing
from .storage import Dest, SourceLike, naming, refuse_source, writing
from .thrift import BINARY, I16, I32, I64, LIST, STRUCT, Struct, write

MOST_MESSAGES = 1 << 32
"""Under one key, with random nonces: NIST SP 800-38D, section 8.3."""

_Chunk = tuple[int, int]
_Places = dict[tuple[_Chunk, Kind], tuple[int, int]]
_ENCRYPTED = "the file is encrypted already: `rekey` gives it other keys"


def encrypt(
    source: SourceLike | ParquetFile,
    dest: Dest,
    config: EncryptionConfig,
    *,
    engine: str = "auto",
    progress: Progress | None = None,
) -> int:
    """Encrypts a plain Parquet file without decoding a page; returns the bytes written.

    Encodings, compression, statistics, indexes and Bloom filters stay as they are. Nonces are
    random. source, dest, progress: as for `to_plain`; progress counts plain bytes. Raises
    ValueError where the file goes beyond the format's limits (32,768 row groups, columns, and pages
    of a chunk; 2^32 modules under one key), FormatError where it is not what Parquet says.
    """
    _check_config(config)
    try:
        with opened_file(source, None, None, engine) as file:
            if file.crypto is not None:
                raise NoKeysError
            refuse_source(file.source, dest)
            return _write(file, dest, config, progress)
    except NoKeysError:
        with naming(source):
            raise ValueError(_ENCRYPTED) from None


def rekey(
    source: SourceLike | ParquetFile,
    dest: Dest,
    keys: Keys | None,
    config: EncryptionConfig,
    *,
    aad_prefix: bytes | None = None,
    engine: str = "auto",
    progress: Progress | None = None,
) -> int:
    """Writes an encrypted file again under other keys; returns the bytes written.

    Every module is decrypted and encrypted again, so that the old keys open nothing of it;
    plaintext is only in memory. A dest that names the source is replaced when all is written.
    keys, aad_prefix: of the source. config: of the result, which may
    differ in everything. Raises as `to_plain` and `encrypt`.
    """
    _check_config(config)
    with opened_file(source, keys, aad_prefix, engine) as file:
        if file.crypto is None:
            raise ValueError("the file is not encrypted: `encrypt` encrypts it")
        refuse_source(file.source, dest, in_place=True)
        return _write(file, dest, config, progress)


def _check_config(config: object) -> None:
    if not isinstance(config, EncryptionConfig):
        raise TypeError(
            f"config is {type(config).__name__}: expected an EncryptionConfig; for one key that is "
            "EncryptionConfig(key)"
        )


def _write(file: BaseFile, dest: Dest, config: EncryptionConfig, progress: Progress | None) -> int:
    job = _Encryption(file, config)
    with writing(dest, file.source) as writer:
        return job.run(writer, progress)


class _Encryption:
    """The encryption of one file."""

    def __init__(self, file: BaseFile, config: EncryptionConfig) -> None:
        self._file = file
        self._config = config
        self._footer_key, self._columns = config.resolve(file)
        encrypted = any(key is not None for key in self._columns)
        for what, count in (("row groups", file.num_row_groups), ("columns", len(file.leaves))):
            if encrypted and count > MOST_ORDINAL + 1:
                raise ValueError(f"{count} {what}: the format numbers {MOST_ORDINAL + 1}")
        self._crypto = FileCrypto(config.algorithm, config.aad_prefix + secrets.token_bytes(UNIQUE))
        everything = range(file.num_row_groups), range(len(file.leaves))
        self._image = Image(file, *map(list, everything))
        self._sealed: dict[_Chunk, Sealed] = {}
        self._messages: Counter[bytes] = Counter()
        self._tail = bytearray()

    def run(self, writer: Writer, progress: Progress | None) -> int:
        """Writes the file."""
        magic = PLAIN_MAGIC if self._config.plaintext_footer else ENCRYPTED_MAGIC
        write_whole(writer, memoryview(magic))
        start = end = len(magic)  # of a group in the plain image; in the file

        def sealed(decryption: Decryption) -> memoryview:
            nonlocal start, end
            plain = self._image.decrypt(decryption, plains.take(decryption.size), start)
            sealing = Sealing(plain, start, end, self._crypto, self._file.engine)
            for decrypted in decryption.decrypted:
                self._add(sealing, decrypted)
            out = outs.take(sealing.size)
            sealing.run(out)
            start += len(plain)
            end += sealing.size
            return out

        with Turns() as plains, Turns() as outs:
            self._image.write_groups(writer, sealed, progress)
        tail = self._finish(end, magic)
        write_whole(writer, memoryview(tail))
        return end + len(tail)

    def _add(self, sealing: Sealing, decrypted: DecryptedChunk) -> None:
        chunk = decrypted.chunk
        key = self._columns[chunk.column]
        if key is None:
            made = sealing.copy(decrypted)
        else:
            made = sealing.add(decrypted, chunk.row_group, key.key)
            self._count(key.key, made.modules)
        self._sealed[chunk.row_group, chunk.column] = made

    def _count(self, key: bytes, modules: int) -> None:
        self._messages[key] += modules
        if self._messages[key] > MOST_MESSAGES:
            raise ValueError(
                f"more than {MOST_MESSAGES} modules under one key, which random nonces do not "
                "bear: use column keys"
            )

    def _finish(self, position: int, magic: bytes) -> bytes:
        """The bytes after the chunks: Bloom filters, indexes, footer."""
        order = sorted(self._sealed)
        texts: list[tuple[_Chunk, Kind, bytes]] = []
        extras = read_extras(self._file, [self._sealed[at].decrypted.chunk for at in order])
        for at, extra in zip(order, extras, strict=True):
            if extra.bloom is not None:
                texts.append((at, Kind.BLOOM_FILTER_HEADER, extra.bloom[0]))
                texts.append((at, Kind.BLOOM_FILTER_BITSET, extra.bloom[1]))
        for at, extra in zip(order, extras, strict=True):
            if extra.column_index is not None:
                texts.append((at, Kind.COLUMN_INDEX, extra.column_index))
        for at, extra in zip(order, extras, strict=True):
            if extra.offset_index is not None:
                index = self._move_index(self._sealed[at], extra.offset_index)
                texts.append((at, Kind.OFFSET_INDEX, write(index)))
        out = bytearray()
        places: _Places = {}
        for (at, kind, _), module in zip(texts, self._seal(texts), strict=True):
            places[at, kind] = position + len(out), len(module)
            out += module
        return bytes(out) + self._footer(places) + magic

    def _move_index(self, sealed: Sealed, index: Struct) -> Struct:
        """The OffsetIndex of the source as the result has it."""
        chunk = sealed.decrypted.chunk
        what = str(chunk.place(Kind.OFFSET_INDEX))
        if self._columns[chunk.column] is None and not sealed.pages:  # plain, and stays so
            return shift_pages(index, sealed.start - chunk.start, what)
        # Pages were found in the plain image; the index speaks of the source.
        known = {image: before for before, image, _ in sealed.decrypted.pages}
        by = chunk.start - sealed.decrypted.start
        pages = [(known.get(at, at + by), now, size) for at, now, size in sealed.pages]
        return place_pages(index, pages, what)

    def _seal(self, texts: list[tuple[_Chunk, Kind, bytes]]) -> list[bytes]:
        """Modules of encrypted columns, the text itself of others."""
        found: list[tuple[bytes, bytes, Place]] = []
        for (group, column), kind, text in texts:
            key = self._columns[column]
            if key is not None:
                self._count(key.key, 1)
                name = self._file.leaves[column].name
                found.append((text, key.key, Place(kind, group, column, name)))
        sealed = iter(seal_modules(found, self._crypto, self._file.engine))
        return [text if self._columns[at[1]] is None else next(sealed) for at, _, text in texts]

    def _footer(self, places: _Places) -> bytes:
        """The footer, as it stands before the last magic."""
        fields = dict(self._file.footer.outline)
        for number in (md.ENCRYPTION_ALGORITHM, md.FOOTER_KEY_METADATA):
            fields.pop(number, None)
        metas = {at: self._meta(at, places) for at in self._sealed}
        modules = self._seal_metas(metas)
        groups = []
        for number, source in enumerate(self._file.row_groups):
            group = dict(source)
            columns = []
            unpacked = packed = 0
            for column in range(len(self._file.leaves)):
                at = number, column
                columns.append(self._column(at, metas[at], modules.get(at), places))
                unpacked += self._sealed[at].unpacked
                packed += self._sealed[at].size
            group[md.COLUMNS] = LIST, (STRUCT, columns)
            md.set_integer(group, md.TOTAL_BYTE_SIZE, unpacked)
            md.set_integer(group, md.GROUP_COMPRESSED_SIZE, packed)
            md.set_integer(group, md.ORDINAL, number, I16)
            starts = [self._sealed[number, column].start for column in range(len(columns))]
            md.set_integer(group, md.GROUP_OFFSET, min(starts, default=4))
            groups.append(group)
        fields[md.ROW_GROUPS] = LIST, (STRUCT, groups)
        return self._seal_footer(fields)

    def _seal_footer(self, fields: Struct) -> bytes:
        config = self._config
        self._count(self._footer_key, 1)
        return seal_footer(
            fields,
            self._crypto,
            self._footer_key,
            config.footer_key_metadata,
            (config.aad_prefix, config.store_aad_prefix),
            encrypted=not config.plaintext_footer,
            engine=self._file.engine,
        )

    def _meta(self, at: _Chunk, places: _Places) -> Struct:
        """The ColumnMetaData of a chunk in the result."""
        sealed = self._sealed[at]
        meta = dict(sealed.decrypted.chunk.meta)
        for number in (md.INDEX_PAGE_OFFSET, md.BLOOM_OFFSET, md.BLOOM_LENGTH):
            meta.pop(number, None)
        md.set_integer(meta, md.UNCOMPRESSED_SIZE, sealed.unpacked)
        md.set_integer(meta, md.COMPRESSED_SIZE, sealed.size)
        md.set_integer(meta, md.DATA_PAGE_OFFSET, sealed.data)
        meta.pop(md.DICTIONARY_PAGE_OFFSET, None)
        if sealed.dictionary:
            meta[md.DICTIONARY_PAGE_OFFSET] = I64, sealed.start
        if (at, Kind.BLOOM_FILTER_HEADER) in places:
            start, head = places[at, Kind.BLOOM_FILTER_HEADER]
            _, bits = places[at, Kind.BLOOM_FILTER_BITSET]
            meta[md.BLOOM_OFFSET] = I64, start
            meta[md.BLOOM_LENGTH] = I32, head + bits
        return meta

    def _seal_metas(self, metas: dict[_Chunk, Struct]) -> dict[_Chunk, bytes]:
        """The metadata that is a module of its own: of columns with keys of their own, and of all
        encrypted ones where the footer is plain."""
        texts = []
        for at, meta in metas.items():
            key = self._columns[at[1]]
            if key is not None and (key.own or self._config.plaintext_footer):
                texts.append((at, Kind.COLUMN_METADATA, write(meta)))
        modules = self._seal(texts)
        return {at: module for (at, *_), module in zip(texts, modules, strict=True)}

    def _column(self, at: _Chunk, meta: Struct, module: bytes | None, places: _Places) -> Struct:
        """A ColumnChunk of the result."""
        sealed = self._sealed[at]
        fields = dict(sealed.decrypted.chunk.fields)
        for number in range(md.META_DATA, md.ENCRYPTED_METADATA + 1):
            fields.pop(number, None)
        had_offset = md.integer(fields, md.FILE_OFFSET, "an offset", 0)
        md.set_integer(fields, md.FILE_OFFSET, sealed.start if had_offset else 0)
        for kind, offset, length in (
            (Kind.OFFSET_INDEX, md.OFFSET_INDEX_OFFSET, md.OFFSET_INDEX_LENGTH),
            (Kind.COLUMN_INDEX, md.COLUMN_INDEX_OFFSET, md.COLUMN_INDEX_LENGTH),
        ):
            if (at, kind) in places:
                fields[offset] = I64, places[at, kind][0]
                fields[length] = I32, places[at, kind][1]
        key = self._columns[at[1]]
        if key is not None:
            fields[md.CRYPTO_METADATA] = STRUCT, self._crypto_metadata(at[1], key)
        if module is not None:
            fields[md.ENCRYPTED_METADATA] = BINARY, module
            if self._config.plaintext_footer:
                shown = {number: meta[number] for number in meta if number not in md.SENSITIVE}
                fields[md.META_DATA] = STRUCT, shown
        else:
            fields[md.META_DATA] = STRUCT, meta
        return fields

    def _crypto_metadata(self, column: int, key: ColumnKey) -> Struct:
        if not key.own:
            return {md.WITH_FOOTER_KEY: (STRUCT, {})}
        path = [part.encode() for part in self._file.leaves[column].path]
        own: Struct = {md.COLUMN_KEY_PATH: (LIST, (BINARY, path))}
        if key.metadata:
            own[md.COLUMN_KEY_METADATA] = BINARY, key.metadata
        return {md.WITH_COLUMN_KEY: (STRUCT, own)}

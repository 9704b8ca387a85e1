# SPDX-License-Identifier: Apache-2.0
"""A plain Parquet image of a file: chunks, Bloom filters, indexes, and a footer without encryption,
with every offset and size as it is there.

Chunks go through in groups: while one is decrypted, the next is read and the one before is written.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeAlias

from .._uncopied import Closed
from ..formats.base import wipe
from ..formats.whole import Writer, write_whole
from . import metadata as md
from .crypto import wipe_any
from .decryption import Decryption
from .extras import move_offset_index, read_extras
from .file import ABSENT, BaseFile, Chunk, DecryptedChunk
from .footer import PLAIN_MAGIC
from .thrift import LIST, refusing, write

Places: TypeAlias = "Sequence[tuple[int, int] | None]"
"""Where the column index, the offset index and the Bloom filter of a chunk lie in the image,
(offset, length) each; None: not there."""

NOWHERE: Places = (None, None, None)
_LEFT_OUT = array("Q", bytes(8 * 12))  # as many fields as a PlainChunk has


def _entry(decrypted: DecryptedChunk, places: Places) -> tuple[int, ...]:
    """A chunk as `_native.RowGroups.write_plain` takes it: PlainChunk in
    src/parquet/row_groups.hpp."""
    chunk = decrypted.chunk
    numbers = [
        1,
        chunk.key is not None,
        decrypted.start,
        decrypted.size,
        decrypted.data,
        decrypted.shrunk,
    ]
    for place in places:
        numbers += (ABSENT, 0) if place is None else place
    return tuple(numbers)


def plain_footer(
    file: BaseFile,
    row_groups: Sequence[int],
    decrypted: Mapping[tuple[int, int], DecryptedChunk],
    places: Mapping[tuple[int, int], Places],
) -> bytes:
    """The footer of an image of these row groups; columns that are not in `decrypted` are empty."""
    chunks = array("Q")
    for number in row_groups:
        for column in range(len(file.leaves)):
            found = decrypted.get((number, column))
            chunks.extend(
                _LEFT_OUT if found is None else _entry(found, places.get((number, column), NOWHERE))
            )
    return _write(file, row_groups, memoryview(chunks))


def footer_in_place(file: BaseFile, row_groups: Sequence[int], columns: Sequence[int]) -> bytes:
    """The footer with only the encryption taken out, as it is known before data is read.
    Sizes and offsets are as in the file; other columns are empty."""
    file.open_metadata(row_groups, columns)
    with refusing():
        chunks = file.groups.in_place(row_groups, columns, file.source.size)
    return _write(file, row_groups, memoryview(chunks).cast("Q"))


def _write(file: BaseFile, row_groups: Sequence[int], chunks: memoryview) -> bytes:
    fields = dict(file.footer.outline)
    fields.pop(md.ENCRYPTION_ALGORITHM, None)
    fields.pop(md.FOOTER_KEY_METADATA, None)
    with refusing():
        text = file.groups.write_plain(row_groups, chunks, [md.stub(leaf) for leaf in file.leaves])
        rows = sum(map(file.groups.rows, row_groups))
    fields[md.ROW_GROUPS] = -LIST, text
    md.set_integer(fields, md.NUM_ROWS, rows)
    return write(fields)


GROUP_SIZE = 4 << 20
"""Bytes of chunks that are decrypted at once, while those before are written."""
Progress = Callable[[int], object]
_FIRST = len(PLAIN_MAGIC)


def groups_of(chunks: Sequence[Chunk], limit: int = GROUP_SIZE) -> list[list[Chunk]]:
    """The chunks in the order of the file, in groups of about `limit` bytes."""
    groups: list[list[Chunk]] = []
    size = limit
    for chunk in sorted(chunks, key=lambda chunk: (chunk.start, chunk.row_group, chunk.column)):
        if size >= limit:
            groups.append([])
            size = 0
        groups[-1].append(chunk)
        size += chunk.size
    return groups


class Turns(Closed):
    """Two buffers that take turns, the one being written while the other is filled. They are wiped
    at the end."""

    def __init__(self) -> None:
        self._buffers = [bytearray(), bytearray()]

    def take(self, size: int) -> memoryview:
        """The buffer that was not taken last."""
        self._buffers.reverse()
        if len(self._buffers[0]) < size:
            wipe(self._buffers[0])
            self._buffers[0] = bytearray(size)
        return memoryview(self._buffers[0])[:size]

    def close(self) -> None:
        for buffer in self._buffers:
            wipe(buffer)


class Image:
    """The image of some row groups and columns of a file."""

    def __init__(self, file: BaseFile, row_groups: Sequence[int], columns: Sequence[int]) -> None:
        self.file = file
        self.row_groups = row_groups
        self.columns = columns
        self.chunks = file.chunks(row_groups, columns)
        self.decrypted: dict[tuple[int, int], DecryptedChunk] = {}

    def decryptions(self, pool: Executor) -> Iterator[Decryption]:
        """The groups on their way. Where they must be fetched first, each is while the one before
        is decrypted: two buffers take turns, since memory that is new costs as much as fetching
        does. The caller runs them in order, through `decrypt`."""
        groups = groups_of(self.chunks)
        if not self.file.source.is_fetched:
            for group in groups:
                yield Decryption(self.file, group)
            return
        longest = max((sum(chunk.size for chunk in group) for group in groups), default=0)
        rooms = [bytearray(longest) for _ in range(2)]
        coming: list[Future[Decryption]] = []
        for number, group in enumerate(groups):
            ready = [each.result() for each in coming]
            coming = [pool.submit(Decryption, self.file, group, rooms[number % 2])]
            yield from ready
        yield from (each.result() for each in coming)

    def decrypt(self, decryption: Decryption, out: Any, start: int) -> Any:
        """Decrypts a group into `out`, which begins at `start` of the image; returns what of it the
        chunks take."""
        size = decryption.run(out[: decryption.size], start)
        for decrypted in decryption.decrypted:
            self.decrypted[decrypted.chunk.row_group, decrypted.chunk.column] = decrypted
        return out[:size]

    @property
    def room(self) -> int:
        """Bytes that hold the magic and the chunks: decrypted they are never longer."""
        return _FIRST + sum(chunk.size for chunk in self.chunks)

    def fill(self, out: Any, magic: Any = PLAIN_MAGIC) -> int:
        """Writes the image's beginning, magic and chunks, into memory that has `room`; returns how
        long it is. out: host memory, or an array on a GPU, where `magic` then lies, too."""
        out[:_FIRST] = magic
        end = _FIRST
        try:
            if not self.file.source.is_fetched:
                return end + len(self.decrypt(Decryption(self.file, self.chunks), out[end:], end))
            with ThreadPoolExecutor(1, "warpcipher-read") as pool:
                for decryption in self.decryptions(pool):
                    end += len(self.decrypt(decryption, out[end:], end))
            return end
        except BaseException:
            wipe_any(out)
            raise

    def write_groups(
        self, writer: Writer, make: Callable[[Decryption], memoryview], progress: Progress | None
    ) -> int:
        """Writes what `make` makes of each group, in a thread, while the next one is made; returns
        the bytes written. Two buffers of `make` take turns."""
        written = done = 0
        writing: Future[None] | None = None
        with ThreadPoolExecutor(2, "warpcipher-parquet") as pool:
            for decryption in self.decryptions(pool):
                out = make(decryption)
                if writing is not None:
                    writing.result()
                writing = pool.submit(write_whole, writer, out)
                written += len(out)
                done += decryption.size
                if progress is not None:
                    progress(done)
            if writing is not None:
                writing.result()
        return written

    def write(self, writer: Writer, progress: Progress | None) -> int:
        """Writes all of it; returns the bytes written. progress: called with the number of bytes of
        chunks that are done. On an error what was written is incomplete."""
        write_whole(writer, memoryview(PLAIN_MAGIC))
        end = _FIRST

        def plain(decryption: Decryption) -> memoryview:
            nonlocal end
            out: memoryview = self.decrypt(decryption, turns.take(decryption.size), end)
            end += len(out)
            return out

        with Turns() as turns:
            self.write_groups(writer, plain, progress)
        rest = self.tail(end)
        write_whole(writer, memoryview(rest))
        return end + len(rest)

    def tail(self, position: int) -> bytes:
        """The bytes after the chunks, which end at `position`: Bloom filters, indexes, footer."""
        out = bytearray()

        def put(data: bytes | None) -> tuple[int, int] | None:
            if data is None:
                return None
            out.extend(data)
            return position + len(out) - len(data), len(data)

        keys = sorted(self.decrypted)
        extras = read_extras(self.file, [self.decrypted[key].chunk for key in keys])
        blooms = [put(b"".join(each.bloom) if each.bloom else None) for each in extras]
        columns = [put(each.column_index) for each in extras]
        offsets = []
        for key, each in zip(keys, extras, strict=True):
            index = each.offset_index
            moved = None if index is None else write(move_offset_index(index, self.decrypted[key]))
            offsets.append(put(moved))
        places = zip(columns, offsets, blooms, strict=True)
        return bytes(out) + enclosed(self.footer(dict(zip(keys, places, strict=True))))

    def footer(self, places: dict[tuple[int, int], Places] | None = None) -> bytes:
        """The footer; without places there are no indexes and no Bloom filters."""
        return plain_footer(self.file, self.row_groups, self.decrypted, places or {})


def enclosed(footer: bytes) -> bytes:
    """A footer as a plain file ends."""
    return footer + len(footer).to_bytes(4, "little") + PLAIN_MAGIC

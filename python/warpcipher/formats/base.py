# SPDX-License-Identifier: Apache-2.0
"""What a file format is: its layout in chunks, its encryptor and decryptor of pieces, its options.

A chunk is the unit that a format authenticates (C2SP: chunk, Tink: segment). A piece is what one
call encrypts or decrypts: many chunks in one buffer, so that calls cost little for each chunk.
"""

from __future__ import annotations

import abc
import os
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .. import _native
from .._uncopied import Uncopied

if TYPE_CHECKING:
    from .._types import StreamLike

Buffer: TypeAlias = bytes | bytearray | memoryview
ReadAt = Callable[[int, int], bytes]
"""`read_at(offset, length)` of the encrypted file; shorter only at the end of the file."""

PIECE_SIZE = min(max(os.cpu_count() or 1, 2), 8) << 19
"""Bytes a piece aims at, 1 to 4 MiB: half a MiB feeds a core, and the less lies between reading and
writing, the more of it is still in a cache. A chunk larger than this is a piece of its own."""

MAX_CHUNKS_PER_PIECE = 4096
"""Bounds the columns of nonces and lengths where a keyset asks for tiny segments."""


class FormatError(ValueError):
    """The file, keyset or option is not what the format says: truncated, malformed or unknown."""


@dataclass(frozen=True)
class Options:
    """What a format needs in addition to the key. A format refuses an option that it does not use.

    context:   bytes bound to the file and not stored in it (C2SP: context, Tink: associated data,
               raw GCM: additional authenticated data).
    engine:    "auto" or a name of `warpcipher.engines()`.
    algorithm: of `raw` alone: a name of `warpcipher.algorithms()`.
    iv:        of `raw` alone: bytes of the length that the algorithm takes; None for ECB.
    padding:   of `raw` alone: "pkcs7" or "none"; "auto" is PKCS#7 for ECB and CBC, as openssl pads.
    """

    context: bytes = b""
    engine: str = "auto"
    algorithm: str | None = None
    iv: bytes | None = field(default=None, repr=False)
    padding: Literal["auto", "pkcs7", "none"] = "auto"

    def __post_init__(self) -> None:
        for name, value in (("context", self.context), ("iv", self.iv)):
            if value is not None and not isinstance(value, bytes):
                raise TypeError(f"{name} is bytes, got {type(value).__name__}")
        if self.padding not in ("auto", "pkcs7", "none"):
            raise ValueError(f"padding is {self.padding!r}: expected auto, pkcs7 or none")

    def refuse_raw(self, format_name: str) -> None:
        """Raises ValueError where an option of `raw` was given to another format."""
        for name in ("algorithm", "iv"):
            if getattr(self, name) is not None:
                raise ValueError(f"format {format_name} takes no {name}: it belongs to format raw")
        if self.padding != "auto":
            raise ValueError(f"format {format_name} takes no padding: it belongs to format raw")


@dataclass(frozen=True)
class Layout:
    """Where the chunks of a file lie. All sizes in bytes.

    +--------+------------------------+------------------+-----+-----------------+
    | header | chunk 0                | chunk 1          | ... | final chunk     |
    |        | first_chunk + overhead | chunk + overhead |     | short, see below|
    +--------+------------------------+------------------+-----+-----------------+

    header_size: of the header.
    chunk:       plaintext of a full chunk.
    overhead:    of a chunk's tag.
    first_chunk: plaintext of the first chunk, which the header may shorten.
    final_short: the final chunk is always shorter than `chunk` and may be empty (C2SP). Otherwise
                 it may be full, and it is empty only where the plaintext is (Tink, raw).
    max_chunks:  the most that the format allows.
    """

    header_size: int
    chunk: int
    overhead: int
    first_chunk: int
    final_short: bool
    max_chunks: int

    def lengths(self, size: int, first: int, final: bool, *, sealed: bool) -> array[int]:
        """The lengths of the chunks in a piece of `size` bytes that begins with chunk number
        `first`.

        sealed: the piece is ciphertext. Raises FormatError where no chunking fits: truncated.
        """
        gain = self.overhead if sealed else 0
        full = self.chunk + gain
        head = (self.first_chunk if first == 0 else self.chunk) + gain
        whole, rest = divmod(size - head, full) if size >= head else (-1, size)
        whole += 1
        lengths = array("Q", [head] + [full] * (whole - 1) if whole else [])
        if not final:
            if rest or not whole:
                raise ValueError(
                    f"a piece of {size} bytes, not the final one, is not made of whole chunks"
                )
        elif rest or self.final_short or not whole:
            if sealed:
                self._check_final(first + whole, rest)
            lengths.append(rest)
        if first + len(lengths) > self.max_chunks:
            raise self._too_long()
        return lengths

    def _check_final(self, index: int, length: int) -> None:
        """Raises FormatError where a final chunk, number `index`, cannot have `length` bytes of
        ciphertext."""
        if length < self.overhead or (length == self.overhead and index and not self.final_short):
            where = f"{length} bytes into" if length else "before"
            raise FormatError(f"truncated: the file ends {where} chunk {index}, its final chunk")

    def _too_long(self) -> FormatError:
        return FormatError(
            f"too long: the format allows {self.max_chunks} chunks of {self.chunk} bytes"
        )

    def _shift(self) -> int:
        """What the first chunk lacks to be a full one."""
        return self.chunk - self.first_chunk

    def chunk_count(self, file_size: int) -> int:
        """Chunks of a file of `file_size` bytes. Raises FormatError where no file has that size."""
        body = file_size - self.header_size
        full = self.chunk + self.overhead
        if body < self.overhead:
            raise FormatError(
                f"truncated: {file_size} bytes, and the shortest file of this format has "
                f"{self.header_size + self.overhead}"
            )
        count, rest = divmod(body + self._shift(), full)
        if rest or self.final_short or not body:
            if count:
                self._check_final(count, rest)
            count += 1
        if count > self.max_chunks:
            raise self._too_long()
        return count

    def plaintext_size(self, file_size: int) -> int:
        """Plaintext bytes of a file of `file_size` bytes (not yet authenticated by anything)."""
        return file_size - self.header_size - self.chunk_count(file_size) * self.overhead

    def locate(self, position: int) -> tuple[int, int]:
        """The chunk that holds plaintext byte `position`, and the place of that byte in the
        chunk."""
        index, within = divmod(position + self._shift(), self.chunk)
        return (index, within - self._shift()) if index == 0 else (index, within)

    def plaintext_start(self, index: int) -> int:
        """Plaintext position of the first byte of chunk `index`."""
        return index * self.chunk - self._shift() if index else 0

    def file_start(self, index: int) -> int:
        """File offset of chunk `index`."""
        full = self.chunk + self.overhead
        return self.header_size + (index * full - self._shift() if index else 0)

    def chunks_per_piece(self) -> int:
        """Full chunks of one piece."""
        return max(1, min(MAX_CHUNKS_PER_PIECE, PIECE_SIZE // (self.chunk + self.overhead)))


class PieceCipher(Uncopied, abc.ABC):
    """What `Encryptor` and `Decryptor` share: they take the pieces of a file in order.

    layout:      where the chunks lie.
    first_piece: bytes that the first call of `process` takes; fewer only if it is the final one.
    piece:       bytes that every later call takes; fewer only in the final one.
    capacity:    bytes of `out` that hold the result of any piece.
    whole:       the algorithm takes the whole message at once; `piece` is then the longest message
                 allowed.
    """

    layout: Layout
    first_piece: int
    piece: int
    capacity: int
    whole: bool = False

    @abc.abstractmethod
    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        """Encrypts or decrypts one piece into `out` (no overlap with `data`); returns the bytes
        written.

        final: nothing follows. Raises InvalidTag or FormatError; `out` then holds no plaintext.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Wipes the keys. Idempotent; the object is of no use afterwards."""


class Encryptor(PieceCipher):
    """Encrypts one file.

    header: the bytes that precede the first piece.
    """

    header: bytes


class Decryptor(PieceCipher):
    """Decrypts one file, in order or from any chunk.

    reads_ranges: `read_range` works: the chunks are authenticated each by itself.
    """

    reads_ranges = False

    @abc.abstractmethod
    def seek(self, chunk: int, read_at: ReadAt) -> None:
        """Makes chunk number `chunk` the one that `process` takes next."""

    def read_range(
        self,
        source: int | Buffer,
        begin: int,
        file_size: int,
        position: int,
        length: int,
        out: Any,
        stream: StreamLike = None,
    ) -> None:
        """Decrypts `length` bytes of plaintext from `position` on to the beginning of `out`, on all
        cores or on the GPU that `out` lies on. Independent of `seek` and `process`; several threads
        may read at a time.

        source: a descriptor of the encrypted file, of file_size bytes; or those of its bytes that
                begin with byte number `begin`, and hold all chunks of the range.
        Raises as `read_chunks`.
        """
        raise ValueError("this format does not authenticate its parts: read it into host memory")

    def plaintext_size(self, file_size: int, read_at: ReadAt) -> int:
        """Plaintext bytes of a file of `file_size` bytes. Raises FormatError where none has that
        size."""
        return self.layout.plaintext_size(file_size)


@dataclass(frozen=True)
class Candidate:
    """A format that a file may have.

    format:         its name.
    reason:         why the file may have it.
    plaintext_size: bytes; None where only the key tells.
    chunk_size:     bytes of plaintext of a full chunk; None where only the key tells.
    chunks:         their number; None where only the key tells.
    """

    format: str
    reason: str
    plaintext_size: int | None = None
    chunk_size: int | None = None
    chunks: int | None = None


class Format(abc.ABC):
    """A file format: an entry of `warpcipher.formats.FORMATS`.

    name:          as `format=` takes it.
    description:   one line for people.
    found_by_key:  whether "auto" chooses it by the key; else it is opened by its name alone.
    extension:     of the names of encrypted files, with its dot.
    authenticated: whether a change within a chunk is detected, and chunks in another order.
    binds_chunks:  whether chunks are bound to their file and its end, by a salt of its own: no
                   chunk of an older version or of another file passes for one of this file, and no
                   file passes that was cut at the edge of a chunk.
    magic:         the bytes that every file begins with; empty: there are none.
    """

    name: str
    description: str
    found_by_key: bool
    extension: str
    authenticated: bool
    binds_chunks: bool
    magic: bytes = b""

    @abc.abstractmethod
    def encryptor(self, key: object, options: Options) -> Encryptor:
        """Begins a file with fresh salts and nonces."""

    @abc.abstractmethod
    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        """Whether a file of `size` bytes that begins with `prefix` may have this format. prefix: 8
        bytes or more, or all of the file."""

    @abc.abstractmethod
    def probe_size(self, key: object, options: Options) -> int:
        """Bytes of the beginning of a file that `decryptor` wants; a shorter file is given
        whole."""

    @abc.abstractmethod
    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        """Reads the header in `prefix` and derives the keys. `layout.header_size` says how much of
        it was header.

        Raises FormatError on a short header, and InvalidTag where the header or, with it, the first
        chunk tells that key, context and header do not belong together: see `open_checked`.
        """

    def open_checked(self, key: object, read_at: ReadAt, options: Options) -> Decryptor:
        """The decryptor of a file whose beginning the key and context open for certain.

        Raises InvalidTag and FormatError where they do not. Where the header commits to no key, the
        format authenticates the first chunk. `raw` authenticates nothing.
        """
        return self.decryptor(key, read_at(0, self.probe_size(key, options)), options)


def key_bytes(key: object, sizes: tuple[int, ...], who: str) -> bytearray:
    """A copy of `key` that can be wiped. Raises TypeError and ValueError without showing the
    key."""
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise TypeError(f"{who} takes its key as bytes, got {type(key).__name__}")
    _native.check_bytes(key, f"the key of {who}")
    copy = bytearray(key)
    if sizes and len(copy) not in sizes:
        given = len(copy)
        wipe(copy)
        raise ValueError(f"{who} takes a key of {' or '.join(map(str, sizes))} bytes, got {given}")
    return copy


def wipe(buffer: bytearray | memoryview) -> None:
    """Overwrites a buffer with zeros, a block at a time."""
    view = memoryview(buffer).cast("B")
    zeros = bytes(min(len(view), 1 << 16))
    for start in range(0, len(view), len(zeros) or 1):
        part = view[start : start + len(zeros)]
        part[:] = zeros[: len(part)]

# SPDX-License-Identifier: Apache-2.0
"""Chunked authenticated encryption, as C2SP, Tink and age do it: nonces, the two chunk ciphers, and
the encryptor and decryptor of pieces over them. Each piece is one call of `run_columns`."""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import warpcipher as wc

from .. import _later
from .base import Buffer, Decryptor, Encryptor, ReadAt, wipe
from .copy_chunks import CopyChunksCall, copy
from .file_chunks import FileChunksCall, RegularChunksCall, authentication_failed, run
from .layout import Layout
from .whole import write_whole

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence, Sized

    from .._types import AlgorithmName, StreamLike
    from .write_chunks import Texts, WriteChunksCall


@lru_cache(maxsize=8)
def _column_constants(width: int, capacity: int) -> tuple[int, int]:
    """Columns of `width`-byte fields, each one integer: 1, 1, 1, ... and 0, 1, 2, ..."""
    ones = int.from_bytes((b"\0" * (width - 1) + b"\1") * capacity, "big")
    ramp = b"".join(i.to_bytes(width, "big") for i in range(capacity))
    return ones, int.from_bytes(ramp, "big")


class NonceColumn:
    """The nonces of consecutive chunks in one buffer, with no Python work for each of them.

    nonce(i) = template XOR (i << counter_shift) XOR (final ? 1 << final_shift : 0), big-endian.
    All fields of a column are added and XORed at once as one long integer: counters stay below the
    width of a field, so no carry leaves it.
    """

    def __init__(
        self, template: bytes, capacity: int, counter_shift: int, final_shift: int | None
    ) -> None:
        self.template = template
        self.counter_shift = counter_shift
        self.final_shift = final_shift
        self._width = len(template)
        self._capacity = capacity
        self._ones, self._ramp = _column_constants(len(template), capacity)
        self._base = int.from_bytes(template * capacity, "big")

    def build(self, first: int, count: int, final: bool) -> bytes:
        """`count` nonces (at most the capacity) from chunk `first` on; `final` marks the last of
        them."""
        column = self._base ^ ((self._ramp + first * self._ones) << self.counter_shift)
        column >>= 8 * self._width * (self._capacity - count)
        if final and self.final_shift is not None:
            column ^= 1 << self.final_shift
        return column.to_bytes(self._width * count, "big")

    def build_many(self, first: int, count: int, final: bool) -> bytes:
        """As `build`, of any count."""
        built, end, most = [], first + count, self._capacity
        for begin in range(first, end, most):
            left = end - begin
            built.append(self.build(begin, min(most, left), final and left <= most))
        return b"".join(built)


# What writes texts of a GPU is imported there: files are encrypted without it.

TAG_SIZE = 16


def open_columns(
    first: int,
    algorithm: AlgorithmName,
    key: wc.Key,
    data: memoryview,
    out: memoryview,
    **columns: Any,
) -> None:
    """Decrypts chunks from number `first` on to `out` by one `run_columns`. On any failure `out` is
    wiped; InvalidTag names the first chunk that is not authentic."""
    try:
        _open_checked(first, algorithm, key, data, out, **columns)
    except BaseException:
        wipe(out)
        raise


def _open_checked(
    first: int, algorithm: AlgorithmName, key: wc.Key, data: Any, out: Any, **columns: Any
) -> None:
    done = wc.run_columns(algorithm, "decrypt", key, data, out=out, **columns)
    try:
        done.raise_for_status()
    except wc.InvalidTag:
        bad = next(i for i, status in enumerate(done.status) if status != wc.Status.OK)
        raise authentication_failed(first + bad) from None


class ChunkCipher(Protocol):
    """Seals and opens the consecutive chunks of a piece. Lengths are those of the input's
    chunks.

    nonces:    of the chunks.
    file_call: for the native reader: what it needs to know of the cipher; the chunks are left out.
    write_call: likewise for the native writer; None: a GPU does not encrypt such chunks.
    """

    nonces: NonceColumn

    def seal(
        self, first: int, lengths: array[int], data: memoryview, out: memoryview, final: bool
    ) -> int: ...

    def open(
        self, first: int, lengths: array[int], data: memoryview, out: memoryview, final: bool
    ) -> int: ...

    def file_call(self, source: int | Buffer, out: Any) -> FileChunksCall: ...

    def open_on_gpu(
        self, first: int, lengths: array[int], sealed: wc.DeviceArray, final: bool
    ) -> wc.DeviceArray: ...

    def write_call(self, target: int, texts: Texts) -> WriteChunksCall | None: ...

    def close(self) -> None: ...


class AeadChunks:
    """Chunks that are AEAD messages with no AAD: ciphertext || 16-byte tag."""

    def __init__(
        self, algorithm: AlgorithmName, key: bytearray, nonces: NonceColumn, engine: str
    ) -> None:
        self._algorithm = algorithm
        self._key: wc.Key | None = native_key(algorithm, key)
        self.nonces = nonces
        self.copies = not engine.startswith("cuda")  # whose pieces are longer
        self._engine = engine

    def seal(
        self, first: int, lengths: array[int], data: memoryview, out: memoryview, final: bool
    ) -> int:
        size = len(data) + TAG_SIZE * len(lengths)
        wc.run_columns(
            self._algorithm,
            "encrypt",
            open_key(self._key),
            data,
            lengths=lengths,
            ivs=self.nonces.build(first, len(lengths), final),
            out=out[:size],
            engine=self._engine,
        ).raise_for_status()
        return size

    def open(
        self, first: int, lengths: array[int], data: memoryview, out: memoryview, final: bool
    ) -> int:
        size = len(data) - TAG_SIZE * len(lengths)
        open_columns(
            first,
            self._algorithm,
            open_key(self._key),
            data,
            out[:size],
            lengths=lengths,
            ivs=self.nonces.build(first, len(lengths), final),
            engine=self._engine,
        )
        return size

    def file_call(self, source: int | Buffer, out: Any) -> FileChunksCall:
        return FileChunksCall(
            source=source,
            algorithm=self._algorithm,
            keys=open_key(self._key),
            out=out,
            tag_length=TAG_SIZE,
            engine=self._engine,
        )

    def open_on_gpu(
        self, first: int, lengths: array[int], sealed: wc.DeviceArray, final: bool
    ) -> wc.DeviceArray:
        plain = wc.DeviceArray(len(sealed) - TAG_SIZE * len(lengths), sealed.device, 0)
        _open_checked(
            first,
            self._algorithm,
            open_key(self._key),
            sealed,
            plain,
            lengths=lengths,
            ivs=self.nonces.build_many(first, len(lengths), final),
            engine=self._engine,
        )
        return plain

    def write_call(self, target: int, texts: Texts) -> WriteChunksCall | None:
        if not self._algorithm.endswith("-gcm"):
            return None  # the way through a GPU is that of GCM
        made: WriteChunksCall = _later.load("formats.write_chunks").WriteChunksCall(
            target=target,
            algorithm=self._algorithm,
            keys=open_key(self._key),
            texts=texts.texts,
            streams=texts.streams,
            device=texts.device,
            tag_length=TAG_SIZE,
            engine=self._engine,
        )
        return made

    def copy_call(
        self,
        source: tuple[int, int],
        target: tuple[int, int],
        regular: RegularChunksCall,
        *,
        encrypts: bool,
    ) -> CopyChunksCall:
        return CopyChunksCall(
            *source,
            *target,
            encrypts=encrypts,
            algorithm=self._algorithm,
            keys=open_key(self._key),
            regular=regular,
            tag_length=TAG_SIZE,
            engine=self._engine,
        )

    def close(self) -> None:
        self._key = None


def aes(mode: Literal["ctr", "gcm"], key: Sized) -> AlgorithmName:
    """The algorithm of that mode whose keys are as long as this one, 16, 24 or 32 bytes."""
    return cast("AlgorithmName", f"aes-{8 * len(key)}-{mode}")


def native_key(algorithm: str, key: bytearray) -> wc.Key:
    """The key as the engines hold it, wiped with the object; `key` itself is wiped here."""
    try:
        return wc.Key(algorithm, key)
    finally:
        wipe(key)


def open_key(key: wc.Key | None) -> wc.Key:
    """The key of a cipher that is not closed."""
    if key is None:
        raise ValueError("this encryptor or decryptor is closed")
    return key


def _regular(
    layout: Layout, nonces: NonceColumn, size: int, chunks: int, position: int, length: int
) -> RegularChunksCall:
    """The chunks of a range of plaintext, for native code. size, chunks: of the whole file."""
    return RegularChunksCall(
        header=layout.header_size,
        chunk=layout.chunk,
        overhead=layout.overhead,
        first_lacks=layout.chunk - layout.first_chunk,
        size=size,
        chunks=chunks,
        base=nonces.template,
        counter_shift=nonces.counter_shift,
        final_shift=-1 if nonces.final_shift is None else nonces.final_shift,
        position=position,
        length=length,
    )


class _Copies:
    """What encryptor and decryptor share where chunks are copied from file to file."""

    layout: Layout
    _cipher: ChunkCipher
    _next: int

    def _sizes(self) -> tuple[int, int] | None:
        """Bytes of a full chunk as plaintext and sealed; None: they are not copied."""
        cipher, layout = self._cipher, self.layout
        if not isinstance(cipher, AeadChunks) or not cipher.copies:
            return None
        return layout.chunk, layout.chunk + layout.overhead

    def _copy(
        self, source: tuple[int, int], target: tuple[int, int], count: int, *, encrypts: bool
    ) -> int:
        layout, first, end = self.layout, self._next, self._next + count
        if end >= layout.max_chunks or not isinstance(self._cipher, AeadChunks):
            return 0  # `process` refuses the first that is too many
        start = layout.plaintext_start(first)
        length = layout.plaintext_start(end) - start
        regular = _regular(layout, self._cipher.nonces, start + length + 1, end + 1, start, length)
        done = copy(self._cipher.copy_call(source, target, regular, encrypts=encrypts))
        self._next += done
        return done


class ChunkEncryptor(_Copies, Encryptor):
    """Encrypts a file whose chunks are sealed by a `ChunkCipher`."""

    def __init__(self, layout: Layout, header: bytes, cipher: ChunkCipher) -> None:
        count = layout.chunks_per_piece()
        self.layout = layout
        self.header = header
        self.first_piece = layout.plaintext_start(count)
        self.piece = count * layout.chunk
        self.capacity = self.piece + (count + 1) * layout.overhead
        self._cipher = cipher
        self._next = 0

    def write_texts(self, file: io.FileIO, parts: Sequence[Any]) -> bool:
        writing = _later.load("formats.write_chunks")
        texts: Texts = writing.texts_of(parts)
        call = self._cipher.write_call(file.fileno(), texts)
        if call is None:
            return False
        layout, count = self.layout, self.layout.count_of(texts.size)
        write_whole(file, memoryview(self.header))
        if texts.size:
            regular = _regular(layout, self._cipher.nonces, texts.size, count, 0, texts.size)
            writing.write(call._replace(regular=regular))
        start = layout.plaintext_start(count - 1)
        if start == texts.size:  # the final chunk is empty
            out = memoryview(bytearray(layout.overhead))
            self._cipher.seal(count - 1, array("Q", [0]), memoryview(b""), out, True)
            file.seek(layout.file_start(count - 1))
            write_whole(file, out)
        return True

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        lengths = self.layout.lengths(len(data), self._next, final, sealed=False)
        written = self._cipher.seal(self._next, lengths, data, out, final)
        self._next += len(lengths)
        return written

    def chunk_sizes(self) -> tuple[int, int] | None:
        return self._sizes()

    def copy(self, source: tuple[int, int], target: tuple[int, int], count: int) -> int:
        return self._copy(source, target, count, encrypts=True)

    def close(self) -> None:
        self._cipher.close()


class ChunkDecryptor(_Copies, Decryptor):
    """Decrypts a file whose chunks are sealed by a `ChunkCipher`."""

    reads_ranges = True

    def __init__(self, layout: Layout, cipher: ChunkCipher) -> None:
        count = layout.chunks_per_piece()
        self.layout = layout
        self.first_piece = layout.file_start(count) - layout.header_size
        self.piece = count * (layout.chunk + layout.overhead)
        self.capacity = count * layout.chunk
        self._cipher = cipher
        self._next = 0

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        lengths = self.layout.lengths(len(data), self._next, final, sealed=True)
        written = self._cipher.open(self._next, lengths, data, out, final)
        self._next += len(lengths)
        return written

    def chunk_sizes(self) -> tuple[int, int] | None:
        sizes = self._sizes()
        return sizes and sizes[::-1]

    def copy(self, source: tuple[int, int], target: tuple[int, int], count: int) -> int:
        return self._copy(source, target, count, encrypts=False)

    def seek(self, chunk: int, read_at: ReadAt) -> None:
        self._next = chunk

    def open_on_gpu(self, first: int, sealed: wc.DeviceArray, *, final: bool) -> wc.DeviceArray:
        lengths = self.layout.lengths(len(sealed), first, final, sealed=True)
        return self._cipher.open_on_gpu(first, lengths, sealed, final)

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
        layout = self.layout
        regular = _regular(
            layout,
            self._cipher.nonces,
            layout.plaintext_size(file_size),
            layout.chunk_count(file_size),
            position,
            length,
        )
        call = self._cipher.file_call(source, out)
        run(call._replace(begin=begin, regular=regular), stream)

    def close(self) -> None:
        self._cipher.close()

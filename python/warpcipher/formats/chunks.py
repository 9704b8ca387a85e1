# SPDX-License-Identifier: Apache-2.0
"""Chunked authenticated encryption, as C2SP, Tink, age, Crypt4GH and Iceberg do it: how a format
seals its chunks, said once (`sealing`), and the encryptor and decryptor of pieces by that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import warpcipher as wc

from .. import _later, _native
from .._types import AlgorithmName, StreamLike
from .base import Buffer, Decryptor, Encryptor, PieceCipher, ReadAt, wipe
from .file_chunks import authentication_failed, raise_failure, viewed
from .layout import Layout
from .whole import write_whole

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence, Sized

    from .write_chunks import Texts

# write_chunks, for texts on a GPU, is imported there: files are encrypted without it.

T = TypeVar("T")
TAG_SIZE = 16
NONCE_SIZE = 12


class Pattern(NamedTuple):
    """Bytes of each chunk that follow from its number: `base`, with these written into it.

    number_at:   where the number goes, 4 bytes; -1: nowhere. big_endian: of it.
    nonce_at:    where the nonce goes; -1: nowhere.
    length_size: so many bytes at the end are the length of the chunk's text, big-endian.
    """

    base: bytes
    number_at: int = -1
    big_endian: bool = False
    nonce_at: int = -1
    length_size: int = 0


def sealing(
    layout: Layout,
    algorithm: AlgorithmName,
    keys: bytearray | list[bytearray],
    engine: str,
    *,
    nonce: bytes | None = None,
    counter_shift: int = 0,
    final_shift: int = -1,
    number_from: int = 0,
    aad: Pattern | None = None,
    final_aad: Pattern | None = None,
    head: Pattern | None = None,
    final_head: Pattern | None = None,
    mac_hash: str = "",
    mac_key: bytearray | None = None,
) -> _native.Sealing:
    """How the chunks of one file are sealed.

    keys:       of the file, or several, of which each chunk is under one, and nothing says which;
                all are wiped here, and mac_key too.
    nonce:      nonce(i) = nonce XOR (number << counter_shift) XOR (final ? 1 << final_shift : 0),
                as big-endian numbers, number = number_from + i; None: a random one in front of each
                chunk.
    aad:        the associated data; None: there is none. final_aad: of the final chunk; None: as of
                others.
    head:       what lies in front of each ciphertext, and is checked; final_head likewise.
    mac_hash:   of an HMAC over nonce and ciphertext, for AES-CTR; "": the algorithm is an AEAD.
    """
    iv_length = NONCE_SIZE if nonce is None else len(nonce)
    front = len(head.base) if head else iv_length if nonce is None else 0
    every = keys if isinstance(keys, list) else [keys]
    try:
        return _native.Sealing(
            algorithm,
            [native_key(algorithm, key) for key in every],
            header=layout.header_size,
            chunk=layout.chunk,
            first_lacks=layout.chunk - layout.first_chunk,
            iv_length=iv_length,
            tag_length=layout.overhead - front,
            nonce=nonce,
            counter_shift=counter_shift,
            final_shift=final_shift,
            number_from=number_from,
            aad=aad,
            final_aad=final_aad,
            head=head,
            final_head=final_head,
            mac_hash=mac_hash,
            mac_key=mac_key,
            engine=engine,
        )
    finally:
        if mac_key is not None:
            wipe(mac_key)


def aes(mode: Literal["ctr", "gcm"], key: Sized) -> AlgorithmName:
    """The algorithm of that mode whose keys are as long as this one, 16, 24 or 32 bytes."""
    return cast("AlgorithmName", f"aes-{8 * len(key)}-{mode}")


def native_key(algorithm: str, key: bytearray) -> wc.Key:
    """The key as the engines hold it, wiped with the object; `key` itself is wiped here."""
    try:
        return wc.Key(algorithm, key)
    finally:
        wipe(key)


def open_key(key: T | None) -> T:
    """The key of a cipher that is not closed."""
    if key is None:
        raise ValueError("this encryptor or decryptor is closed")
    return key


class _Chunks(PieceCipher):
    """The base of encryptor and decryptor: the sealing, and the place in the file."""

    _encrypts: bool

    def __init__(self, layout: Layout, how: _native.Sealing) -> None:
        self.layout = layout
        self._open_sealing: _native.Sealing | None = how
        self._next = 0

    @property
    def _sealing(self) -> _native.Sealing:
        return open_key(self._open_sealing)

    def chunk_sizes(self) -> tuple[int, int] | None:
        if not self._sealing.copies:
            return None
        plain, sealed = self.layout.chunk, self.layout.chunk + self.layout.overhead
        return (plain, sealed) if self._encrypts else (sealed, plain)

    def copy(self, source: tuple[int, int], target: tuple[int, int], count: int) -> int:
        if self._next + count >= self.layout.max_chunks:
            raise self.layout.too_long()
        done, *errors = self._sealing.copy(self._encrypts, *source, *target, self._next, count)
        self._next += done
        for error, (file, _) in zip(errors, (source, target), strict=True):
            if error and self._encrypts:
                raise OSError(error, os.strerror(error), file)
        return done

    def close(self) -> None:
        self._open_sealing = None


class ChunkEncryptor(_Chunks, Encryptor):
    """Encrypts a file of chunks."""

    _encrypts = True

    def __init__(self, layout: Layout, header: bytes, how: _native.Sealing) -> None:
        super().__init__(layout, how)
        count = layout.chunks_per_piece()
        self.header = header
        self.first_piece = layout.plaintext_start(count)
        self.piece = count * layout.chunk
        self.capacity = self.piece + (count + 1) * layout.overhead

    def write_texts(self, file: io.FileIO, parts: Sequence[Any]) -> bool:
        writing = _later.load("formats.write_chunks")
        texts: Texts = writing.texts_of(parts)
        if not self._sealing.seals_on_gpu:
            return False
        layout = self.layout
        count = layout.count_in(texts.size, 0, True, sealed=False)
        write_whole(file, memoryview(self.header))
        if texts.size:
            failure = self._sealing.write(file.fileno(), *texts[:3], texts.size, count)
            writing.raise_failure(failure, "the encrypted file")
        if layout.plaintext_start(count - 1) == texts.size:  # the final chunk is empty
            out = memoryview(bytearray(layout.overhead))
            self._sealing.seal(count - 1, 1, True, b"", out)
            file.seek(layout.file_start(count - 1))
            write_whole(file, out)
        return True

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        count = self.layout.count_in(len(data), self._next, final, sealed=False)
        size = len(data) + count * self.layout.overhead
        if count:
            self._sealing.seal(self._next, count, final, data, out[:size])
        self._next += count
        return size


class ChunkDecryptor(_Chunks, Decryptor):
    """Decrypts a file of chunks."""

    _encrypts = False

    def __init__(
        self, layout: Layout, how: _native.Sealing, *, has_several_keys: bool = False
    ) -> None:
        super().__init__(layout, how)
        count = layout.chunks_per_piece()
        self.first_piece = layout.file_start(count) - layout.header_size
        self.piece = count * (layout.chunk + layout.overhead)
        self.capacity = count * layout.chunk
        self.reads_ranges = not has_several_keys

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        count = self.layout.count_in(len(data), self._next, final, sealed=True)
        size = len(data) - count * self.layout.overhead
        if count:
            bad = self._sealing.open(self._next, count, final, data, out[:size])
            if bad is not None:
                raise authentication_failed(bad)
        self._next += count
        return size

    def seek(self, chunk: int, read_at: ReadAt) -> None:
        self._next = chunk

    def open_on_gpu(self, first: int, sealed: wc.DeviceArray, *, final: bool) -> wc.DeviceArray:
        if not self._sealing.opens_on_gpu:
            return super().open_on_gpu(first, sealed, final=final)
        count = self.layout.count_in(len(sealed), first, final, sealed=True)
        plain = wc.DeviceArray(len(sealed) - count * self.layout.overhead, sealed.device, 0)
        out, stream = viewed(plain, None)
        bad = self._sealing.open(first, count, final, viewed(sealed, None)[0], out, stream)
        if bad is not None:
            raise authentication_failed(bad)
        return plain

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
        if not self.reads_ranges:
            raise ValueError("the file has several data keys: read it into host memory")
        view, pointer = viewed(out, stream)
        size, count = self.layout.plaintext_size(file_size), self.layout.chunk_count(file_size)
        failure = self._sealing.read(source, begin, size, count, position, length, view, pointer)
        if failure is not None:
            raise_failure(*failure)

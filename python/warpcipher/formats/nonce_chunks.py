# SPDX-License-Identifier: Apache-2.0
"""Files whose chunks each begin with a random nonce, as ags1 and Crypt4GH have them:

    chunk = nonce 12 || ciphertext || tag 16

The associated data of a chunk is a prefix and the chunk's number, u32 LE; or there is none.
"""

from __future__ import annotations

import secrets
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from .base import Buffer, Decryptor, Encryptor, Options, PieceCipher, ReadAt, wipe
from .chunks import TAG_SIZE, native_key, open_columns, open_key
from .file_chunks import FileChunksCall, authentication_failed, failure_of, raise_failure
from .layout import Layout

if TYPE_CHECKING:
    from .._types import AlgorithmName, StreamLike

NONCE_SIZE = 12
OVERHEAD = NONCE_SIZE + TAG_SIZE
NUMBER_SIZE = 4


class _NonceChunks(PieceCipher):
    """What encryption and decryption share: the key, the associated data, the place in the file."""

    def __init__(
        self,
        layout: Layout,
        algorithm: AlgorithmName,
        key: bytearray,
        options: Options,
        aad_prefix: bytes | None = None,
    ) -> None:
        """key: is wiped. aad_prefix: None: there is no associated data."""
        self.layout = layout
        self._algorithm = algorithm
        self._key: wc.Key | None = native_key(algorithm, key)
        self._prefix = aad_prefix
        self._engine = options.engine
        self._next = 0

    def _aads(self, first: int, count: int) -> dict[str, Any]:
        """The columns of associated data of chunks from number `first` on."""
        if self._prefix is None:
            return {}
        size = len(self._prefix) + NUMBER_SIZE
        numbers = range(first, first + count)
        return {
            "aad": b"".join(self._prefix + i.to_bytes(NUMBER_SIZE, "little") for i in numbers),
            "aad_offsets": array("Q", range(0, size * count, size)),
            "aad_lengths": array("Q", [size]) * count,
        }

    def close(self) -> None:
        self._key = None


class NonceChunkEncryptor(_NonceChunks, Encryptor):
    """Seals chunks under random nonces."""

    def __init__(
        self,
        layout: Layout,
        header: bytes,
        algorithm: AlgorithmName,
        key: bytearray,
        options: Options,
        aad_prefix: bytes | None = None,
    ) -> None:
        super().__init__(layout, algorithm, key, options, aad_prefix)
        count = layout.chunks_per_piece()
        self.header = header
        self.first_piece = self.piece = count * layout.chunk
        self.capacity = self.piece + (count + 1) * OVERHEAD

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        first = self._next
        lengths = self.layout.lengths(len(data), first, final, sealed=False)
        if not lengths:
            return 0
        self._next += len(lengths)
        *starts, size = accumulate((length + OVERHEAD for length in lengths), initial=0)
        nonces = secrets.token_bytes(NONCE_SIZE * len(starts))
        for i, start in enumerate(starts):
            out[start : start + NONCE_SIZE] = nonces[NONCE_SIZE * i : NONCE_SIZE * (i + 1)]
        wc.run_columns(
            self._algorithm,
            "encrypt",
            open_key(self._key),
            data,
            lengths=lengths,
            ivs=nonces,
            out=out[:size],
            out_offsets=[start + NONCE_SIZE for start in starts],
            engine=self._engine,
            **self._aads(first, len(starts)),
        ).raise_for_status()
        return size


class NonceChunkDecryptor(_NonceChunks, Decryptor):
    """Opens chunks, in order or from any on."""

    reads_ranges = True

    def __init__(
        self,
        layout: Layout,
        algorithm: AlgorithmName,
        key: bytearray,
        options: Options,
        aad_prefix: bytes | None = None,
    ) -> None:
        super().__init__(layout, algorithm, key, options, aad_prefix)
        count = layout.chunks_per_piece()
        self.first_piece = self.piece = count * (layout.chunk + OVERHEAD)
        self.capacity = count * layout.chunk

    def seek(self, chunk: int, read_at: ReadAt) -> None:
        self._next = chunk

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        first = self._next
        lengths = self.layout.lengths(len(data), first, final, sealed=True)
        if not lengths:
            return 0
        self._next += len(lengths)
        starts = list(accumulate(lengths, initial=0))[:-1]
        size = len(data) - OVERHEAD * len(lengths)
        columns = {
            "lengths": [length - NONCE_SIZE for length in lengths],
            "offsets": [start + NONCE_SIZE for start in starts],
            "ivs": b"".join([data[start : start + NONCE_SIZE] for start in starts]),
        }
        self._open(first, data, out[:size], columns)
        return size

    def _open(self, first: int, data: memoryview, out: memoryview, columns: dict[str, Any]) -> None:
        """Decrypts chunks, from number `first` on. On a failure `out` is wiped."""
        aads = self._aads(first, len(columns["lengths"]))
        key = open_key(self._key)
        open_columns(first, self._algorithm, key, data, out, **columns, **aads, engine=self._engine)

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
        size = layout.plaintext_size(file_size)
        first, skip = layout.locate(position)
        last, _ = layout.locate(position + length - 1) if length else (first - 1, 0)
        count = last + 1 - first
        lengths = array("Q", [layout.chunk]) * count
        skips = array("Q", [0]) * count
        if count:
            lengths[-1] = min(layout.chunk, size - last * layout.chunk)
            skips[0] = skip
        takes = array("Q", lengths)
        if count:
            takes[0] -= skip
            takes[-1] -= (last * layout.chunk + lengths[-1]) - (position + length)
        step = layout.chunk + OVERHEAD
        start = layout.file_start(first)
        call = FileChunksCall(
            source=source,
            algorithm=self._algorithm,
            keys=open_key(self._key),
            out=out,
            tag_length=TAG_SIZE,
            begin=begin,
            offsets=array("Q", range(start, start + count * step, step)),
            lengths=lengths,
            skips=skips,
            takes=takes,
            iv_length=NONCE_SIZE,
            engine=self._engine,
            **self._aads(first, count),
        )
        failure = failure_of(call, stream)
        if failure is not None:
            kind, chunk, place, error = failure
            raise_failure(kind, first + chunk, place, error)


class SeveralKeysDecryptor(NonceChunkDecryptor):
    """Chunks without associated data, each under one of several keys, which nothing names."""

    reads_ranges = False

    def __init__(
        self,
        layout: Layout,
        algorithm: AlgorithmName,
        key: bytearray,
        others: list[bytearray],
        options: Options,
    ) -> None:
        """key, others: are wiped."""
        super().__init__(layout, algorithm, key, options)
        self._keys = [open_key(self._key), *(native_key(algorithm, other) for other in others)]

    def _open(self, first: int, data: memoryview, out: memoryview, columns: dict[str, Any]) -> None:
        open_key(self._key)
        lengths, offsets, ivs = columns["lengths"], columns["offsets"], columns["ivs"]
        places = list(accumulate((length - TAG_SIZE for length in lengths), initial=0))
        left = list(range(len(lengths)))
        try:
            for key in list(self._keys):
                done = wc.run_columns(
                    self._algorithm,
                    "decrypt",
                    key,
                    data,
                    lengths=[lengths[i] for i in left],
                    offsets=[offsets[i] for i in left],
                    ivs=b"".join([ivs[NONCE_SIZE * i : NONCE_SIZE * (i + 1)] for i in left]),
                    out=out,
                    out_offsets=[places[i] for i in left],
                    engine=self._engine,
                )
                left = [
                    i for i, status in zip(left, done.status, strict=True) if status != wc.Status.OK
                ]
                if not left:
                    # Chunks that follow each other are mostly of one key: it is tried first.
                    self._keys.remove(key)
                    self._keys.insert(0, key)
                    return
        except BaseException:
            wipe(out)
            raise
        wipe(out)
        raise authentication_failed(first + left[0])

    def read_range(self, *range_: Any, **others: Any) -> None:
        raise ValueError("the file has several data keys: read it into host memory")

    def close(self) -> None:
        super().close()
        self._keys.clear()

# SPDX-License-Identifier: Apache-2.0
"""Chunks of Tink's AES-CTR-HMAC streaming."""

from __future__ import annotations

import hmac
import os
from array import array
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from .base import Buffer, wipe
from .chunks import NonceColumn, aes, native_key, open_key
from .file_chunks import FileChunksCall, authentication_failed
from .write_chunks import Texts, WriteChunksCall

if TYPE_CHECKING:
    from .._types import Direction


class CtrHmacChunks:
    """Chunks that are AES-CTR with HMAC over nonce and ciphertext (Tink's AES-CTR-HMAC streaming):

        chunk = ciphertext || HMAC(mac key, nonce || ciphertext) cut to tag_size bytes

    The nonce, 16 bytes with the last four zero, is the initial counter block. Tags are all checked
    before anything is decrypted.
    """

    # Below this chunk size one thread is faster: the interpreter lock changes hands at every chunk.
    PARALLEL_CHUNK = 64 << 10

    def __init__(
        self,
        key: bytearray,
        mac_key: bytearray,
        mac_hash: str,
        tag_size: int,
        nonces: NonceColumn,
        engine: str,
    ) -> None:
        self._algorithm = aes("ctr", key)
        self._key: wc.Key | None = native_key(self._algorithm, key)
        self._mac_key = mac_key
        self._mac_hash = mac_hash
        self._tag_size = tag_size
        self.nonces = nonces
        self._engine = engine
        self._pool: ThreadPoolExecutor | None = None

    def _tags(
        self, nonces: bytes, data: memoryview, offsets: array[int], lengths: array[int]
    ) -> list[bytes]:
        """The tags of the ciphertexts at data[offset : offset + length]."""
        keyed = hmac.new(self._mac_key, digestmod=self._mac_hash)
        size = self._tag_size

        def tag(index: int) -> bytes:
            mac = keyed.copy()
            mac.update(nonces[16 * index : 16 * index + 16])
            mac.update(data[offsets[index] : offsets[index] + lengths[index]])
            return mac.digest()[:size]

        if len(lengths) == 1 or lengths[0] < self.PARALLEL_CHUNK:
            return [tag(i) for i in range(len(lengths))]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "warpcipher-hmac")
        return list(self._pool.map(tag, range(len(lengths))))

    def _crypt(
        self,
        direction: Direction,
        nonces: bytes,
        data: memoryview,
        offsets: array[int] | None,
        lengths: array[int],
        out: memoryview,
        out_offsets: array[int] | None,
    ) -> None:
        wc.run_columns(
            self._algorithm,
            direction,
            open_key(self._key),
            data,
            lengths=lengths,
            offsets=offsets,
            ivs=nonces,
            out=out,
            out_offsets=out_offsets,
            engine=self._engine,
        ).raise_for_status()

    def seal(
        self, first: int, lengths: array[int], data: memoryview, out: memoryview, final: bool
    ) -> int:
        size = len(data) + self._tag_size * len(lengths)
        nonces = self.nonces.build(first, len(lengths), final)
        ends = array("Q", accumulate(length + self._tag_size for length in lengths))
        offsets = array("Q", [0]) + ends[:-1]
        self._crypt("encrypt", nonces, data, None, lengths, out[:size], offsets)
        for end, tag in zip(ends, self._tags(nonces, out, offsets, lengths), strict=True):
            out[end - len(tag) : end] = tag
        return size

    def open(
        self, first: int, lengths: array[int], data: memoryview, out: memoryview, final: bool
    ) -> int:
        size = len(data) - self._tag_size * len(lengths)
        nonces = self.nonces.build(first, len(lengths), final)
        ends = array("Q", accumulate(lengths))
        offsets = array("Q", [0]) + ends[:-1]
        texts = array("Q", (length - self._tag_size for length in lengths))
        expected = self._tags(nonces, data, offsets, texts)
        given = [data[end - self._tag_size : end] for end in ends]
        if not hmac.compare_digest(b"".join(expected), b"".join(given)):
            pairs = enumerate(zip(expected, given, strict=True))
            raise authentication_failed(
                first + next(i for i, (want, have) in pairs if not hmac.compare_digest(want, have))
            )
        self._crypt("decrypt", nonces, data, offsets, texts, out[:size], None)
        return size

    def file_call(self, source: int | Buffer, out: Any) -> FileChunksCall:
        return FileChunksCall(
            source=source,
            algorithm=self._algorithm,
            keys=open_key(self._key),
            out=out,
            tag_length=self._tag_size,
            mac_hash=self._mac_hash,
            mac_key=self._mac_key,
            engine=self._engine,
        )

    def open_on_gpu(
        self, first: int, lengths: array[int], sealed: wc.DeviceArray, final: bool
    ) -> wc.DeviceArray:
        raise ValueError("a GPU does not authenticate AES-CTR-HMAC: read it without kvikio")

    def write_call(self, target: int, texts: Texts) -> WriteChunksCall | None:
        return None  # libcrypto computes the HMAC

    def close(self) -> None:
        self._key = None
        wipe(self._mac_key)
        if self._pool is not None:
            self._pool.shutdown(wait=False)

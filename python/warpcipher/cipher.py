# SPDX-License-Identifier: Apache-2.0
"""One class for one message of any algorithm."""

from __future__ import annotations

from typing import Any, Literal, overload

from . import _later, _native
from ._types import AlgorithmName, ArrayT, Buffer, BufferT, CipherOptions, Data, StreamLike, Unpack
from ._uncopied import INSTEAD_OF_A_KEY, Uncopied
from .arguments import is_padded, make_key, require_engine


class Cipher(Uncopied):
    """An algorithm with a key.

    algorithm: a name of `algorithms()`, such as "aes-256-ctr".
    key:       bytes-like of the length that the algorithm takes, or a `Key` of that algorithm.
    padding:   None (the data of ECB and CBC is a multiple of the block) or "pkcs7" (ECB and CBC).
    engine:    "auto" or a name of `engines()`; WARPCIPHER_ENGINE overrides "auto".

    Safe to use from several threads. ValueError: unknown algorithm or padding, wrong length of key.

    >>> import warpcipher as wc
    >>> cipher = wc.Cipher("aes-128-ctr", bytes(16))
    >>> sealed = cipher.encrypt(b"attack at dawn", iv=bytes(16))
    >>> cipher.decrypt(sealed, iv=bytes(16))
    b'attack at dawn'
    """

    __slots__ = ("_decrypt", "_encrypt", "_engine", "_key", "_padded")
    _instead = INSTEAD_OF_A_KEY

    def __init__(
        self,
        algorithm: AlgorithmName,
        key: Buffer | _native.Key,
        *,
        padding: Literal["pkcs7"] | None = None,
        engine: str = "auto",
    ) -> None:
        self._key = make_key(algorithm, key)
        self._padded = is_padded(padding)
        self._engine = require_engine(engine)
        plain = _native.PlainCipher(self._key, self._padded, engine)
        self._encrypt = plain.encrypt
        self._decrypt = plain.decrypt

    @property
    def algorithm(self) -> str:
        """The algorithm's name."""
        return self._key.algorithm

    @overload
    def encrypt(
        self, data: ArrayT, *, out: None = None, **more: Unpack[CipherOptions]
    ) -> ArrayT: ...

    @overload
    def encrypt(
        self, data: Buffer, *, out: None = None, **more: Unpack[CipherOptions]
    ) -> bytes: ...

    @overload
    def encrypt(self, data: Data, *, out: ArrayT, **more: Unpack[CipherOptions]) -> ArrayT: ...

    @overload
    def encrypt(
        self, data: Data, *, out: BufferT, **more: Unpack[CipherOptions]
    ) -> BufferT | memoryview: ...

    def encrypt(
        self,
        data: Any,
        *,
        iv: Buffer | None = None,
        aad: Buffer | None = None,
        tag_length: int = 16,
        out: Any = None,
        stream: StreamLike = None,
    ) -> Any:
        """Encrypts one message. AEADs return ciphertext || tag.

        data:       bytes-like, or an array of any type, taken as bytes: NumPy, or whatever speaks
                    DLPack or the CUDA array interface. C-contiguous, or BufferError.
        iv:         bytes-like: one block; a nonce of any length for GCM, of 12 bytes for GCM-SIV
                    and ChaCha20-Poly1305, of 24 for XChaCha20-Poly1305, which must never be used
                    twice with one key, except for GCM-SIV; 16 bytes for chacha20; ECB takes none.
        aad:        only for AEADs: bytes that are authenticated and not encrypted.
        tag_length: only for GCM: 4, 8 or 12 to 16 bytes; 16 in other AEADs.
        out:        a writable buffer or array, in the same memory as data, or data itself. None: a
                    new bytes object for bytes-like data, else a new array of uint8 of the same
                    library on the same device.
        stream:     for data on a GPU: see docs/python.md. None takes the library's current stream.

        Returns the new object; or `out` if it is full, else a view of the bytes written.
        Work on a GPU is enqueued on the stream and not waited for.
        """
        if stream is None:
            done = self._encrypt(data, out, iv, aad, tag_length)
            if done is not None:
                return done if type(done) is not int else memoryview(out).cast("B")[:done]
        return self._run(False, data, iv, aad, tag_length, out, stream)

    @overload
    def decrypt(
        self, data: ArrayT, *, out: None = None, **more: Unpack[CipherOptions]
    ) -> ArrayT: ...

    @overload
    def decrypt(
        self, data: Buffer, *, out: None = None, **more: Unpack[CipherOptions]
    ) -> bytes: ...

    @overload
    def decrypt(self, data: Data, *, out: ArrayT, **more: Unpack[CipherOptions]) -> ArrayT: ...

    @overload
    def decrypt(
        self, data: Data, *, out: BufferT, **more: Unpack[CipherOptions]
    ) -> BufferT | memoryview: ...

    def decrypt(
        self,
        data: Any,
        *,
        iv: Buffer | None = None,
        aad: Buffer | None = None,
        tag_length: int = 16,
        out: Any = None,
        stream: StreamLike = None,
    ) -> Any:
        """Decrypts one message; the arguments are as for `encrypt`.

        InvalidTag: an AEAD's tag does not match. ValueError: the padding does not match. Either way
        `out` holds zeros. Telling an attacker which of his ciphertexts had good padding gives the
        text away: prefer an AEAD.
        On a GPU an AEAD and padded data are waited for, since the result must be known; nothing
        else is.
        """
        if stream is None:
            done = self._decrypt(data, out, iv, aad, tag_length)
            if done is not None:
                return done if type(done) is not int else memoryview(out).cast("B")[:done]
        return self._run(True, data, iv, aad, tag_length, out, stream)

    def _run(
        self,
        decrypt: bool,
        data: Any,
        iv: Buffer | None,
        aad: Buffer | None,
        tag_length: int,
        out: Any,
        stream: StreamLike,
    ) -> Any:
        return _later.load("arrays").crypt(
            self._key, decrypt, self._padded, self._engine, data, out, iv, aad, tag_length, stream
        )

    def __repr__(self) -> str:
        padding = ", padding='pkcs7'" if self._padded else ""
        engine = "" if self._engine == "auto" else f", engine={self._engine!r}"
        return f"<warpcipher.Cipher {self.algorithm}{padding}{engine}>"

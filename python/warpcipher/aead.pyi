# SPDX-License-Identifier: Apache-2.0
# The classes of bindings/aead.cpp, with the type of each result. A test holds the two together.
from typing import final, overload

from ._types import ArrayT, Buffer, Data

__all__ = ["AESCCM", "AESGCM", "AESGCMSIV", "ChaCha20Poly1305", "XChaCha20Poly1305"]

# The common part of the classes, only for types: they have no common base.
class _Methods:
    def __init__(self, key: Buffer, *, engine: str = "auto") -> None: ...
    @overload
    def encrypt(self, nonce: Buffer, data: ArrayT, associated_data: Buffer | None) -> ArrayT: ...
    @overload
    def encrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None) -> bytes: ...
    @overload
    def decrypt(self, nonce: Buffer, data: ArrayT, associated_data: Buffer | None) -> ArrayT: ...
    @overload
    def decrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None) -> bytes: ...
    def encrypt_into(
        self, nonce: Buffer, data: Data, associated_data: Buffer | None, buf: Data
    ) -> int: ...
    def decrypt_into(
        self, nonce: Buffer, data: Data, associated_data: Buffer | None, buf: Data
    ) -> int: ...

@final
class AESCCM(_Methods):
    def __init__(self, key: Buffer, tag_length: int = 16, *, engine: str = "auto") -> None: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes: ...

@final
class AESGCM(_Methods):
    @staticmethod
    def generate_key(bit_length: int) -> bytes: ...

@final
class AESGCMSIV(_Methods):
    @staticmethod
    def generate_key(bit_length: int) -> bytes: ...

@final
class ChaCha20Poly1305(_Methods):
    @staticmethod
    def generate_key() -> bytes: ...

@final
class XChaCha20Poly1305(_Methods):
    @staticmethod
    def generate_key() -> bytes: ...

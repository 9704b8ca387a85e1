# SPDX-License-Identifier: Apache-2.0
# What bindings/aead.cpp defines, with the type of each result. A test holds the two together.
from typing import final, overload

from ._types import ArrayT, Buffer, Data

__all__ = ["AESGCM"]

@final
class AESGCM:
    def __init__(self, key: Buffer, *, engine: str = "auto") -> None: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes: ...
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

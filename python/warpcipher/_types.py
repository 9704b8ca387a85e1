# SPDX-License-Identifier: Apache-2.0
"""Types of arguments. Types that only checkers know are `object` at run time."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict, TypeVar

from . import _native

if TYPE_CHECKING:
    from typing_extensions import Buffer as Buffer
    from typing_extensions import Self as Self
    from typing_extensions import Unpack as Unpack
else:
    Buffer = Self = Unpack = object

PathLike: TypeAlias = "str | os.PathLike[str]"

StreamLike: TypeAlias = object
"""None, an int as DLPack has it, or a stream object of an array library: docs/python.md."""


Direction: TypeAlias = Literal["encrypt", "decrypt"]
"""So that a checker sees "encrpyt"."""

AlgorithmName: TypeAlias = Literal[
    "aes-128-ecb", "aes-128-cbc", "aes-128-cfb", "aes-128-cfb8", "aes-128-ofb", "aes-128-ctr",
    "aes-128-gcm", "aes-128-xts", "aes-128-gcm-siv", "aes-128-ccm", "aes-192-ecb", "aes-192-cbc",
    "aes-192-cfb", "aes-192-cfb8", "aes-192-ofb", "aes-192-ctr", "aes-192-gcm", "aes-192-ccm",
    "aes-256-ecb", "aes-256-cbc", "aes-256-cfb", "aes-256-cfb8", "aes-256-ofb", "aes-256-ctr",
    "aes-256-gcm", "aes-256-xts", "aes-256-gcm-siv", "aes-256-ccm", "des-ecb", "des-cbc", "des-cfb",
    "des-cfb8", "des-ofb", "des-ede2-ecb", "des-ede2-cbc", "des-ede2-cfb", "des-ede2-cfb8",
    "des-ede2-ofb", "des-ede3-ecb", "des-ede3-cbc", "des-ede3-cfb", "des-ede3-cfb8", "des-ede3-ofb",
    "chacha20", "chacha20-poly1305", "xchacha20-poly1305",
]  # fmt: skip
"""The names that `warpcipher.algorithms()` lists, so that a checker sees "aes-128-gmc". A test
compares them. For a name known only at run time, call `warpcipher.find_algorithm`."""


class DLPackArray(Protocol):
    """An array that speaks DLPack: of NumPy, PyTorch, CuPy, JAX. `__dlpack__` is not named here, as
    NumPy types that only for numbers."""

    def __dlpack_device__(self) -> tuple[object, object]: ...


class CudaArray(Protocol):
    """An array with the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> object: ...


Data: TypeAlias = Buffer | DLPackArray | CudaArray
"""Objects that are taken as bytes."""

ArrayT = TypeVar("ArrayT", bound=DLPackArray | CudaArray)
"""The type of an array, and of the result next to it: arrays of one library have one type."""

BufferT = TypeVar("BufferT", bound=Buffer)
"""The type of a buffer that is written to. The result is the buffer, or a view of its beginning."""

DataT = TypeVar("DataT", bound=Data)
"""The type of an output that is always returned as it is."""


class MessageOptions(TypedDict, total=False):
    """The keywords of a message that the type of its result does not depend on; `out` is the other.
    Overloads share them: what a function's own documentation says of each holds."""

    iv: Buffer | None
    aad: Buffer | None
    tag_length: int
    padding: Literal["pkcs7"] | None


class SubmitOptions(MessageOptions, total=False):
    """The keywords of `Queue.submit`."""

    submitter: Hashable
    timeout: float | None


class CipherOptions(TypedDict, total=False):
    """The keywords of `Cipher`, which has one padding for all messages."""

    iv: Buffer | None
    aad: Buffer | None
    tag_length: int
    stream: StreamLike


Integers: TypeAlias = Buffer | Sequence[int]
"""A column of integers."""

Keys: TypeAlias = Buffer | _native.Key | Sequence[Buffer | _native.Key]
"""The key of all messages, or those that a column chooses from."""


class ColumnOptions(TypedDict, total=False):
    """The keywords of `run_columns`."""

    offsets: Integers | None
    key_index: Integers | None
    ivs: Buffer | None
    aad: Buffer | None
    aad_offsets: Integers | None
    aad_lengths: Integers | None
    tag_length: int
    padding: Literal["pkcs7"] | None
    out_offsets: Integers | None
    engine: str
    stream: StreamLike

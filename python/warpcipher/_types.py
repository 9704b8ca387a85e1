# SPDX-License-Identifier: Apache-2.0
"""Types of arguments, for checkers alone: nothing imports this file at run time."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, TypeVar

from typing_extensions import Buffer as Buffer

StreamLike: TypeAlias = object
"""None, an int as DLPack has it, or a stream object of an array library: docs/python.md."""


Direction: TypeAlias = Literal["encrypt", "decrypt"]
"""So that a checker sees "encrpyt". Algorithms are any str: programs compute them, and their list
grows."""


class DLPackArray(Protocol):
    """An array that speaks DLPack: of NumPy, PyTorch, CuPy, JAX. `__dlpack__` is not named here, as
    NumPy types that for numbers alone."""

    def __dlpack_device__(self) -> tuple[object, object]: ...


class CudaArray(Protocol):
    """An array with the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> object: ...


Data: TypeAlias = Buffer | DLPackArray | CudaArray
"""What is taken as bytes."""

ArrayT = TypeVar("ArrayT", bound=DLPackArray | CudaArray)
"""The type of an array, and of the result beside it: arrays of one library have one type."""

BufferT = TypeVar("BufferT", bound=Buffer)
"""The type of a buffer that is written to. The result is the buffer, or a view of its beginning."""

DataT = TypeVar("DataT", bound=Data)
"""The type of an output that is always returned as it is."""

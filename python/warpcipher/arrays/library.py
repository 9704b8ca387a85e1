# SPDX-License-Identifier: Apache-2.0
"""The interface of an array library, the words in which its arrays are refused, and CUDA streams:
what callers give as one, and the order between two."""

from __future__ import annotations

from typing import Any, Protocol

from .. import _native
from .._types import StreamLike


class Library(Protocol):
    """The interface of an array library for this package.

    owns_types: whether `owns` depends only on the type of x.
    one_stream: whether all arrays of a device have the same current stream.
    """

    owns_types: bool
    one_stream: bool

    def owns(self, x: Any) -> bool:
        """Whether x is an array of this library."""

    def device(self, x: Any) -> int | None:
        """The CUDA ordinal of x, or None for host memory."""

    def current_stream(self, x: Any) -> int:
        """The stream on which the library works on x now; 0 for arrays in host memory."""

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        """x as a buffer or a `Span`, ready on `stream` (None: on the library's current stream).

        BufferError when it is not contiguous.
        """

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        """An array of `size` bytes where `like` lies; `stream` is the one asked for, if any."""

    def head(self, x: Any, size: int) -> Any:
        """The first `size` bytes of x as a flat array, sharing its memory."""

    def finish(self, x: Any) -> Any:
        """The user's array for one that `empty` made."""


def refuse_layout(name: str, what: str) -> BufferError:
    return BufferError(f"{name} is not C-contiguous ({what}): copy it first")


def refuse_content(name: str, what: str, given: str) -> TypeError:
    return TypeError(f"{name} holds {what} ({given}): expected bytes or an array of numbers")


def refuse_mask(name: str) -> BufferError:
    return BufferError(f"{name} is a masked array, and bytes have no mask: give its data")


LEGACY_STREAM = 1
"""The legacy default stream, by DLPack's and CUDA's number."""


def stream_pointer(stream: StreamLike) -> int | None:
    """A stream argument as cudaStream_t.

    None:   not said. An int is DLPack's: 1 the legacy default stream, 2 the per-thread one, else a
            cudaStream_t. Objects: `__cuda_stream__` (CUDA stream protocol), `.cuda_stream`
            (PyTorch), `.ptr` (CuPy).
    """
    if stream is None:
        return None
    if isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 < stream < 1 << 64:
            raise ValueError(
                f"stream is {stream}: expected None, 1 (legacy default stream), 2 (per-thread "
                "default stream) or a cudaStream_t; 0 is ambiguous"
            )
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, pointer = protocol() if callable(protocol) else protocol
        if version != 0:
            raise TypeError(f"stream has version {version} of the CUDA stream protocol: expected 0")
        return int(pointer)
    for attribute in ("cuda_stream", "ptr"):
        pointer = getattr(stream, attribute, None)
        if isinstance(pointer, int):
            return pointer
    raise TypeError(f"stream is {type(stream).__name__}: expected None, an int or a CUDA stream")


def wait(stream: int, other: int, device: int) -> None:
    """Makes `stream` wait for `other`. 0 and 1 are both the legacy default stream."""
    if (stream or LEGACY_STREAM) != (other or LEGACY_STREAM):
        _native.stream_wait(stream, other, device)

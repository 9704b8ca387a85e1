# SPDX-License-Identifier: Apache-2.0
"""CUDA streams: what callers give as one, and the order between two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _native

if TYPE_CHECKING:
    from .._types import StreamLike

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

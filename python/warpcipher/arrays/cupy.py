# SPDX-License-Identifier: Apache-2.0
"""Arrays of CuPy, on GPUs."""

from __future__ import annotations

import sys
from typing import Any

from .. import _native
from .library import refuse_layout, wait


class CuPy:
    """Arrays: memory of CuPy's pool, on its current stream of the device."""

    owns_types = True
    one_stream = True

    def owns(self, x: Any) -> bool:
        cupy = sys.modules.get("cupy")
        return cupy is not None and isinstance(x, cupy.ndarray)

    def device(self, x: Any) -> int | None:
        device: int = x.device.id
        return device

    def current_stream(self, x: Any) -> int:
        stream: int = sys.modules["cupy"].cuda.get_current_stream(x.device.id).ptr
        return stream

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        if not x.flags.c_contiguous:
            raise refuse_layout(name, f"cupy.ndarray with strides {x.strides}")
        if stream is not None:
            wait(stream, self.current_stream(x), x.device.id)
        return _native.Span(x.data.ptr, x.nbytes, x.device.id, False, x)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(like.device.id):
            if stream is None:
                return cupy.empty(size, cupy.uint8)
            with self._external(stream, like.device.id):
                return cupy.empty(size, cupy.uint8)

    @staticmethod
    def _external(stream: int, device: int) -> Any:
        cuda = sys.modules["cupy"].cuda
        if hasattr(cuda.Stream, "from_external"):
            return cuda.Stream.from_external(_ExternalStream(stream))
        return cuda.ExternalStream(stream, device)  # before CuPy 14

    def head(self, x: Any, size: int) -> Any:
        return x.reshape(-1).view(sys.modules["cupy"].uint8)[:size]

    def finish(self, x: Any) -> Any:
        return x


class _ExternalStream:
    """A stream for libraries that take one by the CUDA stream protocol."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._pointer

# SPDX-License-Identifier: Apache-2.0
"""Arrays of any other library, by the CUDA array interface or DLPack."""

from __future__ import annotations

from typing import Any

from .. import _native
from .library import LEGACY_STREAM, refuse_content, refuse_layout, refuse_mask, wait

_DLPACK_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged


class Exchange:
    """Through the CUDA array interface where an array has it, else through DLPack."""

    owns_types = False
    one_stream = False

    def owns(self, x: Any) -> bool:
        return hasattr(x, "__cuda_array_interface__") or hasattr(x, "__dlpack__")

    def device(self, x: Any) -> int | None:
        if not hasattr(x, "__dlpack_device__"):
            # The interface has no device: it is where the pointer belongs.
            return _native.pointer_device(x.__cuda_array_interface__["data"][0])
        kind, ordinal = x.__dlpack_device__()
        if int(kind) in _DLPACK_HOST:
            return None
        if int(kind) not in _DLPACK_CUDA:
            raise BufferError(
                f"{type(x).__name__} lies on a device of DLPack type {int(kind)}: "
                "expected host or CUDA memory"
            )
        return int(ordinal)

    def current_stream(self, x: Any) -> int:
        if self.device(x) is None:
            return 0
        interface = getattr(x, "__cuda_array_interface__", None)
        return LEGACY_STREAM if interface is None else interface.get("stream") or LEGACY_STREAM

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        if stream is None:  # these libraries may work on several streams at once
            stream = self.current_stream(x)
        interface = getattr(x, "__cuda_array_interface__", None)
        if interface is not None:
            return self._view_interface(x, interface, name, stream)
        if self.device(x) is None:
            return _native.span_from_dlpack(capsule(x, write), write)
        return _native.span_from_dlpack(capsule(x, write, stream=stream or LEGACY_STREAM), write)

    def _view_interface(self, x: Any, interface: dict[str, Any], name: str, stream: int) -> Any:
        if interface.get("mask") is not None:
            raise refuse_mask(name)
        kind = interface["typestr"]
        if kind[1:2] in ("O", "U"):
            what = "text" if kind[1] == "U" else "Python objects"
            raise refuse_content(name, what, f"{type(x).__name__} of type {kind}")
        item = int(kind[2:])
        size = step = item
        strides = interface.get("strides")
        for i, extent in reversed(list(enumerate(interface["shape"]))):
            if strides is not None and extent > 1 and strides[i] != step:
                raise refuse_layout(name, f"{type(x).__name__} with strides {strides}")
            step *= extent
            size *= extent
        pointer, readonly = interface["data"]
        device = self.device(x)
        producer = interface.get("stream")
        if producer is not None and device is not None:
            wait(stream, producer, device)
        return _native.Span(pointer or 0, size, device, readonly, x)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        device = self.device(like)
        if device is None:
            raise TypeError(f"no way to make a {type(like).__name__}: give out=")
        if stream is None:
            stream = self.current_stream(like)
        return _native.DeviceArray(size, device, stream)

    def head(self, x: Any, size: int) -> Any:
        if isinstance(x, _native.DeviceArray):
            x.truncate(size)
            return x
        if hasattr(x, "reshape") and hasattr(x, "view"):
            return x.reshape(-1).view("uint8")[:size]
        raise ValueError(
            f"{size} bytes were written, and nothing can return a part of a "
            f"{type(x).__name__}: give an out of that size"
        )

    def finish(self, x: Any) -> Any:
        return x


def capsule(x: Any, write: bool, **options: Any) -> Any:
    """x's DLPack capsule; versioned where x can: only then does it say what is read-only."""
    try:
        return x.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer from before DLPack 1.0
        return x.__dlpack__(**options)

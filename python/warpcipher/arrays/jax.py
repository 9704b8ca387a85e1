# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX, in host memory and on GPUs."""

from __future__ import annotations

import sys
from typing import Any

from .. import _native
from .exchange import Exchange, capsule
from .library import LEGACY_STREAM


class Jax(Exchange):
    """These cannot be written to: a result is made in other memory and handed over by DLPack."""

    owns_types = False  # jax.Array is an abstract class
    one_stream = True

    def owns(self, x: Any) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and isinstance(x, jax.Array)

    def device(self, x: Any) -> int | None:
        if isinstance(x, sys.modules["jax"].core.Tracer):
            raise TypeError("data is a jax.Tracer: ciphers work on concrete arrays, outside of jit")
        if not hasattr(x, "__dlpack_device__"):  # an extended dtype
            raise TypeError(
                f"data is a jax.Array of {x.dtype}: expected one of numbers, such as what "
                "jax.random.key_data gives of keys"
            )
        return super().device(x)

    def current_stream(self, x: Any) -> int:
        return 0 if self.device(x) is None else LEGACY_STREAM

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        if isinstance(x, _native.DeviceArray | bytearray):  # a result of `empty`
            return x if isinstance(x, bytearray) else super().view(x, name, stream, write)
        if write:
            raise BufferError(f"{name} is a jax.Array, which cannot be written to: omit out=")
        if self.device(x) is None:
            return _native.span_from_dlpack(capsule(x, write), write)
        return _native.span_from_dlpack(capsule(x, write, stream=stream or LEGACY_STREAM), write)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        if self.device(like) is None:
            return bytearray(size)
        return super().empty(size, like, stream)

    def head(self, x: Any, size: int) -> Any:
        return x[:size]

    def finish(self, x: Any) -> Any:
        if isinstance(x, bytearray):
            import numpy  # JAX has it

            return handed_over(numpy.frombuffer(x, numpy.uint8))
        if isinstance(x, _native.DeviceArray):
            import importlib

            return importlib.import_module("jax.dlpack").from_dlpack(x)
        return x


def handed_over(x: Any) -> Any:
    """An array of JAX in host memory with the content of one of NumPy: in its memory, where that
    suits JAX, else in a copy; then it is wiped, also after an error."""
    jax = sys.modules["jax"]
    is_same_memory = False
    try:
        found = jax.device_put(x, jax.devices("cpu")[0])
        found.block_until_ready()  # else it may be wiped before it is copied
        # may_alias=False does not prevent it: JAX takes memory that begins at a multiple of 64
        # bytes as it is.
        is_same_memory = found.unsafe_buffer_pointer() == x.ctypes.data
        return found
    finally:
        if not is_same_memory:
            x.reshape(-1).view("uint8")[:] = 0  # plaintext, perhaps

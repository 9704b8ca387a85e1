# SPDX-License-Identifier: Apache-2.0
"""What is known of each array library: how to find the memory of an array, wait for what is written
there, and make another beside it.

No array library is imported here: an array's library is loaded already, so it is found in
sys.modules. A new library is a class below and a line in `LIBRARIES`.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from . import _native

LEGACY_STREAM = 1
"""The legacy default stream, by DLPack's and CUDA's number."""


class Library(Protocol):
    """What `_arrays` needs of an array library.

    owns_types: whether `owns` depends on the type of x alone.
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
        """An array of `size` bytes beside `like`; `stream` is the one asked for, if any."""

    def head(self, x: Any, size: int) -> Any:
        """The first `size` bytes of x as a flat array, sharing its memory."""

    def finish(self, x: Any) -> Any:
        """What the user gets for an array that `empty` made."""


def _refuse_layout(name: str, what: str) -> BufferError:
    return BufferError(f"{name} is not C-contiguous ({what}): copy it first")


def _refuse_content(name: str, what: str, given: str) -> TypeError:
    return TypeError(f"{name} holds {what} ({given}): expected bytes or an array of numbers")


def wait(stream: int, other: int, device: int) -> None:
    """Makes `stream` wait for `other`. 0 and 1 are both the legacy default stream."""
    if (stream or LEGACY_STREAM) != (other or LEGACY_STREAM):
        _native.stream_wait(stream, other, device)


class _Buffers:
    """bytes, bytearray, memoryview, array.array, mmap: whatever has the buffer protocol alone."""

    owns_types = False
    one_stream = False

    def owns(self, x: Any) -> bool:
        try:
            memoryview(x)
        except TypeError:
            return False
        except BufferError:  # the refusal of a bytearray in resizing, say; the run names it
            return True
        return True

    def device(self, x: Any) -> int | None:
        return None

    def current_stream(self, x: Any) -> int:
        return 0

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        return x

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        return bytearray(size)

    def head(self, x: Any, size: int) -> Any:
        return memoryview(x).cast("B")[:size]

    def finish(self, x: Any) -> Any:
        return x


class _NumPy(_Buffers):
    owns_types = True
    one_stream = True

    def owns(self, x: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(x, numpy.ndarray)

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        if not x.flags.c_contiguous:
            raise _refuse_layout(name, f"numpy.ndarray with strides {x.strides}")
        if write and not x.flags.writeable:
            raise BufferError(f"{name} is a read-only numpy.ndarray: give a writable array")
        if x.dtype.hasobject or self._holds_text(x.dtype):
            what = "text" if self._holds_text(x.dtype) else "Python objects"
            raise _refuse_content(name, what, f"numpy.ndarray of dtype {x.dtype}")
        return self._bytes(x)

    def _holds_text(self, dtype: Any) -> bool:
        """Whether strings of code points are in it, which each machine stores in its own way."""
        base = dtype.base
        if base.fields:
            return any(self._holds_text(entry[0]) for entry in base.fields.values())
        return base.kind in "UT"

    @staticmethod
    def _bytes(x: Any) -> Any:
        """x as bytes: some dtypes (bfloat16, datetime64) have no format in the buffer protocol. As
        a plain array: a numpy.matrix never has one dimension."""
        numpy = sys.modules["numpy"]
        return numpy.asarray(x).reshape(-1).view(numpy.uint8)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        numpy = sys.modules["numpy"]
        return numpy.empty(size, numpy.uint8)

    def head(self, x: Any, size: int) -> Any:
        return self._bytes(x)[:size]


class _Torch:
    owns_types = True
    one_stream = True

    def owns(self, x: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(x, torch.Tensor)

    def device(self, x: Any) -> int | None:
        if x.is_cpu:
            return None
        if not x.is_cuda or sys.modules["torch"].version.cuda is None:
            raise BufferError(f"the tensor lies on {x.device}: expected cpu or a CUDA device")
        index: int = x.get_device()
        return index

    def current_stream(self, x: Any) -> int:
        device = self.device(x)
        if device is None:
            return 0
        torch = sys.modules["torch"]
        # As Triton asks: without a Stream object, which takes as long as the rest of a call.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        stream: int
        stream = raw(device) if raw is not None else torch.cuda.current_stream(x.device).cuda_stream
        return stream

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        torch = sys.modules["torch"]
        device = self.device(x)
        if x.layout is not torch.strided or not x.is_contiguous():
            raise _refuse_layout(name, f"torch.Tensor of layout {x.layout}")
        if x.is_conj() or x.is_neg():
            raise BufferError(f"{name} is a lazily conjugated or negated tensor: resolve it first")
        if device is not None and stream is not None:
            wait(stream, self.current_stream(x), device)
        return _native.Span(x.data_ptr(), x.nbytes, device, False, x)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        torch = sys.modules["torch"]
        if stream is None or self.device(like) is None:
            return torch.empty(size, dtype=torch.uint8, device=like.device)
        # From the memory pool of that stream: what was freed there is no longer in use by its turn.
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=like.device)):
            return torch.empty(size, dtype=torch.uint8, device=like.device)

    def head(self, x: Any, size: int) -> Any:
        return x.detach().reshape(-1).view(sys.modules["torch"].uint8)[:size]

    def finish(self, x: Any) -> Any:
        return x


class _CuPy:
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
            raise _refuse_layout(name, f"cupy.ndarray with strides {x.strides}")
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


_DLPACK_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged


class _Exchange:
    """Any other library: through the CUDA array interface, else through DLPack."""

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
            return _native.span_from_dlpack(_capsule(x, write), write)
        return _native.span_from_dlpack(_capsule(x, write, stream=stream or LEGACY_STREAM), write)

    def _view_interface(self, x: Any, interface: dict[str, Any], name: str, stream: int) -> Any:
        if interface.get("mask") is not None:
            raise BufferError(f"{name} is a masked array")
        kind = interface["typestr"]
        if kind[1:2] in ("O", "U"):
            what = "text" if kind[1] == "U" else "Python objects"
            raise _refuse_content(name, what, f"{type(x).__name__} of type {kind}")
        item = int(kind[2:])
        size = step = item
        strides = interface.get("strides")
        for i, extent in reversed(list(enumerate(interface["shape"]))):
            if strides is not None and extent > 1 and strides[i] != step:
                raise _refuse_layout(name, f"{type(x).__name__} with strides {strides}")
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
            f"{size} bytes were written, and there is no way to return a part of a "
            f"{type(x).__name__}: give an out of that size"
        )

    def finish(self, x: Any) -> Any:
        return x


class _Jax(_Exchange):
    """JAX's arrays cannot be written to: results are made beside them and handed over by DLPack."""

    owns_types = False  # jax.Array is an abstract class
    one_stream = True

    def owns(self, x: Any) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and isinstance(x, jax.Array)

    def device(self, x: Any) -> int | None:
        if isinstance(x, sys.modules["jax"].core.Tracer):
            raise TypeError("data is a jax.Tracer: ciphers work on concrete arrays, outside of jit")
        return super().device(x)

    def current_stream(self, x: Any) -> int:
        return 0 if self.device(x) is None else LEGACY_STREAM

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        if isinstance(x, _native.DeviceArray | bytearray):  # a result of `empty`
            return x if isinstance(x, bytearray) else super().view(x, name, stream, write)
        if write:
            raise BufferError(f"{name} is a jax.Array, which cannot be written to: leave out= away")
        if self.device(x) is None:
            return _native.span_from_dlpack(_capsule(x, write), write)
        return _native.span_from_dlpack(_capsule(x, write, stream=stream or LEGACY_STREAM), write)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        if self.device(like) is None:
            return bytearray(size)
        return super().empty(size, like, stream)

    def head(self, x: Any, size: int) -> Any:
        return x[:size]

    def finish(self, x: Any) -> Any:
        if isinstance(x, bytearray):
            import numpy  # JAX has it

            jax = sys.modules["jax"]
            return jax.device_put(numpy.frombuffer(x, numpy.uint8), jax.devices("cpu")[0])
        if isinstance(x, _native.DeviceArray):
            import importlib

            return importlib.import_module("jax.dlpack").from_dlpack(x)
        return x


def _capsule(x: Any, write: bool, **options: Any) -> Any:
    """x's DLPack capsule; versioned where x can: only then does it say what is read-only."""
    try:
        return x.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer from before DLPack 1.0
        return x.__dlpack__(**options)


# In order of asking. CuPy, PyTorch and JAX would do as _Exchange too; knowing them gives their
# current stream, their allocator and their views.
LIBRARIES: tuple[Library, ...] = (_NumPy(), _Torch(), _CuPy(), _Jax(), _Exchange(), _Buffers())
BUFFERS = LIBRARIES[-1]

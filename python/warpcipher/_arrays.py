# SPDX-License-Identifier: Apache-2.0
"""Arrays: how to find the memory of one, wait for what is written there, and make another beside
it.

No array library is imported here: an array's library is loaded already, so it is found in
sys.modules. A new library is a class below and a line in `_LIBRARIES`. This file loads when the
first array, `out=` or `stream=` comes along.

Order on a GPU: `view(x, stream)` makes `stream` wait for the work that writes x, where the library
says which stream that is on; `empty` makes an array that is first used on `stream`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from . import _native

if TYPE_CHECKING:
    from ._types import Buffer, StreamLike

LEGACY_STREAM = 1
"""The legacy default stream, by DLPack's and CUDA's number."""


class Library(Protocol):
    """What the functions below need of an array library."""

    def owns(self, x: Any) -> bool:
        """Whether x is an array of this library."""

    def device(self, x: Any) -> int | None:
        """The CUDA ordinal of x, or None for host memory."""

    def current_stream(self, x: Any) -> int:
        """The stream on which the library works on x now. Not asked for arrays in host memory."""

    def view(self, x: Any, name: str, stream: int, write: bool) -> Any:
        """x as a buffer or a `Span`, ready on `stream`. BufferError when it is not contiguous."""

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        """An array of `size` bytes beside `like`; `stream` is the one asked for, if any."""

    def head(self, x: Any, size: int) -> Any:
        """The first `size` bytes of x as a flat array, sharing its memory."""

    def finish(self, x: Any) -> Any:
        """What the user gets for an array that `empty` made."""


def _refuse_layout(name: str, what: str) -> BufferError:
    return BufferError(f"{name} is not C-contiguous ({what}): copy it first")


def wait(stream: int, other: int, device: int) -> None:
    """Makes `stream` wait for `other`. 0 and 1 are both the legacy default stream."""
    if (stream or LEGACY_STREAM) != (other or LEGACY_STREAM):
        _native.stream_wait(stream, other, device)


class _Buffers:
    """bytes, bytearray, memoryview, array.array, mmap: whatever has the buffer protocol alone."""

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

    def view(self, x: Any, name: str, stream: int, write: bool) -> Any:
        return x

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        return bytearray(size)

    def head(self, x: Any, size: int) -> Any:
        return memoryview(x).cast("B")[:size]

    def finish(self, x: Any) -> Any:
        return x


class _NumPy(_Buffers):
    def owns(self, x: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(x, numpy.ndarray)

    def view(self, x: Any, name: str, stream: int, write: bool) -> Any:
        if not x.flags.c_contiguous:
            raise _refuse_layout(name, f"numpy.ndarray with strides {x.strides}")
        if write and not x.flags.writeable:
            raise BufferError(f"{name} is a read-only numpy.ndarray: give a writable array")
        if x.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects (dtype {x.dtype}), not bytes")
        # As bytes: some dtypes (bfloat16, datetime64) have no format in the buffer protocol.
        return x.reshape(-1).view(sys.modules["numpy"].uint8)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        numpy = sys.modules["numpy"]
        return numpy.empty(size, numpy.uint8)

    def head(self, x: Any, size: int) -> Any:
        return x.reshape(-1).view(sys.modules["numpy"].uint8)[:size]


class _Torch:
    def owns(self, x: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(x, torch.Tensor)

    def device(self, x: Any) -> int | None:
        if x.device.type == "cpu":
            return None
        if x.device.type != "cuda" or sys.modules["torch"].version.cuda is None:
            raise BufferError(f"the tensor lies on {x.device}: expected cpu or a CUDA device")
        index: int = x.device.index
        return index

    def current_stream(self, x: Any) -> int:
        stream: int = sys.modules["torch"].cuda.current_stream(x.device).cuda_stream
        return stream

    def view(self, x: Any, name: str, stream: int, write: bool) -> Any:
        torch = sys.modules["torch"]
        device = self.device(x)
        if x.layout is not torch.strided or not x.is_contiguous():
            raise _refuse_layout(name, f"torch.Tensor of layout {x.layout}")
        if x.is_conj() or x.is_neg():
            raise BufferError(f"{name} is a lazily conjugated or negated tensor: resolve it first")
        if device is not None:
            wait(stream, self.current_stream(x), device)
        return _native.Span(x.data_ptr(), x.numel() * x.element_size(), device, False, x)

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
    def owns(self, x: Any) -> bool:
        cupy = sys.modules.get("cupy")
        return cupy is not None and isinstance(x, cupy.ndarray)

    def device(self, x: Any) -> int | None:
        device: int = x.device.id
        return device

    def current_stream(self, x: Any) -> int:
        stream: int = sys.modules["cupy"].cuda.get_current_stream(x.device.id).ptr
        return stream

    def view(self, x: Any, name: str, stream: int, write: bool) -> Any:
        if not x.flags.c_contiguous:
            raise _refuse_layout(name, f"cupy.ndarray with strides {x.strides}")
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
        interface = getattr(x, "__cuda_array_interface__", None)
        return LEGACY_STREAM if interface is None else interface.get("stream") or LEGACY_STREAM

    def view(self, x: Any, name: str, stream: int, write: bool) -> Any:
        interface = getattr(x, "__cuda_array_interface__", None)
        if interface is not None:
            return self._view_interface(x, interface, name, stream)
        if self.device(x) is None:
            return _native.span_from_dlpack(_capsule(x, write), write)
        return _native.span_from_dlpack(_capsule(x, write, stream=stream or LEGACY_STREAM), write)

    def _view_interface(self, x: Any, interface: dict[str, Any], name: str, stream: int) -> Any:
        if interface.get("mask") is not None:
            raise BufferError(f"{name} is a masked array")
        item = int(interface["typestr"][2:])
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
        raise ValueError(f"only {size} of {len(x)} bytes were written: give an out of that size")

    def finish(self, x: Any) -> Any:
        return x


class _Jax(_Exchange):
    """JAX's arrays cannot be written to: results are made beside them and handed over by DLPack."""

    def owns(self, x: Any) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and isinstance(x, jax.Array)

    def device(self, x: Any) -> int | None:
        if isinstance(x, sys.modules["jax"].core.Tracer):
            raise TypeError("data is a jax.Tracer: ciphers work on concrete arrays, outside of jit")
        return super().device(x)

    def current_stream(self, x: Any) -> int:
        return LEGACY_STREAM

    def view(self, x: Any, name: str, stream: int, write: bool) -> Any:
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
_LIBRARIES: tuple[Library, ...] = (_NumPy(), _Torch(), _CuPy(), _Jax(), _Exchange(), _Buffers())
BUFFERS = _LIBRARIES[-1]


def library_of(x: Any, name: str) -> Library:
    """The library of an array or buffer; TypeError when x is neither."""
    if isinstance(x, bytes | bytearray | memoryview):
        return BUFFERS
    for library in _LIBRARIES:
        if library.owns(x):
            return library
    raise TypeError(f"{name} is {type(x).__name__}: expected bytes-like or an array")


def stream_pointer(stream: StreamLike) -> int | None:
    """A stream argument as cudaStream_t.

    None:   not said. An int is DLPack's: 1 the legacy default stream, 2 the per-thread one, else a
            cudaStream_t. Objects: `__cuda_stream__` (CUDA stream protocol), `.cuda_stream`
            (PyTorch), `.ptr` (CuPy).
    """
    if stream is None:
        return None
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream <= 0:
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


def choose_stream(library: Library, x: Any, stream: int | None) -> int:
    """The stream to work on: the one asked for, else the current one of x's library."""
    if stream is not None:
        return stream
    return 0 if library.device(x) is None else library.current_stream(x)


def written_part(library: Library, out: Any, view: Any, size: int) -> Any:
    """`out` when the run filled it, else a view of what was written."""
    full = size_of(view)
    return out if size == full else library.head(out, size)


def finished(library: Library, array: Any, size: int) -> Any:
    """What the user gets for an array that `empty` made, of which `size` bytes were written."""
    whole = library.finish(array)
    return whole if len(whole) == size else library.head(whole, size)


def crypt(
    key: _native.Key,
    decrypt: bool,
    padded: bool,
    engine: str,
    data: Any,
    out: Any,
    iv: Buffer | None,
    aad: Buffer | None,
    tag_length: int,
    stream: StreamLike,
) -> Any:
    """`Cipher.encrypt` and `Cipher.decrypt` for whatever is not bytes to bytes."""
    library = library_of(data, "data")
    asked = stream_pointer(stream)
    pointer = choose_stream(library, data, asked)
    source = library.view(data, "data", pointer, False)
    if out is not None:
        out_library = library_of(out, "out")
        target = out_library.view(out, "out", pointer, True)
        written = _native.crypt(
            key, decrypt, padded, engine, source, target, iv, aad, tag_length, pointer
        )
        return written_part(out_library, out, target, written)
    if library is BUFFERS:
        return _native.crypt(
            key, decrypt, padded, engine, source, None, iv, aad, tag_length, pointer
        )
    size = _native.output_size(key, decrypt, padded, size_of(source), tag_length)
    result = library.empty(size, data, asked)
    target = library.view(result, "out", pointer, True)
    written = _native.crypt(
        key, decrypt, padded, engine, source, target, iv, aad, tag_length, pointer
    )
    return finished(library, result, written)


def aead_crypt(
    key: _native.Key,
    decrypt: bool,
    engine: str,
    nonce: Buffer,
    data: Any,
    aad: Buffer | None,
    buf: Any,
) -> Any:
    """`AESGCM`'s methods for whatever is not bytes, bytearray or memoryview."""
    if buf is None:
        return crypt(key, decrypt, False, engine, data, None, nonce, aad, 16, None)
    library, out_library = library_of(data, "data"), library_of(buf, "buf")
    pointer = choose_stream(library, data, None)
    source = library.view(data, "data", pointer, False)
    target = out_library.view(buf, "buf", pointer, True)
    size = _native.output_size(key, decrypt, False, size_of(source), 16)
    if size_of(target) != size:
        raise ValueError(f"buffer must be {size} bytes")
    return _native.crypt(key, decrypt, False, engine, source, target, nonce, aad, 16, pointer)


def is_on_device(x: Any) -> bool:
    """Whether x is an array on a GPU, of a library that is loaded."""
    if x is None or isinstance(x, bytes | bytearray | memoryview | list | tuple | _native.Key):
        return False
    for library in _LIBRARIES[:-1]:
        if library.owns(x):
            return library.device(x) is not None
    return False


def device_column(x: Any, name: str, stream: int, item_size: int) -> Any:
    """A column on a GPU as a `Span`: integers of item_size bytes, or (1) anything as bytes."""
    if x is None:
        return None
    if not is_on_device(x):
        raise TypeError(
            f"{name} is {type(x).__name__} and not an array on a GPU, where lengths is: columns "
            "lie together"
        )
    size = getattr(getattr(x, "dtype", None), "itemsize", item_size)
    kind = getattr(getattr(x, "dtype", None), "kind", "i")
    if item_size != 1 and (size != item_size or kind not in "iu"):
        raise TypeError(
            f"{name} is of {x.dtype}: on a GPU expected integers of {8 * item_size} bits"
        )
    return library_of(x, name).view(x, name, stream, False)


def size_of(view: Any) -> int:
    return len(view) if isinstance(view, _native.Span) else memoryview(view).nbytes

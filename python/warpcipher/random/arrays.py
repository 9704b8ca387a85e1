# SPDX-License-Identifier: Apache-2.0
"""Arrays that a generator fills: their elements, and new ones of each library."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterable
from typing import Any

from .. import _later, _native
from .._types import StreamLike
from ..arguments import torch_device
from ..arrays import BUFFERS, choose_stream, library_of, size_of, stream_pointer
from ..arrays.library import LEGACY_STREAM, wait
from ..arrays.torch import is_freed_part

jax: Any = _later.Module("jax")
numpy: Any = _later.Module("numpy")

SIZES = {
    "bool": 1,
    **{kind + str(8 * size): size for kind in ("int", "uint") for size in (1, 2, 4, 8)},
    **{"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8},
}
"""Bytes of an element of each dtype."""

INTEGERS = frozenset(name for name in SIZES if "int" in name)

# Of the buffer protocol: the kinds of its format characters. Sizes are the item's.
_FORMATS = {**dict.fromkeys("BHILQN", "uint"), **dict.fromkeys("bhilqn", "int")}
_FORMATS |= dict.fromkeys("efd", "float")

# Of DLPack: kinds as (code, bits) of an element.
_DLPACK_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}

# Of dtypes that were seen: NumPy takes 3 us to say the name of one.
_names: dict[Any, str] = {}

LIBRARIES = ("numpy", "torch", "cupy", "jax")


_PYTHONS = {bool: "bool", int: "int64", float: "float64"}

Target = tuple[Any, str, int, int]
"""Memory of an array that is about to be filled: the native module's form, the name of its
elements (a key of `SIZES`), how many there are, and the CUDA stream to work on (0: host memory)."""


def dtype_of(x: Any, name: str) -> str:
    """The dtype of an array's elements. TypeError: one that cannot be filled."""
    dtype = getattr(x, "dtype", None)
    known = _names.get(dtype)
    if known is not None:
        return known
    if dtype is None:
        if isinstance(x, _native.DeviceArray):
            return "uint8"
        try:
            view = memoryview(x)
        except TypeError:
            raise TypeError(f"{name} is {type(x).__name__}: expected an array") from None
        code = view.format.lstrip("@")
        found = "bool" if code == "?" else _FORMATS.get(code, code) + str(8 * view.itemsize)
    else:
        if not getattr(dtype, "isnative", True):
            raise TypeError(f"{name} is of {dtype}: expected the byte order of this machine")
        found = str(dtype).removeprefix("torch.")
    if found not in SIZES:
        raise TypeError(f"{name} is of {found}: expected one of {', '.join(SIZES)}")
    if dtype is not None:
        _names[dtype] = found
    return found


def open_target(x: Any, stream: StreamLike) -> Target:
    """The memory of an array to fill, ready on `stream` (None: its library's current one)."""
    dtype = dtype_of(x, "out")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        _check_autograd(torch, x)
        # By C functions where PyTorch has them: attributes one by one take longer than a launch.
        if stream is None and type(x) is torch.Tensor and not (x.is_neg() or is_freed_part(x)):
            api = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
            found = None if api is None else _native.span_from_exchange(api, x)
            if found is not None:
                return found[0], dtype, x.numel(), found[1]
    library = library_of(x, "out")
    asked = None if stream is None else stream_pointer(stream)
    pointer = choose_stream(library, x, asked)
    view = library.view(x, "out", None if asked is None else pointer, True)
    if library is BUFFERS and memoryview(view).readonly:
        raise BufferError(f"out is a read-only {type(x).__name__}: give a writable array")
    return view, dtype, size_of(view) // SIZES[dtype], pointer


def _check_autograd(torch: Any, x: Any) -> None:
    """As PyTorch's own methods: values that a gradient needs are not overwritten unnoticed."""
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError("out is a tensor that requires grad: fill it within torch.no_grad()")
    if not x.is_inference():
        torch.autograd.graph.increment_version(x)


# Of distributions whose elements take the same whatever their parameters are.
_widths: dict[tuple[str, str], int] = {}


def width_of(distribution: str, dtype: str, first: Any, second: Any) -> int:
    """Bytes of the stream that an element takes."""
    found = _widths.get((distribution, dtype))
    if found is None:
        found = _native.random_width(distribution, dtype, first, second)
        if distribution != "integers":
            _widths[distribution, dtype] = found
    return found


def store(x: Any, dtype: str, parts: Iterable[Any]) -> None:
    """Writes arrays of int64 into an array on whatever device, one after the other, once all are
    there."""
    values = numpy.concatenate([numpy.zeros(0, numpy.int64), *parts]).astype(dtype)
    module = module_of(x)
    if module == "numpy":
        x[...] = values.reshape(x.shape)
    elif module == "torch":
        torch = sys.modules["torch"]
        with torch.no_grad():
            x.copy_(torch.from_numpy(values).reshape(x.shape))
    elif module == "cupy":
        x.set(values.reshape(x.shape))
    elif library_of(x, "out") is BUFFERS:
        memoryview(x).cast("B")[:] = values.view(numpy.uint8)
    else:
        raise TypeError(f"out is {type(x).__name__}: expected NumPy, PyTorch, CuPy or a buffer")


def parse_dtype(dtype: Any) -> str:
    """A dtype argument (a name, or a dtype or type of Python, NumPy, PyTorch, JAX or ml_dtypes) as
    a name of `SIZES`. ValueError: it is none."""
    if isinstance(dtype, type):
        name = _PYTHONS.get(dtype, dtype.__name__)
    else:
        name = str(dtype).removeprefix("torch.")
    if name in SIZES:
        return name
    try:  # other spellings of NumPy
        made: Any = None if dtype is None else numpy.dtype(dtype)
    except (ImportError, TypeError):
        made = None
    if made is None or not made.isnative or made.name not in SIZES:
        raise ValueError(f"dtype is {dtype!r}: expected one of {', '.join(SIZES)}")
    return str(made.name)


def module_of(x: Any) -> str | None:
    """The library of an array that can be indexed and written to: "numpy", "torch" or "cupy"."""
    for name, kind in (("numpy", "ndarray"), ("torch", "Tensor"), ("cupy", "ndarray")):
        module = sys.modules.get(name)
        if module is not None and isinstance(x, getattr(module, kind)):
            return name
    return None


def empty_like(x: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new array of the library and on the device of `x`; of NumPy where `x` cannot be written
    to."""
    name = module_of(x) or "numpy"
    module: Any = importlib.import_module(name)
    if name == "torch":
        return module.empty(shape, dtype=getattr(module, dtype), device=x.device)
    if name == "cupy":
        with x.device:
            return module.empty(shape, numpy_dtype(dtype))
    return module.empty(shape, numpy_dtype(dtype))


def parse_shape(shape: object) -> tuple[int, ...]:
    """A shape argument: a number of elements, or a sequence of extents."""
    try:
        extents = (shape,) if hasattr(shape, "__index__") else tuple(shape)  # type: ignore[arg-type]
        found = tuple(extent.__index__() for extent in extents)  # type: ignore[attr-defined]
    except (TypeError, AttributeError):
        raise TypeError(
            f"shape is {shape!r}: expected an integer or several (the shape is the first argument)"
        ) from None
    if any(extent < 0 for extent in found):
        raise ValueError(f"shape is {shape!r}: expected no negative extent")
    return found


def choose_library(library: str | None, device: int | None) -> str:
    """The library of new arrays: the one named, else NumPy on the host, else the one loaded."""
    if library is not None:
        if library not in LIBRARIES:
            raise ValueError(f"library is {library!r}: expected one of {', '.join(LIBRARIES)}")
        if library == "numpy" and device is not None:
            raise ValueError(f"library is 'numpy', and device is cuda:{device}")
        if library == "cupy" and device is None:
            raise ValueError("library is 'cupy', and device is cpu")
        return library
    if device is None:
        return "numpy"
    loaded = [name for name in LIBRARIES[1:] if name in sys.modules]
    if len(loaded) != 1:
        known = " and ".join(loaded) if loaded else "none"
        raise ValueError(f"library is not given, and loaded are {known}: expected a name")
    return loaded[0]


class NewArray:
    """An array that is made to be filled.

    to_fill:  the array: `open_target` takes it. by_host: the host computes the numbers.
    finish(): the array of the library. library, shape, dtype: its own.
    """

    def __init__(
        self,
        library: str,
        device: int | None,
        shape: tuple[int, ...],
        dtype: Any,
        by_host: bool = False,
    ) -> None:
        dtype = parse_dtype(dtype)
        self.library = library
        self.shape = shape
        self.dtype = dtype
        self._device = device
        self._memory: _native.DeviceArray | None = None
        module: Any = importlib.import_module(library)
        if library == "jax":
            if SIZES[dtype] == 8 and not module.config.jax_enable_x64:
                raise ValueError(f"dtype is {dtype}, and JAX is set to 32 bits: jax_enable_x64")
            self.to_fill = self._for_jax(by_host)
        elif library == "torch":
            where = torch_device(module, device)
            self.to_fill = module.empty(shape, dtype=getattr(module, dtype), device=where)
        elif library == "cupy":
            with module.cuda.Device(device):
                self.to_fill = module.empty(shape, numpy_dtype(dtype))
        else:
            self.to_fill = module.empty(shape, numpy_dtype(dtype))

    def _for_jax(self, by_host: bool) -> Any:
        if self._device is None or by_host or math.prod(self.shape) == 0:
            return numpy.empty(self.shape, numpy_dtype(self.dtype))
        size = SIZES[self.dtype] * math.prod(self.shape)
        self._memory = _native.DeviceArray(size, self._device, LEGACY_STREAM)
        return _Typed(self._memory, self.dtype)

    def finish(self) -> Any:
        if self.library != "jax":
            return self.to_fill
        if self._memory is None:
            where = (
                jax.devices("cpu")[0] if self._device is None else jax.devices("cuda")[self._device]
            )
            return jax.device_put(self.to_fill, where)
        kind = self.dtype.rstrip("0123456789")
        tensor = self._memory.tensor(0, _DLPACK_CODES[kind], 8 * SIZES[self.dtype], self.shape)
        ordered = _Ordered(tensor, self._memory)
        return _later.Module("jax.dlpack").from_dlpack(ordered)


class _Ordered:
    """A tensor of device memory whose consumer waits until it is filled."""

    def __init__(self, tensor: Any, memory: _native.DeviceArray) -> None:
        self._tensor = tensor
        self._memory = memory

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> object:
        if stream is not None and stream != -1:  # -1: the consumer sees to the order itself
            wait(stream, LEGACY_STREAM, self._memory.__dlpack_device__()[1])
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._memory.__dlpack_device__()


class _Typed:
    """Device memory with a dtype, for `open_target`."""

    def __init__(self, memory: _native.DeviceArray, dtype: str) -> None:
        self.memory = memory
        self.dtype = dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return self.memory.__cuda_array_interface__


def numpy_dtype(name: str) -> Any:
    """The dtype of NumPy: bfloat16 is in ml_dtypes, which JAX brings along."""
    if name == "bfloat16":
        return numpy.dtype(_later.Module("ml_dtypes").bfloat16)
    return numpy.dtype(name)

# SPDX-License-Identifier: Apache-2.0
"""Tensors to save: arrays of any library as dtype, shape and bytes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import warpcipher as wc

from .. import _later
from ..arrays.numpy import check_mask
from ..arrays.torch import address_of
from .header import DTYPES, shown


class Entry(NamedTuple):
    """A tensor to save.

    dtype, shape: as the header has them. data: gives its bytes when they are written, so that a
    copy, where one is needed, is there for one tensor at a time. on_gpu: gives it as a contiguous
    array on its GPU; None: it is not on one.
    """

    dtype: str
    shape: tuple[int, ...]
    data: Callable[[], memoryview]
    on_gpu: Callable[[], Any] | None = None


def parts_on_gpu(entries: Iterable[Entry]) -> list[Any] | None:
    """The bytes of entries as `Encryptor.write_texts` takes them. None: a GPU is not to encrypt
    them, as none of them is on one, or this package cannot use it."""
    entries = list(entries)
    if all(entry.on_gpu is None for entry in entries):
        return None
    if not any(engine.name == "cuda" and engine.usable for engine in wc.engines()):
        return None
    parts = [entry.data() if entry.on_gpu is None else entry.on_gpu() for entry in entries]
    return [part for part in parts if not isinstance(part, memoryview) or part.nbytes]


_BY_NUMPY = {entry.numpy: name for name, entry in DTYPES.items() if entry.numpy}
_BY_TORCH = {entry.torch: name for name, entry in DTYPES.items() if entry.torch}


def entry_of(name: object, tensor: Any) -> Entry:
    """A tensor of any of the libraries. Raises TypeError and BufferError."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a tensor is {type(name).__name__}: expected str")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return _torch_entry(name, tensor)
    dtype = getattr(tensor, "dtype", None)
    known = _BY_NUMPY.get(getattr(dtype, "name", ""))
    if known is None or (not hasattr(tensor, "__array__") and not hasattr(tensor, "get")):
        what = type(tensor).__name__ + (f" of {dtype}" if dtype is not None else "")
        raise TypeError(
            f"tensor {shown(name)} is {what}: expected an array of NumPy, PyTorch, CuPy or JAX, of "
            "a dtype that safetensors has"
        )
    check_mask(tensor, f"tensor {shown(name)}")
    on_gpu = (lambda: _on_gpu(tensor)) if _is_on_one_gpu(tensor) else None
    shape = tuple(tensor.shape)
    return Entry(known, shape, _as_placed(name, known, shape, lambda: _array_bytes(tensor)), on_gpu)


def _as_placed(
    name: str, dtype: str, shape: tuple[int, ...], data: Callable[[], memoryview]
) -> Callable[[], memoryview]:
    """`data`, whose bytes must still be as many as the header says. ValueError."""
    size = math.prod(shape) * DTYPES[dtype].bits // 8

    def checked() -> memoryview:
        found = data()
        if found.nbytes != size:
            raise ValueError(
                f"tensor {shown(name)} had {size} bytes and has {found.nbytes}: it changed while "
                "the file was written"
            )
        return found

    return checked


def _is_on_one_gpu(tensor: Any) -> bool:
    try:
        return bool(tensor.size != 0 and _later.load("arrays").is_on_device(tensor))
    except (BufferError, ValueError):  # of JAX, on several
        return False


def _on_gpu(tensor: Any) -> Any:
    """An array of CuPy or JAX, contiguous."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(tensor, cupy.ndarray):
        return cupy.ascontiguousarray(tensor)
    return tensor


def _array_bytes(tensor: Any) -> memoryview:
    import numpy

    on_gpu = hasattr(tensor, "__cuda_array_interface__") and hasattr(tensor, "get")
    array: Any = numpy.ascontiguousarray(tensor.get() if on_gpu else tensor)
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.byteswap()
    return memoryview(array.reshape(-1).view(numpy.uint8))


def _torch_entry(name: str, tensor: Any) -> Entry:
    torch = sys.modules["torch"]
    known = _BY_TORCH.get(str(tensor.dtype).removeprefix("torch."))
    if (
        known is None
        or tensor.layout is not torch.strided
        or tensor.is_quantized
        or tensor.is_nested
    ):
        raise TypeError(
            f"tensor {shown(name)} is a torch.Tensor of {tensor.dtype}, {tensor.layout}: expected "
            "a dense one, of a dtype that safetensors has"
        )
    if tensor.is_meta:
        raise TypeError(f"tensor {shown(name)} is on the device meta: it has no values")
    address_of(tensor, f"tensor {shown(name)}")
    shape = tuple(tensor.shape)
    if DTYPES[known].bits == 4:
        shape = (*shape[:-1], 2 * shape[-1]) if shape else (2,)
    has_gpu = tensor.is_cuda and torch.version.cuda is not None and tensor.numel() != 0
    data = _as_placed(name, known, shape, lambda: _torch_bytes(tensor))
    return Entry(known, shape, data, (lambda: _flat(tensor)) if has_gpu else None)


def _flat(tensor: Any) -> Any:
    """The bytes of a tensor, on its device; a copy if it is not contiguous."""
    torch = sys.modules["torch"]
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return plain.view(-1).view(torch.uint8) if plain.dim() else plain.reshape(1).view(torch.uint8)


def _torch_bytes(tensor: Any) -> memoryview:
    import ctypes

    flat = _flat(tensor).cpu()
    held = (ctypes.c_ubyte * flat.numel()).from_address(flat.data_ptr())
    held.tensor = flat  # the memory lives as long as the view
    return memoryview(held).cast("B")

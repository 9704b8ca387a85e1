# SPDX-License-Identifier: Apache-2.0
"""Array libraries: memory that tensors are read into, and tensors as views of it.

No library is imported before a caller asks for it. A new one is a class, and a line in `_made`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Protocol

from .. import _native
from .._memory import allocate
from ..arguments import parse_device, torch_device
from ..arrays.jax import handed_over
from ..arrays.library import LEGACY_STREAM
from .header import DTYPES, FROM_ML_DTYPES, shown


class Framework(Protocol):
    """The interface of an array library. A block is a flat array of bytes; slices of it are
    views."""

    def block(self, size: int) -> Any:
        """A new block; its content is not set."""

    def memory(self, block: Any) -> Any:
        """The memory to read into to fill the block: a memoryview, or the array on a GPU itself."""
        return block

    def pack(self, part: Any, block: Any, count: int, stride: int, length: int) -> None:
        """Copies `count` rows of `length` bytes, whose begins are `stride` bytes apart in a block,
        to where they follow each other."""

    def wipe(self, block: Any) -> None:
        """Overwrites a block with zeros."""

    def aligned(self, block: Any, dtype: str) -> Any:
        """The block itself, or a copy where its place does not suit the dtype."""

    def tensor(self, block: Any, dtype: str, shape: tuple[int, ...], name: str) -> Any:
        """An aligned block as a tensor: a view.

        name: of the tensor, for errors. TypeError: the library has no such dtype.
        """

    def item(self, tensor: Any, index: tuple[int | slice, ...]) -> Any:
        """A part of a tensor, with its own memory."""

    def given(self, tensor: Any) -> Any:
        """The object that a caller gets for a tensor: itself, another object with its memory, or a
        copy; then the tensor is wiped, also after an error."""
        return tensor


class _Arrays(Framework):
    """The common part of NumPy and CuPy."""

    def __init__(self, name: str) -> None:
        self._numpy: Any = importlib.import_module(name)

    def pack(self, part: Any, block: Any, count: int, stride: int, length: int) -> None:
        as_strided = self._numpy.lib.stride_tricks.as_strided
        part.reshape(count, length)[:] = as_strided(block, (count, length), (stride, 1))

    def wipe(self, block: Any) -> None:
        block[:] = 0

    def item(self, tensor: Any, index: tuple[int | slice, ...]) -> Any:
        return tensor[index].copy()


class _NumPy(_Arrays):
    def __init__(self) -> None:
        super().__init__("numpy")

    def block(self, size: int) -> Any:
        return self._numpy.frombuffer(allocate(size), self._numpy.uint8)

    def memory(self, block: Any) -> Any:
        return memoryview(block)

    def dtype(self, dtype: str, name: str) -> Any:
        known = DTYPES[dtype].numpy
        if known is None:
            raise no_dtype(name, dtype, "NumPy, CuPy and JAX have no such dtype")
        if known not in FROM_ML_DTYPES:
            return self._numpy.dtype(known)
        try:
            return self._numpy.dtype(getattr(importlib.import_module("ml_dtypes"), known))
        except ImportError:
            hint = 'NumPy has it from the package ml_dtypes: install that, or use framework="pt"'
        except AttributeError:
            hint = "this version of ml_dtypes does not have it: install a later one"
        raise no_dtype(name, dtype, hint)

    def aligned(self, block: Any, dtype: str) -> Any:
        return block if block.ctypes.data % _item_size(dtype) == 0 else block.copy()

    def tensor(self, block: Any, dtype: str, shape: tuple[int, ...], name: str) -> Any:
        return block.view(self.dtype(dtype, name)).reshape(shape)


class _CuPy(_Arrays):
    """Memory of CuPy's pool on one GPU."""

    def __init__(self, device: int) -> None:
        super().__init__("cupy")
        self._device = device

    def block(self, size: int) -> Any:
        with self._numpy.cuda.Device(self._device):
            return self._numpy.empty(size, self._numpy.uint8)

    def aligned(self, block: Any, dtype: str) -> Any:
        return block if block.data.ptr % _item_size(dtype) == 0 else block.copy()

    def tensor(self, block: Any, dtype: str, shape: tuple[int, ...], name: str) -> Any:
        known = DTYPES[dtype].numpy
        if known is None or known in FROM_ML_DTYPES:
            raise no_dtype(name, dtype, 'CuPy has no such dtype: use framework="pt"')
        return block.view(self._numpy.dtype(known)).reshape(shape)


class _Torch(Framework):
    """device: of PyTorch's allocator; None: memory of this package, in the host."""

    def __init__(self, device: int | None) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._dlpack: Any = importlib.import_module("torch.utils.dlpack")
        self._device = device
        self._place = torch_device(self._torch, device)

    def block(self, size: int) -> Any:
        uint8 = self._torch.uint8
        if self._device is not None:
            return self._torch.empty(size, dtype=uint8, device=self._place)
        if size == 0:  # which frombuffer refuses
            return self._torch.empty(0, dtype=uint8)
        return self._torch.frombuffer(allocate(size), dtype=uint8)

    def memory(self, block: Any) -> Any:
        if self._device is not None:
            return block
        # Not by way of NumPy, which PyTorch may have been built or installed without.
        import ctypes

        size = block.numel()
        return memoryview((ctypes.c_ubyte * size).from_address(block.data_ptr())).cast("B")

    def pack(self, part: Any, block: Any, count: int, stride: int, length: int) -> None:
        rows = block.as_strided((count, length), (stride, 1), block.storage_offset())
        part.reshape(count, length)[:] = rows

    def wipe(self, block: Any) -> None:
        block.zero_()

    def aligned(self, block: Any, dtype: str) -> Any:
        size = _item_size(dtype)
        fits = block.data_ptr() % size == 0 and block.storage_offset() % size == 0
        return block if fits else block.clone()

    def tensor(self, block: Any, dtype: str, shape: tuple[int, ...], name: str) -> Any:
        known = DTYPES[dtype].torch
        if known is None:
            raise no_dtype(name, dtype, "PyTorch has no such dtype")
        kind = getattr(self._torch, known, None)
        if kind is None:
            raise no_dtype(name, dtype, f"PyTorch {self._torch.__version__} does not have {known}")
        if DTYPES[dtype].bits == 4:
            if not shape or shape[-1] % 2:
                raise no_dtype(name, dtype, "PyTorch has pairs of it: its last dimension is odd")
            shape = (*shape[:-1], shape[-1] // 2)
        if block.untyped_storage().nbytes() != block.numel():
            # A storage for each tensor, in the common memory: PyTorch pickles storages as a whole,
            # and programs that save models take one that several tensors share for tied weights.
            # By a capsule: __dlpack__ takes six times as long, for streams and devices of others.
            block = self._dlpack.from_dlpack(self._dlpack.to_dlpack(block))
        return block.view(kind).view(shape)

    def item(self, tensor: Any, index: tuple[int | slice, ...]) -> Any:
        return tensor[index].clone()


class _Jax(_NumPy):
    """Arrays of JAX in host memory. Nobody may write to one, so they are made last: of the memory
    of a block where its place suits JAX, which then keeps the block, and of a copy elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._jax: Any = importlib.import_module("jax")

    def dtype(self, dtype: str, name: str) -> Any:
        kind = super().dtype(dtype, name)
        if self._jax.dtypes.canonicalize_dtype(kind) != kind:
            raise no_dtype(
                name, dtype, 'JAX has 64 bits after jax.config.update("jax_enable_x64", True)'
            )
        return kind

    def given(self, tensor: Any) -> Any:
        # One element of a tensor comes as a number.
        return handed_over(self._numpy.asarray(tensor))


def _item_size(dtype: str) -> int:
    """Bytes of an element, or of one that holds several."""
    return max(1, DTYPES[dtype].bits // 8)


def no_dtype(name: str, dtype: str, why: str) -> TypeError:
    return TypeError(f"tensor {shown(name)} is {dtype}: {why}")


_NAMES = {
    "np": "np", "numpy": "np", "pt": "pt", "torch": "pt", "pytorch": "pt", "jax": "jax",
    "flax": "jax", "cupy": "cupy",
}  # fmt: skip
"""The names of the frameworks in safetensors, and the name of one that it does not have."""

_PACKAGES = {"np": "numpy", "pt": "torch", "jax": "jax", "cupy": "cupy"}
"""The package that is imported for each."""


def get(framework: str, device: str | int) -> Framework:
    """The framework of that name for a device. Raises ValueError and ImportError."""
    name = _NAMES.get(framework) if isinstance(framework, str) else None
    if name is None:
        raise ValueError(f"framework is {framework!r}: expected one of {', '.join(_NAMES)}")
    if str(device) in _NAMES:
        raise ValueError(f"device is {device!r}, which is a framework: expected a device")
    ordinal = parse_device(device)
    try:
        return _made(name, device, ordinal)
    except ModuleNotFoundError as error:
        if error.name != _PACKAGES[name]:
            raise
        raise ModuleNotFoundError(
            f'framework "{name}" needs {error.name}, which is not installed: install it, or give '
            'another framework, such as framework="np"',
            name=error.name,
        ) from None


def _made(name: str, device: str | int, ordinal: int | None) -> Framework:
    if name == "pt":
        return _Torch(ordinal)
    if name == "cupy":
        if ordinal is None:
            raise ValueError('device is "cpu": arrays of CuPy lie on a GPU, "cuda:0" for example')
        return _CuPy(ordinal)
    if name == "jax":
        return _Jax() if ordinal is None else JaxOnGpu(ordinal, _Jax().dtype)
    if ordinal is not None:
        raise ValueError(
            f'device is {device!r}: NumPy loads to "cpu"; "pt", "jax" and "cupy" load to a GPU'
        )
    return _NumPy()


KDL_CUDA = 2
ALIGNMENT = 16
"""XLA's kernels count on it (kEntryParameterAlignBytes)."""

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""NumPy's kinds of dtypes by their code in DLPack."""

BFLOAT16 = 4


class DeviceBlock:
    """Bytes on a GPU, as `Framework` has them: slices are views."""

    def __init__(self, array: _native.DeviceArray, start: int, size: int) -> None:
        self.array = array
        self.start = start
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> DeviceBlock:
        start, stop, _ = part.indices(self._size)
        return DeviceBlock(self.array, self.start + start, max(0, stop - start))

    @property
    def pointer(self) -> int:
        return self.array.pointer + self.start

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "shape": (self._size,),
            "typestr": "|u1",
            "data": (self.pointer if self._size else 0, False),
            "strides": None,
            "version": 3,
            "stream": LEGACY_STREAM,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return KDL_CUDA, self.array.device


class JaxOnGpu(Framework):
    """dtype_of: the dtype of a name of safetensors, for the tensor of a name."""

    def __init__(self, device: int, dtype_of: Callable[[str, str], Any]) -> None:
        self._jax: Any = importlib.import_module("jax")
        self._device = device
        self._dtype_of = dtype_of
        try:
            count = len(self._jax.devices("cuda"))
        except RuntimeError as error:
            raise ValueError(f"device is {device}, and JAX sees no GPU: {error}") from None
        if device >= count:
            raise ValueError(f"device is {device}, and JAX has {count} GPUs here")

    def block(self, size: int) -> DeviceBlock:
        return DeviceBlock(_native.DeviceArray(size, self._device, LEGACY_STREAM), 0, size)

    def pack(
        self, part: DeviceBlock, block: DeviceBlock, count: int, stride: int, length: int
    ) -> None:
        part.array.pack(part.start, block.array, block.start, count, stride, length)

    def wipe(self, block: DeviceBlock) -> None:
        if len(block):
            block.array.clear(block.start, len(block))

    def aligned(self, block: DeviceBlock, dtype: str) -> DeviceBlock:
        if block.pointer % ALIGNMENT == 0 or not len(block):
            return block
        copy = self.block(len(block))
        self.pack(copy, block, 1, len(block), len(block))
        return copy

    def tensor(self, block: DeviceBlock, dtype: str, shape: tuple[int, ...], name: str) -> Any:
        kind = self._dtype_of(dtype, name)
        if 0 in shape:
            place = self._jax.devices("cuda")[self._device]
            return self._jax.device_put(self._jax.numpy.zeros(shape, kind), place)
        if kind.name == "bfloat16":
            return self._taken(block, BFLOAT16, 16, shape)
        if kind.type.__module__ == "numpy":
            return self._taken(block, CODES[kind.kind], 8 * kind.itemsize, shape)
        # Not every JAX takes the numbers of fewer bits by DLPack. This is a copy.
        size = math.prod(shape) * kind.itemsize
        plain = self._taken(block, CODES["u"], 8, (size,))
        return plain.view(kind).reshape(shape).block_until_ready()

    def _taken(self, block: DeviceBlock, code: int, bits: int, shape: tuple[int, ...]) -> Any:
        return self._jax.dlpack.from_dlpack(block.array.tensor(block.start, code, bits, shape))

    def item(self, tensor: Any, index: tuple[int | slice, ...]) -> Any:
        return tensor[index].block_until_ready()  # then the tensor is wiped

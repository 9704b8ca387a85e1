# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX on a GPU. JAX lends nobody its memory to write to, so tensors are read into memory
of this package, which JAX takes by DLPack."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from .. import _native

LEGACY_STREAM = 1  # the legacy default stream, by DLPack's number
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


class JaxOnGpu:
    """A `Framework`. dtype_of: the dtype of a name of safetensors, for the tensor of a name."""

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

    def memory(self, block: DeviceBlock) -> DeviceBlock:
        return block

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
        lent = block.array.tensor(block.start, code, bits, shape)
        return self._jax.dlpack.from_dlpack(lent)

    def item(self, tensor: Any, index: tuple[int | slice, ...]) -> Any:
        return tensor[index].block_until_ready()  # then the tensor is wiped

    def given(self, tensor: Any) -> Any:
        return tensor

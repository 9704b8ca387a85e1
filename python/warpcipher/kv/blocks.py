# SPDX-License-Identifier: Apache-2.0
"""The tensors of a KV cache as bytes: what `Vault` seals and opens.

NumPy handles host memory, tensors of PyTorch included, since PyTorch's indexing of bytes there is
10 times slower; PyTorch handles GPUs. Both index alike, so that one text serves them.
"""

from __future__ import annotations

import math
import operator
import sys
from importlib import import_module
from itertools import accumulate
from typing import Any

HOST_PART = 1 << 24
"""Bytes that are gathered and encrypted, or decrypted and written to their blocks, at a time."""
GPU_PART = 1 << 28
HOST_OF_DLPACK = 1  # kDLCPU


class Blocks:
    """The tensors of one call, all of one library and device.

    count: of blocks in each tensor. size: bytes of one block in all of them.
    engine: for host memory the CPU's, as the GPU is the model's. part: bytes to handle at a time.
    """

    _host_by_numpy = True  # tests run PyTorch's side without a GPU

    def __init__(self, blocks: Any, axis: int, write: bool = False) -> None:
        tensors = list(blocks) if isinstance(blocks, list | tuple) else [blocks]
        if not tensors:
            raise ValueError("blocks is an empty list")
        self._numpy: Any = import_module("numpy")
        tensors = [self._shared(tensor) for tensor in tensors]
        torch: Any = sys.modules.get("torch")
        is_torch = torch is not None and isinstance(tensors[0], torch.Tensor)
        self._given: Any = torch if is_torch else self._numpy
        self._device: Any = tensors[0].device if is_torch else None
        is_on_host = self._device is None or self._device.type == "cpu"
        self._torch: Any = None if is_on_host and (self._host_by_numpy or not is_torch) else torch
        self._moved = [self._view(tensor, axis, write) for tensor in tensors]
        self._word: Any = None
        if self._torch is not None:
            # Its kernels move a value at a time: eight bytes where the sizes allow that.
            try:
                self._moved = [moved.view(self._torch.int64) for moved in self._moved]
                self._word = self._torch.int64
            except RuntimeError:
                self._word = self._torch.uint8
        counts = [len(moved) for moved in self._moved]
        if len(set(counts)) != 1:
            raise ValueError(f"the tensors have {counts} blocks along axis {axis}")
        self.count = counts[0]
        sizes = (math.prod(moved.shape[1:]) * moved.itemsize for moved in self._moved)
        self._ends = list(accumulate(sizes))
        self.size: int = self._ends[-1]
        if not self.size:
            raise ValueError("blocks have no bytes")
        self.engine, self.part = ("cpu", HOST_PART) if is_on_host else ("auto", GPU_PART)

    def _shared(self, tensor: Any) -> Any:
        """An array of another library as one of NumPy or, on a GPU, of PyTorch: the same memory."""
        torch: Any = sys.modules.get("torch")
        is_known = isinstance(tensor, self._numpy.ndarray)
        is_known = is_known or (torch is not None and isinstance(tensor, torch.Tensor))
        if is_known or not hasattr(tensor, "__dlpack_device__"):
            return tensor
        is_on_host = tensor.__dlpack_device__()[0] == HOST_OF_DLPACK
        try:
            return (self._numpy if is_on_host else import_module("torch")).from_dlpack(tensor)
        except (BufferError, RuntimeError) as error:
            kind = getattr(tensor, "dtype", "unknown dtype")
            raise TypeError(f"blocks has an array of {kind}: {error} Give views of bytes") from None

    def _view(self, tensor: Any, axis: int, write: bool) -> Any:
        """The tensor as bytes, its blocks along the first dimension."""
        is_torch = self._given is not self._numpy
        if not isinstance(tensor, self._given.Tensor if is_torch else self._numpy.ndarray):
            raise TypeError(
                f"blocks has a {type(tensor).__name__}: expected arrays of one library, NumPy, "
                "PyTorch, or another with DLPack"
            )
        if not 0 <= axis < tensor.ndim - 1:
            raise ValueError(
                f"axis is {axis}: expected 0 to {tensor.ndim - 2} for {tensor.ndim} dimensions"
            )
        if is_torch and tensor.device != self._device:
            raise ValueError("blocks has tensors of more than one device")
        step = tensor.stride(-1) * tensor.itemsize if is_torch else tensor.strides[-1]
        if tensor.shape[-1] > 1 and step != tensor.itemsize:
            raise ValueError("the last dimension of blocks is not contiguous: copy them first")
        if is_torch:
            view = tensor.detach().view(self._given.uint8)
            if self._torch is not None:
                return view.movedim(axis, 0)
            view = view.numpy()
        else:
            view = tensor.view(self._numpy.uint8)
        if write and not view.flags.writeable:
            raise ValueError("blocks has a read-only array")
        return self._numpy.moveaxis(view, axis, 0)

    def numbers(self, ids: Any) -> list[int]:
        """Of blocks, as integers of the host; from a GPU they are waited for."""
        found = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        if any(isinstance(number, bool) for number in found):
            raise TypeError("ids is of bool: expected the numbers of blocks")
        found = [operator.index(number) for number in found]
        wrong = [number for number in found if not 0 <= number < self.count]
        if wrong:
            raise ValueError(f"ids has {wrong[0]}: there are {self.count} blocks")
        return found

    def empty(self, count: int, size: int) -> Any:
        """Rows of bytes where the tensors are."""
        if self._torch is None:
            return self._numpy.empty((count, size), self._numpy.uint8)
        return self._torch.empty((count, size), dtype=self._torch.uint8, device=self._device)

    def new_out(self, count: int, size: int) -> Any:
        """The same as an array of the caller's library."""
        made = self.empty(count, size)
        is_other = self._torch is None and self._given is not self._numpy
        return self._given.from_numpy(made) if is_other else made

    def of_bytes(self, data: bytes) -> Any:
        array = self._numpy.frombuffer(bytearray(data), self._numpy.uint8)
        return array if self._torch is None else self._torch.from_numpy(array).to(self._device)

    def to_bytes(self, rows: Any) -> bytes:
        return bytes((rows if self._torch is None else rows.cpu().numpy()).tobytes())

    def rows(self, memory: Any, name: str, count: int, size: int) -> Any:
        """Memory of sealed blocks, a buffer or a tensor, as bytes with a row for each block."""
        if self._given is not self._numpy and isinstance(memory, self._given.Tensor):
            if not memory.is_contiguous():
                raise ValueError(f"{name} is not contiguous")
            flat = memory.detach().reshape(-1).view(self._given.uint8)
            flat = flat if self._torch is not None else flat.numpy(force=name == "sealed")
        else:
            view = memoryview(memory)
            if name == "out" and view.readonly:
                raise ValueError("out is read-only")
            flat = self._numpy.asarray(view.cast("B") if view.nbytes else bytearray())
            if self._torch is not None:  # which knows no read-only memory
                flat = self._torch.from_numpy(flat.copy() if view.readonly else flat)
        if len(flat) != count * size:
            raise ValueError(
                f"{name} has {len(flat)} bytes: {count} sealed blocks have {count * size}"
            )
        return flat.reshape(count, size)

    def is_here(self, rows: Any) -> bool:
        """Whether rows lie where the tensors do, and as their values need it."""
        if self._torch is None:
            return True
        return bool(rows.device == self._device) and rows.data_ptr() % 8 == 0

    def moved_here(self, rows: Any) -> Any:
        return rows if self.is_here(rows) else rows.to(self._device)

    def gather(self, numbers: list[int], rows: Any) -> None:
        index = self._index(numbers)  # once: to a GPU it travels for longer than a layer takes
        for moved, part in zip(self._moved, self._parts(rows), strict=True):
            part[...] = moved[index]

    def scatter(self, rows: Any, numbers: list[int], chosen: list[int]) -> None:
        """Writes the chosen rows to their blocks."""
        index = self._index(numbers)
        for moved, part in zip(self._moved, self._parts(rows), strict=True):
            if len(chosen) == len(numbers):
                moved[index] = part
            else:  # one by one: a copy of the chosen rows would stay in memory
                for j in chosen:
                    moved[numbers[j]] = part[j]

    def _parts(self, rows: Any) -> list[Any]:
        """The columns of rows that belong to each tensor, in its shape."""
        starts = [0, *self._ends[:-1]]
        return [
            self._words(rows[:, start:end]).reshape(len(rows), *moved.shape[1:])
            for moved, start, end in zip(self._moved, starts, self._ends, strict=True)
        ]

    def _words(self, rows: Any) -> Any:
        return rows if self._torch is None else rows.view(self._word)

    def _index(self, numbers: list[int]) -> Any:
        if self._torch is None:
            return self._numpy.asarray(numbers, self._numpy.int64)
        return self._torch.tensor(numbers, dtype=self._torch.int64, device=self._device)

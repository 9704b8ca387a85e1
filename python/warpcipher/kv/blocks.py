# SPDX-License-Identifier: Apache-2.0
"""The tensors of a KV cache as bytes: what `Vault` seals and opens.

NumPy handles host memory, tensors of PyTorch included, since PyTorch's indexing of bytes there is
10 times slower. On a GPU the kernels read and write blocks where they lie (`Layout`), or, where
these are in many short pieces, PyTorch does. It indexes as NumPy, so that one text serves both.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from typing import Any

from .. import _native
from ..arguments import kind, require_int, require_items
from ..arrays.numpy import check_mask
from . import gpu
from .gpu import FIRST_PART, LAYOUT_PART, Layout, copied_in, copied_out, layout_of

HOST_PART = 1 << 24
"""Bytes that are gathered and encrypted, or decrypted and written to their blocks, at a time."""
GPU_PART = 1 << 28
HOST_OF_DLPACK = 1  # kDLCPU


def _extent(tensor: Any) -> tuple[int, int]:
    """The addresses between which a tensor lies."""
    if hasattr(tensor, "data_ptr"):
        low, steps = tensor.data_ptr(), [step * tensor.itemsize for step in tensor.stride()]
    else:
        low, steps = tensor.ctypes.data, tensor.strides
    reach = [max(n - 1, 0) * step for n, step in zip(tensor.shape, steps, strict=True)]
    below = sum(one for one in reach if one < 0)
    return low + below, low + sum(reach) - below + tensor.itemsize


class Blocks:
    """The tensors of a KV cache, all of one library and device, as `Vault` takes them.

    Made once, it saves `seal` and `open` a look at each tensor. The arguments are as of
    `Vault`; the memory of the tensors stays in use.

    count: of blocks in each tensor. size: bytes of one block in all of them.
    engine: for host memory the CPU's, as the GPU is the model's. part: bytes to handle at a time.
    layout: where the kernels of a GPU find blocks, or None.

    >>> import numpy as np
    >>> from warpcipher import kv
    >>> blocks = kv.Blocks([np.ones((8, 2, 16, 4, 64), np.float16) for _ in range(3)])
    >>> sealed = kv.Vault(bytes(32)).seal(blocks, [5], identity=kv.Identity("", "", [b"a hash"]))
    """

    _host_by_numpy = True  # tests run PyTorch's side without a GPU

    def __init__(self, blocks: Any, axis: int = 0) -> None:
        require_int("axis", axis)
        tensors = list(blocks) if isinstance(blocks, list | tuple) else [blocks]
        if not tensors:
            raise ValueError("blocks is an empty list")
        self._numpy: Any = import_module("numpy")
        given = tensors
        tensors = [self._shared(tensor) for tensor in tensors]
        torch: Any = sys.modules.get("torch")
        is_torch = torch is not None and isinstance(tensors[0], torch.Tensor)
        self._given: Any = torch if is_torch else self._numpy
        self._device: Any = tensors[0].device if is_torch else None
        is_on_host = self._device is None or self._device.type == "cpu"
        self._torch: Any = None if is_on_host and (self._host_by_numpy or not is_torch) else torch
        for tensor in tensors:
            self._check(tensor, axis)
        self._tensors, self._axis = tensors, axis
        counts = [tensor.shape[axis] for tensor in tensors]
        if len(set(counts)) != 1:
            raise ValueError(f"the tensors have {counts} blocks along axis {axis}")
        self.count: int = counts[0]
        shapes = ((*tensor.shape[:axis], *tensor.shape[axis + 1 :]) for tensor in tensors)
        sizes = (math.prod(shape) * t.itemsize for shape, t in zip(shapes, tensors, strict=True))
        self._ends = list(accumulate(sizes))
        self.size: int = self._ends[-1]
        if not self.size:
            raise ValueError("blocks have no bytes")
        extents = [_extent(tensor) for tensor in tensors]
        self._low, self._high = min(low for low, _ in extents), max(high for _, high in extents)
        self._extents = extents
        owner = None if all(map(operator.is_, given, tensors)) else given
        self.layout: Layout | None = None if is_on_host else layout_of(tensors, axis, owner)
        self.engine, self.is_on_gpu = "cpu" if is_on_host else "auto", not is_on_host
        self.part = HOST_PART if is_on_host else LAYOUT_PART if self.layout else GPU_PART

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

    def require_no_capture(self) -> None:
        """RuntimeError: a CUDA graph is being captured."""
        if self.is_on_gpu and self._torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                "a CUDA graph is being captured, and each replay would use the same nonces or "
                "verdicts: seal and open blocks outside of graphs"
            )

    def require_writable(self) -> None:
        """ValueError: an array is read-only."""
        if self._torch is None and not all(moved.flags.writeable for moved in self._moved):
            raise ValueError("blocks has a read-only array")

    @cached_property
    def _moved(self) -> list[Any]:
        """The tensors as bytes, or words, their blocks along the first dimension."""
        if self._given is self._numpy:
            views = [tensor.view(self._numpy.uint8) for tensor in self._tensors]
        else:
            views = [tensor.detach().view(self._given.uint8) for tensor in self._tensors]
        if self._torch is None:
            arrays = [self._numpy.asarray(view) for view in views]
            return [self._numpy.moveaxis(array, self._axis, 0) for array in arrays]
        views = [view.movedim(self._axis, 0) for view in views]
        try:  # PyTorch's kernels move a value at a time: eight bytes where the sizes allow that
            return [view.view(self._torch.int64) for view in views]
        except RuntimeError:
            return views

    def _check(self, tensor: Any, axis: int) -> None:
        is_torch = self._given is not self._numpy
        if not isinstance(tensor, self._given.Tensor if is_torch else self._numpy.ndarray):
            raise TypeError(
                f"blocks has a {type(tensor).__name__}: expected arrays of one library, NumPy, "
                "PyTorch, or another with DLPack"
            )
        check_mask(tensor, "blocks")
        if not 0 <= axis < tensor.ndim - 1:
            raise ValueError(
                f"axis is {axis}: expected 0 to {tensor.ndim - 2} for {tensor.ndim} dimensions"
            )
        if is_torch and tensor.device != self._device:
            raise ValueError("blocks has tensors of more than one device")
        step = tensor.stride(-1) * tensor.itemsize if is_torch else tensor.strides[-1]
        if tensor.shape[-1] > 1 and step != tensor.itemsize:
            raise ValueError("the last dimension of blocks is not contiguous: copy them first")

    def numbers(self, ids: Any, are_distinct: bool = False) -> memoryview:
        """Of blocks, as integers of the host; from a GPU they are waited for."""
        ids = ids.tolist() if hasattr(ids, "tolist") else ids
        items = ids if isinstance(ids, list) else require_items("ids", ids, "numbers of blocks")
        return memoryview(_native.kv_numbers(items, self.count, are_distinct)).cast("Q")

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
        """Bytes where the tensors are."""
        array = self._numpy.frombuffer(bytearray(data), self._numpy.uint8)
        return array if self._torch is None else self._torch.from_numpy(array).to(self._device)

    def read_heads(
        self, rows: Any, magic: bytes, session_size: int
    ) -> tuple[bytes, list[bytes], list[int] | None]:
        """As `_native.kv_read_heads`. Waits for the current stream of a GPU, as rows may be on
        their way to host memory."""
        if self._torch is None:
            place, step = rows.ctypes.data, rows.strides[0]
        else:
            place, step = rows.data_ptr(), rows.stride(0)
        on_gpu = (rows.is_cuda, self._device.index, self._stream()) if self.is_on_gpu else None
        return _native.kv_read_heads(place, step, len(rows), magic, session_size, on_gpu)

    def rows(self, memory: Any, name: str, count: int, size: int) -> Any:
        """Memory of sealed blocks, a buffer or a tensor, as bytes with a row for each block."""
        if self._given is not self._numpy and isinstance(memory, self._given.Tensor):
            if not memory.is_contiguous():
                raise ValueError(f"{name} is not contiguous")
            flat = memory
            if memory.dtype != self._given.uint8:
                flat = memory.detach().reshape(-1).view(self._given.uint8)
            flat = flat if self._torch is not None else flat.numpy(force=name == "sealed")
        else:
            try:
                view = memoryview(memory)
            except TypeError:
                raise TypeError(f"{name} is {kind(memory)}: expected bytes-like") from None
            if not view.c_contiguous:
                raise ValueError(f"{name} is not contiguous")
            if name == "out" and view.readonly:
                raise ValueError("out is read-only")
            flat = self._numpy.asarray(view.cast("B") if view.nbytes else bytearray())
            if self._torch is not None:  # which knows no read-only memory
                flat = self._torch.from_numpy(flat.copy() if view.readonly else flat)
        if flat.nbytes != count * size:
            raise ValueError(
                f"{name} has {flat.nbytes} bytes: {count} sealed blocks have {count * size}"
            )
        start = flat.ctypes.data if self._torch is None else flat.data_ptr()
        end = start + flat.nbytes
        may_overlap = start < self._high and self._low < end
        if may_overlap and any(start < high and low < end for low, high in self._extents):
            raise ValueError(f"{name} overlaps blocks: expected memory of its own")
        return flat.reshape(count, size)

    def parts_out(self, rows: Any) -> Iterator[Any]:
        """Parts of rows to be filled in, where the tensors lie; each then goes to its place."""
        return self._in_parts(rows, copied_out, self.part)

    def parts_in(self, rows: Any) -> Iterator[Any]:
        """Parts of rows, where the tensors lie."""
        return self._in_parts(rows, copied_in, FIRST_PART if self.layout else self.part)

    def _in_parts(self, rows: Any, copied: Any, part: int) -> Iterator[Any]:
        if self.layout and rows.nbytes <= gpu.SLOT and not rows.is_cuda:
            return iter([rows][: len(rows)])  # `crypt` copies them
        # As values of PyTorch need it; kernels would be slow elsewhere.
        if self._torch and (rows.device != self._device or rows.data_ptr() % 16):
            return iter(copied(self._torch, self._device, rows))
        return self._cut(rows, part)

    def _cut(self, rows: Any, part: int) -> Iterator[Any]:
        count, size = rows.shape
        first, most = 0, self.layout.most_blocks if self.layout else count
        while first < count:
            least = -(-(count - first) // most)  # parts, the last of which is not a small rest
            step = max(1, min(part // size, -(-(count - first) // least)))
            yield rows if step == count else rows[first : first + step]
            first, part = first + step, min(gpu.GROWTH * part, self.part)

    def new_verdicts(self, count: int) -> Any:
        """Words that `crypt` fills in, with a layout."""
        return self._torch.empty(count, dtype=self._torch.int32, device=self._device)

    def send(self, verdicts: Any) -> Callable[[], bytes]:
        """Enqueues their way to the host; the function waits for them."""
        found = self._torch.empty(len(verdicts), dtype=verdicts.dtype, pin_memory=True)
        found.copy_(verdicts, non_blocking=True)
        done = self._torch.cuda.current_stream(self._device).record_event()

        def wait() -> bytes:
            done.synchronize()
            return bytes(found.numpy().tobytes()[:: found.itemsize])

        return wait

    def crypt(
        self,
        algorithm: str,
        keys: tuple[list[Any], list[int] | None],
        sealed: Any,
        rows: Sequence[int] | None,
        numbers: Sequence[int],
        heads: bytes,
        identity: tuple[bytes, list[Any], list[int] | None],
        verdicts: int | None,
        part: tuple[int, int, int],
    ) -> bytes | None:
        """As `_native.kv_crypt`, with a layout."""
        where = sealed.device.index if sealed.is_cuda else None
        return _native.kv_crypt(
            algorithm,
            *keys,
            _native.Span(sealed.data_ptr(), sealed.nbytes, where, False, sealed),
            rows,
            self.layout,
            numbers,
            heads,
            identity,
            verdicts,
            self._device.index,
            self._stream(),
            part,
        )

    def _stream(self) -> int:
        # PyTorch's Stream takes longer to make than a kernel to start.
        raw = getattr(self._torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return int(raw(self._device.index))
        return int(self._torch.cuda.current_stream(self._device).cuda_stream)

    def gather(self, numbers: Sequence[int], rows: Any) -> None:
        """Copies blocks to rows."""
        index = self._index(numbers)  # once: to a GPU it travels for longer than a layer takes
        for moved, part in zip(self._moved, self._parts(rows), strict=True):
            part[...] = moved[index]

    def scatter(self, rows: Any, numbers: Sequence[int], chosen: list[int]) -> None:
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
            self._words(rows[:, start:end], moved).reshape(len(rows), *moved.shape[1:])
            for moved, start, end in zip(self._moved, starts, self._ends, strict=True)
        ]

    def _words(self, rows: Any, moved: Any) -> Any:
        return rows if self._torch is None else rows.view(moved.dtype)

    def _index(self, numbers: Sequence[int]) -> Any:
        index = self._numpy.array(numbers, self._numpy.int64)
        return index if self._torch is None else self._torch.from_numpy(index).to(self._device)

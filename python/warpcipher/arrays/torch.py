# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch, in host memory and on GPUs."""

from __future__ import annotations

import sys
from typing import Any

from .. import _native
from .library import refuse_layout, wait


class Torch:
    """Tensors: memory of PyTorch's allocator, on its current stream of the device."""

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
            raise refuse_layout(name, f"torch.Tensor of layout {x.layout}")
        if x.is_conj() or x.is_neg():
            raise BufferError(f"{name} is a lazily conjugated or negated tensor: resolve it first")
        if device is not None and stream is not None:
            wait(stream, self.current_stream(x), device)
        return _native.Span(address_of(x, name), x.nbytes, device, False, x)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        torch = sys.modules["torch"]
        if stream is None or self.device(like) is None:
            return torch.empty(size, dtype=torch.uint8, device=like.device)
        # From the memory pool of that stream: memory freed there is no longer in use by its turn.
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=like.device)):
            return torch.empty(size, dtype=torch.uint8, device=like.device)

    def head(self, x: Any, size: int) -> Any:
        return x.detach().reshape(-1).view(sys.modules["torch"].uint8)[:size]

    def finish(self, x: Any) -> Any:
        return x


def address_of(x: Any, name: str) -> int:
    """Where the memory of a tensor begins; 0 of one without elements. TypeError: it has none of its
    own, as a FakeTensor, a DTensor or another wrapper of tensors."""
    pointer, is_there = 0, False
    try:
        pointer = x.data_ptr()
        is_there = pointer != 0 and not is_freed_part(x)
    except RuntimeError:  # of functorch's tensors, say
        pass
    if is_there or x.numel() == 0:
        return pointer
    hint = "give a plain torch.Tensor with the values"
    if hasattr(x, "full_tensor"):
        hint = "give what its full_tensor() returns, or to_local() for this process's part"
    raise TypeError(
        f"{name} is a {type(x).__name__} of shape {list(x.shape)} without memory of its own: {hint}"
    )


def is_freed_part(x: Any) -> bool:
    """Whether x is a part, not from the beginning, of memory that was freed, as FSDP frees
    parameters: its address is not a null pointer."""
    return bool(x.storage_offset() != 0 and x.untyped_storage().nbytes() == 0)

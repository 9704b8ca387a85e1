# SPDX-License-Identifier: Apache-2.0
"""Where the kernels of a GPU find blocks, for tensors in host memory, which is read there."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from warpcipher.kv.gpu import Layout, layout_of

torch: Any = pytest.importorskip("torch")


def text_of(layout: Layout, block: int) -> bytes:
    pairs = zip(layout.places[::2], layout.places[1::2], strict=True)
    return b"".join(ctypes.string_at(first + block * step, layout.size) for first, step in pairs)


def tensor(*shape: int, dtype: str = "bfloat16") -> Any:
    size = torch.empty(shape, dtype=getattr(torch, dtype)).nbytes
    return torch.randint(0, 255, (size,), dtype=torch.uint8).view(getattr(torch, dtype)).view(shape)


@pytest.mark.parametrize(
    ("tensors", "axis", "size"),
    [
        ([tensor(6, 2, 16, 2, 64) for _ in range(3)], 0, 8192),
        ([tensor(2, 6, 16, 2, 64, dtype="float8_e4m3fn") for _ in range(3)], 1, 2048),
        ([tensor(3, 2, 6, 16, 2, 64)], 2, 4096),
        ([tensor(6, 16, 576), tensor(6, 16, 128, dtype="float8_e4m3fn")], 0, 2048),
        ([tensor(6, 4096)[:, :1024], tensor(12, 512)[::2]], 0, 1024),
        ([tensor(2, 6, 4, 16, 64).transpose(2, 3)], 1, None),  # pieces of 128 bytes
        ([tensor(6, 3, 5, 7)], 0, None),
        ([tensor(6, 16, 33)], 0, None),  # 1056 is not a multiple of 64
        ([tensor(6, 1 << 20), tensor(6, 512)], 0, 1024),
        ([tensor(6, 1 << 23), tensor(6, 512)], 0, None),  # too many
    ],
)
def test_places(tensors: list[Any], axis: int, size: int | None) -> None:
    layout = layout_of(tensors, axis)
    if size is None:
        assert layout is None
        return
    assert layout is not None
    assert layout.size == size
    for block in range(tensors[0].shape[axis]):
        whole = [t.select(axis, block).contiguous().view(torch.uint8) for t in tensors]
        assert text_of(layout, block) == b"".join(one.numpy().tobytes() for one in whole)

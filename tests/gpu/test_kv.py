# SPDX-License-Identifier: Apache-2.0
"""The vault with tensors on a GPU: the CPU's vault opens what it sealed, and back."""

from __future__ import annotations

from typing import Any

import pytest
from array_libraries import Torch
from warpcipher import kv

KEY = bytes(range(32))
SHAPE = (2, 20, 16, 8, 64)


def blocks(torch: Any, dtype: str, device: str) -> list[Any]:
    made = [torch.randint(0, 2, SHAPE, device=device) for _ in range(3)]
    return [tensor.to(getattr(torch, dtype)) for tensor in made]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float32"])
@pytest.mark.parametrize("algorithm", ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"])
@pytest.mark.parametrize("place", ["page-locked", "device", "plain"])
def test_gpu_and_cpu_open_each_other(place: str, algorithm: Any, dtype: str) -> None:
    torch = Torch().torch
    on_gpu, vault = blocks(torch, dtype, "cuda"), kv.Vault(KEY, algorithm)
    ids, size = [19, 0, 7, 7], vault.sealed_size(on_gpu, 1)
    who = kv.Identity("tenant", "model", [b"%d" % i for i in range(4)])
    out = torch.empty(
        (4, size),
        dtype=torch.uint8,
        device="cuda" if place == "device" else "cpu",
        pin_memory=place == "page-locked",
    )
    numbers = torch.tensor(ids, device="cuda")
    assert vault.seal(on_gpu, numbers, out, identity=who, axis=1) is out
    torch.cuda.synchronize()

    on_host = blocks(torch, dtype, "cpu")
    other = kv.Vault(KEY, algorithm)
    assert other.open(out, on_host, [1, 2, 3, 4], identity=who, axis=1) == []
    for host, device in zip(on_host, on_gpu, strict=True):
        expected = device.view(torch.uint8)[:, numbers].cpu()
        assert torch.equal(host.view(torch.uint8)[:, 1:5], expected)

    sealed = other.seal(on_host, [1, 2, 3, 4], identity=who, axis=1)
    sealed[2, 1000] ^= 1
    before = [tensor.clone() for tensor in on_gpu]
    assert vault.open(sealed, on_gpu, [10, 11, 12, 13], identity=who, axis=1) == [2]
    for host, device, old in zip(on_host, on_gpu, before, strict=True):
        host, device, old = (tensor.view(torch.uint8).cpu() for tensor in (host, device, old))
        assert torch.equal(device[:, [10, 11, 13]], host[:, [1, 2, 4]])
        kept = [*range(10), 12, *range(14, 20)]
        assert torch.equal(device[:, kept], old[:, kept])

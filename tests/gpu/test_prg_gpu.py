# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.prg` on arrays of PyTorch, CuPy and JAX on a GPU: the bytes of the CPU, on the
caller's stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_libraries import CuPy, Jax, Torch
from warpcipher import prg
from warpcipher.prg import dpf
from warpcipher.prg.dpf import PRGS

LIBRARIES = {"torch": Torch, "cupy": CuPy, "jax": Jax}


@pytest.mark.parametrize("library", list(LIBRARIES))
@pytest.mark.parametrize("name", PRGS)
def test_seeds_and_trees(name: Any, library: str) -> None:
    arrays: Any = LIBRARIES[library]()
    for count in (1, 15, 16, 17, 100_003):
        seeds = np.random.default_rng(count).bytes(16 * count)
        for children in (1, 2, 3, 4):
            made = prg.expand(arrays.put(seeds), name, children)
            assert made.shape == (count, children, 16)
            assert arrays.get(made) == prg.expand(seeds, name, children)
        assert arrays.get(prg.tree(arrays.put(seeds), 5, name)) == prg.tree(seeds, 5, name)
    assert arrays.get(prg.tree(arrays.put(bytes(16)), 18, name)) == prg.tree(bytes(16), 18, name)


@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize("name", ["aes-128-mmo", "aes-128-half"])
@pytest.mark.parametrize("group", ["gf2", "u32", "u64"])
def test_point_functions(group: Any, name: Any, library: str) -> None:
    arrays: Any = LIBRARIES[library]()
    points = [7 * k % 4096 for k in range(70)]
    keys, _ = dpf.generate(points, None, 12, group=group, prg=name)
    made = dpf.evaluate_all(keys, device="cuda", library=library)
    assert arrays.get(made) == dpf.evaluate_all(keys).tobytes()
    assert arrays.get(dpf.evaluate(keys, points, device="cuda", library=library)) == (
        dpf.evaluate(keys, points).tobytes()
    )
    for records, size in ((1, 8), (4000, 256), (4096, 72)):
        table = np.random.default_rng(size).bytes(records * size)
        found = dpf.answer(keys, arrays.put(table), size)
        assert found.shape[0] == 70
        assert arrays.get(found) == dpf.answer(keys, table, size)


def test_work_is_on_the_stream() -> None:
    torch = Torch().torch
    side = torch.cuda.Stream()
    expected = prg.expand(bytes(1 << 20))
    for _ in range(5):
        seeds = torch.full((1 << 20,), 7, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            seeds.zero_()
            made = prg.expand(seeds)
        side.synchronize()
        assert made.cpu().numpy().tobytes() == expected

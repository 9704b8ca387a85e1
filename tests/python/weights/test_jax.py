# SPDX-License-Identifier: Apache-2.0
"""Models in JAX. Runs where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from warpcipher import weights
from warpcipher.weights import frameworks
from weights_cases import assert_same, tensors

jax = pytest.importorskip("jax", reason="JAX is not installed")
np = pytest.importorskip("numpy", reason="NumPy is not installed")

KEY = bytes(range(32))
WIDE = ("int64", "uint64", "float64")


def narrow() -> dict[str, Any]:
    return {name: tensor for name, tensor in tensors().items() if tensor.dtype.name not in WIDE}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    model = {**narrow(), "bf16": jax.numpy.arange(7, dtype=jax.numpy.bfloat16)}
    model["f8"] = jax.numpy.arange(8).astype(jax.numpy.float8_e4m3fn)
    weights.save_file(model, tmp_path / "x", KEY)
    found = weights.load_file(tmp_path / "x", KEY, framework="jax")
    assert all(isinstance(tensor, jax.Array) for tensor in found.values())
    assert_same(
        {n: np.asarray(t) for n, t in found.items()}, {n: np.asarray(t) for n, t in model.items()}
    )
    with weights.safe_open(tmp_path / "x", "flax", key=KEY) as opened:
        part = opened.get_slice("embed")[3:9, ::2]
        assert isinstance(part, jax.Array)
        assert np.array_equal(part, model["embed"][3:9, ::2])


def test_memory_that_jax_takes_as_it_is_is_not_wiped() -> None:
    """JAX copies what does not begin at a multiple of 64 bytes; that is wiped."""
    jax_memory = frameworks.get("jax", "cpu")
    for shape in ((), (1, 1), (0, 4), (37,)):
        size = 4 * int(np.prod(shape))
        block = jax_memory.block(size + 128)
        first = -block.ctypes.data % 64
        for place in range(first, first + 64, 4):
            part = block[place : place + size]
            part[:] = np.arange(1, size + 1)
            expected = part.tobytes()
            found = jax_memory.given(jax_memory.tensor(part, "I32", shape, "x"))
            assert found.shape == shape
            assert np.asarray(found).tobytes() == expected
            is_same = size != 0 and found.unsafe_buffer_pointer() == part.ctypes.data
            assert part.tobytes() == (expected if is_same else bytes(size))
            assert not is_same or (place - first) % 64 == 0
            del found


def test_numbers_that_jax_would_round_are_refused(tmp_path: Path) -> None:
    weights.save_file({"x": np.array([2**53 + 1])}, tmp_path / "x", KEY)
    with pytest.raises(TypeError, match="tensor 'x' is I64: JAX has 64 bits after"):
        weights.load_file(tmp_path / "x", KEY, framework="jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        found = weights.load_file(tmp_path / "x", KEY, framework="jax")
    assert found["x"].dtype == np.int64
    assert int(found["x"][0]) == 2**53 + 1

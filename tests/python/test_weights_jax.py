# SPDX-License-Identifier: Apache-2.0
"""Models in JAX. Runs where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from warpcipher import weights
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


def test_numbers_that_jax_would_round_are_refused(tmp_path: Path) -> None:
    weights.save_file({"x": np.array([2**53 + 1])}, tmp_path / "x", KEY)
    with pytest.raises(TypeError, match="tensor 'x' is I64: JAX has 64 bits after"):
        weights.load_file(tmp_path / "x", KEY, framework="jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        found = weights.load_file(tmp_path / "x", KEY, framework="jax")
    assert found["x"].dtype == np.int64
    assert int(found["x"][0]) == 2**53 + 1

# SPDX-License-Identifier: Apache-2.0
"""Models as the tests see them: tensors of every dtype that NumPy has, and files of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from warpcipher import weights

np = pytest.importorskip("numpy", reason="NumPy is not installed")

METADATA = {"format": "pt"}


def tensors(seed: int = 0, rows: int = 40) -> dict[str, Any]:
    """Tensors of all shapes, some of them empty; about 200 bytes for each of the rows."""
    rng = np.random.default_rng(seed)
    return {
        "embed": rng.standard_normal((rows, 37)).astype(np.float32),
        "norm.weight": rng.standard_normal(7),
        "scale": np.array(rng.standard_normal(), np.float16),
        "steps": np.array([rng.integers(1 << 40)], np.int64),
        "mask": rng.integers(0, 2, 13).astype(bool),
        "none": np.zeros((0, 4), np.int8),
        "ids": rng.integers(0, 255, (3, 5, 7), dtype=np.uint8),
        "u16": rng.integers(0, 1 << 16, (2, 2), dtype=np.uint16),
        "u32": rng.integers(0, 1 << 32, (2, 1, 3), dtype=np.uint32),
        "u64": rng.integers(0, 1 << 63, 3, dtype=np.uint64),
        "i16": np.array([-1, 2], np.int16),
        "i32": np.array([[-3]], np.int32),
        "phase": (rng.standard_normal(3) + 1j).astype(np.complex64),
    }


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype, name
        assert found[name].shape == tensor.shape, name
        assert found[name].tobytes() == tensor.tobytes(), name


def painted(path: Path, position: int, bit: int = 0) -> None:
    """Flips one bit of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1 << bit]))


def sum_of_file(path: str, key: object) -> float:
    """In a process of its own, which imports this module and no test."""
    return float(sum(t.sum() for t in weights.load_file(path, key, framework="np").values()))

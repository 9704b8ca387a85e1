# SPDX-License-Identifier: Apache-2.0
"""Text that was decrypted on the way to a tensor, and is not given out, is wiped."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_weights import kept
from warpcipher import formats, weights
from warpcipher.weights import frameworks
from weights_cases import assert_same, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")

KEY = bytes(range(32))


def wiped(blocks: list[memoryview]) -> list[bool]:
    return [not any(block) for block in blocks]


def misaligned(path: Path, last: str) -> None:
    """An encrypted file of a byte, eight bytes of F32 after it, and two bytes of another dtype."""
    header = {
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
        "c": {"dtype": last, "shape": [1], "data_offsets": [9, 11]},
    }
    text = json.dumps(header).encode()
    data = b"\x05" + np.array([1.5, -2.5], np.float32).tobytes() + b"\x07\x08"
    with path.open("wb") as file:
        plain = io.BytesIO(len(text).to_bytes(8, "little") + text + data)
        formats.encrypt_stream(plain, file, KEY)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[memoryview]:
    """The copies of blocks whose place does not suit the dtype."""
    found: list[memoryview] = []
    aligned = frameworks._NumPy.aligned

    def keep(self: Any, block: Any, dtype: str) -> Any:
        made = aligned(self, block, dtype)
        if made is not block:
            found.append(memoryview(made))
        return made

    monkeypatch.setattr(frameworks._NumPy, "aligned", keep)
    return found


def test_gaps_between_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tensors(rows=400)
    weights.save_file(model, tmp_path / "x", KEY)
    blocks = kept(monkeypatch)
    with weights.safe_open(tmp_path / "x", "np", key=KEY) as opened:
        found = opened.get_slice("embed")[5:60, 3:9]
    assert np.array_equal(found, model["embed"][5:60, 3:9])
    assert wiped(blocks) == [False, True]


def test_rows_that_a_step_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tensors()
    weights.save_file(model, tmp_path / "x", KEY)
    blocks = kept(monkeypatch)
    with weights.safe_open(tmp_path / "x", "np", key=KEY) as opened:
        found = opened.get_slice("embed")[::2]
    assert np.array_equal(found, model["embed"][::2])
    assert wiped(blocks) == [True]


def test_a_tensor_whose_dtype_the_library_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    misaligned(tmp_path / "x", "BF16")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    blocks = kept(monkeypatch)
    with weights.safe_open(tmp_path / "x", "np", key=KEY) as opened:
        for index in (..., slice(0, 1), 0):
            with pytest.raises(TypeError, match="ml_dtypes"):
                opened.get_slice("c")[index]
    assert wiped(blocks) == [True] * 3


def test_copies_of_what_is_not_aligned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: list[memoryview]
) -> None:
    misaligned(tmp_path / "x", "I16")
    blocks = kept(monkeypatch)
    found = weights.load_file(tmp_path / "x", KEY, framework="np")
    assert found["b"].tolist() == [1.5, -2.5]
    assert found["c"].tobytes() == b"\x07\x08"
    assert [bytes(block) for block in blocks] == [b"\x05" + bytes(10)]
    assert wiped(copies) == [False, False]


def test_copies_of_what_is_not_aligned_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: list[memoryview]
) -> None:
    misaligned(tmp_path / "x", "BF16")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    blocks = kept(monkeypatch)
    with pytest.raises(TypeError, match="tensor 'c' is BF16"):
        weights.load_file(tmp_path / "x", KEY, framework="np")
    assert wiped(blocks) == [True]
    assert wiped(copies) == [True, True]


class Array:
    """An array of a stand-in for JAX: it is copied when one waits for it, as JAX may do."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def block_until_ready(self) -> Array:
        self.host = self.host.copy()
        return self

    def unsafe_buffer_pointer(self) -> int:
        return int(self.host.ctypes.data)


def test_what_jax_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(
        Array=Array,
        dtypes=SimpleNamespace(canonicalize_dtype=lambda kind: kind),
        devices=lambda name: [name],
        device_put=lambda host, device: Array(host),
    )
    monkeypatch.setitem(sys.modules, "jax", fake)
    model = tensors()
    weights.save_file(model, tmp_path / "x", KEY)
    blocks = kept(monkeypatch)
    found = weights.load_file(tmp_path / "x", KEY, framework="jax")
    assert_same({name: tensor.host for name, tensor in found.items()}, model)
    with weights.safe_open(tmp_path / "x", "jax", key=KEY) as opened:
        for name, tensor in model.items():
            assert_same({name: opened.get_tensor(name).host}, {name: tensor})
        for index in (np.s_[3:9], np.s_[::3, 1:5], np.s_[7, 8]):
            found_part = opened.get_slice("embed")[index].host
            assert np.array_equal(found_part, model["embed"][index])
    assert len(blocks) > len(model)
    assert all(wiped(blocks))
    blocks.clear()

    def fail(host: Any, device: object) -> Any:
        raise MemoryError

    monkeypatch.setattr(fake, "device_put", fail)
    with pytest.raises(MemoryError):
        weights.load_file(tmp_path / "x", KEY, framework="jax")
    assert wiped(blocks) == [True]


@pytest.mark.parametrize("lacking", [1, 2])
def test_memory_that_cannot_be_had_for_a_later_file(
    lacking: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a model of three: those that were read before are wiped."""
    for i in range(3):
        weights.save_file({f"t{i}": np.ones(1000)}, tmp_path / f"{i}.safetensors", KEY)
    blocks = kept(monkeypatch)
    block = frameworks._NumPy.block

    def take(self: Any, size: int) -> Any:
        if len(blocks) == lacking:
            raise MemoryError(f"{size} bytes for tensors")
        return block(self, size)

    monkeypatch.setattr(frameworks._NumPy, "block", take)
    with pytest.raises(MemoryError, match="8000 bytes for tensors"):
        weights.load_file(tmp_path, KEY, framework="np")
    assert wiped(blocks) == [True] * lacking

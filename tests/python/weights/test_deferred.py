# SPDX-License-Identifier: Apache-2.0
"""Tensors that are read when they are first used. Runs where PyTorch is installed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warpcipher import InvalidTag, weights
from warpcipher.weights.images import FormatImage
from warpcipher.weights.vllm_loader import DeferredTensors
from weights_cases import painted

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

KEY = bytes(range(32))
ROWS, COLUMNS = 64, 1 << 16


@pytest.fixture
def model(tmp_path: Path) -> dict[str, Any]:
    """The tensors, encrypted, in `x`: a matrix, experts, and tensors of odd kinds."""
    torch.manual_seed(5)
    found = {
        "w": torch.randn(ROWS, COLUMNS).to(torch.bfloat16),
        "experts": torch.randn(4, 32, 4096),
        "scale": torch.tensor(2.5),
        "none": torch.zeros(0, 3),
        "ids": torch.arange(7),
    }
    weights.save_file(found, tmp_path / "x", KEY)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that are read of files, read by read."""
    lengths: list[int] = []
    read = FormatImage.read

    def count(self: FormatImage, offset: int, out: Any) -> None:
        lengths.append(len(out))
        read(self, offset, out)

    monkeypatch.setattr(FormatImage, "read", count)
    return lengths


def share(tensor: Any, dimension: int, rank: int, ranks: int) -> Any:
    """As the layers of vLLM take theirs."""
    size = tensor.shape[dimension] // ranks
    return tensor.narrow(dimension, rank * size, size)


CUTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "rows": ("w", lambda w: share(w, 0, 1, 4)),
    "columns": ("w", lambda w: share(w, 1, 3, 4)),
    "twice": ("w", lambda w: share(share(w, 0, 1, 2), 0, 1, 2)),
    "both": ("w", lambda w: share(share(w, 1, 1, 8), -2, 1, 2)),
    "an expert": ("experts", lambda w: w[2]),
    "a share of an expert": ("experts", lambda w: share(w[2], 0, 1, 2)),
    "the last": ("experts", lambda w: w[-1][-1]),
    "detached": ("w", lambda w: share(w.detach().data, 0, 1, 4)),
    "by indices": ("w", lambda w: w[3:9, -5:]),
    "nothing": ("w", lambda w: w[9:3]),
    "nothing of nothing": ("none", lambda w: w[:, 1:]),
}
"""The part of one tensor that is read without the rest of it."""

USES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "whole": ("w", lambda w: w),
    "transposed": ("w", lambda w: share(w.t(), 0, 1, 4)),
    "a step": ("w", lambda w: w[::3]),
    "parts": ("w", lambda w: torch.cat(w.chunk(3)[1:])),
    "computed": ("scale", lambda w: w + 1),
    "another dtype": ("ids", lambda w: w.to(torch.int32)),
    "another shape": ("experts", lambda w: w.view(-1, 64)),
    "a scalar": ("scale", lambda w: w.reshape(1)),
    "bytes": ("w", lambda w: w.view(torch.uint8)),
}


def each(path: Path) -> Any:
    return weights.safe_open(path, "pt", key=KEY)


@pytest.mark.parametrize("name", [*CUTS, *USES])
def test_what_is_taken_is_what_is_there(name: str, model: dict[str, Any], tmp_path: Path) -> None:
    tensor, take = {**CUTS, **USES}[name]
    with each(tmp_path / "x") as opened:
        whole = dict(DeferredTensors(opened, "cpu"))[tensor]
        found = take(whole)
        expected = take(model[tensor])
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        target = torch.empty_like(expected)
        target.copy_(found)
        assert torch.equal(target, expected)
        assert torch.equal(found, expected)
        assert type(found + 0) is torch.Tensor


@pytest.mark.parametrize("name", CUTS)
def test_no_more_is_read_than_was_cut_out(
    name: str, model: dict[str, Any], tmp_path: Path, asked: list[int]
) -> None:
    tensor, take = CUTS[name]
    with each(tmp_path / "x") as opened:
        tensors = dict(DeferredTensors(opened, "cpu"))
        asked.clear()
        found = take(tensors[tensor])
        assert asked == []
        expected = take(model[tensor])
        for _ in range(2):  # read once
            assert torch.equal(torch.empty_like(expected).copy_(found), expected)
        assert sum(asked) == expected.numel() * expected.element_size()


def test_what_was_read_is_not_read_again(
    model: dict[str, Any], tmp_path: Path, asked: list[int]
) -> None:
    with each(tmp_path / "x") as opened:
        whole = dict(DeferredTensors(opened, "cpu"))["w"]
        assert float(whole.float().sum()) == float(model["w"].float().sum())
        asked.clear()
        assert torch.equal(whole[3:5], model["w"][3:5])
        assert asked == []


def test_what_does_not_come_as_a_tensor(model: dict[str, Any], tmp_path: Path) -> None:
    with each(tmp_path / "x") as opened:
        found = dict(DeferredTensors(opened, "cpu"))
        assert found["ids"][2:].tolist() == [2, 3, 4, 5, 6]
        assert (found["experts"][1].numpy() == model["experts"][1].numpy()).all()
        assert found["scale"].item() == 2.5
        assert found["w"].data_ptr() == found["w"].data.data_ptr() != 0


def test_those_that_are_kept_outlive_the_model(model: dict[str, Any], tmp_path: Path) -> None:
    with each(tmp_path / "x") as opened:
        deferred = DeferredTensors(opened, "cpu")
        found = dict(deferred)
        kept = found["experts"][1]
        whole = found["w"]
        found.clear()
        deferred.read_rest()
    assert torch.equal(kept, model["experts"][1])
    assert torch.equal(whole, model["w"])
    assert torch.equal(copy.deepcopy(whole.data), model["w"])


def test_errors(model: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "x"
    painted(path, path.stat().st_size // 2)
    with each(path) as opened:
        found = dict(DeferredTensors(opened, "cpu"))
        with pytest.raises(IndexError):
            found["experts"].select(0, 4)
        with pytest.raises(IndexError):
            found["w"].narrow(2, 0, 1)
        assert "w" not in repr(found["w"])
        assert "[64, 65536] of torch.bfloat16, cpu" in repr(found["w"])
        with pytest.raises(InvalidTag):
            torch.empty(ROWS, COLUMNS, dtype=torch.bfloat16).copy_(found["w"])
    with pytest.raises(ValueError, match="closed"):
        found["ids"].sum()

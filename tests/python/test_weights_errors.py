# SPDX-License-Identifier: Apache-2.0
"""What errors of models say: which file, what it is, and what is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from warpcipher import weights

np = pytest.importorskip("numpy", reason="NumPy is not installed")


@pytest.mark.parametrize(
    ("framework", "package"),
    [("np", "numpy"), ("torch", "torch"), ("jax", "jax"), ("cupy", "cupy")],
)
def test_a_framework_that_is_not_installed(
    framework: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights.save_file({"a": np.ones(3)}, tmp_path / "x")
    monkeypatch.setitem(sys.modules, package, None)
    device = "cuda:0" if framework == "cupy" else "cpu"
    with pytest.raises(ModuleNotFoundError, match=f"needs {package}, which is not installed"):
        weights.load_file(tmp_path / "x", framework=framework, device=device)


def test_what_a_framework_lacks_is_told_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that a framework imports and that is missing is not taken for the framework."""
    from warpcipher.weights import frameworks

    def broken(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'jaxlib'", name="jaxlib")

    monkeypatch.setattr(frameworks.importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'jaxlib'$"):
        frameworks.get("jax", "cpu")


def test_a_framework_in_place_of_a_device(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'pt', which is a framework: expected"):
        weights.load_file(tmp_path, device="pt", framework="np")

# SPDX-License-Identifier: Apache-2.0
"""Models into GPU memory and out of it, in every library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from array_libraries import LIBRARIES
from format_cases import streaming_key
from warpcipher import InvalidTag, formats, weights
from warpcipher.weights.vllm_loader import DeferredTensors
from weights_cases import assert_same, painted, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")

SEED, RAW = bytes(range(1, 33)), bytes(range(32))
OWNER = weights.CryptotensorsKey(RAW, sign=SEED, key_id="w", sign_key_id="s")
READER = weights.CryptotensorsKey(RAW, verify=weights.public_key(SEED))
GCM = formats.Keyset((streaming_key(7, segment_size=4096),), 7)
CTR = formats.Keyset((streaming_key(7, segment_size=4096, mac_hash="sha256"),), 7)
KEYS = {
    "plain": (None, None),
    "cobblestone": (RAW, RAW),
    "tink-gcm": (GCM, GCM),
    "tink-ctr": (CTR, CTR),
    "cryptotensors": (OWNER, READER),
}
FRAMEWORKS = {"torch": "pt", "cupy": "cupy", "jax": "jax"}
WIDE = ("int64", "uint64", "float64")


@pytest.fixture(scope="module", params=[name for name in LIBRARIES if name in FRAMEWORKS])
def framework(request: pytest.FixtureRequest) -> str:
    LIBRARIES[request.param]()  # skips where there is none
    return FRAMEWORKS[request.param]


def model_of(framework: str) -> dict[str, Any]:
    """Without what JAX refuses, unless it is set otherwise. With a tensor of several pieces."""
    found = tensors(rows=400)
    found["large"] = np.random.default_rng(5).integers(0, 255, (2600, 4096)).astype(np.uint8)
    if framework != "jax":
        return found
    return {name: tensor for name, tensor in found.items() if tensor.dtype.name not in WIDE}


def to_gpu(framework: str, model: dict[str, Any]) -> dict[str, Any]:
    if framework == "pt":
        import torch

        return {name: torch.from_numpy(tensor.copy()).cuda() for name, tensor in model.items()}
    if framework == "cupy":
        import cupy

        return {name: cupy.asarray(tensor) for name, tensor in model.items()}
    import jax

    return {name: jax.device_put(tensor, jax.devices("cuda")[0]) for name, tensor in model.items()}


def to_host(tensor: Any) -> Any:
    if hasattr(tensor, "get"):
        return tensor.get()
    return tensor.cpu().numpy() if hasattr(tensor, "cpu") else np.asarray(tensor)


@pytest.mark.parametrize("kind", KEYS)
def test_what_is_saved_is_loaded(framework: str, kind: str, tmp_path: Path) -> None:
    """Both ways, against files of tensors in host memory."""
    key, reader = KEYS[kind]
    model = model_of(framework)
    weights.save_file(model, tmp_path / "of-host", key)
    found = weights.load_file(tmp_path / "of-host", reader, "cuda:0", framework)
    assert_same({name: to_host(tensor) for name, tensor in found.items()}, model)
    assert "cuda" in str(found["large"].device).lower() or framework == "cupy"
    weights.save_file(found, tmp_path / "of-gpu", key)
    assert_same(weights.load_file(tmp_path / "of-gpu", reader, framework="np"), model)
    weights.save_file({**to_gpu(framework, model), "host": model["embed"]}, tmp_path / "x", key)
    again = weights.load_file(tmp_path / "x", reader, framework="np")
    assert_same(again, {**model, "host": model["embed"]})


@pytest.mark.parametrize("kind", KEYS)
def test_slices(framework: str, kind: str, tmp_path: Path) -> None:
    key, reader = KEYS[kind]
    model = model_of(framework)
    weights.save_file(model, tmp_path / "x", key)
    with weights.safe_open(tmp_path / "x", framework, "cuda:0", key=reader) as opened:
        for index in ((slice(3, 90),), (slice(None), slice(5, 9)), (slice(7, 80, 3), 4), (...,)):
            for name in ("embed", "large"):
                part = to_host(opened.get_slice(name)[index])
                assert np.array_equal(part, model[name][index])


def test_tensors_that_are_read_when_they_are_used(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = model_of("pt")
    weights.save_file(model, tmp_path / "x", RAW)
    with weights.safe_open(tmp_path / "x", "pt", "cuda:0", key=RAW) as opened:
        found = dict(DeferredTensors(opened, "cuda:0"))
        assert {str(tensor.device) for tensor in found.values()} == {"cuda:0"}
        target = torch.empty(650, 4096, dtype=torch.uint8, device="cuda:0")
        target.copy_(found["large"].narrow(0, 1300, 650))
        assert np.array_equal(to_host(target), model["large"][1300:1950])
        assert np.array_equal(to_host(found["embed"].t().contiguous()), model["embed"].T)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_numpy_lacks(framework: str, dtype: str, tmp_path: Path) -> None:
    if framework == "cupy":
        pytest.skip("CuPy has none of them")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    model = {"x": np.arange(24).astype(getattr(ml_dtypes, dtype)).reshape(2, 3, 4)}
    weights.save_file(model, tmp_path / "x", RAW)
    found = weights.load_file(tmp_path / "x", RAW, "cuda:0", framework)
    assert dtype in str(found["x"].dtype)
    weights.save_file(found, tmp_path / "y", RAW)
    assert_same(weights.load_file(tmp_path / "y", RAW, framework="np"), model)


def test_a_changed_file_gives_no_tensor(framework: str, tmp_path: Path) -> None:
    model = model_of(framework)
    weights.save_file(model, tmp_path / "x", RAW)
    painted(tmp_path / "x", (tmp_path / "x").stat().st_size // 2)
    with pytest.raises(InvalidTag):
        weights.load_file(tmp_path / "x", RAW, "cuda:0", framework)


def test_tensors_that_are_not_contiguous(framework: str, tmp_path: Path) -> None:
    model = {"x": np.arange(60_000, dtype=np.int32).reshape(200, 300)}
    lent = {"x": to_gpu(framework, model)["x"].T, "y": to_gpu(framework, model)["x"][::2, 1:]}
    weights.save_file(lent, tmp_path / "x", RAW)
    found = weights.load_file(tmp_path / "x", RAW, framework="np")
    assert np.array_equal(found["x"], model["x"].T)
    assert np.array_equal(found["y"], model["x"][::2, 1:])


def test_several_gpus(framework: str, tmp_path: Path) -> None:
    import warpcipher as wc

    if len(next(info for info in wc.engines() if info.name == "cuda").devices) < 2:
        pytest.skip("one GPU")
    model = model_of(framework)
    weights.save_file(model, tmp_path / "x", RAW)
    first = weights.load_file(tmp_path / "x", RAW, "cuda:0", framework)
    second = weights.load_file(tmp_path / "x", RAW, "cuda:1", framework)
    both = {f"0.{name}": tensor for name, tensor in first.items()}
    both |= {f"1.{name}": tensor for name, tensor in second.items()}
    weights.save_file(both, tmp_path / "y", RAW)
    found = weights.load_file(tmp_path / "y", RAW, framework="np")
    for number in (0, 1):
        assert_same({name: found[f"{number}.{name}"] for name in model}, model)


def test_a_missing_gpu_is_named(framework: str, tmp_path: Path) -> None:
    weights.save_file({"x": np.zeros(3)}, tmp_path / "x", RAW)
    with pytest.raises(Exception, match=r"(?i)device|ordinal"):
        weights.load_file(tmp_path / "x", RAW, "cuda:99", framework)


SEARCH = """
import sys
import torch
from memory_search import count
from warpcipher import weights

path, halves, key = sys.argv[1], [half.encode() for half in sys.argv[2:4]], bytes(range(32))
tensors = weights.load_file(path, key, "cuda:0")
needle = b"".join(halves)
loaded = count(needle * 4)
weights.save_file(tensors, path + ".saved", key)
saved = count(needle * 4)
# The control: the search finds what lies in host memory.
host = {name: tensor.cpu() for name, tensor in tensors.items()}
print(loaded, saved, count(needle * 4))
"""


def test_no_plaintext_in_host_memory(tmp_path: Path) -> None:
    """A search of the whole memory of a process that loaded a model to a GPU and saved it from
    there, page-locked slots included."""
    pytest.importorskip("torch")
    halves = ("no memory of the host ", "holds these weights; ")
    text = "".join(halves).encode() * 200_000
    weights.save_file({"x": np.frombuffer(text, np.uint8)}, tmp_path / "x", RAW)
    run = subprocess.run(
        [sys.executable, "-c", SEARCH, str(tmp_path / "x"), *halves],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, saved, control = map(int, run.stdout.split())
    assert control > 40_000
    assert loaded < 100, "the search itself"
    assert saved < 100, "the search itself"
    saved_model = weights.load_file(tmp_path / "x.saved", RAW, framework="np")
    assert saved_model["x"].tobytes() == text

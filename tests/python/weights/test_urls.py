# SPDX-License-Identifier: Apache-2.0
"""Models at URLs: saved there, and loaded as one file, by an index, or as all of a prefix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from step_store import StepStore, step_store
from warpcipher import InvalidTag, formats, weights
from warpcipher.weights import cryptotensors

numpy = pytest.importorskip("numpy")

KEY = bytes(range(32))
TENSORS = {
    "a": numpy.arange(3 << 20, dtype="u1").reshape(3, -1),
    "b": numpy.array(7, "f4"),
    "c": numpy.zeros((0, 2), "f2"),
}


@pytest.fixture
def store() -> Iterator[StepStore]:
    with step_store() as made:
        yield made


def same(found: dict[str, object], tensors: dict[str, object] = TENSORS) -> bool:
    return found.keys() == tensors.keys() and all(
        numpy.array_equal(found[name], tensor) for name, tensor in tensors.items()
    )


@pytest.mark.parametrize("key", [None, KEY])
def test_a_file(store: StepStore, tmp_path: Path, key: bytes | None) -> None:
    weights.save_file(TENSORS, "step://model.safetensors", key)
    weights.save_file(TENSORS, tmp_path / "model", key)
    assert len(store.objects["model.safetensors"][0]) == (tmp_path / "model").stat().st_size
    if key is None:
        assert store.objects["model.safetensors"][0] == (tmp_path / "model").read_bytes()
    assert same(weights.load_file("step://model.safetensors", key, framework="np"))
    with weights.safe_open("step://model.safetensors", "np", key=key) as model:
        assert numpy.array_equal(model.get_slice("a")[1:2, 5:], TENSORS["a"][1:2, 5:])
    said = "is not encrypted" if key is None else "a file that is encrypted needs one"
    with pytest.raises((InvalidTag, formats.FormatError), match=said):
        weights.load_file("step://model.safetensors", KEY if key is None else None, framework="np")


@pytest.mark.parametrize("key", [None, KEY])
def test_an_index_and_a_prefix(store: StepStore, key: bytes | None) -> None:
    """Encrypted, the files have the suffix that `warpcipher encrypt` gives them."""
    suffix = "" if key is None else ".cobblestone"
    index: dict[str, str] = {}
    for number, name in enumerate(sorted(TENSORS), 1):
        file = f"m-{number}-of-{len(TENSORS)}.safetensors"
        weights.save_file({name: TENSORS[name]}, f"step://m/{file}{suffix}", key)
        index[name] = file
    store.put("m/readme", b"text")
    store.put("m/deeper/other.safetensors", b"text")
    assert same(weights.load_file("step://m/", key, framework="np"))
    store.put("m/model.safetensors.index.json", json.dumps({"weight_map": index}).encode())
    for place in ("step://m", "step://m/model.safetensors.index.json"):
        assert same(weights.load_file(place, key, framework="np"))
    lost = f"m/m-2-of-3.safetensors{suffix}"
    del store.objects[lost]
    with pytest.raises(FileNotFoundError):
        weights.load_file("step://m", key, framework="np")
    del store.objects["m/model.safetensors.index.json"]
    with pytest.raises(formats.FormatError, match=r"m-2-of-3\.safetensors is missing"):
        weights.load_file("step://m", key, framework="np")


def test_what_is_not_there(store: StepStore) -> None:
    for url in ("step://none", "step://none/model.safetensors"):
        with pytest.raises(FileNotFoundError):
            weights.load_file(url, KEY, framework="np")


def test_a_file_that_changes_meanwhile(store: StepStore) -> None:
    weights.save_file(TENSORS, "step://model.safetensors")
    with weights.safe_open("step://model.safetensors", "np") as model:
        weights.save_file(TENSORS, "step://model.safetensors")
        with pytest.raises(OSError, match="changed"):
            model.get_tensor("a")


@pytest.mark.parametrize("at_once", [cryptotensors.AT_ONCE, 100_000])
def test_a_cryptotensors_file(
    store: StepStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setattr(cryptotensors, "CHUNK_SIZE", 1 << 16)
    monkeypatch.setattr(cryptotensors, "AT_ONCE", at_once)
    key = weights.CryptotensorsKey(KEY, sign=KEY, key_id="w", sign_key_id="s")
    weights.save_file(TENSORS, "step://model.safetensors", key)
    (tmp_path / "model").write_bytes(store.objects["model.safetensors"][0])
    assert same(weights.load_file(tmp_path / "model", key, framework="np"))
    assert same(weights.load_file("step://model.safetensors", key, framework="np"))
    with weights.safe_open("step://model.safetensors", "np", key=key) as model:
        assert numpy.array_equal(model.get_slice("a")[1:2, 5:], TENSORS["a"][1:2, 5:])
    new = weights.CryptotensorsKey(bytes(32), sign=KEY, key_id="w2", sign_key_id="s")
    with pytest.raises(ValueError, match=r"copy=True \(--copy\) reads"):
        cryptotensors.rewrap("step://model.safetensors", key, new)
    cryptotensors.rewrap("step://model.safetensors", key, new, tmp_path / "new")
    assert same(weights.load_file(tmp_path / "new", new, framework="np"))
    cryptotensors.rewrap("step://model.safetensors", key, new, "step://new.safetensors")
    cryptotensors.rewrap("step://new.safetensors", new, key, copy=True)
    assert same(weights.load_file("step://new.safetensors", key, framework="np"))
    with pytest.raises(FileExistsError):
        cryptotensors.rewrap(
            "step://model.safetensors", key, new, "step://new.safetensors", replace=False
        )
    data = bytearray(store.objects["model.safetensors"][0])
    data[-1] ^= 1
    store.put("model.safetensors", bytes(data))
    with pytest.raises(InvalidTag, match="is not authentic"):
        weights.load_file("step://model.safetensors", key, framework="np")

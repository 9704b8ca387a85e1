# SPDX-License-Identifier: Apache-2.0
"""Errors of models say which file, what it is, and what is missing."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from warpcipher import InvalidTag, formats, weights
from warpcipher.formats import FormatError

np = pytest.importorskip("numpy", reason="NumPy is not installed")

KEY = bytes(range(32))
SIGNED = weights.CryptotensorsKey(KEY, sign=KEY)
CHUNK = 16 << 10
INDEX = "m.safetensors.index.json"
every_key = pytest.mark.parametrize(
    "key", [None, KEY, SIGNED], ids=["plain", "cobblestone", "cryptotensors"]
)


def two_files(folder: Path, key: object) -> list[Path]:
    """A model of two files, of which the second is to be damaged."""
    paths = [folder / f"{number}.safetensors" for number in (1, 2)]
    for number, path in enumerate(paths):
        weights.save_file({f"t{number}": np.arange(100_000.0)}, path, key)
    return paths


def message(error: type[Exception], path: Path, key: object, **changes: Any) -> str:
    with pytest.raises(error) as caught:
        weights.load_file(path, key, **{"framework": "np", **changes})
    return str(caught.value)


@pytest.mark.parametrize("key", [KEY, SIGNED], ids=["cobblestone", "cryptotensors"])
def test_damage_says_in_which_file_it_is(key: object, tmp_path: Path) -> None:
    _, second = two_files(tmp_path, key)
    data = bytearray(second.read_bytes())
    data[-20 * CHUNK] ^= 1
    second.write_bytes(data)
    assert message(InvalidTag, tmp_path, key).startswith("2.safetensors: chunk ")
    with weights.safe_open(tmp_path, "np", key=key) as model:
        assert model.get_tensor("t0")[7] == 7
        for read in (model.get_tensor, lambda name: model.get_slice(name)[1:-1]):
            with pytest.raises(InvalidTag, match=r"^2\.safetensors: chunk "):
                read("t1")


@every_key
def test_a_bad_header_says_of_which_file_it_is(key: object, tmp_path: Path) -> None:
    _, second = two_files(tmp_path, key)
    data = bytearray(second.read_bytes())
    data[20] ^= 1
    second.write_bytes(data)
    with pytest.raises((InvalidTag, FormatError), match=r"^2\.safetensors: "):
        weights.load_file(tmp_path, key, framework="np")


@every_key
def test_a_file_that_was_cut_while_it_was_open_is_named(key: object, tmp_path: Path) -> None:
    _, second = two_files(tmp_path, key)
    with weights.safe_open(tmp_path, "np", key=key) as model:
        with second.open("r+b") as file:
            file.truncate(second.stat().st_size // 2)
        with pytest.raises((InvalidTag, FormatError), match=r"^2\.safetensors: "):
            model.get_tensor("t1")


def test_a_key_for_a_plain_file(tmp_path: Path) -> None:
    _, second = two_files(tmp_path, KEY)
    weights.save_file({"t1": np.arange(3.0)}, second)
    expected = "The file is not encrypted: with a key such files are refused"
    found = message(InvalidTag, tmp_path, KEY)
    assert found.startswith("2.safetensors: ")
    assert found.endswith(expected)
    with second.open("r+b") as file:
        file.truncate(second.stat().st_size - 1)
    assert message(InvalidTag, second, KEY).endswith(expected)


def test_a_wrong_key_is_not_taken_for_a_plain_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file({"a": np.ones(3)}, path, KEY)
    assert "not encrypted" not in message(InvalidTag, path, bytes(32))
    for content in (b"", b"abc", b'{"a": 1}' * 20):
        path.write_bytes(content)
        with pytest.raises((InvalidTag, FormatError)) as caught:
            weights.load_file(path, KEY, framework="np")
        assert "not encrypted" not in str(caught.value)


def test_no_key_for_an_encrypted_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file({"a": np.ones(3)}, path, KEY)
    found = message(FormatError, path, None)
    assert found.startswith("x: not a safetensors file")
    assert found.endswith("No key was given: a file that is encrypted needs one")


def test_keys_of_cryptotensors_and_of_other_files(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file({"a": np.ones(3)}, path, SIGNED)
    expected = "encrypted in the format cryptotensors: give its keys as a CryptotensorsKey"
    for key, error in ((None, FormatError), (KEY, InvalidTag)):
        found = message(error, path, key)
        assert found.endswith(expected)
        assert "not encrypted" not in found
    weights.save_file({"a": np.ones(3)}, path, KEY)
    found = message(FormatError, path, SIGNED)
    assert found.endswith(
        "A CryptotensorsKey was given: a file in another format takes a key of that"
    )
    weights.save_file({"a": np.ones(3)}, path)
    found = message(FormatError, path, SIGNED)
    assert found.endswith("With a key, files that are not encrypted are refused")


def test_an_encrypted_index_without_its_key(tmp_path: Path) -> None:
    name = INDEX + ".cobblestone"
    (tmp_path / INDEX).write_text('{"weight_map": {"a": "x"}}')
    with (tmp_path / INDEX).open("rb") as reader, (tmp_path / name).open("wb") as writer:
        formats.encrypt_stream(reader, writer, KEY)
    path = tmp_path / name
    assert message(FormatError, path, None) == f"{name} is encrypted, and no key was given"
    assert message(FormatError, path, SIGNED).startswith(f"{name} is encrypted as a whole")
    assert message(InvalidTag, path, bytes(32)).startswith(f"{name}: ")


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


def test_a_key_of_no_format_says_where_keys_come_from(tmp_path: Path) -> None:
    found = message(ValueError, tmp_path, "very-secret")
    assert "a source of warpcipher.keys, such as from_file(path)" in found
    assert "very-secret" not in found


class ShortWriter(io.RawIOBase):
    """A raw file that takes 7 bytes at a time, or none in non-blocking mode."""

    def __init__(self, blocks: bool = True) -> None:
        self.data = bytearray()
        self._blocks = blocks

    def write(self, data: Any) -> int | None:
        if not self._blocks:
            return None
        self.data += data[:7]
        return min(7, len(data))


@pytest.mark.parametrize("key", [None, KEY])
def test_a_file_that_takes_a_part_at_a_time_gets_all(key: Any) -> None:
    writer = ShortWriter()
    weights.save_file({"w": np.ones(300)}, writer, key)  # type: ignore[arg-type]
    assert weights.load(bytes(writer.data), key, framework="np")["w"].sum() == 300
    with pytest.raises(BlockingIOError, match="non-blocking mode"):
        weights.save_file({"w": np.ones(3)}, ShortWriter(blocks=False), key)  # type: ignore[arg-type]


class Changing:
    """An array of two floats until it is read: then it has three."""

    dtype, shape, size = np.dtype("f4"), (2,), 2

    def __array__(self, *_: object, **__: object) -> Any:
        return np.zeros(3, self.dtype)


@every_key
def test_a_tensor_that_changes_replaces_no_file(key: object, tmp_path: Path) -> None:
    path = tmp_path / "m"
    weights.save_file({"w": np.ones(2)}, path, key)
    with pytest.raises(ValueError, match="tensor 'w' had 8 bytes and has 12: it changed"):
        weights.save_file({"w": Changing()}, path, key)
    assert weights.load_file(path, key, framework="np")["w"].tolist() == [1, 1]


def test_a_masked_array_is_not_stored_without_its_mask(tmp_path: Path) -> None:
    with pytest.raises(BufferError, match="tensor 'w' is a masked array"):
        weights.save_file({"w": np.ma.array([1, 2], mask=[0, 1])}, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_closed_model_and_tensors_that_are_none(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "m.safetensors"
    with pytest.raises(TypeError, match="tensors is list: expected a mapping"):
        weights.save_file([1], path)  # type: ignore[arg-type]
    weights.save_file({"w": numpy.ones(3)}, path)
    model = weights.safe_open(path, framework="np")
    model.close()
    with pytest.raises(ValueError, match="the model is closed"):
        model.get_tensor("w")

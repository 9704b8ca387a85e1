# SPDX-License-Identifier: Apache-2.0
"""Models of several files: by an index, by a directory, plain and encrypted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from warpcipher import InvalidTag, formats, weights
from warpcipher.formats import FormatError
from weights_cases import assert_same, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")

KEY = bytes(range(32))
INDEX = "model.safetensors.index.json"


def shard(folder: Path, key: bytes | None) -> dict[str, Any]:
    """A model of three files with an index; returns its tensors. The files have the extension that
    encrypted files have, the index does not name it."""
    folder.mkdir(exist_ok=True)
    model = tensors()
    names = sorted(model)
    places = {}
    for number in range(3):
        part = {name: model[name] for name in names[number::3]}
        file = f"model-0000{number + 1}-of-00003.safetensors"
        metadata = {"format": "np", "part": str(number)}
        weights.save_file(part, folder / (file + ".cobblestone" * bool(key)), key, metadata)
        places.update(dict.fromkeys(part, file))
    text = json.dumps({"metadata": {"total_size": 1}, "weight_map": places})
    (folder / INDEX).write_text(text)
    return model


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_a_model_of_several_files(key: bytes | None, tmp_path: Path) -> None:
    model = shard(tmp_path, key)
    (tmp_path / "README.md").write_text("no tensors")
    for path in (tmp_path, tmp_path / INDEX, str(tmp_path)):
        assert_same(weights.load_file(path, key, framework="np"), model)
    with weights.safe_open(tmp_path, "np", key=key) as opened:
        assert opened.keys() == sorted(model)
        assert sorted(opened.offset_keys()) == sorted(model)
        assert opened.metadata() == {"format": "np"}
        assert np.array_equal(opened.get_slice("embed")[3:5], model["embed"][3:5])
    (tmp_path / INDEX).unlink()
    assert_same(weights.load_file(tmp_path, key, framework="np"), model)


def test_an_encrypted_index(tmp_path: Path) -> None:
    model = shard(tmp_path, KEY)
    sealed = tmp_path / (INDEX + ".cobblestone")
    with (tmp_path / INDEX).open("rb") as reader, sealed.open("wb") as writer:
        formats.encrypt_stream(reader, writer, KEY)
    (tmp_path / INDEX).unlink()
    assert_same(weights.load_file(tmp_path, KEY, framework="np"), model)
    with pytest.raises(InvalidTag):
        weights.load_file(tmp_path, bytes(32), framework="np")
    with pytest.raises((ValueError, TypeError)):
        weights.load_file(tmp_path, framework="np")


def test_a_cryptotensors_model_of_several_files(tmp_path: Path) -> None:
    key = weights.CryptotensorsKey(KEY, sign=KEY)
    model = shard(tmp_path, None)
    for path in tmp_path.glob("*.safetensors"):
        part = weights.load_file(path, framework="np")
        weights.save_file(part, f"{path}.cobblestone", KEY)  # another one, which is not taken
        weights.save_file(part, path, key)
    assert_same(weights.load_file(tmp_path, key, framework="np"), model)
    assert_same(weights.load_file(tmp_path, KEY, framework="np"), model)


def test_a_single_file_in_a_directory(tmp_path: Path) -> None:
    model = tensors()
    weights.save_file(model, tmp_path / "model.safetensors.tink.cobblestone", KEY)
    with pytest.raises(ValueError, match="has no file"):
        weights.load_file(tmp_path, KEY, framework="np")
    weights.save_file(model, tmp_path / "model.safetensors.cobblestone", KEY)
    assert_same(weights.load_file(tmp_path, KEY, framework="np"), model)


def test_with_a_key_no_shard_may_be_plain(tmp_path: Path) -> None:
    shard(tmp_path, KEY)
    victim = tmp_path / "model-00002-of-00003.safetensors.cobblestone"
    with weights.safe_open(victim, "np", key=KEY) as opened:
        part = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    weights.save_file(part, victim)
    with pytest.raises((InvalidTag, FormatError)):
        weights.load_file(tmp_path, KEY, framework="np")


def test_damage_in_one_shard_gives_no_tensor(tmp_path: Path) -> None:
    shard(tmp_path, KEY)
    victim = tmp_path / "model-00003-of-00003.safetensors.cobblestone"
    data = bytearray(victim.read_bytes())
    data[-1] ^= 1
    victim.write_bytes(data)
    with pytest.raises(InvalidTag):
        weights.load_file(tmp_path, KEY, framework="np")


def test_a_missing_shard(tmp_path: Path) -> None:
    shard(tmp_path, KEY)
    (tmp_path / "model-00002-of-00003.safetensors.cobblestone").unlink()
    with pytest.raises(FileNotFoundError):
        weights.load_file(tmp_path, KEY, framework="np")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an index"),
        ("[]", "is not an index"),
        ("{}", "is not an index"),
        ('{"weight_map": {}}', "is not an index"),
        ('{"weight_map": {"a": 1}}', "is not an index"),
        ('{"weight_map": {"a": "x"}, "weight_map": {}}', "appears twice"),
        ('{"weight_map": {"a": "x", "a": "y"}}', "appears twice"),
        ("[" * 100_000, "is not an index"),
        ('{"weight_map": {"a": "../x.safetensors"}}', "beside the index"),
        ('{"weight_map": {"a": "/etc/passwd"}}', "beside the index"),
        ('{"weight_map": {"a": "d/x.safetensors"}}', "beside the index"),
        ('{"weight_map": {"a": ".."}}', "beside the index"),
        ('{"weight_map": {"a": ""}}', "beside the index"),
        ('{"weight_map": {"a": "x\\u0000"}}', "beside the index"),
        ('{"weight_map": {"a": "x\\ud800"}}', "beside the index"),
        ('{"weight_map": {"a": "' + 256 * "x" + '"}}', "beside the index"),
    ],
)
def test_a_bad_index(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(FormatError, match=message):
        weights.load_file(tmp_path, framework="np")


def test_an_index_is_refused_at_the_first_file_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {f"t{i}": f"{i}.safetensors" for i in range(1000)}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": places}))
    looked: list[str] = []
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: (looked.append(path.name), exists(path))[1])
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        weights.load_file(tmp_path, KEY, framework="np")
    assert len(looked) < 20


def test_what_is_encrypted_beside_a_missing_file_is_named(tmp_path: Path) -> None:
    shard(tmp_path / "llama", KEY)
    with pytest.raises(FileNotFoundError) as caught:
        weights.load_file(tmp_path / "llama", framework="np")
    name = "model-00001-of-00003.safetensors"
    assert f"{name}.cobblestone is there, and no key was given" in str(caught.value)
    assert str(caught.value.filename).endswith(name)
    for key in (None, KEY):
        with pytest.raises(FileNotFoundError, match=f"{name}.cobblestone is there: give that name"):
            weights.load_file(tmp_path / "llama" / name, key, framework="np")
    (tmp_path / "llama").rename(tmp_path / "llama.cobblestone")
    with pytest.raises(FileNotFoundError, match=r"\(llama.cobblestone is there: give that name"):
        weights.load_file(tmp_path / "llama", KEY, framework="np")
    with pytest.raises(FileNotFoundError, match="No such file or directory: "):
        weights.load_file(tmp_path / "other", KEY, framework="np")


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_a_directory_without_an_index_lacks_a_file_that_its_names_tell(
    key: bytes | None, tmp_path: Path
) -> None:
    shard(tmp_path, key)
    (tmp_path / INDEX).unlink()
    extension = ".cobblestone" * bool(key)
    for number in (1, 2, 3):
        victim = tmp_path / f"model-0000{number}-of-00003.safetensors{extension}"
        content = victim.read_bytes()
        victim.unlink()
        missing = (
            rf"has 2 of 3 files model-\*, and no index: model-0000{number}-of-00003.safetensors"
        )
        with pytest.raises(FormatError, match=missing):
            weights.load_file(tmp_path, key, framework="np")
        victim.write_bytes(content)
    for number in (1, 2, 3):  # some writers count from 0
        file = tmp_path / f"model-0000{number}-of-00003.safetensors{extension}"
        file.rename(tmp_path / f"model-0000{number - 1}-of-00003.safetensors{extension}")
    assert len(weights.load_file(tmp_path, key, framework="np")) == len(tensors())


def test_an_index_that_does_not_fit(tmp_path: Path) -> None:
    shard(tmp_path, None)
    index = json.loads((tmp_path / INDEX).read_text())
    first = "model-00001-of-00003.safetensors"
    absent = {**index["weight_map"], "absent": first}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": absent}))
    with pytest.raises(FormatError, match="does not hold 'absent', by the index"):
        weights.load_file(tmp_path, framework="np")
    del absent["absent"]
    del absent[next(name for name, file in absent.items() if file == first)]
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": absent}))
    with pytest.raises(FormatError, match="also holds"):
        weights.load_file(tmp_path, framework="np")


def test_directories_that_are_not_clear(tmp_path: Path) -> None:
    one = {"a": np.zeros(1)}
    weights.save_file(one, tmp_path / "x.safetensors")
    weights.save_file(one, tmp_path / "y.safetensors")
    with pytest.raises(FormatError, match="'a', which another file has too"):
        weights.load_file(tmp_path, framework="np")
    (tmp_path / "y.safetensors").unlink()
    weights.save_file(one, tmp_path / "x.safetensors.cobblestone", KEY)
    with pytest.raises(ValueError, match=r"x.safetensors more than once"):
        weights.load_file(tmp_path, KEY, framework="np")
    for name in ("a", "b"):
        (tmp_path / f"{name}.safetensors.index.json").write_text("{}")
    with pytest.raises(ValueError, match="several indexes"):
        weights.load_file(tmp_path, framework="np")

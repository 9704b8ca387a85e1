# SPDX-License-Identifier: Apache-2.0
"""Models in NumPy: what is saved is loaded, whatever protects it, and is what safetensors loads."""

from __future__ import annotations

import io
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from format_cases import CASES, Case
from warpcipher import InvalidTag, _memory, formats, weights
from warpcipher.formats import FormatError
from warpcipher.weights import frameworks
from warpcipher.weights.shards import MODEL_FORMATS
from weights_cases import METADATA, assert_same, painted, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")
safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")
peer = pytest.importorskip("safetensors.numpy")

KEY = bytes(range(32))
CASES = [case for case in CASES if formats.get(case.format).takes_context]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_key = pytest.mark.parametrize(
    "key",
    [None, KEY, weights.CryptotensorsKey(KEY, sign=KEY)],
    ids=["plain", "cobblestone", "cryptotensors"],
)


def saved(folder: Path, case: Case | None, model: dict[str, Any], name: str = "model") -> Path:
    """A file of the model, in the format of a case or plain."""
    path = folder / f"{name}.safetensors"
    if case is not None:
        path = path.with_name(path.name + formats.get(case.format).extension)
    arguments: dict[str, Any] = {}
    if case is not None:
        arguments = {"key": case.key, "format": case.format, "context": case.context}
    weights.save_file(model, path, metadata=METADATA, **arguments)
    return path


def load(path: Path, case: Case | None, **changes: Any) -> dict[str, Any]:
    arguments = {} if case is None else {"key": case.key, "context": case.context}
    return weights.load_file(path, framework="np", **{**arguments, **changes})


@pytest.mark.parametrize("case", [None, *CASES], ids=lambda case: case.name if case else "plain")
def test_what_is_saved_is_loaded(case: Case | None, tmp_path: Path) -> None:
    model = tensors()
    path = saved(tmp_path, case, model)
    assert_same(load(path, case), model)
    arguments = {} if case is None else {"key": case.key, "context": case.context}
    with weights.safe_open(path, "np", **arguments) as opened:
        assert opened.metadata() == METADATA
        assert_same({name: opened.get_tensor(name) for name in opened.keys()}, model)  # noqa: SIM118


def test_a_plain_file_is_byte_for_byte_that_of_safetensors(tmp_path: Path) -> None:
    model = tensors()
    ours = saved(tmp_path, None, model).read_bytes()
    assert ours == peer.save(model, metadata=METADATA)
    assert peer.save({}) == bytes_of(tmp_path, {})
    assert_same(peer.load(ours), model)


def bytes_of(folder: Path, model: dict[str, Any]) -> bytes:
    weights.save_file(model, folder / "x")
    return (folder / "x").read_bytes()


def test_what_the_command_encrypts_is_loaded(tmp_path: Path) -> None:
    model = tensors()
    sealed = tmp_path / "model.safetensors.cobblestone"
    with sealed.open("wb") as file:
        formats.encrypt_stream(io.BytesIO(peer.save(model)), file, KEY)
    assert_same(weights.load_file(sealed, KEY, framework="np"), model)
    out = io.BytesIO()
    weights.save_file(model, tmp_path / "again", KEY)
    formats.decrypt_stream(io.BytesIO((tmp_path / "again").read_bytes()), out, KEY)
    assert_same(peer.load(out.getvalue()), model)


def test_the_interface_is_that_of_safetensors(tmp_path: Path) -> None:
    path = saved(tmp_path, None, tensors())
    with safetensors.safe_open(path, "np") as theirs, weights.safe_open(path, "np") as ours:
        assert ours.keys() == theirs.keys()
        assert ours.offset_keys() == theirs.offset_keys()
        assert ours.metadata() == theirs.metadata()
        for name in theirs.keys():  # noqa: SIM118
            one, other = ours.get_slice(name), theirs.get_slice(name)
            assert one.get_shape() == other.get_shape()
            assert one.get_dtype() == other.get_dtype()
        one, other = ours.get_slice("ids"), theirs.get_slice("ids")
        for index in (np.s_[1:], np.s_[:, 2:4], np.s_[2, 1:3, :5], np.s_[...]):
            assert np.array_equal(one[index], other[index])


def test_no_metadata_is_none(tmp_path: Path) -> None:
    weights.save_file({"a": np.zeros(1)}, tmp_path / "a", KEY)
    with weights.safe_open(tmp_path / "a", "np", key=KEY) as model:
        assert model.metadata() is None
        assert model.info("a") == ("F64", (1,), 0, 8)
        with pytest.raises(KeyError, match="no tensor 'b'"):
            model.get_tensor("b")
    with pytest.raises(ValueError, match="closed"):
        model.get_tensor("a")
    for call in (model.metadata, model.keys, model.offset_keys):
        with pytest.raises(ValueError, match="the model is closed"):
            call()


def test_all_tensors_share_one_block(tmp_path: Path) -> None:
    model = {f"t{i}": np.full(1000, i, np.float32) for i in range(50)}
    weights.save_file(model, tmp_path / "a", KEY)
    found = weights.load_file(tmp_path / "a", KEY, framework="np")
    places = sorted(tensor.ctypes.data for tensor in found.values())
    assert [after - before for before, after in itertools.pairwise(places)] == [4000] * 49
    found["t0"][0] = 7  # writable, and a tensor alone
    assert found["t1"][0] == 1


def test_a_tensor_that_is_not_aligned_is_copied(tmp_path: Path) -> None:
    """Other writers may put a tensor anywhere."""
    from warpcipher.weights.header import TensorInfo, encode

    placed = {"a": TensorInfo("U8", (1,), 0, 1), "b": TensorInfo("F64", (2,), 1, 17)}
    values = np.array([1.5, 2.5])
    path = tmp_path / "x.safetensors"
    path.write_bytes(encode(placed, None) + b"\7" + values.tobytes())
    found = weights.load_file(path, framework="np")
    assert found["b"].flags.aligned
    assert_same(found, {"a": np.array([7], np.uint8), "b": values})


def test_big_endian_and_strided_arrays_are_saved_by_value(tmp_path: Path) -> None:
    model = {
        "big": np.arange(5, dtype=">f4"),
        "strided": np.arange(40, dtype=np.int32).reshape(5, 8)[::2, 1::3],
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    weights.save_file(model, tmp_path / "x", KEY)
    found = weights.load_file(tmp_path / "x", KEY, framework="np")
    for name, tensor in model.items():
        assert np.array_equal(found[name], tensor)


def test_auto_finds_the_formats_that_say_so() -> None:
    found = {formats.resolve("auto", case.key).name for case in CASES}
    assert found == set(MODEL_FORMATS)


@every_case
def test_every_damage_is_found_and_no_tensor_is_given_out(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tensors(rows=250 if case.chunk > 1000 else 4)
    path = saved(tmp_path, case, model)
    sealed = path.read_bytes()
    starts = case.chunk_starts(sealed)
    assert len(starts) > 3
    blocks = kept(monkeypatch)
    for first, end in itertools.pairwise(starts):
        path.write_bytes(sealed[:first] + bytes([sealed[first] ^ 1]) + sealed[first + 1 :])
        refused(path, case)
        path.write_bytes(sealed[: end - 1] + bytes([sealed[end - 1] ^ 0x80]) + sealed[end:])
        refused(path, case)
        path.write_bytes(sealed[:first])
        refused(path, case)
        path.write_bytes(sealed[:first] + sealed[end:])
        refused(path, case)
    one, two, three, four = starts[1], starts[2], starts[2], starts[3]
    if four - three == two - one:
        path.write_bytes(sealed[:one] + sealed[three:four] + sealed[one:two] + sealed[four:])
        refused(path, case)
    path.write_bytes(sealed + b"\0")
    refused(path, case)
    assert all(not any(bytes(block)) for block in blocks)
    path.write_bytes(sealed)
    assert_same(load(path, case), model)


def kept(monkeypatch: pytest.MonkeyPatch) -> list[memoryview]:
    """The blocks that are taken from now on."""
    blocks: list[memoryview] = []
    allocate = _memory.allocate

    def keep(size: int) -> memoryview:
        blocks.append(allocate(size))
        return blocks[-1]

    monkeypatch.setattr(frameworks, "allocate", keep)
    return blocks


def refused(path: Path, case: Case) -> None:
    with pytest.raises((InvalidTag, FormatError)):
        load(path, case)


@every_case
def test_a_wrong_key_opens_nothing(case: Case, tmp_path: Path) -> None:
    path = saved(tmp_path, case, tensors(rows=4))
    with pytest.raises(InvalidTag):
        load(path, case, key=case.wrong_key)
    with pytest.raises(InvalidTag):
        load(path, case, context=b"another")


def test_a_key_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    weights.save_file(tensors(), tmp_path / "x", KEY)
    for size in (0, 15, 24, 31, 33):
        with pytest.raises(ValueError, match="key") as caught:
            weights.load_file(tmp_path / "x", KEY[:size] + b"\x99" * (size - 32), framework="np")
        assert "9999" not in str(caught.value)


def test_with_a_key_a_plain_file_is_refused(tmp_path: Path) -> None:
    """Else who can replace the file could hand over tensors of their own."""
    path = saved(tmp_path, None, tensors())
    with pytest.raises((InvalidTag, FormatError)):
        weights.load_file(path, KEY, framework="np")


def test_without_a_key_an_encrypted_file_is_no_model(tmp_path: Path) -> None:
    weights.save_file(tensors(), tmp_path / "x", KEY)
    with pytest.raises(FormatError, match="not a safetensors file"):
        weights.load_file(tmp_path / "x", framework="np")
    with pytest.raises(ValueError, match="a context was given and no key"):
        weights.load_file(tmp_path / "x", framework="np", context=b"c")


BAD_TENSORS: dict[str, tuple[Any, str]] = {
    "a list": ([1, 2], "is list: expected"),
    "objects": (np.array([None]), "ndarray of object"),
    "text": (np.array(["a"]), "ndarray of <U1"),
    "a dtype that safetensors lacks": (np.zeros(1, np.complex128), "ndarray of complex128"),
    "none": (None, "is NoneType"),
}


@pytest.mark.parametrize("name", BAD_TENSORS)
def test_what_cannot_be_saved_leaves_nothing(name: str, tmp_path: Path) -> None:
    tensor, message = BAD_TENSORS[name]
    with pytest.raises(TypeError, match=message):
        weights.save_file({"x": tensor}, tmp_path / "x", KEY)
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    good = {"a": np.zeros(1)}
    path = tmp_path / "x"
    with pytest.raises(TypeError, match="name of a tensor is int"):
        weights.save_file({1: np.zeros(1)}, path)  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="metadata has int by str"):
        weights.save_file(good, path, metadata={"a": 1})  # type: ignore[dict-item]
    for name in ("raw", "ags1"):
        expected = f"format is '{name}', which load_file cannot open: .* cobblestone-256, tink$"
        with pytest.raises(ValueError, match=expected):
            weights.save_file(good, path, KEY, format=name)
    with pytest.raises(ValueError, match="no key: the file would be plain"):
        weights.save_file(good, path, format="cobblestone-256")
    with pytest.raises(ValueError, match="no key: the file would be plain"):
        weights.save_file(good, path, context=b"c")
    with pytest.raises(ValueError, match="unknown format"):
        weights.save_file(good, path, KEY, format="gguf")
    assert list(tmp_path.iterdir()) == []
    weights.save_file(good, path)
    for device in ("gpu", "cuda:", "cuda:-1", "cuda:x", -1, None, True, "cpu:0"):
        with pytest.raises(ValueError, match="expected 'cpu'"):
            weights.load_file(path, device=device, framework="np")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='NumPy loads to "cpu"'):
        weights.load_file(path, device="cuda:1", framework="np")
    with pytest.raises(ValueError, match="lie on a GPU"):
        weights.load_file(path, framework="cupy")
    with pytest.raises(ValueError, match="framework is 'tf'"):
        weights.load_file(path, framework="tf")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    weights.save_file({"a": np.ones(3)}, path, KEY)
    before = path.read_bytes()

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        weights.save_file({"a": np.zeros(3)}, path, KEY)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_dtypes_that_numpy_lacks_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from warpcipher.weights.header import build

    for dtype, hint in (
        ("BF16", 'package ml_dtypes: install that, or use framework="pt"'),
        ("F8_E4M3", "package ml_dtypes"),
        ("F6_E2M3", "NumPy, CuPy and JAX have no such dtype"),
        ("F4", "have no such dtype"),
    ):
        made, placed = build([("x", dtype, (8,)), ("y", "U8", (1,))], None)
        path = tmp_path / dtype
        path.write_bytes(made + bytes(placed["x"].size + 1))
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
        with pytest.raises(TypeError, match=f"tensor 'x' is {dtype}: .*{hint}"):
            weights.load_file(path, framework="np")
        with weights.safe_open(path, "np") as model:  # the others can be read
            assert model.get_tensor("y") == 0
            assert model.get_slice("x").get_dtype() == dtype


def test_dtypes_of_ml_dtypes(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    model = {
        name: np.arange(8).astype(getattr(ml_dtypes, name))
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")
    }
    weights.save_file(model, tmp_path / "x", KEY)
    assert_same(weights.load_file(tmp_path / "x", KEY, framework="np"), model)


class Elsewhere(frameworks._NumPy):
    """A framework whose blocks are filled as those on a GPU are: as arrays, not as host memory."""

    def memory(self, block: Any) -> Any:
        assert isinstance(block, np.ndarray)
        return block


@every_key
def test_blocks_that_are_not_in_host_memory(
    key: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    model = tensors(rows=400)
    weights.save_file(model, path, key)
    monkeypatch.setattr(frameworks, "get", lambda framework, device: Elsewhere())
    blocks = kept(monkeypatch)
    assert_same(weights.load_file(path, key, "cuda:0"), model)
    with weights.safe_open(path, "pt", "cuda:0", key=key) as opened:
        assert np.array_equal(opened.get_tensor("ids"), model["ids"])
        assert np.array_equal(opened.get_slice("embed")[5:60, 3:9], model["embed"][5:60, 3:9])
    if key is not None:
        blocks.clear()
        painted(path, path.stat().st_size - 20_000)
        with pytest.raises(InvalidTag):
            weights.load_file(path, key, "cuda:0")
        assert [any(bytes(block)) for block in blocks] == [False]


@every_key
def test_bytes_and_file_objects(key: object, tmp_path: Path) -> None:
    model = tensors()
    data = weights.save(model, key, {"a": "b"})
    assert_same(weights.load(data, key, framework="np"), model)
    (tmp_path / "x").write_bytes(data)
    assert_same(weights.load_file(tmp_path / "x", key, framework="np"), model)
    with (tmp_path / "y").open("wb") as file:
        file.write(b"before")
        weights.save_file(model, file, key)
    with (tmp_path / "y").open("rb") as file:
        assert file.read(6) == b"before"
        assert_same(weights.load(file, key, framework="np"), model)
    with pytest.raises((InvalidTag, FormatError), match=r"^data: "):
        weights.load(data[:-1], key, framework="np")
    with pytest.raises(TypeError, match=r"data is PosixPath: expected bytes .* load_file takes"):
        weights.load(tmp_path / "x", key, framework="np")  # type: ignore[arg-type]


def test_a_file_object_gets_nothing_of_what_cannot_be_saved() -> None:
    file = io.BytesIO()
    with pytest.raises(TypeError):
        weights.save_file({"a": np.zeros(3), "b": np.array(["text"])}, file, bytes(32))
    assert file.getvalue() == b""

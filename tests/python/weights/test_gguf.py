# SPDX-License-Identifier: Apache-2.0
"""GGUF files that the package gguf writes, plain and encrypted, and headers that are not right."""

from __future__ import annotations

import io
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_support import make_key, run, run_json
from warpcipher import formats, weights
from warpcipher.formats import FormatError
from warpcipher.weights import gguf as ours

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def peer() -> Any:
    return pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def model(peer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a tensor of each type, and entries of each type."""
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    writer = peer.GGUFWriter(path, "llama")
    writer.add_name("Zwölf")
    writer.add_uint8("a.uint8", 7)
    writer.add_int64("a.int64", -(1 << 40))
    writer.add_float32("a.float32", 1e-5)
    writer.add_float64("a.float64", 0.5)
    writer.add_bool("a.bool", True)
    writer.add_chat_template("x" * 70_000)
    writer.add_token_list([f"{i:0100}" for i in range(12_000)])  # a header of several pieces
    writer.add_array("a.floats", [0.5] * 1000)
    writer.add_array("a.empty", [""])
    generator = np.random.default_rng(1)
    for kind, (length, size) in peer.GGML_QUANT_SIZES.items():
        if kind.name == "Q8_1":  # in no file of llama.cpp
            continue
        data = generator.integers(0, 2, (2, 3, size * (256 // length)), np.uint8)
        writer.add_tensor(f"blk.{kind.name}", data, raw_dtype=kind)
    writer.add_tensor("vector", np.arange(5, dtype=np.float32))
    writer.add_tensor("weights", generator.random((4, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_types_are_those_of_the_peer(peer: Any) -> None:
    known = {int(kind): (kind.name, *sizes) for kind, sizes in peer.GGML_QUANT_SIZES.items()}
    # The package 0.19 lacks one of llama.cpp 0.7, and has the length of another wrong.
    known |= {9: ("Q8_1", 32, 36), 42: ("Q2_0", 64, 18)}
    assert known == {number: kind[:3] for number, kind in ours.KINDS.items()}


def encrypted(model: Path, folder: Path) -> Path:
    path = folder / "model.gguf.cobblestone"
    with model.open("rb") as source, path.open("wb") as target:
        formats.encrypt_stream(source, target, KEY)
    return path


@pytest.mark.parametrize("key", [None, KEY])
def test_tensors_are_those_of_the_peer(
    peer: Any, model: Path, tmp_path: Path, key: bytes | None
) -> None:
    path = model if key is None else encrypted(model, tmp_path)
    reader = peer.GGUFReader(model)
    found = weights.describe(path, key)
    assert found.ggml is not None
    assert found.protection == ("none" if key is None else "format")
    assert found.authentic == (key is not None)
    assert list(found.tensors) == [tensor.name for tensor in reader.tensors]
    loaded = weights.load_file(path, key, framework="np") if has_bfloat16() else {}
    with weights.safe_open(path, "np", key=key) as opened:
        for tensor in reader.tensors:
            info = found.tensors[tensor.name]
            name = tensor.tensor_type.name
            assert found.ggml[tensor.name] == name
            assert ours.logical_shape(info, name) == tuple(reversed(tensor.shape.tolist()))
            assert info.size == tensor.n_bytes
            if name == "BF16" and not has_bfloat16():
                continue
            values = opened.get_tensor(tensor.name)
            assert values.tobytes() == tensor.data.tobytes()
            if name != "BF16":  # bytes for the peer
                assert values.shape == tensor.data.shape
            if loaded:
                assert loaded[tensor.name].tobytes() == values.tobytes()
        assert (opened.get_slice("weights")[1:3] == reader.tensors[-1].data[1:3]).all()
        metadata = opened.metadata()
    assert metadata is not None
    assert metadata["general.name"] == "Zwölf"
    assert metadata["a.int64"] == str(-(1 << 40))
    assert metadata["a.float32"] == "9.99999975e-06"
    assert metadata["a.bool"] == "True"
    assert metadata["tokenizer.chat_template"] == "a text of 70000 bytes"
    assert metadata["tokenizer.ggml.tokens"] == "12000 of string"
    assert metadata["a.floats"] == "1000 of float32"


def has_bfloat16() -> bool:
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        return False
    return True


def test_the_peer_reads_what_was_encrypted_and_decrypted(
    peer: Any, model: Path, tmp_path: Path
) -> None:
    make_key(tmp_path)
    copy = tmp_path / "model.gguf"
    copy.write_bytes(model.read_bytes())
    run("encrypt", "--key", "key", "model.gguf", cwd=tmp_path)
    copy.unlink()
    run("decrypt", "--key", "key", "model.gguf.cobblestone", cwd=tmp_path)
    assert copy.read_bytes() == model.read_bytes()
    names = [tensor.name for tensor in peer.GGUFReader(copy).tensors]
    assert names == [tensor.name for tensor in peer.GGUFReader(model).tensors]


def test_info_lists_the_tensors(model: Path, tmp_path: Path) -> None:
    shutil.copy(model, tmp_path / "model.gguf")
    said = run("info", "model.gguf", cwd=tmp_path).stdout.decode()
    assert "holds GGUF, not encrypted" in said
    assert "blk.F32  F32 2x3x256, 6144 bytes" in said
    key = make_key(tmp_path)
    run("encrypt", "--key", "key", "model.gguf", cwd=tmp_path)
    name = "model.gguf.cobblestone"
    assert "holds" not in run("info", name, cwd=tmp_path).stdout.decode()
    said = run("info", "--key", key, name, cwd=tmp_path).stdout.decode()
    assert "holds GGUF\n" in said
    assert "general.name: Zwölf" in said
    (found,) = run_json("info", "--key", key, name, cwd=tmp_path)["files"]
    tensors = {one["name"]: one for one in found["model"]["tensors"]}
    assert tensors["blk.Q4_K"]["dtype"] == "Q4_K"
    assert tensors["blk.Q4_K"]["shape"] == [2, 3, 256]
    assert tensors["blk.Q4_K"]["size"] == 6 * 144


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def tensor(
    name: str = "t", lengths: tuple[int, ...] = (32,), kind: int = 2, offset: int = 0
) -> bytes:
    packed = struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths)
    return text(name) + packed + struct.pack("<IQ", kind, offset)


def file(*parts: bytes, tensors: int = 0, entries: int = 0, version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + b"".join(parts)
    return head + bytes(-len(head) % 32)


def read(data: bytes) -> Any:
    return ours.read_header(lambda offset, length: data[offset : offset + length], len(data))


def test_small_files() -> None:
    assert read(file()).tensors == {}
    assert read(file(version=2)).tensors == {}
    found = read(file(tensor(lengths=(64, 3)), tensors=1) + bytes(6 * 18))
    assert found.tensors["t"] == weights.TensorInfo("U8", (3, 36), 0, 108)
    assert found.ggml == {"t": "Q4_0"}
    assert read(file(tensor(lengths=(), kind=0), tensors=1) + bytes(4)).tensors["t"].shape == ()
    assert read(file(tensor(lengths=(0, 5), kind=0), tensors=1)).tensors["t"].size == 0
    alignment = text("general.alignment") + struct.pack("<II", 4, 8)
    small = file(
        alignment, tensor(kind=24, lengths=(3,)), tensor("u", (1,), 24, 8), tensors=2, entries=1
    )
    assert read(small + bytes(9)).tensors["u"].start == 8


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (file(version=1), "version 1: expected 2 or 3"),
        (file(version=3 << 24), "the other byte order"),
        (file(tensors=1), "cut or damaged"),
        (file(entries=1 << 63), "entries: 1048576 at most"),
        (file(tensor(), tensor(), tensors=2) + bytes(99), "appears twice"),
        (file(tensor(), tensor("u", offset=32), tensors=2) + bytes(49), "end after the data"),
        (file(tensor(), tensor("u"), tensors=2) + bytes(99), "overlap"),
        (file(tensor(), tensor("u", offset=20), tensors=2) + bytes(99), "not aligned"),
        (file(tensor(lengths=(33,)), tensors=1) + bytes(99), "blocks of 32"),
        (file(tensor(lengths=(32,) * 5), tensors=1) + bytes(99), "5 dimensions"),
        (file(tensor(kind=4), tensors=1) + bytes(99), "unknown type 4"),
        (file(tensor(lengths=(1 << 62, 1 << 62)), tensors=1), "more bytes than a file"),
        (file(tensor(lengths=(1 << 62, 1 << 62, 0)), tensors=1), "more bytes than a file"),
        (file(tensor(offset=1 << 63), tensors=1) + bytes(99), "end after the data"),
        (file(text("x" * (1 << 17)), entries=1), "a key has 131072 bytes"),
        (file(struct.pack("<Q", 1) + b"\xff", bytes(99), entries=1), "not UTF-8"),
        (file(text("k") + struct.pack("<I", 13), entries=1), "type 13"),
        (file((text("k") + struct.pack("<IB", 0, 1)) * 2, entries=2), "'k' appears twice"),
        (file(text("k") + struct.pack("<IIQ", 9, 6, 1 << 62), entries=1), "cut or damaged"),
        (file(text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 9, entries=1), "depth"),
        (file(text("general.alignment") + struct.pack("<II", 4, 3), entries=1), "power of two"),
        (file(text("general.alignment") + struct.pack("<II", 4, 0), entries=1), "power of two"),
        (file(text("general.alignment") + struct.pack("<IQ", 10, 64), entries=1), "a uint32"),
        (file(tensors=1 << 40), "1099511627776 tensors"),
    ],
)
def test_malformed_headers(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(data)


def test_cut_and_changed_files(peer: Any, model: Path) -> None:
    """Whatever is changed, the header reads or is refused."""
    stream = io.BytesIO()
    with model.open("rb") as source:
        stream.write(source.read(600))
    start = stream.getvalue()
    for length in range(len(start)):
        with pytest.raises(FormatError):
            read(start[:length] if length >= 4 else b"GGUF")
    whole = file(
        text("k") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        tensor(lengths=(64, 3)),
        tensor("u", (1,), 24, 128),
        tensors=2,
        entries=1,
    ) + bytes(129)
    chance = random.Random(1)
    for _ in range(3000):
        changed = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(4, len(whole))] = chance.choice(
                [0, 1, 255, chance.randrange(256)]
            )
        try:
            found = read(bytes(changed))
        except FormatError:
            continue
        for info in found.tensors.values():
            assert 0 <= info.start <= info.end <= found.data_size


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(file(tensors=1))
    with pytest.raises(FormatError, match="cut or damaged"):
        weights.load_file(path, framework="np")
    path.write_bytes(b"GG")
    with pytest.raises(FormatError, match="not a safetensors"):
        weights.load_file(path, framework="np")

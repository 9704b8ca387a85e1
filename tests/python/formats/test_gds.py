# SPDX-License-Identifier: Apache-2.0
"""Encrypted files by kvikio. Without a GPU stand-ins for kvikio and device memory; tests/gpu has
the same with both."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from format_cases import CASES, Case, paint
from warpcipher import InvalidTag, formats, weights
from warpcipher.formats import gds
from warpcipher.formats.chunks import ChunkDecryptor
from warpcipher.weights import frameworks, images
from warpcipher.weights.files import open_file
from weights_cases import assert_same, painted, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")


class Memory(bytearray):
    """A DeviceArray as far as it is needed."""

    device = 0

    def __init__(self, size: int, device: int = 0, stream: int = 0) -> None:
        super().__init__(size)

    def clear(self, begin: int, size: int) -> None:  # type: ignore[override]
        self[begin : begin + size] = bytes(size)

    def pack(self, begin: int, source: Memory, at: int, count: int, stride: int, size: int) -> None:
        assert count == 1
        assert at + size <= len(source)
        self[begin : begin + size] = source[at : at + size]

    def copy_to(self, begin: int, size: int, out: Any, out_begin: int, stream: int) -> None:
        assert begin + size <= len(self)
        out.memory[out_begin : out_begin + size] = np.frombuffer(self, np.uint8, size, begin)


class CuFile:
    def __init__(self, path: Path, flags: str) -> None:
        self._file = open(path, flags + "b")  # noqa: SIM115, PTH123

    def __enter__(self) -> CuFile:  # noqa: PYI034
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def pread(self, out: Memory, size: int, offset: int) -> Any:
        self._file.seek(offset)
        data = self._file.read(size)
        out[: len(data)] = data
        return SimpleNamespace(get=lambda: len(data))


def open_on_gpu(self: ChunkDecryptor, first: int, sealed: Memory, *, final: bool) -> Memory:
    plain = Memory(len(sealed))
    self.seek(first, lambda offset, length: b"")
    del plain[self.process(memoryview(bytes(sealed)), memoryview(plain), final=final) :]
    return plain


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kvikio", SimpleNamespace(CuFile=CuFile))
    monkeypatch.setattr(gds, "_native", SimpleNamespace(DeviceArray=Memory))
    monkeypatch.setattr(gds, "viewed", lambda out, _: (SimpleNamespace(device=0, memory=out), 0))
    monkeypatch.setattr(ChunkDecryptor, "open_on_gpu", open_on_gpu)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("piece", [1, 70_000])
def test_ranges(case: Case, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gds, "PIECE", piece)
    plain = paint(9 * case.chunk)  # the final chunk of some formats is empty
    path = tmp_path / "x"
    path.write_bytes(case.encrypt(plain))
    with formats.open(path, case.key, options=case.options) as file:
        for offset in (0, 1, case.first_chunk, case.first_chunk + 1, 5 * case.chunk - 1):
            for length in (0, 1, case.chunk, 3 * case.chunk + 1, len(plain) - offset):
                found = gds.read_device(file, path, offset, length)
                assert bytes(found) == plain[offset:][:length]
        for offset, length in ((-1, 3), (0, len(plain) + 1), (len(plain), 1)):
            with pytest.raises(ValueError, match="leaves the file"):
                gds.read_device(file, path, offset, length)


@pytest.mark.usefixtures("stand_ins")
def test_a_changed_chunk_and_a_cut_file(tmp_path: Path) -> None:
    case = CASES[0]
    plain = paint(9 * case.chunk)
    path = tmp_path / "x"
    sealed = bytearray(case.encrypt(plain))
    path.write_bytes(sealed)
    with formats.open(path, case.key, options=case.options) as file:
        sealed[case.chunk_starts(bytes(sealed))[4]] ^= 1
        path.write_bytes(sealed)
        with pytest.raises(InvalidTag, match="chunk 4 failed"):
            gds.read_device(file, path, 0, len(plain))
        path.write_bytes(sealed[:70_000])
        with pytest.raises(formats.FormatError, match="ended at byte 70000"):
            gds.read_device(file, path, 0, len(plain))


class Elsewhere(frameworks._NumPy):
    """A framework whose blocks are filled as those on a GPU are: as arrays, not as host memory."""

    def memory(self, block: Any) -> Any:
        return block


@pytest.mark.usefixtures("stand_ins")
def test_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gds, "PIECE", 70_000)
    monkeypatch.setattr(frameworks, "get", lambda framework, device: Elsewhere())
    case, path, model = CASES[0], tmp_path / "x", tensors(rows=400)
    weights.save_file(model, path, case.key)
    blocks: list[int] = []
    read = gds.read_into

    def count(file: Any, path: str, offset: int, length: int, out: Any) -> None:
        blocks.append(length)
        read(file, path, offset, length, out)

    monkeypatch.setattr(images, "read_into", count)
    assert_same(weights.load_file(path, case.key, "cuda:0", gds=True), model)
    assert blocks == [sum(tensor.nbytes for tensor in model.values())]
    with weights.safe_open(path, "pt", "cuda:0", key=case.key, gds=True) as opened:
        part = opened.get_slice("embed")[5:60, 3:9]
        assert np.array_equal(part, model["embed"][5:60, 3:9])
    painted(path, path.stat().st_size // 2)
    with pytest.raises(InvalidTag):
        weights.load_file(path, case.key, "cuda:0", gds=True)


def test_what_gds_does_not_read(tmp_path: Path) -> None:
    weights.save_file({"x": np.ones(3)}, tmp_path / "x")
    with pytest.raises(ValueError, match="gds reads to a GPU, and device is 'cpu'"):
        weights.load_file(tmp_path / "x", bytes(32), "cpu", "np", gds=True)
    for key in (None, weights.CryptotensorsKey(bytes(32), sign=bytes(32))):
        with pytest.raises(ValueError, match="gds reads files in cobblestone and Tink's AES-GCM"):
            open_file(str(tmp_path / "x"), key, b"", True)
    with (
        formats.open(
            io.BytesIO(CASES[0].encrypt(b"text")), CASES[0].key, options=CASES[0].options
        ) as file,
        pytest.raises(ValueError, match="out lies in host memory"),
    ):
        gds.read_into(file, tmp_path / "x", 0, 4, bytearray(4))


def test_without_kvikio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kvikio", None)
    case = CASES[0]
    path = tmp_path / "x"
    path.write_bytes(case.encrypt(b"text"))
    with (
        formats.open(path, case.key, options=case.options) as file,
        pytest.raises(ImportError, match=r"needs kvikio.*pip install 'warpcipher\[gds\]'"),
    ):
        gds.read_device(file, path, 0, 4)

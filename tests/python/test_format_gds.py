# SPDX-License-Identifier: Apache-2.0
"""Encrypted files by kvikio. Without a GPU stand-ins for kvikio and device memory; tests/gpu has
the same with both."""

from __future__ import annotations

import sys
from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from format_cases import CASES, Case, paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import gds
from warpcipher.formats.chunks import AeadChunks
from warpcipher.formats.ctr_hmac import CtrHmacChunks


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


def open_on_gpu(self: Any, first: int, lengths: array[int], sealed: Memory, final: bool) -> Memory:
    plain = Memory(len(sealed))
    size = self.open(first, lengths, memoryview(bytes(sealed)), memoryview(plain), final)
    del plain[size:]
    return plain


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kvikio", SimpleNamespace(CuFile=CuFile))
    monkeypatch.setattr(gds, "_native", SimpleNamespace(DeviceArray=Memory))
    monkeypatch.setattr(AeadChunks, "open_on_gpu", open_on_gpu)
    monkeypatch.setattr(CtrHmacChunks, "open_on_gpu", open_on_gpu)


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

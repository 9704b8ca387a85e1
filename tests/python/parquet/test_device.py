# SPDX-License-Identifier: Apache-2.0
"""Chunks on a device: the way there, with a stand-in for CuPy whose arrays lie in host memory. It
runs without a GPU, and says nothing of one; tests/gpu has a test that needs one."""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import CTR, GCM, KEY, KEYS, modules_of, pa, pq, table, write
from warpcipher import _memory, parquet
from warpcipher.formats import FormatError
from warpcipher.formats.base import wipe
from warpcipher.parquet import decode, image
from warpcipher.parquet import device as device_module

numpy = pytest.importorskip("numpy")


class Device:
    """The device that memory is asked of."""

    used: list[int] = []  # noqa: RUF012

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    def __enter__(self) -> None:
        self.used.append(self.ordinal)

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Array(numpy.ndarray):  # type: ignore[name-defined,misc]
    """An array of the device."""

    def set(self, data: Any) -> None:
        self[...] = data


def empty(size: int, dtype: str) -> Any:
    return numpy.full(size, 0xEE, dtype).view(Array)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("cupy")
    module.empty = empty  # type: ignore[attr-defined]
    module.asarray = numpy.array  # type: ignore[attr-defined]
    module.ndarray = type("ndarray", (), {})  # type: ignore[attr-defined]
    stream = types.SimpleNamespace(synchronize=lambda: None)
    module.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        Device=Device, get_current_stream=lambda: stream
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    Device.used.clear()
    yield module
    with contextlib.suppress(KeyError):
        del sys.modules["cupy"]


@pytest.mark.parametrize("algorithm", [GCM, CTR])
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("device", [1, "cuda:1"])
@pytest.mark.parametrize("in_file", [False, True])
def test_chunks_are_those_of_host_memory(
    cupy: types.ModuleType,
    algorithm: str,
    checksum: bool,
    device: int | str,
    in_file: bool,
    tmp_path: Path,
) -> None:
    version = "2.0" if checksum else "1.0"  # with levels inside of the encrypted page
    data = write(
        table(),
        encryption_algorithm=algorithm,
        write_page_checksum=checksum,
        data_page_version=version,
    )
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with parquet.open(path if in_file else data, KEY) as file:
        for columns in (None, ["a", "t"]):
            there = file.column_chunks([0, 2], columns, device=device)
            here = file.column_chunks([0, 2], columns)
            assert there.footer == here.footer
            assert [chunk.offset for chunk in there.chunks] == [
                chunk.offset for chunk in here.chunks
            ]
            for one, other in zip(there.chunks, here.chunks, strict=True):
                assert one.data.tobytes() == bytes(other.data)
    assert set(Device.used) == {1}


def test_columns_with_keys_of_several_sizes(cupy: types.ModuleType, tmp_path: Path) -> None:
    """Plain columns among them, whose files go another way."""
    for columns, name in ((None, "all"), (["s"], "some")):
        path = tmp_path / name
        own = {"a": KEYS[32], "t": KEYS[24]}
        config = parquet.EncryptionConfig(KEY, column_keys=own, columns=columns)
        parquet.encrypt(write(table(), None), path, config)
        keys = {b"": KEY, "a": KEYS[32], "t.u": KEYS[24], "t.v.w": KEYS[24]}
        with parquet.open(path, keys) as file:
            there, here = file.column_chunks(device=0), file.column_chunks()
        assert there.footer == here.footer
        for one, other in zip(there.chunks, here.chunks, strict=True):
            assert one.data.tobytes() == bytes(other.data)


@pytest.mark.parametrize("in_file", [False, True])
def test_a_changed_module_is_refused(cupy: types.ModuleType, in_file: bool, tmp_path: Path) -> None:
    data = write(table().select(["a", "s"]))
    path = tmp_path / "t.parquet"
    for module in modules_of(data, KEY)[:-1]:
        damaged = bytearray(data)
        damaged[module.end - 1] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(wc.InvalidTag) as caught:
            parquet.column_chunks(path if in_file else damaged, KEY, device=0)
        name, group, kind, *_ = module.name.split()
        assert f"column {name}, row group {group}" in str(caught.value)
        assert ("header:" in str(caught.value)) == (kind == "header")


def test_a_file_that_ends_while_it_is_read(cupy: types.ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(write(table()))
    with parquet.open(path, KEY) as file:
        os.truncate(path, 1000)
        with pytest.raises(FormatError, match="ended at byte 1000 while it was read"):
            file.column_chunks(device=0)


def test_nothing_is_left_on_the_device_of_what_failed(
    cupy: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of a chunk that failed, nor of those before it; nor where the footer fails."""
    made: list[Any] = []
    monkeypatch.setattr(
        cupy, "empty", lambda size, dtype: made.append(empty(size, dtype)) or made[-1]
    )
    monkeypatch.setattr(image.groups_of, "__defaults__", (1,))
    data = write(table())
    for at in (len(data) // 2, None):
        damaged = bytearray(data)
        if at is not None:
            damaged[at] ^= 1
        else:
            monkeypatch.setattr(image.Image, "footer", fail)
        with parquet.open(damaged, KEY) as file, pytest.raises((wc.InvalidTag, FailedError)):
            file.column_chunks(device=0)
        image_there = max(made, key=len)  # the others hold ciphertext
        made.clear()
        assert image_there.nbytes > 1000
        assert set(image_there.tolist()) <= {0, 0xEE}  # what was never written is 0xEE


class FailedError(Exception):
    """The error that `fail` raises."""


def fail(*_: object) -> bytes:
    raise FailedError


def test_no_plaintext_is_freed_as_it_is_where_the_end_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    fill = image.Image.fill

    def spy(self: Any, out: memoryview) -> int:
        seen.append(out.obj)
        end = fill(self, out)
        assert any(memoryview(out.obj))
        return end

    monkeypatch.setattr(image.Image, "fill", spy)
    monkeypatch.setattr(image.Image, "footer", fail)
    with pytest.raises(FailedError):
        parquet.to_plain(write(table()), KEY)
    with parquet.open(write(table()), KEY) as file, pytest.raises(FailedError):
        file.column_chunks()
    assert len(seen) == 2
    assert not any(any(memoryview(buffer)) for buffer in seen)


def test_a_chunk_that_is_read_in_parts_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    wiped: list[bytearray] = []
    monkeypatch.setattr(decode, "wipe", lambda buffer: (wiped.append(buffer), wipe(buffer)))
    with parquet.open(write(table()), KEY) as file:
        (chunk,) = file.chunks([0], [0])
        source = decode.LazyImage(file, [chunk], b"", decode.Rooms(chunk.size, _memory.allocate))
        source.seek(chunk.start + 50)
        assert any(source.read(100))
    (plain,) = wiped
    assert len(plain) > 100
    assert not any(plain)


def test_chunks_of_a_file_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(write(table(), aad_prefix=b"p", store_aad_prefix=False))
    found = parquet.column_chunks(path, KEY, ["a"], b"p", row_groups=[1])
    with parquet.open(path, KEY, aad_prefix=b"p") as file:
        assert found == file.column_chunks([1], ["a"])
    (chunk,) = found.chunks
    assert (chunk.column, chunk.row_group) == ("a", 1)


def test_a_table_needs_pylibcudf_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pylibcudf", None)
    with pytest.raises(ImportError, match=r"read_table\(device=\) needs pylibcudf"):
        parquet.read_table(write(table()), KEY, device=0)


@pytest.mark.parametrize("columns", [None, ["a"], ["t", "a"]])
def test_a_table_on_a_gpu_is_what_a_reader_finds_in_the_image(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, columns: list[str] | None
) -> None:
    """pylibcudf's stand-in gives the bytes that it was to read, and the names."""

    class Options:
        def __init__(self, source: list[bytes]) -> None:
            self.given: tuple[bytes, Any] = (source[0], None)

        @classmethod
        def builder(cls, source: list[bytes]) -> Any:
            return types.SimpleNamespace(build=lambda: cls(source))

        def set_column_names(self, names: list[str]) -> None:
            self.given = self.given[0], names

    def read_parquet(options: Options) -> Any:
        data, names = options.given
        return pq.read_table(pa.BufferReader(data), columns=names)

    reader = types.SimpleNamespace(ParquetReaderOptions=Options, read_parquet=read_parquet)
    cudf: Any = types.ModuleType("pylibcudf")
    cudf.io = types.SimpleNamespace(SourceInfo=list, parquet=reader)
    monkeypatch.setitem(sys.modules, "pylibcudf", cudf)
    rmm: Any = types.ModuleType("rmm")
    monkeypatch.setitem(sys.modules, "rmm", rmm)
    monkeypatch.setattr(device_module.Device, "as_buffer", lambda self, array, rmm: array.tobytes())
    cupy.concatenate = numpy.concatenate
    found = parquet.read_table(write(table()), KEY, columns, device=0)
    expected = table() if columns is None else table().select(columns)
    assert found.select(expected.column_names).equals(expected)
    assert len(found.column_names) == len(expected.column_names)
    assert set(Device.used) == {0}


@pytest.mark.parametrize("device", ["gpu", -1, "cuda:", "cpu"])
def test_devices_that_are_none(device: Any) -> None:
    with (
        parquet.open(write(table()), KEY) as file,
        pytest.raises(ValueError, match=r"expected .*the number of a GPU"),
    ):
        file.column_chunks(device=device)


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with (
        parquet.open(write(table()), KEY) as file,
        pytest.raises(ValueError, match="device= needs CuPy"),
    ):
        file.column_chunks(device=0)

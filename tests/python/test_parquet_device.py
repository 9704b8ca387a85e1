# SPDX-License-Identifier: Apache-2.0
"""Chunks on a device: the way there, with a stand-in for CuPy whose arrays lie in host memory. It
runs without a GPU, and says nothing of one; tests/gpu has a test that needs one."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import CTR, GCM, KEY, table, write
from warpcipher import parquet
from warpcipher.formats.base import wipe
from warpcipher.parquet import image, lazy, opening

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


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("cupy")
    module.empty = lambda size, dtype: numpy.full(size, 0xEE, dtype)  # type: ignore[attr-defined]
    module.asarray = numpy.array  # type: ignore[attr-defined]
    module.ndarray = type("ndarray", (), {})  # type: ignore[attr-defined]
    module.cuda = types.SimpleNamespace(Device=Device)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)
    Device.used.clear()
    yield module
    with contextlib.suppress(KeyError):
        del sys.modules["cupy"]


@pytest.mark.parametrize("algorithm", [GCM, CTR])
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("device", [1, "cuda:1"])
def test_chunks_are_those_of_host_memory(
    cupy: types.ModuleType, algorithm: str, checksum: bool, device: int | str
) -> None:
    data = write(table(), encryption_algorithm=algorithm, write_page_checksum=checksum)
    with parquet.open(data, KEY) as file:
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


def test_plaintext_of_pages_is_never_in_host_memory(
    cupy: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is decrypted into host memory are page headers alone."""
    outputs: list[Any] = []
    run = opening.Batch.run

    def spy(self: Any, data: Any, out: Any, nonces: Any = None) -> None:
        run(self, data, out, nonces)
        outputs.append(out)

    with parquet.open(write(table()), KEY) as file:
        monkeypatch.setattr(opening.Batch, "run", spy)
        found = file.column_chunks([0], ["a"], device=0)
    in_host = sum(len(out) for out in outputs if isinstance(out, bytearray))
    assert 0 < in_host < found.chunks[0].data.nbytes
    with parquet.open(write(table()), KEY) as file:
        pages = sum(len(chunk.data) for chunk in file.column_chunks([0], ["a"]).chunks)
    assert in_host < pages // 2


def test_a_changed_page_is_refused(cupy: types.ModuleType) -> None:
    damaged = bytearray(write(table()))
    damaged[600] ^= 1
    with parquet.open(damaged, KEY) as file, pytest.raises(wc.InvalidTag, match="column a, row"):
        file.column_chunks(device=0)


def test_nothing_is_left_on_the_device_of_what_failed(
    cupy: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of a chunk that failed, nor of those before it; nor where the footer fails."""
    made: list[Any] = []
    monkeypatch.setattr(
        cupy, "empty", lambda size, dtype: made.append(numpy.full(size, 0xEE, dtype)) or made[-1]
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
        assert made[-1].nbytes > 1000
        assert set(made[-1].tolist()) <= {0, 0xEE}  # what was never written is 0xEE


class FailedError(Exception):
    """What `fail` raises."""


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
    monkeypatch.setattr(lazy, "wipe", lambda buffer: (wiped.append(buffer), wipe(buffer)))
    with parquet.open(write(table()), KEY) as file:
        source = lazy.LazyImage(file, [0], [0])
        (chunk,) = file.chunks([0], [0])
        source.seek(chunk.start + 50)
        assert any(source.read(100))
    (plain,) = wiped
    assert len(plain) > 100
    assert not any(plain)


@pytest.mark.parametrize("device", ["gpu", -1, "cuda:"])
def test_devices_that_are_none(device: Any) -> None:
    with (
        parquet.open(write(table()), KEY) as file,
        pytest.raises(ValueError, match="expected the number of a GPU"),
    ):
        file.column_chunks(device=device)


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with (
        parquet.open(write(table()), KEY) as file,
        pytest.raises(ValueError, match="device= needs CuPy"),
    ):
        file.column_chunks(device=0)

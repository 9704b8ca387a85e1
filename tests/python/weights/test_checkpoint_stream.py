# SPDX-License-Identifier: Apache-2.0
"""How the files of an encrypted checkpoint end, with a stand-in for PyTorch."""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warpcipher import formats

KEY = bytes(range(32))
NAME = "warpcipher.weights.torch_checkpoint"


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The reader that opens the files of a checkpoint."""
    module = types.ModuleType("filesystem")
    for name in ("FileSystem", "FileSystemReader", "FileSystemWriter"):
        setattr(module, name, type(name, (), {}))
    monkeypatch.setitem(sys.modules, "torch.distributed.checkpoint.filesystem", module)
    for parent in ("torch", "torch.distributed", "torch.distributed.checkpoint"):
        package: Any = types.ModuleType(parent)
        package.Tensor = type("Tensor", (), {})
        monkeypatch.setitem(sys.modules, parent, package)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    yield importlib.import_module(NAME)._EncryptedFiles(KEY, b"")
    sys.modules.pop(NAME, None)


@pytest.mark.parametrize("size", [0, 5, 5_000_000])
def test_all_of_a_file_is_on_the_disk(
    size: int, files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    synced: list[int] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(path.stat().st_size)

    monkeypatch.setattr(os, "fsync", spy)
    with files.create_stream(path, "wb") as stream:
        stream.write(bytes(size))
        os.fsync(stream.fileno())  # as PyTorch does
    assert synced[-1] == path.stat().st_size
    assert synced[0] < synced[-1]
    with files.create_stream(path, "rb") as stream:
        assert stream.read() == bytes(size)


@pytest.mark.parametrize("size", [5, 5_000_000, 20_000_000])
@pytest.mark.parametrize("fails", [False, True])
def test_plaintext_that_is_held_is_wiped(
    size: int, fails: bool, files: Any, tmp_path: Path
) -> None:
    held: dict[int, bytearray] = {}

    def write() -> None:
        with files.create_stream(tmp_path / "x", "wb") as stream:
            for start in range(0, size, 70_001):
                held[id(stream._held)] = stream._held
                stream.write(b"\x5a" * min(70_001, size - start))
            held[id(stream._held)] = stream._held
            if fails:
                raise ZeroDivisionError

    if fails:
        with pytest.raises(ZeroDivisionError):
            write()
    else:
        write()
        with formats.open(
            tmp_path / "x", KEY, options=formats.Options(context=bytes(8) + b"x")
        ) as file:
            assert file.read() == b"\x5a" * size
    assert sum(map(len, held.values())) > 0
    assert not any(map(any, held.values()))

# SPDX-License-Identifier: Apache-2.0
"""Threads move files, models, tables and host data at random, damaged ones among them: what comes
out is what went in, an error leaves nothing behind, and neither the process nor its share of a GPU
grows.

WARPCIPHER_TEST_SOAK_SECONDS says how long.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from format_cases import CASES
from parquet_cases import KEYS, table, write
from soak_support import SECONDS, has_torch_gpu, resident, run, used_device_memory
from warpcipher import formats, parquet, weights

np = pytest.importorskip("numpy", reason="NumPy is not installed")
torch: Any = importlib.import_module("torch") if has_torch_gpu() else None
CUPY: Any = importlib.import_module("cupy") if torch and importlib.util.find_spec("cupy") else None

THREADS = 3
MOST = 5 << 20
KEY = bytes(range(32))


HAS_GPU = has_torch_gpu()


class Client:
    """One thread and its folder."""

    def __init__(self, number: int, folder: Path) -> None:
        self.draw = random.Random(number)
        self.folder = folder / str(number)
        self.folder.mkdir()
        self.plain, self.sealed = self.folder / "plain", self.folder / "sealed"
        self.text = self.draw.randbytes(MOST)
        self.done = 0

    def some(self) -> bytes:
        return self.text[: self.draw.choice((0, 1, 17, 70_000, self.draw.randrange(MOST)))]

    def file(self) -> None:
        """A file by paths, of any format; one time in four a bit of it is wrong."""
        case, text = self.draw.choice(CASES), self.some()
        self.plain.write_bytes(text)
        how: dict[str, Any] = {"format": case.format, "options": case.options}
        formats.encrypt_file(self.plain, self.sealed, case.key, **how)
        back = self.folder / "back"
        if self.draw.random() < 0.25:
            data = bytearray(self.sealed.read_bytes())
            data[self.draw.randrange(case.header, len(data))] ^= 1
            self.sealed.write_bytes(data)
            with pytest.raises((wc.InvalidTag, formats.FormatError)):
                formats.decrypt_file(self.sealed, back, case.key, **how)
            assert not back.exists()
        else:
            assert formats.decrypt_file(self.sealed, back, case.key, **how) == len(text)
            assert back.read_bytes() == text
            back.unlink()
        self.sealed.unlink()

    def reads(self) -> None:
        """Ranges of a file, into host memory and, where there is one, into a GPU's."""
        text = self.some() + b"end"
        self.plain.write_bytes(text)
        formats.encrypt_file(self.plain, self.sealed, KEY)
        with formats.open(self.sealed, KEY) as file:
            for _ in range(8):
                begin = self.draw.randrange(len(text))
                size = self.draw.randrange(len(text) - begin + 1)
                file.seek(begin)
                assert file.read(size) == text[begin : begin + size]
                if HAS_GPU and size:
                    array = torch.from_dlpack(file.read_device(begin, size))
                    assert array.cpu().numpy().tobytes() == text[begin : begin + size]
        self.sealed.unlink()

    def model(self) -> None:
        """Tensors saved and loaded, to a GPU where there is one."""
        content = {
            str(i): np.frombuffer(self.text, np.uint8, self.draw.randrange(MOST // 4))
            for i in range(4)
        }
        path = self.folder / "model.safetensors"
        weights.save_file(content, path, KEY)
        if HAS_GPU:
            tensors = weights.load_file(path, KEY, device="cuda:0")
            found = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
        else:
            found = weights.load_file(path, KEY, framework="np")
        assert all((found[name] == array).all() for name, array in content.items())

    def table(self) -> None:
        """A table that pyarrow encrypts, and its chunks on a GPU where there is one with CuPy."""
        content = table(self.draw.randrange(1, 3000))
        data = write(content)
        assert parquet.read_table(data, KEYS[16]).equals(content)
        if CUPY is not None:
            there, here = (parquet.column_chunks(data, KEYS[16], device=at) for at in (0, None))
            for one, other in zip(there.chunks, here.chunks, strict=True):
                assert CUPY.asnumpy(one.data).tobytes() == bytes(other.data)

    def message(self) -> None:
        """Host memory through an engine: a GPU's ring, or all cores."""
        text = self.some()
        cipher = wc.Cipher("aes-128-ctr", KEY[:16], engine="cuda" if HAS_GPU else "cpu")
        sealed = cipher.encrypt(text, iv=bytes(16))
        assert bytes(cipher.decrypt(sealed, iv=bytes(16))) == text

    def work(self, end: float) -> None:
        while time.monotonic() < end:
            self.draw.choice([self.file, self.reads, self.model, self.table, self.message])()
            self.done += 1


def test_soak(tmp_path: Path) -> None:
    clients = [Client(number, tmp_path) for number in range(THREADS)]
    works = [client.work for client in clients]
    run(works, SECONDS / 2)
    before, threads, device = resident(), threading.active_count(), used_device_memory()
    run(works, SECONDS / 2)
    assert min(client.done for client in clients) > 1
    assert resident() < before + (64 << 20)
    if SECONDS > 60:  # in short runs other tests use the GPU too
        assert used_device_memory() <= device + (64 << 20)
    assert threading.active_count() <= threads
    assert not [path for path in tmp_path.rglob("*") if ".warpcipher" in path.name]

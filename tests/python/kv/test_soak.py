# SPDX-License-Identifier: Apache-2.0
"""Threads seal, evict, forge and open at random with one vault: every block that opens is the one
that was sealed, and every one that was forged or exchanged is a miss.

WARPCIPHER_TEST_SOAK_SECONDS says how long; with a GPU that PyTorch sees the tensors lie there.
"""

from __future__ import annotations

import importlib
import os
import random
import time
from typing import Any

import pytest
from soak_support import has_torch_gpu, run
from warpcipher import kv

np = pytest.importorskip("numpy", reason="NumPy is not installed")

THREADS, BLOCKS, LAYERS = 3, 24, 3
SHAPE = (2, THREADS * BLOCKS, 16, 2, 32)  # pieces that kernels of a GPU take where they lie


def made_layers() -> list[Any]:
    arrays = [np.zeros(SHAPE, np.float16) for _ in range(LAYERS)]
    if not has_torch_gpu():
        return arrays
    torch = importlib.import_module("torch")
    return [torch.from_numpy(array).cuda() for array in arrays]


def on_host(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else x.cpu().numpy()


class Client:
    """One thread: its blocks, and what it sealed, by hash."""

    def __init__(self, number: int, vault: kv.Vault, layers: list[Any]) -> None:
        self.chance = random.Random(number)
        self.vault, self.layers = vault, layers
        self.tenant = f"tenant {number % 2}"
        self.blocks = range(number * BLOCKS, (number + 1) * BLOCKS)
        self.number, self.made = number, 0
        self.stored: dict[bytes, tuple[bytes, int]] = {}  # hash: sealed, the value in its text
        self.headers: list[bytes] = []

    def identity(self, hashes: list[bytes]) -> kv.Identity:
        return kv.Identity(self.tenant, "model", hashes)

    def memory(self, count: int) -> Any:
        """Page-locked, or None: of the tensors' kind."""
        if isinstance(self.layers[0], np.ndarray) or self.chance.random() < 0.5:
            return None
        shape = count, self.vault.sealed_size(self.layers, 1)
        torch = importlib.import_module("torch")
        return torch.empty(shape, dtype=torch.uint8, pin_memory=True)

    def seal(self) -> None:
        ids = self.chance.choices(self.blocks, k=self.chance.randrange(1, 6))
        values = {number: self.chance.randrange(1, 2000) for number in ids}
        for number, value in values.items():
            for layer in self.layers:
                layer[:, number] = value
        hashes = [b"%d of %d" % (self.made + i, self.number) for i in range(len(ids))]
        self.made += len(ids)
        out = self.vault.seal(
            self.layers, ids, self.memory(len(ids)), identity=self.identity(hashes), axis=1
        )
        if not isinstance(out, np.ndarray):
            importlib.import_module("torch").cuda.synchronize()
        sealed = on_host(out)
        for name, number, row in zip(hashes, ids, sealed, strict=True):
            self.stored[name] = row.tobytes(), values[number]
            self.headers.append(row[:32].tobytes())

    def open(self) -> None:
        if not self.stored:
            return
        names = self.chance.sample(sorted(self.stored), min(len(self.stored), 4))
        ids = self.chance.sample(self.blocks, len(names))
        for number in ids:
            for layer in self.layers:
                layer[:, number] = -1
        objects = [self.stored[name][0] for name in names]
        bad = set()
        for i, data in enumerate(objects):
            act = self.chance.random()
            if act < 0.2:
                place = self.chance.randrange(len(data))
                objects[i] = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
                bad.add(i)
            elif act < 0.3:
                objects[i] = data[: self.chance.randrange(len(data))]
                bad.add(i)
            elif act < 0.4 and len(self.stored) > 1:
                objects[i] = self.stored[next(n for n in self.stored if n != names[i])][0]
                bad.add(i)
        misses = self.vault.open(objects, self.layers, ids, identity=self.identity(names), axis=1)
        assert misses == sorted(bad)
        for i, (name, number) in enumerate(zip(names, ids, strict=True)):
            expected = -1 if i in bad else self.stored[name][1]
            for layer in self.layers:
                assert (on_host(layer[:, number]) == expected).all()

    def evict(self) -> None:
        for name in self.chance.sample(sorted(self.stored), len(self.stored) // 2):
            del self.stored[name]

    def work(self, end: float) -> None:
        while time.monotonic() < end:
            self.chance.choice([self.seal, self.seal, self.open, self.open, self.open])()
            if len(self.stored) > 50:
                self.evict()


def test_soak() -> None:
    vault, layers = kv.Vault(os.urandom(32), "aes-128-gcm"), made_layers()
    clients = [Client(number, vault, layers) for number in range(THREADS)]
    run([client.work for client in clients])
    headers = [header for client in clients for header in client.headers]
    assert len(headers) > 20
    assert len(set(headers)) == len(headers), "a nonce came twice"

# SPDX-License-Identifier: Apache-2.0
"""A GPU that is none, for what the lab does around its kernels: memory of the host as the device's,
streams that work at once, and jobs that an oracle in Python does. The kernels themselves are
proven in tests/gpu/lab."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from warpcipher_measure import _native, machine, runner, session
from warpcipher_measure.results import Gpu, Machine

GPU = Gpu("a stand-in", "9.0", 4, 1 << 20, 1 << 30, 1 << 30, "0", "13.0", "13.0")


@dataclass(frozen=True)
class Asked:
    """The parameters of a job, and the text it is given."""

    variant: str
    key: bytes
    iv: bytes
    parameters: Mapping[str, int]
    text: bytes
    out_size: int


Oracle = Callable[[Asked], bytes]


class Memory:
    def __init__(self, size: int, _stream: object = None) -> None:
        self.device: int | None = 0
        self.size = size
        self._bytes = (ctypes.c_ubyte * size)()
        self.pointer = ctypes.addressof(self._bytes)

    def view(self, start: int, size: int) -> memoryview:
        return memoryview(self._bytes).cast("B")[start : start + size]

    def write(self, data: bytes) -> None:
        self.view(0, len(data))[:] = data

    def read(self, size: int) -> bytes:
        return bytes(self.view(0, size))


class Stream:
    def __init__(self, device: int) -> None:
        self.device = device
        self.pointer = 0

    def wait(self) -> None: ...

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def start(self) -> None:
        self._started = time.perf_counter()

    def stop(self) -> None:
        self._stopped = time.perf_counter()

    def seconds(self) -> float:
        return max(self._stopped - self._started, 1e-9)

    def pipe_rate(self, _pipe: str, _operations: int) -> tuple[float, float]:
        return 64.0, 1e9


def _fill(memory: Any, _stream: object) -> None:
    memory.view(0, memory.size)[:] = os.urandom(memory.size)


def _look(device: int) -> Machine:
    return replace(real_look(device), gpu=GPU, without_gpu="")


real_look = machine.look


def put(monkeypatch: pytest.MonkeyPatch, oracles: Mapping[str, Oracle]) -> None:
    """From now on there is a GPU, whose jobs `oracles` do: one for each paper."""
    real_job, real_variants = _native.Job, _native.variants

    class Job:
        def __init__(
            self,
            paper: str,
            variant: str,
            key: bytes,
            iv: bytes,
            parameters: dict[str, int],
            device: int,
        ) -> None:
            self._needs_gpu = {entry["name"]: entry["needs_gpu"] for entry in real_variants(paper)}[
                variant
            ]
            if not self._needs_gpu:
                self._real = real_job(paper, variant, key, iv, parameters, device)
            self._oracle = oracles[paper]
            self._asked = Asked(variant, key, iv, parameters, b"", 0)

        def run(self, source: int, source_size: int, target: int, out_size: int, s: int) -> None:
            if not self._needs_gpu:
                self._real.run(source, source_size, target, out_size, s)
                return
            text = ctypes.string_at(source, source_size)
            done = self._oracle(replace(self._asked, text=text, out_size=out_size))
            assert len(done) == out_size
            ctypes.memmove(target, done, out_size)

        def facts(self) -> list[tuple[str, int]]:
            names = (
                "registers_a_thread",
                "blocks_a_multiprocessor",
                "threads_a_multiprocessor",
                "most_threads_a_multiprocessor",
            )
            return [(name, 32) for name in names] if self._needs_gpu else []

    def variants(paper: str) -> list[dict[str, Any]]:
        return [
            {**entry, "absent": "" if entry["needs_gpu"] else entry["absent"]}
            for entry in real_variants(paper)
        ]

    monkeypatch.setattr(runner.machine, "look", _look)
    monkeypatch.setattr(runner.machine, "gpu_state", lambda _bus: {"clocks.sm": "1980 MHz"})
    monkeypatch.setattr(session, "DeviceMemory", Memory)
    monkeypatch.setattr(session, "fill", _fill)
    for name, stand_in in (
        ("Job", Job),
        ("variants", variants),
        ("WorkStream", Stream),
    ):
        monkeypatch.setattr(_native, name, stand_in)

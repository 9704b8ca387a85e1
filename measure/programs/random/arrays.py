# SPDX-License-Identifier: Apache-2.0
"""Random arrays: distributions of a `Generator`, a permutation, a short array. On a GPU against
PyTorch's Philox, on the host against NumPy's (one core: `taskset -c 0`)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from common import Row, parser, report, show
from warpcipher.random import Generator

BURST = 200
"""Calls for a short array of which one time is taken."""

# Name, dtype, how a Generator fills an array, how PyTorch does, how NumPy makes one.
FILLS: tuple[tuple[str, str, Any, Any, Any], ...] = (
    ("bytes", "uint8", lambda g, a: g.bytes_(a), None, lambda g, a: g.bytes(a.nbytes)),
    (
        "uniform",
        "float32",
        lambda g, a: g.uniform_(a),
        lambda a: a.uniform_(),
        lambda g, a: g.random(out=a, dtype="float32"),
    ),
    (
        "uniform",
        "float64",
        lambda g, a: g.uniform_(a),
        lambda a: a.uniform_(),
        lambda g, a: g.random(out=a),
    ),
    (
        "normal",
        "float32",
        lambda g, a: g.normal_(a),
        lambda a: a.normal_(),
        lambda g, a: g.standard_normal(out=a, dtype="float32"),
    ),
    (
        "normal",
        "float64",
        lambda g, a: g.normal_(a),
        lambda a: a.normal_(),
        lambda g, a: g.standard_normal(out=a),
    ),
    ("normal", "float16", lambda g, a: g.normal_(a), lambda a: a.normal_(), None),
    (
        "exponential",
        "float32",
        lambda g, a: g.exponential_(a),
        lambda a: a.exponential_(),
        lambda g, a: g.standard_exponential(out=a, dtype="float32"),
    ),
    ("laplace", "float32", lambda g, a: g.laplace_(a), None, lambda g, a: g.laplace(size=a.shape)),
    (
        "integers below 1000",
        "int32",
        lambda g, a: g.random_(a, 0, 1000),
        lambda a: a.random_(0, 1000),
        lambda g, a: g.integers(0, 1000, a.shape, "int32"),
    ),
    (
        "integers below 10^12",
        "int64",
        lambda g, a: g.random_(a, 0, 10**12),
        lambda a: a.random_(0, 10**12),
        lambda g, a: g.integers(0, 10**12, a.shape, "int64"),
    ),
    ("bernoulli", "uint8", lambda g, a: g.bernoulli_(a, 0.3), lambda a: a.bernoulli_(0.3), None),
)


class Host:
    """Arrays of NumPy, and its Philox."""

    peer = "NumPy's Philox"

    def __init__(self) -> None:
        self._philox = np.random.Generator(np.random.Philox(1))

    def empty(self, count: int, dtype: str) -> Any:
        return np.zeros(count, dtype)

    def fill(self, entry: tuple[Any, ...], array: Any) -> Callable[[], object] | None:
        return None if entry[4] is None else lambda: entry[4](self._philox, array)

    def permutation(self, count: int) -> Callable[[], object]:
        return lambda: self._philox.permutation(count)

    def wait(self) -> None:
        """NumPy is done when it returns."""


class Device:
    """Tensors of PyTorch on a GPU, and its own methods."""

    peer = "PyTorch's Philox"

    def __init__(self, device: str) -> None:
        import torch

        self._torch = torch
        self._device = device

    def empty(self, count: int, dtype: str) -> Any:
        return self._torch.empty(count, dtype=getattr(self._torch, dtype), device=self._device)

    def fill(self, entry: tuple[Any, ...], array: Any) -> Callable[[], object] | None:
        return None if entry[3] is None else lambda: entry[3](array)

    def permutation(self, count: int) -> Callable[[], object]:
        return lambda: self._torch.randperm(count, device=self._device)

    def wait(self) -> None:
        self._torch.cuda.synchronize(self._device)


def seconds(
    library: Host | Device, calls: dict[str, Callable[[], object]], repetitions: int, burst: int = 1
) -> dict[str, list[float]]:
    """Wall-clock seconds of one call of each, by turns."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in range(repetitions + 1):
        for name, call in calls.items():
            library.wait()
            start = time.perf_counter()
            for _ in range(burst):
                call()
            library.wait()
            if repetition:
                taken[name].append((time.perf_counter() - start) / burst)
    return taken


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--device", default="cpu", help="cpu or cuda:0")
    arguments.add_argument("--mib", type=int, default=0, help="size of the long arrays")
    options = arguments.parse_args()
    library: Host | Device = Host() if options.device == "cpu" else Device(options.device)
    size = (options.mib or (64 if options.device == "cpu" else 4096)) << 20
    generators = {
        "chacha20": Generator(bytes(32)),
        "aes-256-ctr": Generator(bytes(32), algorithm="aes-256-ctr"),
    }
    rows: list[Row] = []

    def add(
        what: str, unit: str, taken: dict[str, list[float]], scale: Callable[[float], float]
    ) -> None:
        for name, values in taken.items():
            rows.append(Row(f"{what}: {name}", unit, [scale(value) for value in values]))
            if not options.json:
                show(rows[-1], 46)

    for entry in FILLS:
        name, dtype, fill, *_ = entry
        array = library.empty(size // np.dtype(dtype).itemsize, dtype)
        calls: dict[str, Callable[[], object]] = {
            algorithm: lambda fill=fill, array=array, g=generator: fill(g, array)
            for algorithm, generator in generators.items()
        }
        peer = library.fill(entry, array)
        if peer is not None:
            calls[library.peer] = peer
        taken = seconds(library, calls, options.repetitions)
        add(f"{name}, {dtype}", "GB/s", taken, lambda value: size / value / 1e9)
        del array, calls, peer

    array = library.empty(1 << 24, "int64")
    calls = {"chacha20": lambda: generators["chacha20"].permutation_(array)}
    calls[library.peer] = library.permutation(1 << 24)
    taken = seconds(library, calls, options.repetitions)
    add("permutation of 2^24, int64", "ms", taken, lambda value: value * 1e3)

    short = library.empty(256, "float32")
    unkeyed = Generator()
    for entry in FILLS:
        name, dtype, fill, *_ = entry
        if dtype != "float32" or name in ("exponential", "laplace"):
            continue
        calls = {
            "chacha20": lambda fill=fill: fill(generators["chacha20"], short),
            "chacha20 without a key": lambda fill=fill: fill(unkeyed, short),
        }
        peer = library.fill(entry, short)
        assert peer is not None
        calls[library.peer] = peer
        taken = seconds(library, calls, options.repetitions, BURST)
        add(f"{name}, 256 of float32", "us", taken, lambda value: value * 1e6)

    report(rows, options, shown=True, size=f"{size >> 20} MiB in {options.device}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Random arrays: distributions of a `Generator`, a permutation, a short array. On a GPU against
PyTorch's Philox, on the host against NumPy's (one core: `taskset -c 0`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from warpcipher.random import Generator
from warpcipher_measure.program import Row, by_turns, parser, report, show

BURST = 200
"""Calls for a short array of which one time is taken."""


class Fill(NamedTuple):
    """How arrays are filled: by a method of a Generator, which PyTorch's tensors have too, and by
    one of NumPy's generators, which gets dtype and array (`out`) or the shape."""

    name: str
    dtype: str
    method: str
    arguments: tuple[Any, ...] = ()
    in_torch: bool = True
    in_numpy: Callable[[np.random.Generator, Any], object] | None = None

    def by(self, generator: Generator, array: Any) -> Callable[[], object]:
        return partial(getattr(generator, self.method), array, *self.arguments)


def into(method: str) -> Callable[[np.random.Generator, Any], object]:
    return lambda g, a: getattr(g, method)(out=a, dtype=a.dtype)


def below(most: int) -> Callable[[np.random.Generator, Any], object]:
    return lambda g, a: g.integers(0, most, a.shape, a.dtype)


FILLS = (
    Fill("bytes", "uint8", "bytes_", (), False, lambda g, a: g.bytes(a.nbytes)),
    Fill("uniform", "float32", "uniform_", in_numpy=into("random")),
    Fill("uniform", "float64", "uniform_", in_numpy=into("random")),
    Fill("normal", "float32", "normal_", in_numpy=into("standard_normal")),
    Fill("normal", "float64", "normal_", in_numpy=into("standard_normal")),
    Fill("normal", "float16", "normal_"),
    Fill("exponential", "float32", "exponential_", in_numpy=into("standard_exponential")),
    Fill("laplace", "float32", "laplace_", (), False, lambda g, a: g.laplace(size=a.shape)),
    Fill("integers below 1000", "int32", "random_", (0, 1000), in_numpy=below(1000)),
    Fill("integers below 10^12", "int64", "random_", (0, 10**12), in_numpy=below(10**12)),
    Fill("bernoulli", "uint8", "bernoulli_", (0.3,)),
)


class Host:
    """Arrays of NumPy, and its Philox."""

    peer = "NumPy's Philox"

    def __init__(self) -> None:
        self._philox = np.random.Generator(np.random.Philox(1))

    def empty(self, count: int, dtype: str) -> Any:
        return np.zeros(count, dtype)

    def fill(self, fill: Fill, array: Any) -> Callable[[], object] | None:
        return fill.in_numpy and partial(fill.in_numpy, self._philox, array)

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

    def fill(self, fill: Fill, array: Any) -> Callable[[], object] | None:
        return partial(getattr(array, fill.method), *fill.arguments) if fill.in_torch else None

    def permutation(self, count: int) -> Callable[[], object]:
        return lambda: self._torch.randperm(count, device=self._device)

    def wait(self) -> None:
        self._torch.cuda.synchronize(self._device)


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
        what: str,
        unit: str,
        calls: dict[str, Callable[[], object]],
        scale: Callable[[float], float],
        burst: int = 1,
    ) -> None:
        taken = by_turns(calls, options.repetitions, wait=library.wait, calls=burst)
        for name, times in taken.items():
            rows.append(Row(f"{what}: {name}", unit, [scale(value) for value in times.wall]))
            if not options.json:
                show(rows[-1], 46)

    def with_peer(
        calls: dict[str, Callable[[], object]], peer: Callable[[], object] | None
    ) -> dict[str, Callable[[], object]]:
        return calls if peer is None else calls | {library.peer: peer}

    for fill in FILLS:
        array = library.empty(size // np.dtype(fill.dtype).itemsize, fill.dtype)
        calls = {
            algorithm: fill.by(generator, array) for algorithm, generator in generators.items()
        }
        calls = with_peer(calls, library.fill(fill, array))
        add(f"{fill.name}, {fill.dtype}", "GB/s", calls, lambda value: size / value / 1e9)
        del array, calls

    chacha20, unkeyed = generators["chacha20"], Generator()
    array = library.empty(1 << 24, "int64")
    calls = with_peer(
        {"chacha20": lambda: chacha20.permutation_(array)}, library.permutation(1 << 24)
    )
    add("permutation of 2^24, int64", "ms", calls, lambda value: value * 1e3)

    short = library.empty(256, "float32")
    for fill in FILLS:
        if fill.dtype != "float32" or fill.name in ("exponential", "laplace"):
            continue
        calls = {
            "chacha20": fill.by(chacha20, short),
            "chacha20 without a key": fill.by(unkeyed, short),
        }
        calls = with_peer(calls, library.fill(fill, short))
        add(f"{fill.name}, 256 of float32", "us", calls, lambda value: value * 1e6, BURST)

    report(rows, options, shown=True, size=f"{size >> 20} MiB in {options.device}")


if __name__ == "__main__":
    main()

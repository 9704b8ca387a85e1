# SPDX-License-Identifier: Apache-2.0
"""Random arrays: distributions of a `Generator`, a permutation, a short array. On a GPU against
PyTorch's Philox, on the host against NumPy's (one core: `taskset -c 0`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from warpcipher.random import Generator
from warpcipher_measure.program import Program, by_turns

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
SHORT = (FILLS[1], FILLS[3])


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
    program = Program(__doc__)
    program.option("--device", default="cpu", help="cpu or cuda:0")
    program.option("--mib", type=int, default=0, help="size of the long arrays")
    options = program.parse()
    library: Host | Device = Host() if options.device == "cpu" else Device(options.device)
    size = (options.mib or (64 if options.device == "cpu" else 4096)) << 20
    chacha20, aes = Generator(bytes(32)), Generator(bytes(32), algorithm="aes-256-ctr")

    def turns(
        what: str,
        own: dict[str, Callable[[], object]],
        peer: Callable[[], object] | None,
        calls: int = 1,
    ) -> Any:
        actions = own if peer is None else own | {library.peer: peer}
        named = {f"{what}: {name}": action for name, action in actions.items()}
        return by_turns(named, options.repetitions, wait=library.wait, calls=calls)

    for fill in FILLS:
        array = library.empty(size // np.dtype(fill.dtype).itemsize, fill.dtype)
        own = {"chacha20": fill.by(chacha20, array), "aes-256-ctr": fill.by(aes, array)}
        peer = library.fill(fill, array)
        program.rates(turns(f"{fill.name}, {fill.dtype}", own, peer), size / 1e9)
        del array, own, peer

    count = 1 << 24
    array = library.empty(count, "int64")
    own = {"chacha20": lambda: chacha20.permutation_(array)}
    what = "permutation of 2^24, int64"
    program.times(turns(what, own, library.permutation(count)))

    short, unkeyed = library.empty(256, "float32"), Generator()
    for fill in SHORT:
        own = {
            "chacha20": fill.by(chacha20, short),
            "chacha20 without a key": fill.by(unkeyed, short),
        }
        what = f"{fill.name}, 256 of float32"
        program.times(turns(what, own, library.fill(fill, short), BURST), "us")
    program.finish(size=f"{size >> 20} MiB in {options.device}")


if __name__ == "__main__":
    main()

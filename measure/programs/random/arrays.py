# SPDX-License-Identifier: Apache-2.0
"""Random arrays: distributions of a `Generator`, a permutation, a short array. On a GPU against
PyTorch's Philox, on the host against NumPy's (one core: `taskset -c 0`). And on a GPU key stream
that stays in registers, as it is in some published figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import warpcipher as wc
from warpcipher.random import Generator
from warpcipher_measure import _native
from warpcipher_measure.program import Action, Actions, Arrays, Program, by_turns

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

    def by(self, generator: Generator, array: Any) -> Action:
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
UNITS = {"chacha20": 64, "aes-128-ctr": 16}
"""Bytes of the units of key streams in registers."""


def in_registers(name: Any, units: int, sums: Any) -> Action:
    """Makes units of a key stream, once it is checked that some are right."""
    stream = _native.WorkStream(sums.device.index or 0)
    run = partial(stream.key_stream, name, sums=sums.data_ptr())
    few = 37 * 256
    lanes = run(units=few)
    stream.wait()
    key = bytes([7]) * wc.find_algorithm(name).key_size
    text = wc.Cipher(name, key, engine="cpu").encrypt(bytes(few * UNITS[name]), iv=bytes(16))
    found = sums[:lanes].cpu().numpy()
    if np.bitwise_xor.reduce(found) != np.bitwise_xor.reduce(np.frombuffer(text, "i4")):
        raise SystemExit(f"{name} in registers is wrong")
    return partial(run, units=units)


def main() -> None:
    program = Program(__doc__)
    program.option("--device", default="cpu", help="cpu or cuda:0")
    program.option("--mib", type=int, default=0, help="size of the long arrays")
    options = program.parse()
    arrays = Arrays(options.device)
    size = (options.mib or (64 if arrays.on_host else 4096)) << 20
    philox = np.random.Generator(np.random.Philox(1))
    chacha20, aes = Generator(bytes(32)), Generator(bytes(32), algorithm="aes-256-ctr")

    def turns(what: str, own: Actions, peer: Action | None, calls: int = 1) -> Any:
        library = "NumPy" if arrays.on_host else "PyTorch"
        actions = own if peer is None else own | {f"{library}'s Philox": peer}
        named = {f"{what}: {name}": action for name, action in actions.items()}
        return by_turns(named, options.repetitions, wait=arrays.wait, calls=calls)

    def of_peer(fill: Fill, array: Any) -> Action | None:
        if arrays.on_host:
            return fill.in_numpy and partial(fill.in_numpy, philox, array)
        return partial(getattr(array, fill.method), *fill.arguments) if fill.in_torch else None

    for fill in FILLS:
        array = arrays.zeros(size // np.dtype(fill.dtype).itemsize, fill.dtype)
        own = {"chacha20": fill.by(chacha20, array), "aes-256-ctr": fill.by(aes, array)}
        peer = of_peer(fill, array)
        program.rates(turns(f"{fill.name}, {fill.dtype}", own, peer), size / 1e9)
        del array, own, peer

    if not arrays.on_host:
        sums = arrays.zeros(1 << 20, "int32")
        for name, length in UNITS.items():
            units = min(size // length, 1 << 30)
            own = {name: in_registers(name, units, sums)}
            taken = turns("key stream in registers", own, None, 4)
            program.rates(taken, units * length / 1e9)

    count = 1 << 24
    array = arrays.zeros(count, "int64")
    own = {"chacha20": lambda: chacha20.permutation_(array)}
    what = "permutation of 2^24, int64"
    shuffle = partial(philox.permutation, count)
    if not arrays.on_host:
        shuffle = partial(arrays.library.randperm, count, **arrays.options)
    program.times(turns(what, own, shuffle))

    short, unkeyed = arrays.zeros(256, "float32"), Generator()
    for fill in SHORT:
        own = {"chacha20": fill.by(chacha20, short), "without a key": fill.by(unkeyed, short)}
        what = f"{fill.name}, 256 of float32"
        program.times(turns(what, own, of_peer(fill, short), BURST), "us")
    program.finish(size=f"{size >> 20} MiB in {options.device}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""`BitGenerator`: a stream as NumPy's random module reads it. Loads NumPy: nothing else of the
package imports this file before it is asked for."""

from __future__ import annotations

import threading
from typing import Any, Literal

import numpy

from .. import _native
from .._types import Buffer, Self
from ..arguments import require_int
from .generator import Generator
from .source import INHERITED, take_key
from .streams import SEEDS, STREAM_SIZE, child_key

MOST_POSITION = STREAM_SIZE // 2
"""As in the native module: so that none can be drawn to a stream's end."""

NAME = "warpcipher.random.BitGenerator"


class SeedSequence(numpy.random.bit_generator.ISpawnableSeedSequence):
    """`BitGenerator.seed_seq`, for libraries that make their own generators: words and
    children that nobody without the key can compute.

    With a key both are functions of the key, the stream and of how many generators were spawned
    before. Without one the words are new each time. A child always has its own key:
    `BitGenerator(child)` gives the same numbers each time, as NumPy's seed sequences do.
    """

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def generate_state(self, n_words: int, dtype: Any = numpy.uint32) -> Any:
        """`n_words` random words, as NumPy's generators take them for a seed."""
        kind = numpy.dtype(dtype)
        if kind not in (numpy.uint32, numpy.uint64):
            raise ValueError(f"dtype is {kind}: expected uint32 or uint64")
        generator = self._generator
        size = require_int("n_words", n_words) * kind.itemsize
        if not generator.keyed:
            return numpy.frombuffer(generator.bytes(size), kind).copy()
        with generator._enter():
            key = child_key(generator.algorithm, generator._key, generator._stream, SEEDS)
        return numpy.frombuffer(generator._like(key, keyed=True).bytes(size), kind).copy()

    def spawn(self, n_children: int) -> list[SeedSequence]:
        """Children, which are independent of this one and of each other."""
        return [SeedSequence(child) for child in self._generator._spawn(n_children, keyed=True)]

    def make(self) -> Generator:
        """A generator of this sequence, at the beginning of its stream."""
        generator = self._generator
        if not generator.keyed:
            return generator.spawn(1)[0]
        with generator._enter():
            return generator._with_key(generator._key)


class _Lock:
    """The lock that NumPy takes for each call. A keyed generator refuses a child of a fork here:
    the functions that NumPy calls next cannot raise."""

    def __init__(self, bits: _native.RandomBits, keyed: bool) -> None:
        self._bits = bits
        self._keyed = keyed
        self._lock = threading.RLock()

    def check(self) -> None:
        """Makes a new lock in a child of a fork. RuntimeError: the child of a keyed generator."""
        if self._bits.is_inherited:
            # Another thread may have held it when this process began.
            self._lock = threading.RLock()
            if self._keyed:
                raise RuntimeError(INHERITED)

    def __enter__(self) -> Self:
        self.check()
        self._lock.acquire()
        return self

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def acquire(self, blocking: bool = True) -> bool:
        """As a lock of `threading`."""
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """As a lock of `threading`."""
        self._lock.release()


class BitGenerator(numpy.random.BitGenerator):
    """A cryptographic source of bits for `numpy.random.Generator`, with all its distributions; and
    for Numba, SciPy and others that read NumPy's `ctypes`, `cffi`, `capsule` and `seed_seq`.

    key:       None: seeded by the operating system; each 16 KiB bring the key of the next. Bytes-
               like of 32 bytes: the words are the same as from `Generator(key,
               stream=stream).bytes`. A child of `seed_seq`: its key.
    algorithm: "chacha20" or "aes-256-ctr".
    stream:    with a key of bytes: 0 to 2^64 - 1.

    Copies, pickles and forks behave as with `Generator`; a process that Numba's compiled code
    forks itself is not noticed. NumPy's floats lie on grids as all others do: see
    docs/guides/random.md.

    ValueError: a key of another length, an unknown name.

    >>> import numpy
    >>> from warpcipher.random import BitGenerator
    >>> numpy.random.Generator(BitGenerator(bytes(32))).integers(1000, size=3)
    array([679, 563, 896])
    """

    def __init__(
        self,
        key: Buffer | SeedSequence | None = None,
        *,
        algorithm: Literal["chacha20", "aes-256-ctr"] = "chacha20",
        stream: int = 0,
    ) -> None:
        if isinstance(key, numpy.random.SeedSequence):
            raise TypeError(
                "the key is a SeedSequence of NumPy, which mixes a seed and keeps no secret: "
                "expected 32 bytes, or None for a key of the operating system"
            )
        if isinstance(key, SeedSequence):
            if stream != 0:
                raise ValueError(f"stream is {stream}, and the key is a seed sequence: expected 0")
            self._begin(key.make())
        else:
            self._begin(Generator(key, algorithm=algorithm, stream=stream))

    def _begin(self, generator: Generator) -> None:
        super().__init__(SeedSequence(generator))  # type: ignore[arg-type]
        self._generator = generator
        key = take_key(generator)
        number = generator._stream
        self._bits = _native.RandomBits(key, generator.algorithm, number, generator.keyed)
        self._bits.serve(self.capsule)
        self._lock = _Lock(self._bits, generator.keyed)

    @property
    def lock(self) -> Any:  # type: ignore[override]
        """The lock that NumPy holds while it draws."""
        return self._lock

    @property
    def ctypes(self) -> Any:
        """NumPy's interface of `ctypes` functions, which Numba calls without the lock.
        RuntimeError: the generator has a key and came through a fork."""
        self._lock.check()
        return super().ctypes

    @property
    def cffi(self) -> Any:
        """As `ctypes`, for the package cffi."""
        self._lock.check()
        return super().cffi

    @property
    def state(self) -> Any:
        """`{"bit_generator": its name, "state": as Generator.state}`, as NumPy's have it: no key.
        TypeError: the generator has no key."""
        state = {**self._generator.state, "position": self._bits.position}
        return {"bit_generator": NAME, "state": state}

    @state.setter
    def state(self, state: Any) -> None:
        # RandomState adds the normal number that it keeps.
        if not isinstance(state, dict) or state.get("bit_generator") != NAME:
            raise ValueError(f"the state is not a {NAME}'s")
        own: Any = state.get("state")
        before = self._generator.state
        self._generator.state = own
        try:
            self._bits.seek(own["stream"], own["position"])
        except BaseException:
            self._generator.state = before
            raise

    def random_raw(self, size: Any = None, output: bool = True) -> Any:
        """A word of 64 bits, or an array of that shape; None, without `output`."""
        found = numpy.random.Generator(self).integers(
            0, 1 << 64, size=1 if size is None else size, dtype=numpy.uint64
        )
        if not output:
            return None
        return int(found[0]) if size is None else found

    def advance(self, delta: int) -> Self:
        """Moves on by `delta` words of 64 bits, back if it is negative, and returns the
        generator itself. TypeError: it has no key. ValueError: past an end of the stream."""
        state = self.state
        position = state["state"]["position"] + 8 * require_int("delta", delta)
        if not 0 <= position <= MOST_POSITION:
            text = f"delta is {delta}, to position {position}: expected one from 0 to 2^55"
            raise ValueError(text)
        state["state"]["position"] = position
        self.state = state
        return self

    def jumped(self, jumps: int = 1) -> BitGenerator:
        """A generator of the same key at the same position, `jumps` streams on: as if the streams
        of 2^56 bytes lay one behind the other. TypeError: the generator has no key. ValueError: the
        key has no such stream."""
        state = self.state
        own = state["state"]
        stream = own["stream"] + require_int("jumps", jumps)
        if not 0 <= stream < 1 << 64:
            raise ValueError(f"jumps is {jumps}, to stream {stream}: expected one below 2^64")
        own["stream"], own["spawned"] = stream, 0
        return _rebuild(self._generator._with_key(self._generator._key), state)

    def spawn(self, count: int) -> list[BitGenerator]:
        """As `Generator.spawn`: `numpy.random.Generator.spawn` calls it."""
        return [_of(generator) for generator in self._generator.spawn(count)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self._generator.keyed:
            raise TypeError(
                "BitGenerator objects without a key cannot be copied or pickled: make a new one, "
                "or use spawn()"
            )
        return _rebuild, (self._generator, self.state)

    def __repr__(self) -> str:
        keyed = "with key" if self._generator.keyed else "without key"
        return f"<warpcipher.random.BitGenerator {self._generator.algorithm} {keyed}>"


def _of(generator: Generator) -> BitGenerator:
    made = BitGenerator.__new__(BitGenerator)
    made._begin(generator)
    return made


def _rebuild(generator: Generator, state: dict[str, Any]) -> BitGenerator:
    made = _of(generator)
    made.state = state
    return made

# SPDX-License-Identifier: Apache-2.0
"""`BitGenerator`: a stream as NumPy's random module reads it. Loads NumPy: nothing else of the
package imports this file before it is asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy

from .. import _native
from .generator import Generator
from .source import take_key

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._types import Buffer


class _Lock:
    """The lock that NumPy takes for each call. A keyed generator refuses a child of a fork here:
    the functions that NumPy calls next cannot raise."""

    def __init__(self, bits: _native.RandomBits, keyed: bool) -> None:
        self._bits = bits
        self._keyed = keyed
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        if self._bits.is_inherited:
            # Another thread may have held it when this process began.
            self._lock = threading.RLock()
            if self._keyed:
                raise RuntimeError(
                    "this generator has a key and came through a fork: its parent draws the same "
                    "numbers. Make one with another stream here, or set its state"
                )
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
    """A cryptographic source of bits for `numpy.random.Generator`, with all its distributions.

    key:       None: seeded by the operating system; each 16 KiB bring the key of the next. Bytes-
               like of 32 bytes: the words are those of `Generator(key, stream=stream).bytes`.
    algorithm: "chacha20" or "aes-256-ctr".
    stream:    with a key alone, 0 to 2^64 - 1.

    Copies, pickles and forks are as those of `Generator`. NumPy's floats lie on grids as all others
    do: docs/guides/random.md.

    ValueError: a key of another length, an unknown name.

    >>> import numpy
    >>> from warpcipher.random import BitGenerator
    >>> numpy.random.Generator(BitGenerator(bytes(32))).integers(1000, size=3)
    array([679, 563, 896])
    """

    def __init__(
        self,
        key: Buffer | None = None,
        *,
        algorithm: Literal["chacha20", "aes-256-ctr"] = "chacha20",
        stream: int = 0,
    ) -> None:
        super().__init__(0)  # a seed that nothing reads
        self._make(Generator(key, algorithm=algorithm, stream=stream))

    def _make(self, generator: Generator) -> None:
        self._generator = generator
        key = take_key(generator)
        number = generator.state["stream"] if generator.keyed else 0
        self._bits = _native.RandomBits(key, generator.algorithm, number, generator.keyed)
        self._lock = _Lock(self._bits, generator.keyed)

    @property
    def capsule(self) -> Any:
        """The capsule of bitgen_t, for NumPy, Numba and Cython."""
        return self._bits.capsule()

    @property
    def lock(self) -> Any:  # type: ignore[override]
        """What NumPy holds while it draws."""
        return self._lock

    @property
    def state(self) -> Any:
        """As `Generator.state`: no key. TypeError: the generator has no key."""
        return {**self._generator.state, "position": self._bits.position}

    @state.setter
    def state(self, state: Any) -> None:
        self._generator.state = state
        self._bits.seek(state["stream"], state["position"])

    def random_raw(self, size: Any = None, output: bool = True) -> Any:
        """A word of 64 bits, or an array of that shape; None, without `output`."""
        found = numpy.random.Generator(self).integers(
            0, 1 << 64, size=1 if size is None else size, dtype=numpy.uint64
        )
        if not output:
            return None
        return int(found[0]) if size is None else found

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
    made = BitGenerator()
    made._make(generator)
    return made


def _rebuild(generator: Generator, state: dict[str, Any]) -> BitGenerator:
    made = _of(generator)
    made.state = state
    return made

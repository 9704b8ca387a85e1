# SPDX-License-Identifier: Apache-2.0
"""`Generator`: random arrays that nobody can predict, and arrays that a key determines."""

from __future__ import annotations

import builtins
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .. import _native
from ..arguments import require_int
from . import arrays, discrete
from .arrays import NewArray, Target, open_target
from .source import Source
from .streams import STREAM_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from .._types import Buffer, StreamLike

ArrayT = TypeVar("ArrayT")


class Generator(Source):
    """A cryptographic generator of random arrays.

    key:       None: seeded by the operating system. Each call draws with a key of its
               own and replaces the generator's: what was given out cannot be found from what is in
               memory afterwards. Bytes-like of 32 bytes: everything is a function of the key, the
               stream and the position in it, on every engine and device alike.
    device:    where new arrays lie: "cpu", "cuda", "cuda:1" or the number of a GPU.
    algorithm: "chacha20" or "aes-256-ctr".
    stream:    with a key alone: the number of the stream, 0 to 2^64 - 1. Streams of one key are
               independent.
    library:   of new arrays: "numpy", "torch", "cupy" or "jax". None: NumPy on the host, and on a
               GPU the one that is loaded.
    engine:    "auto" or a name of `engines()`, for tests.

    Methods that end in `_` fill an array and return it; the others make a new one. An array that is
    filled is C-contiguous and writable (JAX's are not: make a new one), of any length and
    alignment. `out` lies where it lies, whatever `device` says. `stream=` of a method is a CUDA
    stream, as everywhere (docs/python.md).

    Safe to use from several threads; with a key they share one position. In a child of a fork a
    generator without a key takes a new seed; one with a key refuses to draw the parent's numbers
    again until its `state` is set. Copies and pickles are refused without a key; with a key they
    hold it.

    ValueError: a key of another length, an unknown name. TypeError: a dtype that cannot be filled.

    >>> from warpcipher.random import Generator
    >>> len(Generator().bytes(16))
    16
    >>> Generator(bytes(32)).bytes(8).hex()
    '76b8e0ada0f13d90'
    """

    __slots__ = ("_device", "_engine", "_library")

    def __init__(
        self,
        key: Buffer | None = None,
        device: object = "cpu",
        algorithm: Literal["chacha20", "aes-256-ctr"] = "chacha20",
        *,
        stream: int = 0,
        library: str | None = None,
        engine: str = "auto",
    ) -> None:
        self._key = bytearray()  # for __del__, should an argument be refused
        if library is not None and library not in arrays.LIBRARIES:
            raise ValueError(
                f"library is {library!r}: expected one of {', '.join(arrays.LIBRARIES)}"
            )
        self._device = arrays.parse_device(device)
        self._library = library
        self._engine = engine
        super().__init__(key, algorithm, stream)

    def _with_key(self, key: Buffer) -> Generator:
        made: Any = (key, self._device, self._algorithm)
        return Generator(*made, library=self._library, engine=self._engine)

    def _arguments(self) -> tuple[Any, Any]:
        named = {"stream": self._stream, "library": self._library, "engine": self._engine}
        return (bytes(self._key), self._device, self._algorithm), named

    # ---- filling

    def _fill(
        self, out: ArrayT, distribution: str, first: Any, second: Any, stream: StreamLike
    ) -> ArrayT:
        view, dtype, elements, pointer = self._open(out, stream)
        if distribution == "bytes":  # of which an element is one
            dtype, elements = "uint8", elements * arrays.SIZES[dtype]
        fill, key, engine = _native.random_fill, self._key, self._engine
        cipher = self._algorithm
        if not self._keyed:
            # The lock is free: the native module replaces the key before it lets go of the GIL.
            self._enter()
            fill(view, distribution, dtype, key, cipher, 0, 0, first, second, engine, pointer, True)
            return out
        size = elements * arrays.width_of(distribution, dtype, first, second)
        before, begin = self._reserve(size)
        number = self._stream
        try:
            fill(
                view,
                distribution,
                dtype,
                key,
                cipher,
                number,
                begin,
                first,
                second,
                engine,
                pointer,
            )
        except BaseException:
            self._give_back(before, begin + size)
            raise
        return out

    def _open(self, out: Any, stream: StreamLike) -> Target:
        target = open_target(out, stream)
        if not self._keyed and _native.random_is_captured(target[0], target[3]):
            raise RuntimeError(
                "a CUDA graph is being captured, and each replay would give the same numbers: "
                "fill the array outside of the graph, or use a generator with a key"
            )
        return target

    def _new(
        self, shape: object, dtype: str, library: str | None, by_host: bool = False
    ) -> NewArray:
        name = arrays.choose_library(library or self._library, self._device)
        return NewArray(name, self._device, arrays.parse_shape(shape), dtype, by_host)

    def bytes_(self, out: ArrayT, *, stream: StreamLike = None) -> ArrayT:
        """Fills an array of any dtype with random bytes."""
        return self._fill(out, "bytes", 0, 1, stream)

    def random_(
        self,
        out: ArrayT,
        low: int | None = None,
        high: int | None = None,
        *,
        stream: StreamLike = None,
    ) -> ArrayT:
        """Fills an array of integers or bools: all of low, ..., high - 1 are equally likely.

        None: from the least to the greatest value of the dtype.
        """
        dtype = arrays.dtype_of(out, "out")
        low, high = _limits(dtype, low, high)
        return self._fill(out, "integers", low, high, stream)

    def randint(
        self,
        low: int,
        high: int | None = None,
        shape: int | Sequence[int] = (),
        *,
        dtype: str = "int64",
        library: str | None = None,
    ) -> Any:
        """A new array of integers from low to high - 1; from 0 to low - 1 where high is None."""
        if high is None:
            low, high = 0, low
        low, high = _limits(dtype, low, high)
        new = self._new(shape, dtype, library)
        self._fill(new.to_fill, "integers", low, high, None)
        return new.finish()

    def uniform_(
        self, out: ArrayT, low: float = 0.0, high: float = 1.0, *, stream: StreamLike = None
    ) -> ArrayT:
        """Fills an array of floats with low <= x < high.

        On [0, 1) these are the multiples of 2^-53 (float64), 2^-24 (float32), 2^-11 (float16) or
        2^-8 (bfloat16), each equally likely; other intervals are these, scaled and rounded.
        """
        return self._fill(out, "uniform", low, high, stream)

    def uniform(
        self,
        shape: int | Sequence[int],
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: str = "float32",
        library: str | None = None,
    ) -> Any:
        """A new array, as `uniform_` fills it."""
        new = self._new(shape, dtype, library)
        self.uniform_(new.to_fill, low, high)
        return new.finish()

    def normal_(
        self, out: ArrayT, mean: Any = 0.0, std: Any = 1.0, *, stream: StreamLike = None
    ) -> ArrayT:
        """Fills an array of floats with normal numbers, by Box and Muller's method.

        mean, std: numbers; or arrays of out's library that broadcast to out, which that library
                   multiplies and adds, on its current stream alone.

        Its floats lie on a grid that tells of their making: see docs/guides/random.md before you
        use them for differential privacy, and `discrete_gaussian_`.
        """
        if isinstance(mean, Real) and isinstance(std, Real):
            return self._fill(out, "normal", float(mean), float(std), stream)
        if stream is not None:
            raise ValueError("mean or std is an array: expected stream=None, the library's own")
        if not hasattr(out, "__imul__") or not hasattr(out, "__iadd__"):
            raise TypeError(f"mean or std is an array, and out is {type(out).__name__}")
        self._fill(out, "normal", 0.0, 1.0, None)
        scaled: Any = out
        scaled *= std
        scaled += mean
        return out

    def normal(
        self,
        shape: int | Sequence[int],
        mean: Any = 0.0,
        std: Any = 1.0,
        *,
        dtype: str = "float32",
        library: str | None = None,
    ) -> Any:
        """A new array, as `normal_` fills it. mean, std: numbers, or arrays of that library."""
        new = self._new(shape, dtype, library)
        if isinstance(mean, Real) and isinstance(std, Real):
            self.normal_(new.to_fill, mean, std)
            return new.finish()
        self.normal_(new.to_fill)
        return new.finish() * std + mean

    def exponential_(self, out: ArrayT, scale: float = 1.0, *, stream: StreamLike = None) -> ArrayT:
        """Fills an array of floats with exponential numbers of mean `scale`."""
        return self._fill(out, "exponential", scale, 1, stream)

    def exponential(
        self,
        shape: int | Sequence[int],
        scale: float = 1.0,
        *,
        dtype: str = "float32",
        library: str | None = None,
    ) -> Any:
        """A new array, as `exponential_` fills it."""
        new = self._new(shape, dtype, library)
        self.exponential_(new.to_fill, scale)
        return new.finish()

    def bernoulli_(self, out: ArrayT, p: float = 0.5, *, stream: StreamLike = None) -> ArrayT:
        """Fills an array of any dtype with 1 or 0; 1 with probability p to the nearest 2^-64."""
        return self._fill(out, "bernoulli", p, 1, stream)

    def bernoulli(
        self,
        shape: int | Sequence[int],
        p: float = 0.5,
        *,
        dtype: str = "bool",
        library: str | None = None,
    ) -> Any:
        """A new array, as `bernoulli_` fills it."""
        new = self._new(shape, dtype, library)
        self.bernoulli_(new.to_fill, p)
        return new.finish()

    def permutation_(self, out: ArrayT, *, stream: StreamLike = None) -> ArrayT:
        """Fills an array of int32 or int64 with 0, ..., n - 1 in random order, each order equally
        likely. On a GPU it waits for the stream."""
        view, dtype, elements, pointer = self._open(out, stream)
        if dtype not in ("int32", "int64"):
            raise TypeError(f"out is of {dtype}: expected int32 or int64")

        def write(key: Buffer, number: int, position: int) -> None:
            _native.random_permutation(
                view, dtype, key, self._algorithm, number, position, self._engine, pointer
            )

        self._draw(8 * elements, write)
        return out

    def permutation(self, n: int, *, dtype: str = "int64", library: str | None = None) -> Any:
        """A new array, as `permutation_` fills it."""
        new = self._new(n, dtype, library)
        self.permutation_(new.to_fill)
        return new.finish()

    def discrete_gaussian_(
        self,
        out: ArrayT,
        sigma: float | Fraction | None = None,
        *,
        variance: float | Fraction | None = None,
    ) -> ArrayT:
        """Fills an array of integers with the discrete Gaussian of mean 0: x with a probability
        proportional to exp(-x^2 / (2 sigma^2)).

        sigma, variance: one of them, taken exactly as it is: a float is the fraction that it holds.

        Exact: integer arithmetic and random bits alone, no rounding anywhere (Canonne, Kamath and
        Steinke: The Discrete Gaussian for Differential Privacy, 2020, algorithms 1 to 3). So none
        of the attacks on noise in floating point applies. The time depends on the numbers drawn.
        NumPy computes it on the host, whatever the device of out.

        ValueError: sigma is not positive, more than 2^40, or 40 sigma do not fit out's dtype.
        """
        dtype = arrays.dtype_of(out, "out")
        sampler = discrete.Sampler(sigma, variance, dtype)
        _, _, elements, _ = self._open(out, None)

        def write(key: Buffer, number: int, position: int) -> None:
            parts = discrete.draw(sampler, elements, self._algorithm, key, number, position)
            arrays.store(out, dtype, parts)

        self._draw(8 * elements, write)
        return out

    def discrete_gaussian(
        self,
        shape: int | Sequence[int],
        sigma: float | Fraction | None = None,
        *,
        variance: float | Fraction | None = None,
        dtype: str = "int64",
        library: str | None = None,
    ) -> Any:
        """A new array, as `discrete_gaussian_` fills it."""
        new = self._new(shape, dtype, library, by_host=True)
        self.discrete_gaussian_(new.to_fill, sigma, variance=variance)
        return new.finish()

    def bytes(self, size: int) -> builtins.bytes:
        """`size` random bytes, as a bytes object."""
        size = require_int("size", size)
        if not 0 <= size <= STREAM_SIZE:
            raise ValueError(f"size is {size}: expected 0 to {STREAM_SIZE}")
        out = bytearray(size)
        self._fill(out, "bytes", 0, 1, None)
        found = builtins.bytes(out)
        out[:] = builtins.bytes(size)
        return found

    def __repr__(self) -> str:
        device = "cpu" if self._device is None else f"cuda:{self._device}"
        where = " without key"
        if self._keyed:
            where = f" stream {self._stream} position {self._position}"
        return f"<warpcipher.random.Generator {self._algorithm} {device}{where}>"


def _limits(dtype: str, low: int | None, high: int | None) -> tuple[int, int]:
    """The range of integers, within that of the dtype."""
    if dtype == "bool":
        least, end = 0, 2
    elif dtype in arrays.INTEGERS:
        bits = 8 * arrays.SIZES[dtype]
        least, end = (0, 1 << bits) if dtype[0] == "u" else (-1 << (bits - 1), 1 << (bits - 1))
    else:
        raise TypeError(f"dtype is {dtype}: expected integers or bool")
    low = least if low is None else low
    high = end if high is None else high
    for name, value in (("low", low), ("high", high)):
        if not hasattr(value, "__index__"):
            raise TypeError(f"{name} is {value!r}: expected an integer")
    if low >= high:
        raise ValueError(f"low is {low} and high {high}: expected low below high")
    if not least <= low < high <= end:
        raise ValueError(
            f"the range is {low} to {high - 1}: expected {least} to {end - 1} or a part ({dtype})"
        )
    return low.__index__(), high.__index__()

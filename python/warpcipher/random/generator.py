# SPDX-License-Identifier: Apache-2.0
"""`Generator`: random arrays that nobody can predict, and arrays that a key determines."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal, TypeAlias, TypeVar

from .. import _native
from .._types import Buffer, StreamLike
from ..arguments import parse_device, require_int, require_number
from . import arrays, discrete, parameters, parts
from .arrays import NewArray, Target, open_target
from .source import Source
from .streams import STREAM_SIZE

ArrayT = TypeVar("ArrayT")

Shape: TypeAlias = int | Sequence[int]


class Generator(Source):
    """A cryptographic generator of random arrays.

    key:       None: seeded by the operating system. Each call draws with a key of its
               own and replaces the generator's: earlier numbers cannot be found from the content of
               memory afterwards. Bytes-like of 32 bytes: everything is a function of the key, the
               stream and the position in it, on every engine and device alike.
    device:    where new arrays lie: "cpu", "cuda", "cuda:1" or the number of a GPU.
    algorithm: "chacha20" or "aes-256-ctr".
    stream:    only with a key: the number of the stream, 0 to 2^64 - 1. Streams of one key are
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

    dtype= of a method is a name, or a dtype or type of Python, NumPy, PyTorch or JAX.

    ValueError: a key of another length, an unknown name. TypeError: a dtype that cannot be filled.

    >>> from warpcipher.random import Generator
    >>> len(Generator().bytes(16))
    16
    >>> Generator(bytes(32)).bytes(8).hex()
    '76b8e0ada0f13d90'
    """

    __slots__ = ("_device", "_engine", "_library")

    @parameters.hinted
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
        if library is not None and library not in arrays.LIBRARIES:
            raise ValueError(
                f"library is {library!r}: expected one of {', '.join(arrays.LIBRARIES)}"
            )
        if not isinstance(engine, str):
            raise TypeError(f"engine is {engine!r}: expected 'auto' or a name of an engine")
        self._device = None if device is None else parse_device(device)
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

    def _fill(self, out: ArrayT, kind: str, first: Any, second: Any, stream: StreamLike) -> ArrayT:
        """Fills an array with numbers of a distribution, of these parameters."""
        view, dtype, elements, pointer = self._open(out, stream)
        if kind == "bytes":  # of which an element is one
            dtype, elements = "uint8", elements * arrays.SIZES[dtype]
        fill, key, cipher, engine = _native.random_fill, self._key, self._algorithm, self._engine
        if not self._keyed:
            # The lock is free: the native module replaces the key before it lets go of the GIL.
            self._enter()
            fill(view, kind, dtype, key, cipher, 0, 0, first, second, engine, pointer, True)
            return out
        size = elements * arrays.width_of(kind, dtype, first, second)
        before, begin = self._reserve(size)
        number = self._stream
        try:
            fill(view, kind, dtype, key, cipher, number, begin, first, second, engine, pointer)
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
        self, shape: object, dtype: Any, library: str | None, by_host: bool = False
    ) -> NewArray:
        name = arrays.choose_library(library or self._library, self._device)
        return NewArray(name, self._device, arrays.parse_shape(shape), dtype, by_host)

    def _made(
        self,
        fill: Callable[..., object],
        shape: object,
        dtype: Any,
        library: str | None,
        *parameters: Any,
        by_host: bool = False,
    ) -> Any:
        """A new array, as a method fills it."""
        new = self._new(shape, dtype, library, by_host)
        fill(new.to_fill, *parameters)
        return new.finish()

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
        low, high = parameters.limits(dtype, low, high)
        return self._fill(out, "integers", low, high, stream)

    @parameters.hinted
    def randint(
        self,
        low: int,
        high: int | None = None,
        shape: Shape = (),
        *,
        dtype: Any = "int64",
        library: str | None = None,
    ) -> Any:
        """A new array of integers from low to high - 1; from 0 to low - 1 where high is None."""
        if high is None:
            low, high = 0, low
        dtype = arrays.parse_dtype(dtype)
        low, high = parameters.limits(dtype, low, high)
        return self._made(self._fill, shape, dtype, library, "integers", low, high, None)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Shape | None = None,
        dtype: Any = "int64",
        endpoint: bool = False,
    ) -> Any:
        """As `randint`, by the names of NumPy's `integers`; endpoint: high is among them. One
        number where size is None."""
        if high is None:
            low, high = 0, require_int("low", low)
        high = require_int("high", high) + bool(endpoint)
        shape = () if size is None else size
        return parts.as_number(self.randint(low, high, shape, dtype=dtype), size)

    def random(self, size: Shape | None = None, dtype: Any = "float64", out: Any = None) -> Any:
        """As `uniform` on [0, 1), by the names of NumPy's `random`: one number where size is None;
        out is filled if it is given. (`random_` is PyTorch's word, for integers.)"""
        if out is None:
            return parts.as_number(self.uniform(() if size is None else size, dtype=dtype), size)
        arrays.dtype_of(out, "out")
        if size is not None and arrays.parse_shape(size) != tuple(out.shape):
            raise ValueError(f"size is {size}, and out has the shape {tuple(out.shape)}")
        return self.uniform_(out)

    def uniform_(
        self, out: ArrayT, low: float = 0.0, high: float = 1.0, *, stream: StreamLike = None
    ) -> ArrayT:
        """Fills an array of floats with low <= x < high.

        On [0, 1) these are the multiples of 2^-53 (float64), 2^-24 (float32), 2^-11 (float16) or
        2^-8 (bfloat16), each equally likely; other intervals are these, scaled and rounded.
        """
        low, high = require_number("low", low), require_number("high", high)
        return self._fill(out, "uniform", low, high, stream)

    @parameters.hinted
    def uniform(
        self,
        shape: Shape,
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: Any = "float32",
        library: str | None = None,
    ) -> Any:
        """A new array, as `uniform_` fills it."""
        return self._made(self.uniform_, shape, dtype, library, low, high)

    def normal_(
        self, out: ArrayT, mean: Any = 0.0, std: Any = 1.0, *, stream: StreamLike = None
    ) -> ArrayT:
        """Fills an array of floats with normal numbers, by Box and Muller's method.

        mean, std: numbers; or arrays of out's library that broadcast to out's shape. That library
                   multiplies and adds them, on its current stream, and rounds once to out's dtype.

        Its floats lie on a grid that shows how they were made: see docs/guides/random.md before you
        use them for differential privacy, and `discrete_gaussian_`.
        """
        if not parameters.is_array(mean) and not parameters.is_array(std):
            mean, std = require_number("mean", mean), require_number("std", std)
            return self._fill(out, "normal", mean, std, stream)
        target = parameters.writable("mean or std", out, stream)
        # Copies: either may be `out`, or a part of it.
        mean = parameters.check("mean", mean, tuple(target.shape)) + 0
        std = parameters.check("std", std, tuple(target.shape)) + 0
        self._fill(out, "normal", 0.0, 1.0, None)
        target[...] = target * std + mean
        return out

    @parameters.hinted
    def normal(
        self,
        shape: Shape,
        mean: Any = 0.0,
        std: Any = 1.0,
        *,
        dtype: Any = "float32",
        library: str | None = None,
    ) -> Any:
        """A new array, as `normal_` fills it. mean, std: numbers, or arrays of that library."""
        new = self._new(shape, dtype, library)
        if new.library != "jax" or not (parameters.is_array(mean) or parameters.is_array(std)):
            self.normal_(new.to_fill, mean, std)
            return new.finish()
        mean = parameters.check("mean", mean, new.shape)
        std = parameters.check("std", std, new.shape)
        self.normal_(new.to_fill)
        made = new.finish()
        return (made * std + mean).astype(made.dtype)

    def exponential_(self, out: ArrayT, scale: float = 1.0, *, stream: StreamLike = None) -> ArrayT:
        """Fills an array of floats with exponential numbers of mean `scale`."""
        return self._fill(out, "exponential", require_number("scale", scale), 1, stream)

    @parameters.hinted
    def exponential(
        self, shape: Shape, scale: float = 1, *, dtype: Any = "float32", library: str | None = None
    ) -> Any:
        """A new array, as `exponential_` fills it."""
        return self._made(self.exponential_, shape, dtype, library, scale)

    def laplace_(
        self, out: ArrayT, mean: float = 0.0, scale: float = 1.0, *, stream: StreamLike = None
    ) -> ArrayT:
        """Fills an array of floats with numbers of Laplace's distribution: x with a density of
        exp(-|x - mean| / scale) / (2 scale).

        For differential privacy its floats have the flaw of `normal_`: use `discrete_laplace_`.
        """
        mean, scale = require_number("mean", mean), require_number("scale", scale)
        return self._fill(out, "laplace", mean, scale, stream)

    @parameters.hinted
    def laplace(
        self,
        shape: Shape,
        mean: float = 0.0,
        scale: float = 1.0,
        *,
        dtype: Any = "float32",
        library: str | None = None,
    ) -> Any:
        """A new array, as `laplace_` fills it."""
        return self._made(self.laplace_, shape, dtype, library, mean, scale)

    def bernoulli_(self, out: ArrayT, p: Any = 0.5, *, stream: StreamLike = None) -> ArrayT:
        """Fills an array of any dtype with 1 or 0; 1 with probability p.

        p: a number, taken to the nearest 2^-64; or an array of out's library that broadcasts to
           out's shape, taken to the next 2^-53: 8 bytes of the stream an element. It is read before
           anything is drawn, and on a GPU that waits for it.
        """
        if not parameters.is_array(p):
            return self._fill(out, "bernoulli", require_number("p", p), 1, stream)
        target = parameters.writable("p", out, stream)
        p = parameters.probabilities(p, tuple(target.shape))
        words = arrays.empty_like(target, tuple(target.shape), "float64")
        target[...] = self._fill(words, "uniform", 0.0, 1.0, None) < p
        return out

    @parameters.hinted
    def bernoulli(
        self, shape: Shape, p: Any = 0.5, *, dtype: Any = "bool", library: str | None = None
    ) -> Any:
        """A new array, as `bernoulli_` fills it. (An array p with JAX set to 32 bits is taken to
        the next 2^-24.)
        """
        new = self._new(shape, dtype, library)
        if new.library != "jax" or not parameters.is_array(p):
            self.bernoulli_(new.to_fill, p)
            return new.finish()
        p = parameters.probabilities(p, new.shape)
        x64 = arrays.jax.config.jax_enable_x64
        words = self.uniform(new.shape, dtype="float64" if x64 else "float32", library="jax")
        return (words < p).astype(new.dtype)

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

    def permutation(
        self, x: Any, *, axis: int = 0, dtype: Any = None, library: str | None = None
    ) -> Any:
        """x, an integer: a new array, as `permutation_` fills it (dtype None: int64). A list or an
        array: a copy of it whose parts along `axis` are in random order."""
        if isinstance(x, Integral):
            return self._made(self.permutation_, x, "int64" if dtype is None else dtype, library)
        if dtype is not None or library is not None:
            raise ValueError("x is not an integer: expected neither dtype nor library")
        return parts.permute(self, x, axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Puts the parts of a list, or of an array along `axis`, into random order, in place, as
        NumPy's. TypeError: it cannot be written to; `permutation` makes a copy."""
        parts.shuffle(self, x, axis)

    def choice(
        self, a: Any, size: Shape | None = None, replace: bool = True, p: Any = None, axis: int = 0
    ) -> Any:
        """Random parts of `a`, by the names of NumPy's `choice`.

        a:       an integer: numbers below it, in a new array of int64; a list or an array: parts of
                 it along `axis`.
        size:    the shape of the choice. None: one part.
        replace: whether a part may be chosen more than once. Those chosen are in random order.
        p:       the probability of each part. None: the same for all. The host computes with them.

        ValueError: `a` has too few parts (that are possible); p does not sum to 1.
        """
        return parts.choose(self, a, size, replace, p, axis)

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

        Exact: only integer arithmetic and random bits, no rounding anywhere (Canonne, Kamath and
        Steinke: The Discrete Gaussian for Differential Privacy, 2020, algorithms 1 to 3). So none
        of the attacks on noise in floating point applies. The time depends on the numbers drawn.
        NumPy computes it on the host, whatever the device of out.

        ValueError: sigma is not positive, more than 2^40, or 40 sigma do not fit out's dtype.
        """
        return self._sample(out, discrete.Gaussian(sigma, variance, arrays.dtype_of(out, "out")))

    def _sample(self, out: ArrayT, sampler: discrete.Sampler) -> ArrayT:
        _, dtype, elements, _ = self._open(out, None)

        def write(key: Buffer, number: int, position: int) -> None:
            parts = discrete.draw(sampler, elements, self._algorithm, key, number, position)
            arrays.store(out, dtype, parts)

        self._draw(8 * elements, write)
        return out

    @parameters.hinted
    def discrete_gaussian(
        self,
        shape: Shape,
        sigma: float | Fraction | None = None,
        *,
        variance: float | Fraction | None = None,
        dtype: Any = "int64",
        library: str | None = None,
    ) -> Any:
        """A new array, as `discrete_gaussian_` fills it."""
        new = self._new(shape, dtype, library, by_host=True)
        self.discrete_gaussian_(new.to_fill, sigma, variance=variance)
        return new.finish()

    def discrete_laplace_(self, out: ArrayT, scale: float | Fraction = 1) -> ArrayT:
        """Fills an array of integers with the discrete Laplace distribution of mean 0: x with a
        probability proportional to exp(-|x| / scale). Exact, as `discrete_gaussian_` is (the same
        paper, algorithm 2).

        scale: for differential privacy, the sensitivity over epsilon. Taken exactly as it is: a
               float is the fraction that it holds, so Fraction(1, 10) is not 0.1.

        ValueError: scale is not from 1/512 to 2^40, has a numerator of 2^53 or more, or does not
        fit out's dtype a hundred times.
        """
        return self._sample(out, discrete.Laplace(scale, arrays.dtype_of(out, "out")))

    @parameters.hinted
    def discrete_laplace(
        self,
        shape: Shape,
        scale: float | Fraction = 1,
        *,
        dtype: Any = "int64",
        library: str | None = None,
    ) -> Any:
        """A new array, as `discrete_laplace_` fills it."""
        fill = self.discrete_laplace_
        return self._made(fill, shape, dtype, library, scale, by_host=True)

    def bytes(self, size: int) -> builtins.bytes:
        """`size` random bytes, as a bytes object."""
        size = require_int("size", size, 0, STREAM_SIZE)
        try:
            out = bytearray(size)
            self._fill(out, "bytes", 0, 1, None)
            found = builtins.bytes(out)
            out[:] = builtins.bytes(size)
        except MemoryError:
            raise MemoryError(f"{size} bytes of memory") from None
        return found

    def __repr__(self) -> str:
        device = "cpu" if self._device is None else f"cuda:{self._device}"
        where = " without key"
        if self._keyed:
            where = f" stream {self._stream} position {self._position}"
        return f"<warpcipher.random.Generator {self._algorithm} {device}{where}>"

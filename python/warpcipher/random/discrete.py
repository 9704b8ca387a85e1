# SPDX-License-Identifier: Apache-2.0
"""The discrete Gaussian and the discrete Laplace distribution, exactly: C. Canonne, G. Kamath, T.
Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms 1 to 3, for many
elements side by side.

Every decision compares a real number 0.w0 w1 w2 ... in base 2^64, whose digits are random words,
with a fraction of integers. The first word settles nearly every one; where it does not, the next
does. So each happens with exactly its probability.

Word number n of an element is a function only of n and of the element's place in the stream: so
an array can be split anywhere. n says which decision it is for (`_number`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from .. import _later, _native
from .._types import Buffer
from .arrays import INTEGERS, SIZES
from .streams import DISCRETE, child_key

numpy: Any = _later.Module("numpy")

RUN = 1 << 15
"""Elements that are drawn side by side."""

FEW = 64
"""Elements up to which words are drawn one by one, and not for the whole run."""

MOST_SIGMA = 1 << 40
LEAST_SCALE = Fraction(1, 512)
"""Below, all numbers are 0 but with a probability of 2^-738."""

MOST_TOP = 1 << 53
"""Of the numerator of a Laplace distribution's scale: every float has a smaller one. It times 1024
is below 2^63."""

WORD = 1 << 64

# The purposes of an attempt's decisions.
OFFSET, OFFSET_KEPT, WHOLE, SIGN, ACCEPT_WHOLE, ACCEPT_REST = range(6)


def _number(attempt: int, purpose: int, turn: int = 0, k: int = 0) -> int:
    """The number of a word, whose lowest byte counts the words after the first. `turn` is of
    repeated draws of exp(-1), `k` of algorithm 1."""
    return attempt << 48 | purpose << 44 | turn << 24 | k << 8


def as_fraction(name: str, value: Any) -> Fraction:
    """The exact value of a number: a float is a fraction of integers. TypeError; ValueError: it is
    not finite."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError(f"{name} is {value!r}: expected int, float, Fraction or Decimal")
    number: Any = value
    try:
        if isinstance(value, Rational):  # NumPy's integers too
            top, bottom = number.numerator, number.denominator
        else:
            top, bottom = number.as_integer_ratio()
    except (OverflowError, ValueError):
        raise ValueError(f"{name} is {value}: expected a finite number") from None
    return Fraction(int(top), int(bottom))


def limit_of(dtype: str) -> int:
    """One more than the largest value of a dtype. TypeError: it is not of signed integers."""
    if dtype not in INTEGERS or dtype[0] == "u":
        raise TypeError(f"dtype is {dtype}: expected signed integers")
    return 1 << (8 * SIZES[dtype] - 1)


class Laplace:
    """A discrete Laplace distribution of scale t / s, checked."""

    def __init__(self, scale: Any, dtype: str) -> None:
        exact = as_fraction("scale", scale)
        if not LEAST_SCALE <= exact <= MOST_SIGMA:
            raise ValueError(f"scale is {scale}: expected 1/512 to 2^40")
        if 100 * exact >= limit_of(dtype):
            raise ValueError(f"scale is {scale}: 100 times that does not fit {dtype}")
        self.t, self.s = exact.numerator, exact.denominator
        if self.t >= MOST_TOP:
            raise ValueError(f"scale is {exact}: expected a numerator below 2^53")


class Gaussian:
    """A discrete Gaussian: its parameters as integers, checked.

    variance = a / b; t = floor(sigma) + 1.
    """

    s = 1

    def __init__(self, sigma: Any, variance: Any, dtype: str) -> None:
        if (sigma is None) == (variance is None):
            raise ValueError("expected one of sigma and variance")
        name, value = ("sigma", sigma) if variance is None else ("variance", variance)
        exact = as_fraction(name, value)
        square = exact if sigma is None else exact * exact
        if exact <= 0 or square > MOST_SIGMA**2:
            raise ValueError(f"{name} is {value}: expected sigma above 0 and up to 2^40")
        limit = limit_of(dtype)
        if 1600 * square >= limit * limit:
            raise ValueError(f"{name} is {value}: 40 sigma do not fit {dtype}")
        self.a, self.b = square.numerator, square.denominator
        self.t = math.isqrt(self.a // self.b) + 1
        self._thresholds: dict[tuple[int, int], tuple[int, int]] = {}

    def exponent(self, y: int) -> tuple[int, int, int]:
        """(y - sigma^2 / t)^2 / (2 sigma^2) of algorithm 3 as whole + rest / den."""
        den = 2 * self.a * self.b * self.t * self.t
        whole, rest = divmod((y * self.t * self.b - self.a) ** 2, den)
        return whole, rest, den

    def threshold(self, y: int, k: int) -> tuple[int, int]:
        """The first word of rest / (den k), and the rest of it as a numerator over den k."""
        found = self._thresholds.get((y, k))
        if found is None:
            if len(self._thresholds) > 1 << 16:
                self._thresholds.clear()
            _, rest, den = self.exponent(y)
            found = self._thresholds[y, k] = divmod(rest * WORD, den * k)
        return found


Sampler = Laplace | Gaussian


class Words:
    """Random words of the elements of a run, which begins at a position of the key's stream."""

    def __init__(self, algorithm: str, key: bytearray, begin: int, count: int) -> None:
        self._how = key, algorithm
        self._begin = begin
        self._memory = numpy.empty(count, numpy.uint64)

    def read(self, number: int, places: Any) -> Any:
        """The words of that number for these places."""
        if len(places) > FEW:
            self._fill(self._memory, number, 0)
            return self._memory[places]
        found = numpy.empty(len(places), numpy.uint64)
        for i, place in enumerate(places):
            self._fill(found[i : i + 1], number, 8 * int(place))
        return found

    def _fill(self, out: Any, number: int, at: int) -> None:
        _native.random_fill(out, "bytes", "uint64", *self._how, number, self._begin + at)

    def settle(self, number: int, place: int, numerator: int, denominator: int) -> bool:
        """Whether the rest of a real number is below a fraction, by the words after the first."""
        while True:
            number += 1
            numerator, rest = divmod(numerator * WORD, denominator)
            word = int(self.read(number, [place])[0])
            if word != numerator:
                return word < numerator
            numerator = rest


class Draw:
    """A distribution for the elements of one run."""

    def __init__(self, sampler: Sampler, words: Words, count: int) -> None:
        self._sampler = sampler
        self._words = words
        self._count = count

    def values(self) -> Any:
        """An int64 an element."""
        found = numpy.zeros(self._count, numpy.int64)
        waiting = numpy.arange(self._count)
        attempt = 0
        while waiting.size:
            taken, values = self._attempt(attempt, waiting)
            found[waiting[taken]] = values
            waiting = waiting[~taken]
            attempt += 1
        return found

    def _attempt(self, attempt: int, places: Any) -> tuple[Any, Any]:
        """Which of the places got a value, and the values."""
        sampler = self._sampler
        t = sampler.t
        # Algorithm 2, the discrete Laplace distribution of scale t / s.
        u = self._below(_number(attempt, OFFSET), places, t)
        index = numpy.flatnonzero(self._exp_offset(attempt, places, u))
        y = u[index].astype(numpy.int64) + t * self._count_exp(attempt, places[index])
        y //= sampler.s
        signs = self._words.read(_number(attempt, SIGN), places[index])
        negative = signs >> numpy.uint64(63) == 1
        kept = ~(negative & (y == 0))
        index, y, negative = index[kept], y[kept], negative[kept]
        if isinstance(sampler, Gaussian):  # algorithm 3: by rejection
            accepted = self._accept(attempt, places[index], y, sampler)
            index, y, negative = index[accepted], y[accepted], negative[accepted]
        taken = numpy.zeros(len(places), bool)
        taken[index] = True
        return taken, numpy.where(negative, -y, y)

    def _below(self, number: int, places: Any, t: int) -> Any:
        """Integers below t: the whole part of t times a real number."""
        high, low = multiply(self._words.read(number, places), t)
        # The words after the first can carry where low + t >= 2^64.
        for i in numpy.flatnonzero(low > numpy.uint64(WORD - t)) if t > 1 else ():
            left = WORD - int(low[i])
            high[i] += not self._words.settle(number, int(places[i]), left, t)
        return high

    def _less(self, number: int, places: Any, numerator: Any, denominator: int) -> Any:
        """Whether real numbers are below numerator / denominator, an array over an integer."""
        high, low = multiply(self._words.read(number, places), denominator)
        below = high < numerator
        close = below & (numerator - high == 1) & (low > numpy.uint64(WORD - denominator))
        for i in numpy.flatnonzero(close) if denominator > 1 else ():
            left = WORD - int(low[i])
            below[i] = self._words.settle(number, int(places[i]), left, denominator)
        return below

    def _exp(self, places: Any, below: Callable[[Any, int], Any]) -> Any:
        """Algorithm 1: true with probability exp(-x), 0 <= x <= 1. below(index, k): whether those
        of an index are below x / k."""
        found = numpy.zeros(len(places), bool)
        index = numpy.arange(len(places))
        k = 1
        while index.size:
            going = below(index, k)
            found[index[~going]] = k % 2 == 1
            index = index[going]
            k += 1
        return found

    def _exp_offset(self, attempt: int, places: Any, u: Any) -> Any:
        """exp(-u / t)."""
        t = self._sampler.t

        def below(index: Any, k: int) -> Any:
            return self._less(_number(attempt, OFFSET_KEPT, 0, k), places[index], u[index], t * k)

        return self._exp(places, below)

    def _exp_one(self, attempt: int, purpose: int, turn: int, places: Any) -> Any:
        """exp(-1)."""

        def below(index: Any, k: int) -> Any:
            if k == 1:  # 1 / 1
                return numpy.ones(len(index), bool)
            one = numpy.ones(len(index), numpy.uint64)
            return self._less(_number(attempt, purpose, turn, k), places[index], one, k)

        return self._exp(places, below)

    def _count_exp(self, attempt: int, places: Any) -> Any:
        """How often in a row exp(-1) was true."""
        found = numpy.zeros(len(places), numpy.int64)
        index = numpy.arange(len(places))
        turn = 0
        while index.size:
            index = index[self._exp_one(attempt, WHOLE, turn, places[index])]
            found[index] += 1
            turn += 1
        return found

    def _accept(self, attempt: int, places: Any, y: Any, sampler: Gaussian) -> Any:
        """exp(-x) of algorithm 3's exponent: exp(-1) as often as it is whole, then the rest."""
        values, inverse = numpy.unique(y, return_inverse=True)
        values = values.tolist()
        wholes = [min(sampler.exponent(value)[0], 1 << 20) for value in values]
        whole = numpy.array(wholes, numpy.int64)[inverse] if values else numpy.zeros(0, numpy.int64)
        alive = numpy.ones(len(places), bool)
        turn = 0
        while (index := numpy.flatnonzero(alive & (whole > turn))).size:
            alive[index] = self._exp_one(attempt, ACCEPT_WHOLE, turn, places[index])
            turn += 1
        index = numpy.flatnonzero(alive)
        alive[index] = self._exp_rest(attempt, places[index], values, inverse[index], sampler)
        return alive

    def _exp_rest(
        self, attempt: int, places: Any, values: list[int], which: Any, sampler: Gaussian
    ) -> Any:

        def below(index: Any, k: int) -> Any:
            number = _number(attempt, ACCEPT_REST, 0, k)
            needed, inverse = numpy.unique(which[index], return_inverse=True)
            pairs = [sampler.threshold(values[i], k) for i in needed.tolist()]
            words = self._words.read(number, places[index])
            limit = numpy.array([pair[0] for pair in pairs], numpy.uint64)[inverse]
            found = words < limit
            for i in numpy.flatnonzero(words == limit):
                y = values[int(needed[inverse[i]])]
                left = pairs[int(inverse[i])][1]
                denominator = sampler.exponent(y)[2] * k
                found[i] = self._words.settle(number, int(places[index[i]]), left, denominator)
            return found

        return self._exp(places, below)


def multiply(a: Any, b: int) -> tuple[Any, Any]:
    """The upper and the lower word of a b; a: an array of uint64, b below 2^63."""
    u64 = numpy.uint64
    mask, half = u64(0xFFFFFFFF), u64(32)
    a0, a1 = a & mask, a >> half
    b0, b1 = u64(b & 0xFFFFFFFF), u64(b >> 32)
    p01, p10 = a0 * b1, a1 * b0
    middle = (a0 * b0 >> half) + (p01 & mask) + (p10 & mask)
    return a1 * b1 + (p01 >> half) + (p10 >> half) + (middle >> half), a * u64(b)


def draw(
    sampler: Sampler, count: int, algorithm: str, key: Buffer, stream: int, position: int
) -> Iterator[Any]:
    """The values of `count` elements at a position, run after run, as arrays of int64."""
    own = child_key(algorithm, key, stream, DISCRETE)
    try:
        for begin in range(0, count, RUN):
            size = min(RUN, count - begin)
            words = Words(algorithm, own, position + 8 * begin, size)
            yield Draw(sampler, words, size).values()
    finally:
        own[:] = bytes(len(own))

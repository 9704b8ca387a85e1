# SPDX-License-Identifier: Apache-2.0
"""`discrete_gaussian_`: its distribution, its decisions word by word, and what it refuses."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from warpcipher.random import Generator, discrete, streams

KEY = bytes(range(32))
WORD = 1 << 64


def exact(sigma2: Fraction, most: int) -> dict[int, float]:
    """The probabilities, by the sum of the definition."""
    weights = {x: math.exp(-x * x / (2 * float(sigma2))) for x in range(-most, most + 1)}
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


@pytest.mark.parametrize(
    "sigma", [0.05, Fraction(1, 3), 1, 1.1, Decimal("2.5"), Fraction(22, 7), 17, 100]
)
def test_chi_square(sigma: Any) -> None:
    """One error in 10^9 for a right sampler: the bound is that quantile of a normal number, by the
    approximation of Wilson and Hilferty. The key is fixed, so it passes always or never."""
    found = Generator(KEY).discrete_gaussian(40_000, sigma)
    variance = Fraction(sigma) ** 2
    check_counts(found, exact(variance, 12 * math.ceil(sigma) + 2))


def check_counts(found: Any, expected: dict[int, float]) -> None:
    count = len(found)
    values, counts = np.unique(found, return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    square, cells, rest = 0.0, 0, 0.0
    rest_seen = count
    for x, p in expected.items():
        if p * count < 10:
            rest += p
            continue
        square += (seen.get(x, 0) - p * count) ** 2 / (p * count)
        rest_seen -= seen.get(x, 0)
        cells += 1
    if rest * count > 10:
        square += (rest_seen - rest * count) ** 2 / (rest * count)
        cells += 1
    elif rest * count < 1e-3:
        assert rest_seen == 0
    freedom = cells - 1
    if freedom == 0:
        assert square == 0
        return
    bound = freedom * (1 - 2 / (9 * freedom) + 6.0 * math.sqrt(2 / (9 * freedom))) ** 3
    assert square < bound


@pytest.mark.parametrize(
    "scale",
    [Fraction(1, 512), Fraction(1, 3), 0.7, np.float32(1.5), Decimal("2.5"), 17, np.int8(3)],
)
def test_chi_square_of_laplace(scale: Any) -> None:
    """As above. The probability of x is tanh(1 / 2 scale) exp(-|x| / scale)."""
    inverse = 1 / float(scale)
    most = 40 * math.ceil(scale)
    expected = {
        x: math.tanh(inverse / 2) * math.exp(-abs(x) * inverse) for x in range(-most, most + 1)
    }
    check_counts(Generator(KEY).discrete_laplace(40_000, scale), expected)


def test_laplace_is_exact() -> None:
    """One number after the other by algorithm 2, from the same words."""
    t, s = 7, 3
    generator = Generator(KEY)
    key = streams.child_key("chacha20", KEY, 0, streams.DISCRETE)

    def real(place: int, *number: int) -> Fraction:
        """A real number to 2^-64, which is enough for these."""
        source = Generator(key, stream=discrete._number(*number))
        source.jump(8 * place // 64 * 64)
        return Fraction(int(source.random_(np.empty(8, np.uint64))[place % 8]), WORD)

    def is_exp(place: int, attempt: int, purpose: int, turn: int, x: Fraction) -> bool:
        k = 1
        while real(place, attempt, purpose, turn, k) < x / k if (k, x) != (1, 1) else True:
            k += 1
        return k % 2 == 1

    def value(place: int) -> int:
        for attempt in range(1000):
            u = math.floor(real(place, attempt, discrete.OFFSET) * t)
            if not is_exp(place, attempt, discrete.OFFSET_KEPT, 0, Fraction(u, t)):
                continue
            v = 0
            while is_exp(place, attempt, discrete.WHOLE, v, Fraction(1)):
                v += 1
            y = (u + t * v) // s
            negative = real(place, attempt, discrete.SIGN) >= Fraction(1, 2)
            if not (negative and y == 0):
                return -y if negative else y
        raise AssertionError("a thousand attempts")

    found = generator.discrete_laplace(60, Fraction(t, s))
    assert found.tolist() == [value(place) for place in range(60)]


@pytest.mark.parametrize("sigma", [np.float32(2), np.int64(2), np.float64(2), Decimal(2), 2.0])
def test_sigma_of_any_number(sigma: Any) -> None:
    expected = Generator(KEY).discrete_gaussian(100, 2)
    assert (Generator(KEY).discrete_gaussian(100, sigma) == expected).all()


@pytest.mark.parametrize("sigma", [1 << 20, 1e6 + 0.1, Fraction(10**9, 7)])
def test_moments_of_wide_ones(sigma: Any) -> None:
    """Mean and variance within 6.1 standard errors: one error in 10^9 each."""
    x = Generator(KEY).discrete_gaussian(4000, sigma).astype(np.float64) / float(sigma)
    assert abs(x.mean()) < 6.1 / math.sqrt(len(x))
    assert abs(x.var() - 1) < 6.1 * math.sqrt(2 / len(x))


def test_variance_is_sigma_squared() -> None:
    by_sigma = Generator(KEY).discrete_gaussian(500, Fraction(5, 2))
    assert (Generator(KEY).discrete_gaussian(500, variance=Fraction(25, 4)) == by_sigma).all()
    two = Generator(KEY).discrete_gaussian(20_000, variance=2).astype(float)  # sigma: no fraction
    assert abs(two.var() - 2) < 6.1 * 2 * math.sqrt(2 / len(two))


def test_it_is_made_chunk_by_chunk_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Generator(KEY).discrete_gaussian(3000, 3)
    monkeypatch.setattr(discrete, "RUN", 128)
    assert (Generator(KEY).discrete_gaussian(3000, 3) == whole).all()
    monkeypatch.setattr(discrete, "FEW", 0)
    assert (Generator(KEY).discrete_gaussian(3000, 3) == whole).all()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_dtypes_hold_the_same(dtype: str) -> None:
    out = Generator(KEY).discrete_gaussian(1000, 1.5, dtype=dtype)
    assert out.dtype == dtype
    assert (out == Generator(KEY).discrete_gaussian(1000, 1.5)).all()


# ---- decisions, word by word


class Told(discrete.Words):
    """Words that a test says: by the number, and 2^63 elsewhere."""

    def __init__(self, words: dict[int, int]) -> None:
        self.words = words

    def read(self, number: int, places: Any) -> Any:
        return np.array([self.words.get(number, 1 << 63)] * len(places), np.uint64)


def told(words: dict[int, int], sigma: Any = 3) -> discrete.Draw:
    return discrete.Draw(discrete.Gaussian(sigma, None, "int64"), Told(words), 1)


@pytest.mark.parametrize("t", [2, 3, 10, (1 << 40) - 1])
def test_below_is_the_whole_part_of_the_real_number(t: int) -> None:
    for first in (0, 1, WORD // t, -(-WORD // t), WORD - 1, WORD // 2):
        for second in (0, 1 << 63, WORD - 1):
            got = told({0: first, 1: second})._below(0, np.array([0]), t)[0]
            # The words after the second are 2^63.
            real = Fraction(first, WORD) + Fraction(second, WORD**2) + Fraction(1, 2 * WORD**2)
            assert got == math.floor(real * t)


@pytest.mark.parametrize(("p", "q"), [(0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (5, 7), (1, 1 << 45)])
def test_less_compares_the_real_number(p: int, q: int) -> None:
    near = p * WORD // q
    for first in {0, min(near, WORD - 1), max(near - 1, 0), min(near + 1, WORD - 1), WORD - 1}:
        for second in {0, 1 << 62, (p * WORD**2 // q) % WORD, WORD - 1}:
            draw = told({0: first, 1: second, 2: 0})
            got = draw._less(0, np.array([0]), np.array([p], np.uint64), q)[0]
            real = Fraction(first, WORD) + Fraction(second, WORD**2)
            assert got == (real < Fraction(p, q))


def test_a_tie_in_the_last_step_takes_the_next_word() -> None:
    sampler = discrete.Gaussian(3, None, "int64")
    y = 4
    word, left = sampler.threshold(y, 1)
    number = discrete._number(0, discrete.ACCEPT_REST, 0, 1)
    turning = left * WORD // sampler.exponent(y)[2]
    for second, below in ((turning - 1, True), (turning + 1, False)):
        words = Told({number: word, number + 1: second})
        # The second comparison, of k = 2, is never below: exp(-x) is true where the first is not.
        words.words[discrete._number(0, discrete.ACCEPT_REST, 0, 2)] = WORD - 1
        draw = discrete.Draw(sampler, words, 1)
        drawn = draw._exp_rest(0, np.array([0]), [y], np.array([0]), sampler)
        assert drawn[0] == (not below)


def test_thresholds_are_exact() -> None:
    sampler = discrete.Gaussian(1.1, None, "int64")
    square = Fraction(1.1) ** 2
    assert (Fraction(sampler.a, sampler.b), sampler.t) == (square, 2)
    for y in (0, 1, 5, 40):
        whole, rest, den = sampler.exponent(y)
        assert whole + Fraction(rest, den) == (y - square / 2) ** 2 / (2 * square)
        assert 0 <= rest < den


def test_products_of_words() -> None:
    words = np.array([0, 1, (1 << 32) - 1, 1 << 32, 0xFEDCBA9876543210, WORD - 1], np.uint64)
    for factor in (1, 3, (1 << 32) - 1, 1 << 32, (1 << 45) + 12345, (1 << 63) - 1):
        high, low = discrete.multiply(words, factor)
        for i, word in enumerate(words.tolist()):
            assert (int(high[i]) << 64) + int(low[i]) == word * factor


@pytest.mark.parametrize(
    ("sigma", "variance", "dtype", "error", "says"),
    [
        (None, None, "int64", ValueError, "one of sigma and variance"),
        (1, 1, "int64", ValueError, "one of sigma and variance"),
        (0, None, "int64", ValueError, "sigma is 0: expected sigma above 0"),
        (-1.0, None, "int64", ValueError, "sigma is -1.0"),
        (None, -2, "int64", ValueError, "variance is -2"),
        (math.nan, None, "int64", ValueError, "finite"),
        (math.inf, None, "int64", ValueError, "finite"),
        ((1 << 40) + 1, None, "int64", ValueError, "up to 2\\^40"),
        (4, None, "int8", ValueError, "40 sigma do not fit int8"),
        ("3", None, "int64", TypeError, "expected int, float, Fraction"),
        (True, None, "int64", TypeError, "expected int, float, Fraction"),
        (1, None, "uint64", TypeError, "expected signed integers"),
        (1, None, "float32", TypeError, "expected signed integers"),
    ],
)
def test_refusals(sigma: Any, variance: Any, dtype: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Generator().discrete_gaussian(3, sigma, variance=variance, dtype=dtype)


@pytest.mark.parametrize(
    ("scale", "dtype", "error", "says"),
    [
        (0, "int64", ValueError, "scale is 0: expected 1/512 to 2\\^40"),
        (-1, "int64", ValueError, "scale is -1"),
        (math.inf, "int64", ValueError, "finite"),
        ((1 << 40) + 1, "int64", ValueError, "to 2\\^40"),
        (2, "int8", ValueError, "100 times that does not fit int8"),
        (Fraction(1 << 54, (1 << 54) - 1), "int64", ValueError, "numerator below 2\\^53"),
        ("3", "int64", TypeError, "expected int, float, Fraction"),
        (1, "uint8", TypeError, "expected signed integers"),
    ],
)
def test_refusals_of_laplace(scale: Any, dtype: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Generator().discrete_laplace(3, scale, dtype=dtype)

# SPDX-License-Identifier: Apache-2.0
"""Whether the numbers are distributed as they should be.

Keys are fixed: a test passes always or never. Each bound is one that a right generator exceeds with
probability below 10^-9, for a key that nobody chose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from warpcipher.random import Generator

KEY = bytes(range(100, 132))
COUNT = 200_000
Z = 6.1
"""A normal number is beyond with probability 10^-9."""

ALGORITHMS = pytest.mark.parametrize("algorithm", ["chacha20", "aes-256-ctr"])


def kolmogorov_smirnov(x: Any, cdf: Callable[[Any], Any]) -> float:
    """sqrt(n) times the largest distance of the distribution functions. Above 3.3 with probability
    2 exp(-2 3.3^2) < 10^-9."""
    x = np.sort(np.asarray(x, np.float64))
    expected = cdf(x)
    after = np.arange(1, len(x) + 1) / len(x)
    return float(math.sqrt(len(x)) * max((after - expected).max(), (expected - after).max() + 1e-9))


def chi_square_is_usual(counts: Any, expected: Any) -> bool:
    """By the approximation of Wilson and Hilferty."""
    square = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    limit = freedom * (1 - 2 / (9 * freedom) + Z * math.sqrt(2 / (9 * freedom))) ** 3
    return square < limit


normal_cdf = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))


@ALGORITHMS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform(algorithm: Any, dtype: str) -> None:
    x = Generator(KEY, algorithm=algorithm).uniform(COUNT, dtype=dtype)
    assert kolmogorov_smirnov(x, lambda x: x) < 3.3
    assert 0 <= x.min() <= x.max() < 1


@ALGORITHMS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(algorithm: Any, dtype: str) -> None:
    x = Generator(KEY, algorithm=algorithm).normal(COUNT, 3.0, 2.0, dtype=dtype)
    x = (x.astype(np.float64) - 3) / 2
    assert kolmogorov_smirnov(x, normal_cdf) < 3.3
    # Standard errors of the first four moments of a normal number.
    n = len(x)
    assert abs(x.mean()) < Z / math.sqrt(n)
    assert abs((x**2).mean() - 1) < Z * math.sqrt(2 / n)
    assert abs((x**3).mean()) < Z * math.sqrt(15 / n)
    assert abs((x**4).mean() - 3) < Z * math.sqrt(96 / n)
    # The two of a pair are independent.
    assert abs((x[0::2] * x[1::2]).mean()) < Z / math.sqrt(n / 2)
    assert abs((x[0::2] ** 2 * x[1::2] ** 2).mean() - 1) < Z * math.sqrt(8 / (n / 2))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_normal_has_tails(dtype: str) -> None:
    x = Generator(KEY).normal(2_000_000, dtype=dtype).astype(np.float64)
    for bound in (3.0, 4.0):
        expected = len(x) * math.erfc(bound / math.sqrt(2))
        assert abs((np.abs(x) > bound).sum() - expected) < Z * math.sqrt(expected) + 1
    assert np.isfinite(x).all()


@ALGORITHMS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponential(algorithm: Any, dtype: str) -> None:
    x = Generator(KEY, algorithm=algorithm).exponential(COUNT, 0.5, dtype=dtype)
    assert kolmogorov_smirnov(x, lambda x: -np.expm1(-2 * x)) < 3.3
    assert x.min() > 0


@ALGORITHMS
def test_bytes_and_their_pairs(algorithm: Any) -> None:
    text = np.frombuffer(Generator(KEY, algorithm=algorithm).bytes(4_000_000), np.uint8)
    assert chi_square_is_usual(np.bincount(text, minlength=256), len(text) / 256)
    pairs = text.view("<u2")
    assert chi_square_is_usual(np.bincount(pairs, minlength=65536), len(pairs) / 65536)
    bits = np.unpackbits(text).astype(np.int8)
    assert abs(bits.mean() - 0.5) < Z / (2 * math.sqrt(len(bits)))
    for lag in (1, 8, 32, 512):
        same = (bits[lag:] == bits[:-lag]).mean()
        assert abs(same - 0.5) < Z / (2 * math.sqrt(len(bits) - lag))


@ALGORITHMS
@pytest.mark.parametrize("p", [1e-4, 0.1, 0.5, 0.9])
def test_bernoulli(algorithm: Any, p: float) -> None:
    x = Generator(KEY, algorithm=algorithm).bernoulli(COUNT, p)
    assert abs(x.mean() - p) < Z * math.sqrt(p * (1 - p) / COUNT) + Z / COUNT


@ALGORITHMS
@pytest.mark.parametrize(("low", "high"), [(0, 6), (-3, 250), (0, 1000)])
def test_integers(algorithm: Any, low: int, high: int) -> None:
    x = Generator(KEY, algorithm=algorithm).randint(low, high, COUNT)
    counts = np.bincount(x - low, minlength=high - low)
    assert len(counts) == high - low
    assert chi_square_is_usual(counts, COUNT / (high - low))


@ALGORITHMS
def test_permutations_of_four_are_equally_likely(algorithm: Any) -> None:
    generator = Generator(KEY, algorithm=algorithm)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        found = tuple(generator.permutation(4).tolist())
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 24
    assert chi_square_is_usual(np.array(list(counts.values())), 6000 / 24)


def test_permutation_is_one_and_has_no_order() -> None:
    x = Generator(KEY).permutation(COUNT)
    assert (np.sort(x) == np.arange(COUNT)).all()
    fixed = int((x == np.arange(COUNT)).sum())
    assert fixed <= 12  # Poisson of mean 1: 13 or more with probability below 10^-9
    rising = int((np.diff(x) > 0).sum())
    assert abs(rising - (COUNT - 1) / 2) < Z * math.sqrt(COUNT / 12)


def words_of(span: int, bits: int) -> dict[int, int]:
    """How many first words that are kept give each value, by the definition."""
    least = (1 << bits) % span
    counts = dict.fromkeys(range(span), 0)
    for word in range(1 << bits):
        if (word * span) % (1 << bits) >= least:
            counts[word * span >> bits] += 1
    return counts


@pytest.mark.parametrize("span", [1, 2, 3, 5, 6, 7, 10, 100, 255])
def test_ranges_have_no_bias_at_all(span: int) -> None:
    """The rule of the definition, on words of 16 bits, gives each value as many words. The tests of
    test_random.py compare the generator with the same rule on 32 and 64 bits."""
    assert len(set(words_of(span, 16).values())) == 1


def test_ranges_of_small_types_cover_all() -> None:
    for dtype, low, high in (("int8", -128, 128), ("uint8", 0, 255), ("bool", 0, 2)):
        x = Generator(KEY).random_(np.empty(50_000, dtype), low, high).astype(int)
        counts = np.bincount(x - low, minlength=high - low)
        assert chi_square_is_usual(counts, len(x) / (high - low))


def test_streams_and_keys_are_independent() -> None:
    first = Generator(KEY).normal(COUNT, dtype="float64")
    others = [
        Generator(KEY, stream=1),
        Generator(KEY, algorithm="aes-256-ctr"),
        Generator(KEY).spawn(1)[0],
        Generator(bytes([KEY[0] ^ 1]) + KEY[1:]),
    ]
    for other in others:
        drawn = other.normal(COUNT, dtype="float64")
        assert abs((first * drawn).mean()) < Z / math.sqrt(COUNT)


def test_words_of_32_bits_of_uniform_floats() -> None:
    """All 2^24 floats of the grid: 2^26 draws would meet each; these meet the share they should."""
    count = 1 << 22
    x = Generator(KEY).uniform(count)
    met = np.zeros(1 << 24, bool)
    met[(x * 2.0**24).astype(np.int64)] = True
    assert (x * 2.0**24 == np.floor(x * 2.0**24)).all()
    expected = 2**24 * -math.expm1(-count / 2**24)
    assert abs(met.sum() - expected) < Z * math.sqrt(expected)

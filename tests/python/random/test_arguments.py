# SPDX-License-Identifier: Apache-2.0
"""Arguments of `warpcipher.random.Generator`: what it refuses, fills and takes as NumPy does."""

from __future__ import annotations

import array
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import random_oracle as oracle
from warpcipher.random import BitGenerator, Generator

KEY = bytes(range(32))
POINTERS = np.array([object() for _ in range(4)])
"""32 bytes, as a key has, but they are addresses."""


def keyed() -> Generator:
    return Generator(KEY)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Generator(bytes(31)), ValueError, "the key has 31 bytes: expected 32"),
        (lambda: Generator(algorithm="aes-128-ctr"), ValueError, "expected one of chacha20, aes-2"),
        (lambda: Generator(stream=1), ValueError, "there is no key"),
        (lambda: Generator(KEY, stream=-1), ValueError, "stream is -1"),
        (lambda: Generator(KEY, stream=1.5), TypeError, "stream is float: expected an int"),
        (lambda: Generator(KEY, stream=1 << 64), ValueError, r"expected 0 to 2\^64 - 1"),
        (lambda: Generator(POINTERS), TypeError, "the key holds Python objects"),
        (lambda: Generator(np.array(["abcdefgh"])), TypeError, "the key holds text"),
        (lambda: Generator(np.zeros(64, np.uint8)[::2]), BufferError, "not C-contiguous"),
        (lambda: Generator("a" * 32), TypeError, "the key is str: expected bytes-like"),
        (lambda: BitGenerator(POINTERS), TypeError, "the key holds Python objects"),
        (lambda: Generator(KEY, "tpu"), ValueError, "device is 'tpu': expected 'cpu'"),
        (lambda: Generator(KEY, -1), ValueError, "device is -1"),
        (lambda: Generator(library="tensorflow"), ValueError, "expected one of numpy, torch"),
        (lambda: Generator(library="cupy").bernoulli(1), ValueError, "device is cpu"),
        (lambda: Generator().uniform(-1), ValueError, "no negative extent"),
        (lambda: Generator().uniform("3"), TypeError, "expected an integer or several"),
        (lambda: Generator().uniform(3, dtype="complex64"), ValueError, "dtype is 'complex64'"),
        (lambda: Generator().uniform(3, dtype="int8"), ValueError, "int8"),
        (lambda: Generator().randint(5, 5), ValueError, "low is 5 and high 5"),
        (lambda: Generator().uniform(3, dtype=">f4"), ValueError, "dtype is '>f4'"),
        (lambda: Generator().uniform(3, dtype=None), ValueError, "dtype is None: expected one of"),
        (lambda: Generator().uniform(3, dtype=np.complex64), ValueError, "expected one of bool"),
        (lambda: Generator().normal(0.0, 1.0, 3), TypeError, "the shape is the first argument"),
        (lambda: Generator().normal(3, None), TypeError, "mean is NoneType: expected a number"),
        (lambda: Generator().exponential(3, "1"), TypeError, "scale is str: expected a number"),
        (lambda: Generator().bernoulli(3, "1"), TypeError, "p is str: expected a number"),
        (lambda: Generator().laplace(3, 0, 1j), TypeError, "scale is complex: expected a number"),
        (
            lambda: Generator().uniform_(np.empty(3), None, 1),
            TypeError,
            "low is NoneType: expected",
        ),
        (
            lambda: Generator().uniform_(np.empty(3), [1], 2),
            TypeError,
            "low is list: expected a nu",
        ),
        (lambda: Generator().uniform_(np.empty(3), 10**400), ValueError, "low is an integer too l"),
        (lambda: Generator(engine=3), TypeError, "engine is 3: expected 'auto'"),  # type: ignore[arg-type]
        (
            lambda: Generator(seed=42),
            TypeError,
            r"^Generator\(\) has no argument 'seed': .*32 secr",
        ),  # type: ignore[call-arg]
        (lambda: Generator(sed=42), TypeError, "unexpected keyword argument 'sed'"),  # type: ignore[call-arg]
        (
            lambda: Generator().normal(size=3),
            TypeError,
            r"normal\(\) has no argument 'size': .*shape",
        ),  # type: ignore[call-arg]
        (lambda: Generator().normal(3, loc=3), TypeError, "no argument 'loc': expected mean"),  # type: ignore[call-arg]
        (lambda: Generator().normal(3, scale=3), TypeError, "no argument 'scale': expected std"),  # type: ignore[call-arg]
        (lambda: Generator().permutation("abc"), TypeError, "an integer, a list or an array"),
        (lambda: Generator().permutation([1, 2], axis=1), ValueError, "x has 1 dimensions"),
        (
            lambda: Generator().permutation([1, 2], dtype=int),
            ValueError,
            "neither dtype nor library",
        ),
        (lambda: Generator().shuffle((1, 2)), TypeError, r"use permutation\(\)"),
        (lambda: Generator().integers(2.5), TypeError, "low is float: expected an int"),
        (lambda: Generator().random(3, out=np.empty(2)), ValueError, "out has the shape"),
        (lambda: Generator().randint(0.5), TypeError, "expected an integer"),
        (lambda: Generator().randint(3, dtype="float32"), TypeError, "expected integers or bool"),
        (lambda: Generator().permutation(3, dtype="int16"), TypeError, "expected int32 or int64"),
        (lambda: Generator().bytes(-1), ValueError, "size is -1"),
        (lambda: Generator().bytes(1.5), TypeError, "size is float: expected an int"),
        (lambda: Generator().bytes(1 << 50), MemoryError, "1125899906842624 bytes of memory"),
        (lambda: Generator().bytes(1 << 64), ValueError, "size is 18446744073709551616: expected"),
        (lambda: Generator().spawn(-1), ValueError, "count is -1"),
        (lambda: Generator().spawn(1.5), TypeError, "count is float: expected an int"),
        (lambda: Generator().state, TypeError, "without a key has no state"),
        (lambda: Generator().jump(1), TypeError, "without a key has no position"),
        (lambda: keyed().reseed(), TypeError, "has a key"),
    ],
)
def test_refusals(make: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


@pytest.mark.parametrize("name", ["jump", "spawn", "bytes"])
@pytest.mark.parametrize("value", [1.5, None, "1", -1, 1 << 70])
def test_a_refused_number_moves_nothing(name: str, value: object) -> None:
    generator = keyed()
    before = generator.state
    with pytest.raises((TypeError, ValueError)):
        getattr(generator, name)(value)
    assert generator.state == before


@pytest.mark.parametrize(
    ("out", "error", "says"),
    [
        (np.empty(8, np.float32)[::2], BufferError, "not C-contiguous"),
        (np.empty((3, 4), np.float32).T, BufferError, "not C-contiguous"),
        (np.empty(3, ">f4"), TypeError, "byte order of this machine"),
        (np.empty(3, object), TypeError, "out is of object"),
        (np.ma.zeros(3), BufferError, "out is a masked array"),
        (np.empty(3, np.complex64), TypeError, "out is of complex64"),
        (b"abc", BufferError, "read-only"),
        (memoryview(b"abc"), BufferError, "read-only"),
        (None, TypeError, "NoneType"),
        ([1.0], TypeError, "list"),
    ],
)
def test_what_cannot_be_filled(out: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Generator().bytes_(out)


def test_a_read_only_array_stays_as_it_is() -> None:
    out = np.zeros(100, np.float32)
    out.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        Generator().normal_(out)
    assert not out.any()


def test_buffers_of_python() -> None:
    expected = keyed().uniform(5, dtype="float64")
    out = array.array("d", [0.0] * 5)
    assert keyed().uniform_(out) is out
    assert list(out) == expected.tolist()
    data = bytearray(16)
    keyed().random_(memoryview(data))
    assert bytes(data) == keyed().bytes(16)


def test_an_init_that_fails_is_one_error() -> None:
    unraisable: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        for wrong in ({"seed": 42}, {"sed": 42}, {"device": "tpu"}, {"engine": 3}):
            with pytest.raises((TypeError, ValueError)):
                Generator(**wrong)  # type: ignore[arg-type]
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert unraisable == []


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.float32, "float32"),
        (np.dtype("float64"), "float64"),
        (float, "float64"),
        ("f2", "float16"),
        (np.double, "float64"),
    ],
)
def test_dtypes_of_others(dtype: Any, name: str) -> None:
    expected = keyed().uniform(9, dtype=name)
    found = keyed().uniform(9, dtype=dtype)
    assert found.dtype == name
    assert (found == expected).all()
    assert keyed().randint(2, shape=3, dtype=bool).dtype == bool
    assert keyed().randint(2, shape=3, dtype=np.uint16).dtype == np.uint16
    assert keyed().permutation(3, dtype=np.int32).dtype == np.int32
    assert keyed().discrete_gaussian(3, 1, dtype=int).dtype == np.int64


def test_arrays_of_parameters() -> None:
    mean = np.array([10.0, 20.0, 1000.1])
    plain = keyed().normal((2, 3), dtype="float16")
    found = keyed().normal((2, 3), mean, 0.5, dtype="float16")
    assert found.dtype == np.float16
    assert (found == (plain * 0.5 + mean).astype(np.float16)).all()
    moved = (keyed().normal((2, 3)) + np.array([1, 2, 3])).astype(np.float32)
    assert (keyed().normal((2, 3), [1, 2, 3]) == moved).all()
    out = np.array([1.0, 2.0, 4.0])
    expected = keyed().normal(3, out, out[::-1].copy(), dtype="float64")
    assert (keyed().normal_(out, out, out[::-1]) == expected).all()
    # NumPy repeats the same noise in each row of a result larger than asked for.
    with pytest.raises(ValueError, match=r"mean has the shape \(4, 3\): expected one that broad"):
        keyed().normal(3, np.zeros((4, 3)))
    with pytest.raises(BufferError, match="mean is a masked array"):
        keyed().normal(3, np.ma.array([1, 2, 3], mask=[0, 1, 0]))
    p = np.array([0.0, 0.25, 1.0])
    ones = keyed().bernoulli((20_000, 3), p)
    assert ones.dtype == bool
    assert (
        ones == (oracle.unit(KEY, "chacha20", 0, 0, 60_000, "float64").reshape(-1, 3) < p)
    ).all()
    out = np.empty((20_000, 3), np.float32)
    assert keyed().bernoulli_(out, p) is out
    assert (out == ones).all()
    assert (keyed().bernoulli((20_000, 3), p.tolist()) == ones).all()
    with pytest.raises(TypeError, match="expected an array of NumPy"):
        keyed().bernoulli_(bytearray(3), p)


def test_permutations_of_parts() -> None:
    order = keyed().permutation(5)
    assert (keyed().permutation([10, 11, 12, 13, 14]) == order + 10).all()
    words = keyed().permutation(("a", "b", "c", "d", "e"))
    assert words.tolist() == ["abcde"[i] for i in order]
    x = np.arange(20).reshape(4, 5)
    assert (keyed().permutation(x, axis=1) == x[:, order]).all()
    assert (keyed().permutation(x, axis=-1) == x[:, order]).all()
    assert (x == np.arange(20).reshape(4, 5)).all()
    shuffled = x.copy()
    keyed().shuffle(shuffled, 1)
    assert (shuffled == x[:, order]).all()
    for made in (list("abcde"), bytearray(b"abcde"), array.array("i", [97, 98, 99, 100, 101])):
        parts = list(made)
        keyed().shuffle(made)
        assert list(made) == [parts[i] for i in order]
    keyed().shuffle([])


def test_names_of_numpy() -> None:
    assert (keyed().integers(3, 9, (2, 5)) == keyed().randint(3, 9, (2, 5))).all()
    assert (keyed().integers(3, 8, 7, endpoint=True) == keyed().randint(3, 9, 7)).all()
    assert (keyed().integers(9, size=7) == keyed().randint(9, shape=7)).all()
    assert (keyed().random((2, 3)) == keyed().uniform((2, 3), dtype="float64")).all()
    out = np.empty(3, np.float32)
    assert keyed().random(out=out) is out
    assert (out == keyed().random(3, np.float32)).all()
    assert isinstance(keyed().integers(5), np.int64)
    assert isinstance(keyed().random(), float)


def test_choice() -> None:
    assert (keyed().choice(9, (2, 5)) == keyed().randint(9, shape=(2, 5))).all()
    picked = keyed().choice(["x", "y", "z"], 100)
    assert (picked == np.array(["x", "y", "z"])[keyed().randint(3, shape=100)]).all()
    assert keyed().choice(["x", "y", "z"]) in ("x", "y", "z")
    rows = np.arange(12).reshape(4, 3)
    assert (keyed().choice(rows) == rows[keyed().randint(4)]).all()
    assert (keyed().choice(rows, 2, axis=1) == rows[:, keyed().randint(3, shape=2)]).all()
    assert (keyed().choice(9, (2, 4), replace=False).ravel() == keyed().permutation(9)[:8]).all()
    assert sorted(keyed().choice(rows, 4, replace=False)[:, 0]) == [0, 3, 6, 9]
    assert keyed().choice(0, 0).shape == (0,)
    # Three bounds of one error in 10^9 each: z = 6.1.
    p = np.array([0.5, 0.0, 0.3, 0.2])
    count = 40_000
    counts = np.bincount(keyed().choice(4, count, p=p), minlength=4)
    assert (np.abs(counts - count * p) <= 6.1 * np.sqrt(count * p * (1 - p))).all()
    # Two of them in turn, each by its share of what is left.
    generator = keyed()
    pairs = np.array([generator.choice(4, 2, False, p) for _ in range(4000)])
    for first, second in ((0, 2), (2, 0), (3, 2)):
        chance = p[first] * p[second] / (1 - p[first])
        found = (pairs == (first, second)).all(1).sum()
        assert abs(found - 4000 * chance) < 6.1 * np.sqrt(4000 * chance * (1 - chance))
    assert (pairs != 1).all()


def test_shapes_and_means() -> None:
    assert keyed().normal((2, 3), dtype="float64").shape == (2, 3)
    assert keyed().uniform(()).shape == ()
    mean, std = np.array([[10.0], [20.0]]), np.array([1.0, 2.0, 3.0])
    plain = keyed().normal((2, 3), dtype="float64")
    assert np.allclose(keyed().normal((2, 3), mean, std, dtype="float64"), plain * std + mean)
    out = np.empty((2, 3))
    assert keyed().normal_(out, mean, std) is out
    assert np.allclose(out, plain * std + mean)
    with pytest.raises(ValueError, match="expected stream=None"):
        keyed().normal_(out, mean, std, stream=1)

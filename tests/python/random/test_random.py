# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.random.Generator`: its numbers are those of the definition (random_oracle), in any
split and by any engine; its arguments."""

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

ALGORITHMS = ["chacha20", "aes-256-ctr"]
ENGINES = ["auto", "reference"]


def keyed(
    algorithm: str = "chacha20", position: int = 0, stream: int = 0, **options: Any
) -> Generator:
    made = Generator(KEY, algorithm=algorithm, stream=stream, **options)  # type: ignore[arg-type]
    made.jump(position)
    return made


# ---- the definition


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("position", [0, 64, 1 << 31, (1 << 38) - 64, (1 << 56) - 1024])
def test_bytes_are_the_stream(algorithm: str, engine: str, position: int) -> None:
    got = keyed(algorithm, position, 5, engine=engine).bytes(777)
    assert got == oracle.words(KEY, algorithm, 5, position, 777).tobytes()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -128, 128),
        ("int8", -100, 101),
        ("uint8", 0, 256),
        ("bool", 0, 2),
        ("int16", -1000, 32768),
        ("uint16", 3, 4),
        ("int32", -(1 << 31), 1 << 31),
        ("int32", -5, (1 << 20) - 5),
        ("uint32", 0, (1 << 32) - 1),
        ("int64", -(1 << 63), 1 << 63),
        ("int64", -(1 << 62), (1 << 62) + 1),
        ("uint64", 1, 1 << 64),
        ("uint64", 0, (1 << 63) + 1),
    ],
)
def test_integers(algorithm: str, engine: str, dtype: str, low: int, high: int) -> None:
    out = np.empty(501, dtype)
    assert keyed(algorithm, 128, engine=engine).random_(out, low, high) is out
    expected = oracle.integers(KEY, algorithm, 0, 128, 501, dtype, low, high)
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform(algorithm: str, dtype: str) -> None:
    out = keyed(algorithm).uniform(1001, dtype=dtype)
    expected = oracle.unit(KEY, algorithm, 0, 0, 1001, dtype)
    assert out.dtype == dtype
    assert (out.astype(np.float64) == expected).all()
    wide = keyed(algorithm).uniform(1001, -3.0, 5.0, dtype=dtype).astype(np.float64)
    assert np.abs(wide - (expected * 8 - 3)).max() <= 4 * np.finfo(dtype).eps
    assert wide.max() < 5.0


def test_uniform_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    out = np.empty(1000, ml_dtypes.bfloat16)
    keyed().uniform_(out)
    assert (out.astype(np.float64) == oracle.unit(KEY, "chacha20", 0, 0, 1000, "bfloat16")).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_bernoulli(algorithm: str, p: float) -> None:
    out = keyed(algorithm).bernoulli(1000, p)
    assert (out == oracle.bernoulli(KEY, algorithm, 0, 0, 1000, p)).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_permutation(algorithm: str) -> None:
    for count in (0, 1, 2, 1000):
        out = keyed(algorithm).permutation(count, dtype="int32")
        assert (out == oracle.permutation(KEY, algorithm, 0, 0, count)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_follow_the_words(dtype: str) -> None:
    """Box and Muller's method and the inverse function, in float64 by NumPy."""
    width = 8 if dtype == "float64" else 4
    drawn = oracle.words(KEY, "chacha20", 0, 0, 1000 * width).view(f"<u{width}")
    unit = (drawn.astype(np.float64) + 0.5) / 2.0 ** (8 * width)
    near = 1e-5 if dtype == "float32" else 1e-10
    assert np.allclose(keyed().exponential(1000, 2.0, dtype=dtype), -2 * np.log(unit), near, near)
    # Laplace's: the last bit is the sign, and those above it are the word of an exponential number.
    upper = (drawn.astype(np.float64) - drawn % 2 + 1) / 2.0 ** (8 * width)
    size = np.log(upper) * np.where(drawn % 2 == 1, 1, -1)
    assert np.allclose(keyed().laplace(1000, 5.0, 2.0, dtype=dtype), 5 + 2 * size, near, near)
    got = keyed().normal(1000, dtype=dtype).astype(np.float64)
    squares = got[0::2] ** 2 + got[1::2] ** 2
    assert np.allclose(squares, -2 * np.log(unit[0::2]), near, near)


# ---- splits, streams and positions


FILLS: dict[str, tuple[str, int, Callable[[Generator, Any], Any]]] = {
    "bytes": ("uint8", 1, lambda g, x: g.bytes_(x)),
    "bytes of words": ("int64", 8, lambda g, x: g.bytes_(x)),
    "integers": ("int16", 4, lambda g, x: g.random_(x, -5, 1000)),
    "uniform": ("float16", 2, lambda g, x: g.uniform_(x)),
    "normal": ("float32", 4, lambda g, x: g.normal_(x, 1.0, 3.0)),
    "normal double": ("float64", 8, lambda g, x: g.normal_(x)),
    "exponential": ("float64", 8, lambda g, x: g.exponential_(x)),
    "laplace": ("float32", 4, lambda g, x: g.laplace_(x, 1.0, 0.5)),
    "bernoulli": ("int8", 4, lambda g, x: g.bernoulli_(x, 0.25)),
    "discrete": ("int32", 8, lambda g, x: g.discrete_gaussian_(x, 3)),
    "discrete laplace": ("int32", 8, lambda g, x: g.discrete_laplace_(x, 2.5)),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", list(FILLS))
def test_any_split_gives_the_same(name: str, algorithm: str) -> None:
    dtype, width, fill = FILLS[name]
    whole = fill(keyed(algorithm), np.empty(1024, dtype))
    for begin in (64 // width, 512, 960):
        part = fill(keyed(algorithm, begin * width), np.empty(1024 - begin, dtype))
        assert (part == whole[begin:]).all()


@pytest.mark.parametrize("name", list(FILLS))
@pytest.mark.parametrize("count", [0, 1, 3, 31, 1001])
def test_lengths_and_alignments(name: str, count: int) -> None:
    dtype, _, fill = FILLS[name]
    expected = fill(keyed(), np.empty(1001, dtype))[:count]
    memory = np.full(count * np.dtype(dtype).itemsize + 2, 0xEE, np.uint8)
    odd = memory[1:-1].view(dtype)
    assert not odd.flags.aligned or np.dtype(dtype).itemsize == 1 or count == 0
    assert fill(keyed(), odd) is odd
    assert (odd == expected).all()
    assert memory[0] == memory[-1] == 0xEE


@pytest.mark.parametrize("name", list(FILLS))
def test_arrays_never_share_bytes_of_the_stream(name: str) -> None:
    dtype, width, fill = FILLS[name]
    generator = keyed()
    fill(generator, np.empty(100, dtype))
    assert generator.state["position"] == 100 * width


def test_arrays_begin_at_multiples_of_64() -> None:
    generator = keyed()
    first, second = generator.bytes(3), generator.bytes(5)
    text = oracle.words(KEY, "chacha20", 0, 0, 128).tobytes()
    assert (first, second) == (text[:3], text[64:69])
    assert generator.state["position"] == 69


def test_jump_and_state() -> None:
    generator = keyed(stream=3)
    generator.jump(1 << 40)
    before = generator.state
    assert before == {"algorithm": "chacha20", "stream": 3, "position": 1 << 40, "spawned": 0}
    drawn = generator.normal(5)
    generator.state = before
    assert (generator.normal(5) == drawn).all()
    for size in (-1, 1 << 56):
        with pytest.raises(ValueError, match="to the end of the stream"):
            generator.jump(size)


def test_a_stream_ends() -> None:
    generator = keyed(position=(1 << 56) - 64)
    with pytest.raises(ValueError, match="a stream has 2\\^56"):
        generator.bytes(65)
    assert len(generator.bytes(64)) == 64
    assert generator.bytes(0) == b""
    with pytest.raises(ValueError, match="a stream has 2\\^56"):
        generator.bytes(1)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"algorithm": "aes-256-ctr", "stream": 0, "position": 0, "spawned": 0},
        {"algorithm": "chacha20", "stream": -1, "position": 0, "spawned": 0},
        {"algorithm": "chacha20", "stream": 0, "position": (1 << 56) + 1, "spawned": 0},
        {"algorithm": "chacha20", "stream": 0, "position": 0, "spawned": "1"},
    ],
)
def test_a_wrong_state_is_refused(state: dict[str, Any]) -> None:
    generator = keyed()
    with pytest.raises(ValueError, match="state"):
        generator.state = state
    assert generator.bytes(4) == keyed().bytes(4)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_spawned_generators_are_functions_of_key_stream_and_number(algorithm: str) -> None:
    parent = keyed(algorithm)
    children = [child.bytes(16) for child in (*parent.spawn(2), *parent.spawn(1))]
    assert children == [child.bytes(16) for child in keyed(algorithm).spawn(3)]
    others = [keyed(algorithm, stream=1).spawn(1)[0].bytes(16), keyed(algorithm).bytes(16)]
    assert len({*children, *others}) == 5
    block = 3 << 62
    text = b"".join(oracle.blocks(KEY, algorithm, 0, block + 2 * i, 2) for i in range(2))
    if algorithm == "chacha20":
        text = b"".join(oracle.blocks(KEY, algorithm, 0, block + i, 1)[:32] for i in range(2))
    child = Generator(text[32:], algorithm=algorithm)  # type: ignore[arg-type]
    assert child.bytes(16) == children[1]


def test_an_error_moves_nothing() -> None:
    generator = keyed()
    for refused in (
        lambda: generator.normal_(np.empty(4, np.float32), 0.0, -1.0),
        lambda: generator.uniform_(np.empty(4, np.float32), 2.0, 1.0),
        lambda: generator.bernoulli_(np.empty(4, np.int8), 1.5),
        lambda: generator.bernoulli_(np.empty(4, np.int8), np.full(4, np.nan)),
        lambda: generator.bernoulli_(np.empty(4, np.int8), np.full(3, 0.5)),
        lambda: generator.normal_(np.empty(4), np.zeros((2, 4))),
        lambda: generator.normal((4,), np.zeros(4), np.zeros((2, 1))),
        lambda: generator.laplace_(np.empty(4, np.float32), 0.0, 0.0),
        lambda: generator.discrete_laplace(4, 0),
        lambda: generator.choice(3, p=[0.5, 0.25, 0.5]),
        lambda: generator.choice(3, 2, replace=False, p=[0.0, 0.0, 1.0]),
        lambda: generator.choice(3, 4, replace=False),
        lambda: generator.choice([], 1),
        lambda: generator.exponential_(np.empty(4, np.float32), 0.0),
        lambda: generator.random_(np.empty(4, np.int8), 0, 129),
    ):
        with pytest.raises(ValueError, match="expected"):
            refused()
    assert generator.state["position"] == 0


# ---- arguments


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
        (lambda: Generator().bytes(1 << 64), ValueError, "size is 18446744073709551616: expected"),
        (lambda: Generator().spawn(-1), ValueError, "count is -1"),
        (lambda: Generator().spawn(1.5), TypeError, "count is float: expected an int"),
        (lambda: Generator().state, TypeError, "without a key has no state"),
        (lambda: Generator().jump(1), TypeError, "without a key has no position"),
        (lambda: Generator(KEY).reseed(), TypeError, "has a key"),
    ],
)
def test_refusals(make: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


@pytest.mark.parametrize("name", ["jump", "spawn", "bytes"])
@pytest.mark.parametrize("value", [1.5, None, "1", -1, 1 << 70])
def test_a_refused_number_moves_nothing(name: str, value: object) -> None:
    generator = Generator(KEY)
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
    # NumPy repeats the same noise in each row of a result larger than asked for.
    with pytest.raises(ValueError, match=r"mean has the shape \(4, 3\): expected one that broad"):
        keyed().normal(3, np.zeros((4, 3)))
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


def test_more_than_2_to_32_words() -> None:
    """A position beyond them; the array itself would take 16 GiB."""
    begin = 4 << 32
    out = keyed(position=begin - 64).random_(np.empty(64, np.uint32))
    words = oracle.words(KEY, "chacha20", 0, begin - 64, 256).view("<u4")
    assert (out == words).all()

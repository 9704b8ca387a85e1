# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.random.Generator`: its numbers follow the definition (random_oracle), in any
split and by any engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import random_oracle as oracle
from warpcipher.random import Generator

KEY = bytes(range(32))

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


def test_more_than_2_to_32_words() -> None:
    """A position beyond them; the array itself would take 16 GiB."""
    begin = 4 << 32
    out = keyed(position=begin - 64).random_(np.empty(64, np.uint32))
    words = oracle.words(KEY, "chacha20", 0, begin - 64, 256).view("<u4")
    assert (out == words).all()

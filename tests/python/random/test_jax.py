# SPDX-License-Identifier: Apache-2.0
"""Random keys of JAX by ChaCha20: on demand, where JAX is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax")

import warpcipher.random.jax as of_jax  # noqa: E402
from warpcipher.random import Generator  # noqa: E402

KEY = bytes(range(32))


def drawn(bits: Any) -> bytes:
    return np.asarray(bits).tobytes()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits_are_those_of_the_generator(dtype: str, count: int) -> None:
    size = count * np.dtype(dtype).itemsize
    key = of_jax.key(KEY)
    assert drawn(jax.random.bits(key, (count,), dtype)) == Generator(KEY).bytes(size)
    compiled = jax.jit(lambda key: jax.random.bits(key, (count,), dtype))
    assert drawn(compiled(key)) == Generator(KEY).bytes(size)


def test_bits_of_64() -> None:
    with jax.enable_x64(True):
        got = jax.random.bits(of_jax.key(KEY), (33,), "uint64")
    assert drawn(got) == Generator(KEY).bytes(264)


def test_split_gives_the_keys_of_spawn() -> None:
    keys = jax.random.split(of_jax.key(KEY), 5)
    spawned = Generator(KEY).spawn(5)
    for key, child in zip(keys, spawned, strict=True):
        assert drawn(jax.random.bits(key, (4,))) == child.bytes(16)


def test_it_is_traceable() -> None:
    def program(key: Any) -> Any:
        first, second = jax.random.split(key)
        index = jax.lax.fori_loop(0, 3, lambda i, k: jax.random.fold_in(k, i), second)
        return jax.random.normal(first, (4,)), jax.random.uniform(index, (4,))

    key = of_jax.key(KEY)
    for plain, compiled in zip(program(key), jax.jit(program)(key), strict=True):
        assert np.allclose(plain, compiled)
    keys = jax.random.split(key, 3)
    mapped = jax.vmap(lambda k: jax.random.bits(k, (8,)))(keys)
    assert drawn(mapped) == b"".join(drawn(jax.random.bits(k, (8,))) for k in keys)


def test_keys_differ() -> None:
    key = of_jax.key(KEY)
    keys = [key, *jax.random.split(key, 3), *(jax.random.fold_in(key, i) for i in range(3))]
    keys += [jax.random.key(seed, impl=of_jax.implementation()) for seed in (0, 1, -1)]
    keys += [of_jax.key(), of_jax.key()]
    bits = [drawn(jax.random.bits(k, (8,))) for k in keys]
    assert len(set(bits)) == len(bits)


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="the key has 16 bytes: expected 32"):
        of_jax.key(bytes(16))


def test_normal_numbers() -> None:
    x = np.asarray(jax.random.normal(of_jax.key(KEY), (50_000,)), np.float64)
    assert abs(x.mean()) < 6.1 / np.sqrt(len(x))
    assert abs(x.var() - 1) < 6.1 * np.sqrt(2 / len(x))


def test_new_arrays_are_of_jax() -> None:
    made = Generator(KEY, library="jax").normal((3, 5))
    assert isinstance(made, jax.Array)
    assert (np.asarray(made) == Generator(KEY).normal((3, 5))).all()
    whole = Generator(KEY, library="jax").discrete_gaussian(7, 2, dtype="int32")
    assert (np.asarray(whole) == Generator(KEY).discrete_gaussian(7, 2)).all()
    with pytest.raises(ValueError, match="set to 32 bits"):
        Generator(library="jax").normal(3, dtype="float64")


def test_arguments_and_parts_of_jax() -> None:
    made = Generator(KEY, library="jax")
    mean = jax.numpy.arange(3.0)
    half = made.normal((2, 3), mean, 2, dtype=jax.numpy.float16)
    assert half.dtype == jax.numpy.float16
    with pytest.raises(ValueError, match="mean has the shape"):
        made.normal(3, jax.numpy.zeros((2, 3)))
    p = jax.numpy.array([0.0, 0.5, 1.0])
    ones = np.asarray(made.bernoulli((200, 3), p, dtype="int32"))
    assert ones.dtype == np.int32
    assert ones[:, 0].sum() == 0 < ones[:, 1].sum() < ones[:, 2].sum() == 200
    rows = jax.numpy.arange(12).reshape(4, 3)
    expected = np.asarray(rows)[Generator(KEY).permutation(4)]
    assert (np.asarray(Generator(KEY).permutation(rows)) == expected).all()
    chosen = Generator(KEY).choice(rows, 3)
    assert (np.asarray(chosen) == Generator(KEY).choice(np.asarray(rows), 3)).all()
    with pytest.raises(TypeError, match=r"use permutation\(\)"):
        Generator().shuffle(rows)


def test_arrays_of_jax_cannot_be_filled() -> None:
    with pytest.raises(BufferError, match="cannot be written to"):
        Generator().normal_(jax.numpy.zeros(3))

# SPDX-License-Identifier: Apache-2.0
"""ChaCha20 as an implementation of JAX's random keys, traceable by `jit`, `vmap` and the rest.

    import jax
    import warpcipher.random.jax

    key = warpcipher.random.jax.key()              # 256 bits of the operating system
    jax.random.normal(key, (3,))
    jax.random.key(7, impl=warpcipher.random.jax.implementation())

The bits of a key are the same as of `Generator(key)` at position 0 of stream 0, and
`jax.random.split` gives the keys of `Generator(key).spawn`. It is jax.numpy, compiled by XLA: for
long arrays outside of `jit`, `Generator` is faster.
"""

from __future__ import annotations

import functools
import math
import os
from typing import Any

from .. import _later
from .._types import Buffer
from ..arguments import view_bytes
from .streams import KEY_DOMAIN

jax: Any = _later.Module("jax")
jnp: Any = _later.Module("jax.numpy")
lax: Any = _later.Module("jax.lax")
numpy: Any = _later.Module("numpy")

# "expand 32-byte k", RFC 8439, section 2.3.
CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)

SPLIT = KEY_DOMAIN
"""Number of the first key of `split`, as of `Generator.spawn`."""

FOLD = KEY_DOMAIN + (1 << 61)
"""Of the first key of `fold_in`."""

SEED = KEY_DOMAIN + (1 << 61) + (1 << 60)
"""Of the key that a seed makes of the key 0 || seed."""


def _quarter_round(x: list[Any], a: int, b: int, c: int, d: int) -> None:
    """RFC 8439, section 2.1, on words side by side."""

    def rotated(value: Any, count: int) -> Any:
        return value << count | value >> (32 - count)

    x[a] = x[a] + x[b]
    x[d] = rotated(x[d] ^ x[a], 16)
    x[c] = x[c] + x[d]
    x[b] = rotated(x[b] ^ x[c], 12)
    x[a] = x[a] + x[b]
    x[d] = rotated(x[d] ^ x[a], 8)
    x[c] = x[c] + x[d]
    x[b] = rotated(x[b] ^ x[c], 7)


def _double_round(_: Any, state: Any) -> Any:
    x = list(state)
    for i in range(4):
        _quarter_round(x, i, 4 + i, 8 + i, 12 + i)
    for i in range(4):
        _quarter_round(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return tuple(x)


def _blocks(key: Any, low: Any, high: Any) -> Any:
    """Blocks of stream 0 by the two words of their numbers: the shape of `low`, and 16 words."""
    shape = low.shape
    words = [jnp.full(shape, value, jnp.uint32) for value in CONSTANTS]
    words += [jnp.broadcast_to(key[i], shape) for i in range(8)]
    words += [low, jnp.broadcast_to(high, shape)]
    words += [jnp.zeros(shape, jnp.uint32)] * 2
    done = lax.fori_loop(0, 10, _double_round, tuple(words))
    return jnp.stack([a + b for a, b in zip(done, words, strict=True)], axis=-1)


def _halves(value: Any) -> tuple[Any, Any]:
    """The lower and the upper 32 bits of an integer of JAX."""
    value = jnp.asarray(value)
    low = value.astype(jnp.uint32)
    if value.dtype.itemsize == 8:
        return low, (value >> 32).astype(jnp.uint32)
    return low, jnp.zeros_like(low)


def _seed(seed: Any) -> Any:
    low, high = _halves(seed)
    key = jnp.concatenate([jnp.zeros(6, jnp.uint32), low.reshape(1), high.reshape(1)])
    number = jnp.uint32(SEED & 0xFFFFFFFF), jnp.uint32(SEED >> 32)
    return _blocks(key, *number)[..., :8]


def _split(key: Any, shape: tuple[int, ...]) -> Any:
    index = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    return _blocks(key, index, jnp.uint32(SPLIT >> 32))[..., :8]


def _fold_in(key: Any, data: Any) -> Any:
    low, _ = _halves(data)
    return _blocks(key, low, jnp.uint32(FOLD >> 32))[..., :8]


def _random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    count = math.prod(shape)
    blocks = -(-count * bit_width // 512)
    if blocks >= 1 << 32:
        raise ValueError(f"an array of {count} elements of {bit_width} bits: expected below 2^41")
    index = jnp.arange(blocks, dtype=jnp.uint32)
    words = _blocks(key, index, jnp.uint32(0)).reshape(-1)
    if bit_width < 32:
        dtype = {8: jnp.uint8, 16: jnp.uint16}[bit_width]
        words = lax.bitcast_convert_type(words, dtype).reshape(-1)
    elif bit_width == 64:
        pairs = words.reshape(-1, 2).astype(jnp.uint64)
        words = pairs[:, 0] | pairs[:, 1] << 32
    return words[:count].reshape(shape)


@functools.cache
def implementation() -> Any:
    """The implementation, for the `impl` argument of `jax.random.key` and `wrap_key_data`.

    A seed has at most 64 bits; without `jax_enable_x64` 32: for numbers that nobody can predict
    take `key`. ImportError: JAX is missing.
    """
    return _later.Module("jax.extend.random").define_prng_impl(
        key_shape=(8,),
        seed=_seed,
        split=_split,
        random_bits=_random_bits,
        fold_in=_fold_in,
        name="warpcipher_chacha20",
        tag="wcc",
    )


def key(key: Buffer | None = None) -> Any:
    """A random key of JAX, of 32 bytes; None: new ones of the operating system."""
    data = os.urandom(32) if key is None else view_bytes("the key", key)
    if len(data) != 32:
        raise ValueError(f"the key has {len(data)} bytes: expected 32, or None for a new one")
    words = jnp.asarray(numpy.frombuffer(data, "<u4"))
    return jax.random.wrap_key_data(words, impl=implementation())

# SPDX-License-Identifier: Apache-2.0
"""Every usable engine against somebody else's code (see conformance_oracle): sizes at every edge,
counters that wrap, tags and paddings that are wrong; tests/fuzz has what is random."""

from __future__ import annotations

import functools

import conformance as c
import conformance_oracle as oracle
import pytest
import warpcipher as wc
from conformance_vectors import Vector

every_target = pytest.mark.parametrize("target", c.TARGETS, ids=str)
every_engine = pytest.mark.parametrize("engine", c.ENGINES)
every_algorithm = pytest.mark.parametrize("algorithm", c.ALGORITHMS)
AEADS = [name for name, info in c.ALGORITHMS.items() if info.is_aead]
GCMS = [name for name in AEADS if name.endswith("-gcm")]
PADDED = [name for name, info in c.ALGORITHMS.items() if info.takes_padding]
XTS = [name for name in c.ALGORITHMS if name.endswith("-xts")]
CTR = [name for name in c.ALGORITHMS if name.endswith("-ctr")]

TILE_UNITS = 256

make = functools.lru_cache(maxsize=None)(c.make_vector)


def placements(engine: str) -> tuple[c.Placement, ...]:
    """The `reference` engine is slow, and has no code that looks at addresses."""
    return c.PLACEMENTS[2:4] if engine == "reference" else c.PLACEMENTS[:4]


def edges(algorithm: str) -> list[int]:
    """Sizes around blocks, tiles, and what an engine may cut a long message into."""
    block = c.ALGORITHMS[algorithm].block_size
    tile = TILE_UNITS * block
    near = [0, block, 2 * block, 8 * block, 32 * block, 1024]
    near += [tile * k for k in (1, 2, 3, 7, 8, 16)] + [1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 20]
    sizes = {base + step for base in near for step in (-block - 1, -block, -1, 0, 1, block)}
    return sorted({c.allowed_size(algorithm, size) for size in sizes if 0 <= size <= c.MAX_SIZE})


@every_algorithm
@every_target
def test_sizes_at_every_edge(target: c.Target, algorithm: str) -> None:
    limit = c.longest(target.engine, algorithm)
    vectors = [make(algorithm, f"edge {s}", s) for s in edges(algorithm) if s <= limit]
    small = [v for v in vectors if len(v.text) < 5000]
    large = [v for v in vectors if len(v.text) >= 5000]
    places = placements(target.engine) if target.engine == "reference" else c.PLACEMENTS
    for i, placement in enumerate(places):
        c.check(target, small + large[i :: len(places)], placement, "batch")
    c.check(target, small + large[::3], c.PLACEMENTS[2], "each")


@pytest.mark.parametrize("algorithm", XTS)
@every_target
def test_xts_steals_at_every_length(target: c.Target, algorithm: str) -> None:
    tile = TILE_UNITS * 16
    around = [edge + step for edge in (tile, 2 * tile, 3 * tile) for step in range(-17, 34)]
    vectors = [make(algorithm, f"stealing {size}", size) for size in [*range(16, 65), *around]]
    for placement in placements(target.engine):
        c.check(target, vectors, placement, "batch")


@pytest.mark.parametrize("algorithm", PADDED)
@every_target
def test_padding_of_every_length(target: c.Target, algorithm: str) -> None:
    tile = TILE_UNITS * c.ALGORITHMS[algorithm].block_size
    sizes = [*range(50), *range(tile - 17, tile + 18), 3 * tile, 3 * tile + 1]
    vectors = [make(algorithm, f"padded {size}", size, padding="pkcs7") for size in sizes]
    for placement in placements(target.engine):
        for runner in ("each", "columns"):
            c.check(target, vectors, placement, runner)


# --- counters -------------------------------------------------------------------------------------

BEFORE_WRAP = (0, 1, 2, 255, 256, 257, 300)
"""How many blocks a message begins before its counter wraps."""


@pytest.mark.parametrize("algorithm", CTR)
@every_target
def test_ctr_carries_through_all_its_bits(target: c.Target, algorithm: str) -> None:
    """SP 800-38A, appendix B.1 with m = 128: the counter is the whole block, and wraps to zero."""
    vectors = []
    for width in (8, 16, 32, 64, 96, 128):
        for before in BEFORE_WRAP:
            high = int.from_bytes(oracle.painted(f"{width} {before}", 16), "big") >> width << width
            counter = high | ((1 << width) - 1 - before) % (1 << width)
            iv = counter.to_bytes(16, "big")
            vectors.append(make(algorithm, f"carry {width} {before}", 10_007, iv=iv))
    for placement in c.PLACEMENTS[:3]:
        c.check(target, vectors, placement, "batch")


@pytest.mark.parametrize("algorithm", GCMS)
@every_target
def test_gcm_counter_wraps_within_32_bits(target: c.Target, algorithm: str) -> None:
    """SP 800-38D, section 6.2: inc32 leaves the upper 96 bits alone."""
    key = oracle.painted("key wrap", c.ALGORITHMS[algorithm].key_size)
    vectors = []
    for before in BEFORE_WRAP:
        counter = oracle.painted("counter", 12) + (0xFFFFFFFF - before).to_bytes(4, "big")
        iv = gcm_iv(key, counter)
        text = oracle.painted(f"wrap {before}", 10_007)
        data = oracle.encrypt(algorithm, key, text, iv, b"aad")
        vectors.append(Vector(f"wrap {before}", algorithm, key, iv, b"aad", text, data))
    for placement in c.PLACEMENTS[:3]:
        c.check(target, vectors, placement, "batch")


@functools.cache
def gcm_iv(key: bytes, counter: bytes) -> bytes:
    return oracle.iv_for_counter(key, counter)


@pytest.mark.parametrize("algorithm", AEADS)
@every_target
def test_aads_of_every_length(target: c.Target, algorithm: str) -> None:
    lengths = [*range(34), 127, 128, 129, 4095, 4096, 4097, 20_000]
    vectors = [
        make(algorithm, f"aad {n} {size}", size, aad=oracle.painted("aad", n))
        for n in lengths
        for size in (0, 5, 64)
    ]
    for runner in c.RUNNERS:
        c.check(target, vectors, c.PLACEMENTS[2], runner)


@pytest.mark.parametrize("algorithm", GCMS)
@every_target
def test_gcm_nonces_and_tags_of_every_length(target: c.Target, algorithm: str) -> None:
    lengths = [*range(1, 34), 47, 48, 49, 63, 64, 65, 127, 128]
    vectors = [
        make(algorithm, f"nonce {n}", 33, iv=oracle.painted(f"nonce {n}", n)) for n in lengths
    ]
    vectors += [
        make(algorithm, f"tag {n} {size}", size, tag_length=n)
        for n in (4, 8, 12, 13, 14, 15, 16)
        for size in (0, 5, 64, 5000)
    ]
    for runner in c.RUNNERS:
        c.check(target, vectors, c.PLACEMENTS[2], runner)


# --- what must be refused -------------------------------------------------------------------------


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def forged(v: Vector, source: str, **changes: bytes) -> Vector:
    """A vector that must be refused, with one thing changed."""
    parts = {"iv": v.iv, "aad": v.aad, "data": v.data, "key": v.key} | changes
    return Vector(
        f"{v.source}, {source}",
        v.algorithm,
        parts["key"],
        parts["iv"],
        parts["aad"],
        b"",
        parts["data"],
        v.tag_length,
        valid=False,
    )


@pytest.mark.parametrize("size", [0, 1, 16, 37, 5000])
@pytest.mark.parametrize("algorithm", AEADS)
@every_target
def test_every_forgery_is_refused(target: c.Target, algorithm: str, size: int) -> None:
    """A changed bit anywhere gives InvalidTag and zeros; good messages with it are not harmed."""
    vectors = []
    for tag_length in (4, 12, 16) if algorithm in GCMS else (16,):
        v = make(algorithm, f"forged {size}", size, aad=b"associated", tag_length=tag_length)
        tag = 8 * size
        vectors += [
            forged(v, f"tag bit {bit}", data=flipped(v.data, tag + bit))
            for bit in range(8 * tag_length)
        ]
        texts = {0, 7, tag // 2, tag - 128, tag - 1} if size else set()
        vectors += [
            forged(v, f"bit {bit}", data=flipped(v.data, bit)) for bit in texts if 0 <= bit < tag
        ]
        vectors += [forged(v, f"AAD bit {bit}", aad=flipped(v.aad, bit)) for bit in (0, 79)]
        vectors += [forged(v, f"IV bit {bit}", iv=flipped(v.iv, bit)) for bit in (0, 95)]
        vectors += [forged(v, f"key bit {bit}", key=flipped(v.key, bit)) for bit in (0, 127)]
        vectors += [forged(v, "AAD cut", aad=v.aad[:-1]), forged(v, "no AAD", aad=b"")]
        vectors.insert(len(vectors) // 2, v)
    # In place, and of faster engines apart too.
    for placement in (c.PLACEMENTS[3], c.PLACEMENTS[0])[: 1 + (target.engine != "reference")]:
        for runner in c.RUNNERS:
            c.check(target, vectors, placement, runner)


def is_padded(block: bytes) -> bool:
    """RFC 5652, section 6.3."""
    n = block[-1]
    return 1 <= n <= len(block) and block[-n:] == bytes([n]) * n


@pytest.mark.parametrize("algorithm", PADDED)
@every_engine
def test_wrong_padding_is_refused(engine: str, algorithm: str) -> None:
    """Every last byte, and every place where one byte of the padding is another."""
    info = c.ALGORITHMS[algorithm]
    block = info.block_size
    key = oracle.painted("key", info.key_size)
    options = oracle.options(algorithm, oracle.painted("iv", block), b"", 16)
    lasts = [oracle.painted("last", block - 1) + bytes([n]) for n in range(256)]
    lasts += [bytes(block - n) + bytes([n]) * n for n in range(1, block + 1)]
    for n in range(2, block + 1):
        for position in range(block - n, block - 1):
            wrong = bytearray(bytes(block - n) + bytes([n]) * n)
            wrong[position] ^= 0x40
            lasts.append(bytes(wrong))
    plain = wc.Cipher(algorithm, key, engine=engine)
    padded = wc.Cipher(algorithm, key, padding="pkcs7", engine=engine)
    for last in lasts:
        text = oracle.painted("text", 2 * block) + last
        data = plain.encrypt(text, **options)
        out = bytearray(b"\xa5" * len(data))
        if is_padded(last):
            assert padded.decrypt(data, **options) == text[: len(text) - last[-1]]
            continue
        with pytest.raises(ValueError, match="padding"):
            padded.decrypt(data, out=out, **options)
        assert out == bytes(len(data)), f"last block {last.hex()}"

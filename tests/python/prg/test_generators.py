# SPDX-License-Identifier: Apache-2.0
"""`prg.expand` and `prg.tree` against definitions by pyca/cryptography and by published vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from prg_oracle import FIXED_KEYS, chacha, children
from warpcipher import prg
from warpcipher.prg.dpf import PRGS

ENGINES = ["cpu", "reference"]

# draft-strombergson-chacha-test-vectors-01, TC1, 128-bit key: the first block of key stream.
ZERO_KEY = {
    "chacha8": "e28a5fa4a67f8c5defed3e6fb7303486aa8427d31419a729572d777953491120"
    "b64ab8e72b8deb85cd6aea7cb6089a101824beeb08814a428aab1fa2c816081b",
    "chacha12": "e1047ba9476bf8ff312c01b4345a7d8ca5792b0ad467313f1dc412b5fdce3241"
    "0dea8b68bd774c36a920f092a04d3f95274fbeff97bc8491fcef37f85970b450",
    "chacha20": "89670952608364fd00b2f90936f031c8e756e15dba04b8493d00429259b20f46"
    "cc04f111246b6c2ce066be3bfb32d9aa0fddfbc12123d4b9e44f34dca05a103f",
}


def seeds_of(count: int) -> bytes:
    return np.random.default_rng(count).bytes(16 * count)


def test_the_oracle_of_chacha_is_that_of_pyca() -> None:
    key = bytes(range(32))
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor().update(bytes(64))
    assert chacha(b"expand 32-byte k", key, 20) == stream


@pytest.mark.parametrize("name", list(ZERO_KEY))
def test_published_vectors(name: Any) -> None:
    assert prg.expand(bytes(16), name, 4).hex() == ZERO_KEY[name]


def test_fixed_keys_are_hashes_of_names() -> None:
    from hashlib import sha256

    for key, name in zip(FIXED_KEYS, ("Left", "Right", "Value"), strict=False):
        text = f"DistributedPointFunction::kPrgKey{name}\n".encode()
        assert sha256(text).digest()[15::-1].hex() == key
    assert sha256(b"warpcipher.prg aes-128-mmo 3").hexdigest()[:32] == FIXED_KEYS[3]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PRGS)
def test_children(name: Any, engine: str) -> None:
    for count in (0, 1, 3, 4, 7, 15, 16, 17, 33, 65):
        seeds = seeds_of(count)
        for each in range(1, 5):
            expected = b"".join(
                children(name, seeds[16 * i : 16 * i + 16], each) for i in range(count)
            )
            assert prg.expand(seeds, name, each, engine=engine) == expected, (count, each)


@pytest.mark.parametrize("name", PRGS)
def test_many_seeds_are_the_reference(name: Any) -> None:
    seeds = seeds_of(20_011)
    found = prg.expand(seeds, name)
    assert found[: 32 * 100] == prg.expand(seeds[:1600], name, engine="reference")
    assert found[-32 * 100 :] == prg.expand(seeds[-1600:], name, engine="reference")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PRGS)
def test_trees_are_children_of_children(name: Any, engine: str) -> None:
    for count in (0, 1, 3, 17):
        level = roots = seeds_of(count)
        for depth in range(8):
            assert prg.tree(roots, depth, name, engine=engine) == level, (count, depth)
            level = prg.expand(level, name, 2, engine="reference")


def test_correlated_leaves_add_up_to_the_root() -> None:
    leaves = np.frombuffer(prg.tree(seeds_of(1), 9, "aes-128-half"), np.uint64).reshape(-1, 2)
    assert np.bitwise_xor.reduce(leaves).tobytes() == seeds_of(1)


def test_a_deep_tree() -> None:
    """Deeper than a thread takes at once, and of two roots."""
    leaves = np.frombuffer(prg.tree(seeds_of(2), 17), np.uint8).reshape(2, -1, 16)
    for root, path in ((0, 0), (0, 0x1FFFF), (1, 0x12345), (1, 0x0BEEF)):
        node = seeds_of(2)[16 * root : 16 * root + 16]
        for level in range(16, -1, -1):
            side = path >> level & 1
            node = children("aes-128-mmo", node, 2)[16 * side : 16 * side + 16]
        assert leaves[root, path].tobytes() == node


def test_arrays_and_outputs() -> None:
    given = np.frombuffer(seeds_of(5), np.uint64).reshape(5, 2)
    expected = prg.expand(given.tobytes())
    made = prg.expand(given)
    assert made.shape == (5, 2, 16)
    assert made.dtype == np.uint8
    assert made.tobytes() == expected
    assert prg.tree(given, 3).shape == (5, 8, 16)
    assert prg.expand(given[:0]).shape == (0, 2, 16)
    out = np.empty((10, 4), np.uint32)
    assert prg.expand(given, out=out) is out
    assert out.tobytes() == expected
    row = np.array(given)
    assert prg.expand(row, children=1, out=row) is row
    assert row.tobytes() == prg.expand(given.tobytes(), children=1)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_other_libraries(library: str) -> None:
    module = pytest.importorskip(library)
    numbers = np.frombuffer(seeds_of(3), np.uint8).copy()
    given = module.from_numpy(numbers) if library == "torch" else module.numpy.asarray(numbers)
    made = prg.tree(given, 2)
    assert type(made) is type(given)
    assert made.shape == (3, 4, 16)
    assert np.asarray(made).tobytes() == prg.tree(numbers.tobytes(), 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: prg.expand(bytes(17)), "seeds has 17 bytes: expected a multiple of 16"),
        (lambda: prg.expand(bytes(16), children=5), "children is 5: expected 1 to 4"),
        (lambda: prg.expand(bytes(16), children=0), "children is 0: expected 1 to 4"),
        (lambda: prg.expand(bytes(16), "aes"), "prg is 'aes': expected one of aes-128-mmo, "),  # type: ignore[arg-type]
        (lambda: prg.expand(bytes(16), engine="cuda"), "expected auto, cpu or reference"),
        (lambda: prg.expand(bytes(16), out=bytearray(31)), "out has 31 bytes: expected 32"),
        (lambda: prg.tree(bytes(16), 41), "depth is 41: expected 0 to 40"),
        (lambda: prg.tree(bytes(15), 1), "roots has 15 bytes"),
    ],
)
def test_refusals(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_outputs_that_overlap_are_refused() -> None:
    memory = bytearray(64)
    with pytest.raises(ValueError, match="overlaps"):
        prg.expand(memoryview(memory)[:16], out=memoryview(memory)[8:40])
    assert memory == bytes(64)

# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.random.BitGenerator` beneath NumPy's distributions."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest
from test_random_process import in_a_child
from warpcipher.random import BitGenerator, Generator

KEY = bytes(range(32))


@pytest.mark.parametrize("algorithm", ["chacha20", "aes-256-ctr"])
def test_words_are_those_of_the_stream(algorithm: str) -> None:
    bits = BitGenerator(KEY, algorithm=algorithm, stream=7)  # type: ignore[arg-type]
    text = Generator(KEY, algorithm=algorithm, stream=7).bytes(80_000)  # type: ignore[arg-type]
    assert bits.random_raw(5000).tobytes() == text[:40_000]
    drawn = np.random.Generator(bits)
    # Words of 32 bits, an odd number of them: those of 64 then cross the ends of pieces.
    assert drawn.integers(0, 1 << 32, 3, np.uint32).tobytes() == text[40_000:40_012]
    assert bits.random_raw() == int.from_bytes(text[40_012:40_020], "little")
    assert bits.random_raw(4000).tobytes() == text[40_020:72_020]
    assert bits.state["position"] == 72_020
    doubles = np.frombuffer(text[72_024 - 4 : 72_024 - 4 + 800], "<u8") >> np.uint64(11)
    assert (drawn.random(100) == doubles * 2.0**-53).all()


def test_its_own_state_goes_back() -> None:
    bits = BitGenerator(KEY)
    drawn = np.random.Generator(bits)
    drawn.normal(size=999)
    state = bits.state
    assert set(state) == {"algorithm", "stream", "position", "spawned"}
    first = drawn.normal(size=100)
    bits.state = state
    assert (drawn.normal(size=100) == first).all()
    bits.state = {**state, "stream": 3, "position": 0}
    assert bits.random_raw(3).tobytes() == Generator(KEY, stream=3).bytes(24)
    with pytest.raises(ValueError, match="past 2\\^55"):
        bits.state = {**state, "position": (1 << 55) + 1}


def test_numpy_takes_it_everywhere() -> None:
    bits = BitGenerator()
    assert isinstance(bits, np.random.BitGenerator)
    drawn = np.random.default_rng(bits)
    assert drawn.bit_generator is bits
    x = drawn.standard_normal(100_000)
    # Three bounds of one error in 10^9 each: z = 6.1.
    assert abs(x.mean()) < 6.1 / np.sqrt(len(x))
    assert abs(x.var() - 1) < 6.1 * np.sqrt(2 / len(x))
    assert sorted(drawn.permutation(100)) == list(range(100))
    assert drawn.multinomial(10, [0.5, 0.5]).sum() == 10


def test_without_a_key_nothing_repeats() -> None:
    words = [BitGenerator().random_raw() for _ in range(20)]
    bits = BitGenerator()
    words += bits.random_raw(20_000).tolist()
    words += [child.random_raw() for child in bits.spawn(5)]
    assert len(set(words)) == len(words)


def test_spawn_through_numpy() -> None:
    drawn = np.random.Generator(BitGenerator(KEY))
    children = drawn.spawn(2)
    expected = [child.bytes(8) for child in Generator(KEY).spawn(2)]
    assert [child.bit_generator.random_raw(1).tobytes() for child in children] == expected


def test_copies_and_pickles_only_with_a_key() -> None:
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            refused(BitGenerator())  # type: ignore[operator]
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(np.random.Generator(BitGenerator()))
    drawn = np.random.Generator(BitGenerator(KEY, stream=2))
    drawn.random(3)
    same = pickle.loads(pickle.dumps(drawn))  # noqa: S301
    assert (same.random(10) == drawn.random(10)).all()
    assert repr(drawn.bit_generator) == "<warpcipher.random.BitGenerator chacha20 with key>"


def test_forks() -> None:
    bits = BitGenerator()
    bits.random_raw()
    drawn = [in_a_child(lambda: bits.random_raw(1).tobytes()) for _ in range(3)]
    drawn.append(bits.random_raw(1).tobytes())
    assert len({text for text in drawn if len(text) == 8}) == 4
    with bits.lock:  # as if another thread drew at that moment
        assert len(in_a_child(lambda: bits.random_raw(1).tobytes())) == 8

    keyed = BitGenerator(KEY)
    assert b"came through a fork" in in_a_child(lambda: keyed.random_raw(1).tobytes())

    def told() -> bytes:
        keyed.state = {**keyed.state, "stream": 1}
        return keyed.random_raw(1).tobytes()

    assert in_a_child(told) == Generator(KEY, stream=1).bytes(8)


def test_threads_take_turns() -> None:
    bits = BitGenerator(KEY)
    drawn = np.random.Generator(bits)
    found: list[int] = []

    def draw() -> None:
        for _ in range(100):
            found.extend(drawn.integers(0, 1 << 64, 100, np.uint64).tolist())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(np.frombuffer(Generator(KEY).bytes(320_000), "<u8").tolist())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: BitGenerator(bytes(16)), "the key has 16 bytes"),
        (lambda: BitGenerator(KEY, algorithm="aes"), "expected one of chacha20"),  # type: ignore[arg-type]
        (lambda: BitGenerator(stream=3), "there is no key"),
    ],
)
def test_refusals(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
    with pytest.raises(TypeError, match="without a key has no state"):
        _ = BitGenerator().state

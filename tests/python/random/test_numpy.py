# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.random.BitGenerator` beneath NumPy's distributions."""

from __future__ import annotations

import copy
import ctypes
import pickle
import threading
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest
from random_oracle import in_a_child
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
    assert bits.state["state"]["position"] == 72_020
    doubles = np.frombuffer(text[72_024 - 4 : 72_024 - 4 + 800], "<u8") >> np.uint64(11)
    assert (drawn.random(100) == doubles * 2.0**-53).all()


def test_its_own_state_goes_back() -> None:
    bits = BitGenerator(KEY)
    drawn = np.random.Generator(bits)
    drawn.normal(size=999)
    state = bits.state
    assert state["bit_generator"] == "warpcipher.random.BitGenerator"
    assert set(state["state"]) == {"algorithm", "stream", "position", "spawned"}
    first = drawn.normal(size=100)
    bits.state = state
    assert (drawn.normal(size=100) == first).all()
    at_start = {**state["state"], "stream": 3, "position": 0}
    bits.state = {**state, "state": at_start}
    assert bits.random_raw(3).tobytes() == Generator(KEY, stream=3).bytes(24)
    for wrong, says in (
        ({**state, "state": {**at_start, "position": (1 << 55) + 1}}, "past 2\\^55"),
        ({**state, "state": None}, "state is not a dict"),
        (at_start, "the state is not a"),
        (np.random.PCG64().state, "the state is not a"),
    ):
        with pytest.raises(ValueError, match=says):
            bits.state = wrong
    assert bits.state["state"] == {**at_start, "position": 24}


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
        state = keyed.state
        state["state"]["stream"] = 1
        keyed.state = state
        return keyed.random_raw(1).tobytes()

    assert in_a_child(told) == Generator(KEY, stream=1).bytes(8)


def test_functions_of_ctypes_and_cffi_draw_the_words() -> None:
    text = Generator(KEY).bytes(40)
    bits = BitGenerator(KEY)
    for interface in (bits.ctypes, bits.cffi) if find_spec("cffi") else (bits.ctypes,):
        bits.advance(-(bits.state["state"]["position"] // 8))
        state = interface.state
        assert interface.next_uint64(state) == int.from_bytes(text[:8], "little")
        assert interface.next_uint32(state) == int.from_bytes(text[8:12], "little")
        assert interface.next_uint32(state) == int.from_bytes(text[12:16], "little")
        double = (int.from_bytes(text[16:24], "little") >> 11) * 2.0**-53
        assert interface.next_double(state) == double
        # bitgen_t begins with the state and next_uint64: what Cython code reads.
        address = bits.ctypes.bit_generator.value
        assert ctypes.c_void_p.from_address(address).value == interface.state_address
        raw = ctypes.c_void_p.from_address(address + 4 * ctypes.sizeof(ctypes.c_void_p)).value
        draw = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(raw)
        assert draw(interface.state_address) == int.from_bytes(text[24:32], "little")
    assert bits.random_raw() == int.from_bytes(text[32:], "little")
    for child in (*bits.spawn(1), pickle.loads(pickle.dumps(bits)), BitGenerator()):  # noqa: S301
        assert child.ctypes.next_uint64(child.ctypes.state) != 0


def test_a_child_of_a_fork_gets_no_functions_of_a_key() -> None:
    keyed, keyless = BitGenerator(KEY), BitGenerator()
    assert b"came through a fork" in in_a_child(lambda: bytes(keyed.ctypes.state_address))

    def draw() -> bytes:
        functions = keyless.ctypes
        return int(functions.next_uint64(functions.state)).to_bytes(8, "little")

    assert len({in_a_child(draw), in_a_child(draw), draw()}) == 3


def test_numba_draws_what_numpy_draws() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit  # type: ignore[untyped-decorator]
    def draw(generator: np.random.Generator) -> tuple[float, np.ndarray]:
        return generator.random(), generator.normal(0.0, 1.0, 5)

    first, second = (np.random.Generator(BitGenerator(KEY)) for _ in range(2))
    number, numbers = draw(first)
    assert number == second.random()
    assert (numbers == second.normal(0.0, 1.0, 5)).all()


def test_seed_sequences_come_of_the_key() -> None:
    one, two = BitGenerator(KEY).seed_seq, BitGenerator(KEY).seed_seq
    assert isinstance(one, np.random.bit_generator.ISpawnableSeedSequence)
    for dtype in (np.uint32, np.uint64):
        words = one.generate_state(100, dtype)
        assert words.dtype == dtype
        assert (words[:10] == two.generate_state(10, dtype)).all()
    others = [
        BitGenerator(KEY, stream=1).seed_seq,
        BitGenerator(KEY, algorithm="aes-256-ctr").seed_seq,
        *one.spawn(2),
        *one.spawn(1),
        one.spawn(1)[0].spawn(1)[0],
        BitGenerator().seed_seq,
        BitGenerator().seed_seq,
        *BitGenerator().seed_seq.spawn(2),
        np.random.SeedSequence(0),
    ]
    drawn = {bytes(each.generate_state(4)) for each in (one, *others)}
    assert len(drawn) == 1 + len(others)
    assert bytes(Generator(KEY).bytes(16)) not in drawn
    with pytest.raises(ValueError, match="expected uint32 or uint64"):
        one.generate_state(4, np.float64)


def test_libraries_spawn_from_the_seed_sequence() -> None:
    # As NumPy's own: `spawn` of a generator and of its sequence are the same children.
    children = [child.random_raw() for child in BitGenerator(KEY).spawn(2)]
    spawned = BitGenerator(KEY).seed_seq.spawn(2)
    assert [BitGenerator(child).random_raw() for child in spawned] == children
    assert [BitGenerator(child).random_raw() for child in spawned] == children
    # Of a generator without a key a child has a key: SciPy copies it to begin again.
    (child,) = BitGenerator().seed_seq.spawn(1)
    made = BitGenerator(child)
    assert copy.deepcopy(made).random_raw() == made.random_raw() == BitGenerator(child).random_raw()
    root = BitGenerator().seed_seq
    assert BitGenerator(root).random_raw() != BitGenerator(root).random_raw()
    drawn = {np.random.default_rng(BitGenerator().seed_seq.spawn(1)[0]).random() for _ in range(9)}
    assert len(drawn) == 9
    bits = BitGenerator(KEY)
    assert bits.seed_seq.spawn(1)[0].generate_state(1) != bits.seed_seq.spawn(1)[0].generate_state(
        1
    )
    keyed = BitGenerator(KEY).seed_seq
    for use in (lambda: keyed.spawn(1), lambda: keyed.generate_state(1)):
        assert b"came through a fork" in in_a_child(lambda use=use: bytes(use()))  # type: ignore[misc]


@pytest.mark.parametrize("key", [None, KEY])
def test_scipy_takes_it(key: bytes | None) -> None:
    qmc = pytest.importorskip("scipy.stats").qmc
    for engine in (qmc.Sobol, qmc.Halton, qmc.LatinHypercube):
        made = engine(2, rng=np.random.Generator(BitGenerator(key)))
        first = made.random(4)
        made.reset()
        assert (made.random(4) == first).all()
        other = engine(2, rng=np.random.Generator(BitGenerator(key)))
        assert (other.random(4) == first).all() == (key is not None)


def test_random_state() -> None:
    """NumPy's old interface keeps a normal number beside the generator's state."""
    old = np.random.RandomState(BitGenerator(KEY))
    old.normal()
    state = old.get_state(legacy=False)
    assert state["has_gauss"] == 1
    drawn = old.normal(size=4)
    old.set_state(state)
    assert (old.normal(size=4) == drawn).all()
    old.set_state(state)
    assert (pickle.loads(pickle.dumps(old)).normal(size=4) == drawn).all()  # noqa: S301


def test_advance_and_jumped() -> None:
    words = BitGenerator(KEY, stream=4).random_raw(6000)
    bits = BitGenerator(KEY, stream=4)
    assert bits.advance(3000) is bits
    assert bits.random_raw() == words[3000]
    assert bits.advance(-3001).random_raw() == words[0]
    jumped = bits.jumped(2)
    assert jumped.random_raw() == BitGenerator(KEY, stream=6).random_raw(2)[1]
    assert bits.jumped().jumped().state == bits.jumped(2).state
    assert bits.random_raw() == words[1]  # where it was
    for refused, says in (
        (lambda: bits.advance(-3), "to position -8"),
        (lambda: bits.advance(1 << 60), "expected one from 0 to 2\\^55"),
        (lambda: bits.jumped(1 << 64), "expected one below 2\\^64"),
        (lambda: bits.jumped(-5), "to stream -1"),
    ):
        with pytest.raises(ValueError, match=says):
            refused()
    assert bits.random_raw() == words[2]
    for refused in (lambda: BitGenerator().advance(1), lambda: BitGenerator().jumped()):
        with pytest.raises(TypeError, match="without a key has no state"):
            refused()


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
        (lambda: BitGenerator(BitGenerator().seed_seq, stream=3), "the key is a seed sequence"),
    ],
)
def test_refusals(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
    with pytest.raises(TypeError, match="without a key has no state"):
        _ = BitGenerator().state
    with pytest.raises(TypeError, match="a SeedSequence of NumPy, which mixes a seed"):
        BitGenerator(np.random.SeedSequence(42))  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""Secrets of `warpcipher.random.Generator`, and copies, threads, forks and processes."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest
import random_oracle as oracle
import warpcipher as wc
from random_oracle import in_a_child
from test_random import KEY, keyed
from warpcipher.random import Generator


def test_generators_without_a_key_differ_and_never_repeat() -> None:
    generator = Generator()
    drawn = [generator.bytes(32) for _ in range(1000)] + [Generator().bytes(32) for _ in range(100)]
    drawn += [child.bytes(32) for child in generator.spawn(50)]
    assert len(set(drawn)) == len(drawn)
    assert not generator.keyed


def test_the_key_is_replaced_before_the_numbers_are_made() -> None:
    """Fast key erasure: neither the key before nor the call's key is in the state afterwards."""
    for algorithm in ("chacha20", "aes-256-ctr"):
        generator = Generator(algorithm=algorithm)  # type: ignore[arg-type]
        before = bytes(generator._key)
        text = Generator(before, algorithm=algorithm).bytes(64)  # type: ignore[arg-type]
        expected = Generator(text[32:], algorithm=algorithm).normal(8)  # type: ignore[arg-type]
        assert (generator.normal(8) == expected).all()
        assert bytes(generator._key) == text[:32]
        with pytest.raises(ValueError, match="position"):  # of what fails nothing comes again
            wc._native.random_fill(
                bytearray(8),
                "uniform",
                "float64",
                generator._key,
                algorithm,
                0,
                4,
                0.0,
                1.0,
                "auto",
                0,
                True,
            )
        assert bytes(generator._key) not in (before, text[:32], text[32:])


def test_a_key_that_cannot_be_replaced_draws_nothing() -> None:
    out = bytearray(8)
    with pytest.raises(BufferError, match="key"):
        wc._native.random_fill(out, "bytes", "uint8", KEY, "chacha20", 0, 0, 0, 1, "auto", 0, True)
    assert out == bytearray(8)


def test_the_key_of_a_permutation_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator()
    before = bytes(generator._key)
    used: list[tuple[bytes, bytes]] = []
    lent: list[Any] = []
    permute = wc._native.random_permutation

    def watch(data: Any, dtype: str, key: Any, *rest: Any) -> Any:
        used.append((bytes(key), bytes(generator._key)))
        lent.append(key)
        return permute(data, dtype, key, *rest)

    monkeypatch.setattr(wc._native, "random_permutation", watch)
    generator.permutation(8)
    ((call, state),) = used
    assert state + call == Generator(before).bytes(64)
    assert state == bytes(generator._key)
    assert not any(lent[0])


def test_reseeding_changes_the_key() -> None:
    generator = Generator()
    before = bytes(generator._key)
    generator.reseed()
    assert bytes(generator._key) != before


def test_the_key_is_wiped_and_never_shown() -> None:
    generator = keyed()
    kept = generator._key
    shown = repr(generator) + str(generator.state)
    assert KEY.hex() not in shown
    assert repr(KEY)[2:20] not in shown
    del generator
    assert kept == bytearray(32)


def test_copies_and_pickles_only_with_a_key() -> None:
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="without a key cannot be copied or pickled"):
            refused(Generator())  # type: ignore[operator]
    generator = keyed("aes-256-ctr", 192, 9)
    generator.spawn(2)
    for made in (
        copy.copy(generator),
        copy.deepcopy(generator),
        pickle.loads(pickle.dumps(generator)),  # noqa: S301
    ):
        assert made.state == generator.state
        assert made.bytes(100) == oracle.words(KEY, "aes-256-ctr", 9, 192, 100).tobytes()


# ---- threads, forks, processes


def test_threads_share_a_position() -> None:
    generator = keyed()
    found: list[bytes] = []

    def draw() -> None:
        found.extend(generator.bytes(64) for _ in range(100))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = oracle.words(KEY, "chacha20", 0, 0, 400 * 64).tobytes()
    assert sorted(found) == sorted(text[i : i + 64] for i in range(0, len(text), 64))


def test_a_child_of_a_fork_never_repeats_its_parent() -> None:
    generator = Generator()
    generator.bytes(1)
    with generator._lock:  # as if another thread drew at that moment
        drawn = [in_a_child(lambda: generator.bytes(32)) for _ in range(3)]
    drawn.append(generator.bytes(32))
    drawn.append(in_a_child(lambda: in_a_child(lambda: generator.bytes(32))))
    assert {len(text) for text in drawn} == {32}
    assert len(set(drawn)) == 5


def test_a_child_of_a_fork_refuses_a_key_until_it_is_told() -> None:
    generator = keyed()
    refusal = in_a_child(lambda: generator.bytes(32))
    assert b"came through a fork" in refusal
    assert b"came through a fork" in in_a_child(lambda: generator.spawn(1)[0].bytes(32))

    def told() -> bytes:
        generator.state = {**generator.state, "stream": 1}
        return generator.bytes(32)

    assert in_a_child(told) == keyed(stream=1).bytes(32)
    assert in_a_child(lambda: keyed().bytes(32)) == keyed().bytes(32) == generator.bytes(32)


def test_children_are_known_where_numbers_of_processes_repeat() -> None:
    """The number and a count of forks, so that one of the two differs."""
    known = wc._native.random_process()
    assert known % 2**32 == os.getpid()
    child, grandchild = (
        int.from_bytes(text, "little")
        for text in (
            in_a_child(lambda: wc._native.random_process().to_bytes(8, "little")),
            in_a_child(
                lambda: in_a_child(lambda: wc._native.random_process().to_bytes(8, "little"))
            ),
        )
    )
    assert child >> 32 == (known >> 32) + 1
    assert grandchild >> 32 == (known >> 32) + 2


def test_a_child_that_c_code_makes_is_known() -> None:
    generator = Generator()
    generator.bytes(1)
    libc = ctypes.PyDLL(None)  # which runs no handler of Python
    reading, writing = os.pipe()
    child = libc.fork()
    if child == 0:
        try:
            os.write(writing, generator.bytes(32))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert len({os.read(reading, 32), generator.bytes(32)}) == 2
    os.close(reading)
    os.close(writing)


def test_processes_that_are_spawned_seed_themselves() -> None:
    code = "from warpcipher.random import Generator; print(Generator().bytes(16).hex())"
    drawn = {subprocess.check_output([sys.executable, "-c", code]) for _ in range(3)}
    assert len(drawn) == 3


def test_the_interpreter_exits_with_generators_and_threads_at_work() -> None:
    code = (
        "import threading\n"
        "from warpcipher.random import Generator\n"
        "g = Generator()\n"
        "def draw():\n"
        "    while True: g.bytes(1 << 16)\n"
        "for _ in range(3): threading.Thread(target=draw, daemon=True).start()\n"
        "g.bytes(10)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_every_seed_is_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [bytes([i]) * 32 for i in range(3)]
    sizes: list[int] = []

    def urandom(size: int) -> bytes:
        sizes.append(size)
        return given[len(sizes) - 1]

    monkeypatch.setattr(os, "urandom", urandom)
    generator = Generator()
    assert generator._key == given[0]
    generator.reseed()
    assert generator._key == given[1]
    # The child of a fork takes the third.
    expected = Generator(Generator(given[2]).bytes(64)[32:]).bytes(8)
    assert in_a_child(lambda: generator.bytes(8)) == expected
    assert sizes == [32, 32]

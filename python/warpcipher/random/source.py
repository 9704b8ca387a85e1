# SPDX-License-Identifier: Apache-2.0
"""Where a `Generator` takes its keys and its place in a stream: `Source`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from .. import _native
from .._not_at_fork import NOT_AT_FORK
from .._types import Buffer, Self
from ..arguments import require_int, view_bytes
from .streams import ARRAY_START, STREAM_SIZE, child_key

# A child of a fork must notice that it is one before it draws anything. Its number would not be
# enough: the child of a child can get the number of its grandparent once that one is gone. A count
# of forks would not either: it misses a child that C code makes without fork(), by clone(2).
process = _native.random_process
"""process() -> int: a value that differs between a process and the children that fork from it."""


ALGORITHMS = ("chacha20", "aes-256-ctr")
MOST_SPAWNED = 1 << 60
"""Generators that one with a key gives: their keys have numbers below `streams.DISCRETE`."""

INHERITED = (
    "this generator has a key and came through a fork: its parent draws the same numbers. Make one "
    "with another stream here, or set its state"
)
KEY_SIZE = 32
_ZEROS = bytes(KEY_SIZE)


class Source:
    """A key, and with a key of the caller a stream and a position in it."""

    __slots__ = (
        "__weakref__", "_algorithm", "_key", "_keyed", "_lock", "_position", "_process", "_spawned",
        "_stream",
    )  # fmt: skip

    def __init__(self, key: Buffer | None, algorithm: str, stream: int) -> None:
        self._key = bytearray()
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {algorithm!r}: expected one of {', '.join(ALGORITHMS)}")
        self._algorithm = algorithm
        self._keyed = key is not None
        self._lock = threading.Lock()
        self._process = process()
        self._stream = self._position = self._spawned = 0
        stream = require_int("stream", stream)
        if key is None:
            if stream != 0:
                raise ValueError(f"stream is {stream}, and there is no key: expected a key")
            self._key = bytearray(os.urandom(KEY_SIZE))
            return
        given = view_bytes("the key", key)
        if len(given) != KEY_SIZE:
            raise ValueError(f"the key has {len(given)} bytes: expected {KEY_SIZE}, or None")
        if not 0 <= stream < 1 << 64:
            raise ValueError(f"stream is {stream}: expected 0 to 2^64 - 1")
        self._key = bytearray(given)
        self._stream = stream

    def _enter(self) -> threading.Lock:
        """The lock of this process. After a fork the child makes its own."""
        if self._process != process():
            with NOT_AT_FORK:
                if self._process != process():
                    if self._keyed:
                        raise RuntimeError(INHERITED)
                    self._key[:] = os.urandom(KEY_SIZE)
                    self._lock = threading.Lock()
                    self._process = process()
        return self._lock

    def _replace_key(self) -> bytearray:
        """The key of the next call. The generator's is replaced first: fast key erasure."""
        with self._enter():
            return _native.random_next_key(self._key, self._algorithm)

    def _reserve(self, size: int) -> tuple[int, int]:
        """Moves past the next array, which takes `size` bytes of the stream. Returns where the
        generator stood, and where the array begins."""
        with self._enter():
            before = self._position
            begin = -(-before // ARRAY_START) * ARRAY_START
            if begin + size > STREAM_SIZE:
                raise ValueError(
                    f"the array takes {size} bytes of the stream at {begin}: a stream has 2^56"
                )
            self._position = begin + size
        return before, begin

    def _give_back(self, before: int, end: int) -> None:
        """After an array that ends at `end` and of which nothing was written."""
        with self._lock:
            if self._position == end:  # none came after
                self._position = before

    def _draw(self, size: int, write: Callable[[Buffer, int, int], object]) -> None:
        """Calls write(key, stream, position) for the next array, which takes `size` bytes of the
        stream."""
        if not self._keyed:
            key = self._replace_key()
            try:
                write(key, 0, 0)
            finally:
                key[:] = _ZEROS
            return
        before, begin = self._reserve(size)
        try:
            write(self._key, self._stream, begin)
        except BaseException:
            self._give_back(before, begin + size)
            raise

    @property
    def algorithm(self) -> str:
        """The name of the cipher that makes the stream."""
        return self._algorithm

    @property
    def keyed(self) -> bool:
        """Whether a key determines its numbers."""
        return self._keyed

    @property
    def state(self) -> dict[str, Any]:
        """Where a generator with a key stands: algorithm, stream, position and the number of
        generators that it spawned. No key. Set it to go back, or to continue in a child of a fork.
        TypeError: the generator has no key.
        """
        self._need_key("state")
        names = ("algorithm", "stream", "position", "spawned")
        return {name: getattr(self, f"_{name}") for name in names}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._need_key("state")
        expected = {"algorithm", "stream", "position", "spawned"}
        if not isinstance(state, dict) or set(state) != expected:
            raise ValueError(f"state is not a dict of {', '.join(sorted(expected))}")
        if state["algorithm"] != self._algorithm:
            raise ValueError(
                f"the state is of {state['algorithm']!r}, the generator of {self._algorithm!r}"
            )
        for name, limit in (
            ("stream", 1 << 64),
            ("position", STREAM_SIZE + 1),
            ("spawned", MOST_SPAWNED + 1),
        ):
            if not isinstance(state[name], int) or not 0 <= state[name] < limit:
                raise ValueError(f"{name} of the state is {state[name]!r}: expected below {limit}")
        with NOT_AT_FORK:
            if self._process != process():
                self._lock = threading.Lock()
                self._process = process()
        with self._lock:
            self._stream = int(state["stream"])
            self._position = int(state["position"])
            self._spawned = int(state["spawned"])

    def jump(self, size: int) -> None:
        """Moves on by `size` bytes of the stream; the next array begins at the next multiple of 64.
        TypeError: the generator has no key.
        """
        self._need_key("position")
        size = require_int("size", size)
        with self._enter():
            position = self._position + size
            if size < 0 or position > STREAM_SIZE:
                raise ValueError(
                    f"size is {size}: expected 0 to {STREAM_SIZE - self._position}, to the end of "
                    "the stream"
                )
            self._position = position

    def spawn(self, count: int) -> list[Self]:
        """`count` further generators, independent of this one and of each other.

        With a key their keys are functions of this one's key and stream and of how many it spawned
        before; each begins at position 0 of stream 0.
        """
        return self._spawn(count, keyed=self._keyed)

    def _spawn(self, count: int, keyed: bool) -> list[Self]:
        """keyed: whether the parts of a generator without a key have their keys for good."""
        count = require_int("count", count, 0)
        if not self._keyed:
            return [self._like(self._replace_key(), keyed) for _ in range(count)]
        with self._enter():
            first = self._spawned
            if first + count > MOST_SPAWNED:
                raise ValueError(f"count is {count}: expected 0 to {MOST_SPAWNED - first}")
            self._spawned = first + count
        return [
            self._like(child_key(self._algorithm, self._key, self._stream, index), keyed=True)
            for index in range(first, first + count)
        ]

    def _like(self, key: bytearray, keyed: bool) -> Self:
        """A generator of a derived key, which is wiped."""
        found = self._with_key(key)
        found._keyed = keyed
        key[:] = bytes(len(key))
        return found

    def _with_key(self, key: Buffer) -> Self:
        """A generator like this one except for key, stream and position."""
        raise NotImplementedError

    def reseed(self) -> None:
        """Takes a new seed from the operating system: after a virtual machine was cloned or
        restored, say. TypeError: the generator has a key.
        """
        if self._keyed:
            raise TypeError("this generator has a key: its numbers are a function of only that")
        with self._enter():
            self._key[:] = os.urandom(KEY_SIZE)

    def _need_key(self, what: str) -> None:
        if not self._keyed:
            raise TypeError(f"a generator without a key has no {what}: each call replaces its key")

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self._keyed:
            raise TypeError(
                "Generator objects without a key cannot be copied or pickled: make a new one, or "
                "use spawn()"
            )
        return _rebuild, (type(self), *self._arguments(), self.state)

    def _arguments(self) -> tuple[Any, Any]:
        """The arguments that make one like it: positional ones and those by name."""
        raise NotImplementedError

    def __del__(self) -> None:
        if hasattr(self, "_key"):  # not where __init__ had wrong arguments
            self._key[:] = bytes(len(self._key))


def take_key(source: Source) -> bytearray:
    """The key of the next numbers: the source's own if it has one, else a new one."""
    return source._key if source.keyed else source._replace_key()


def _rebuild(cls: Any, arguments: Any, named: Any, state: dict[str, Any]) -> Any:
    found = cls(*arguments, **named)
    found.state = state
    return found

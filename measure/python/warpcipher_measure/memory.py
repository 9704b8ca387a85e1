# SPDX-License-Identifier: Apache-2.0
"""Memory of each residence, filled with random bytes, and cut into slots for the calls to go round.

Slots together span four times the cache, so that a call never finds its text there; of short
messages there are at most MOST_SLOTS, and the caches are overwritten between repetitions instead.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from typing import Any, Final, Protocol

import warpcipher as wc

from . import _native

CACHES_SPANNED = 4
MOST_SLOTS = 1024
ALIGNMENT = 256
FILLING: Final = "aes-128-ctr"


class Memory(Protocol):
    """size bytes somewhere. device: None for host memory."""

    device: int | None
    size: int
    pointer: int

    def view(self, start: int, size: int) -> Any:
        """A part, as the package takes it."""

    def clear(self) -> None:
        """Zeros, when it returns."""


class HostMemory:
    """Pageable or page-locked memory of the host."""

    def __init__(self, size: int, *, pinned: bool) -> None:
        self.device: int | None = None
        self.size = size
        owner = wc.pinned(size) if pinned else mmap.mmap(-1, size)
        self._bytes = memoryview(owner).cast("B")
        self.pointer = ctypes.addressof(ctypes.c_ubyte.from_buffer(owner))

    def view(self, start: int, size: int) -> memoryview:
        return self._bytes[start : start + size]

    def clear(self) -> None:
        ctypes.memset(self.pointer, 0, self.size)


class DevicePart:
    """Device memory as array libraries show theirs; no stream is named, for all work is on one."""

    def __init__(self, owner: DeviceMemory, start: int, size: int) -> None:
        self._owner = owner
        self.pointer = owner.pointer + start
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "strides": None,
            "data": (self.pointer, False),
        }
        self._size = size

    def __len__(self) -> int:
        return self._size


class DeviceMemory:
    """Memory of a GPU. It is freed on the stream, which therefore must live longer."""

    def __init__(self, size: int, stream: _native.WorkStream) -> None:
        self.device: int | None = stream.device
        self.size = size
        self._array = wc.DeviceArray(size, stream.device, stream.pointer)
        self._stream = stream  # after the array: attributes go in this order
        self.pointer = self._array.pointer

    def view(self, start: int, size: int) -> DevicePart:
        return DevicePart(self, start, size)

    def clear(self) -> None:
        self._array.clear(0, self.size)


def fill(memory: Memory, stream: _native.WorkStream | None) -> None:
    """Random bytes, of AES in counter mode under a random key; waits until they are there."""
    whole = memory.view(0, memory.size)
    engine = "cuda" if memory.device is not None else _host_engine()
    wc.Cipher(FILLING, os.urandom(16), engine=engine).encrypt(
        whole,
        iv=os.urandom(16),
        out=whole,
        stream=stream.pointer if stream is not None and memory.device is not None else None,
    )
    if stream is not None:
        stream.wait()


def _host_engine() -> str:
    return next(entry.name for entry in wc.engines() if entry.usable and entry.memory == "host")


class Arena:
    """Memory for texts and memory for results, in one residence, for every row of a run."""

    def __init__(
        self,
        capacity: int,
        cache_bytes: int,
        make: Callable[[int], Memory],
        stream: _native.WorkStream | None,
    ) -> None:
        self.texts = make(capacity)
        self.results = make(capacity)
        self._cache_bytes = cache_bytes
        self._stream = stream
        fill(self.texts, stream)
        fill(self.results, stream)
        self._scratch = make(2 * cache_bytes)

    def slots(self, size: int) -> Slots:
        """Slots for texts of up to `size` bytes, tags included."""
        return Slots(self.texts, self.results, size, self._cache_bytes)

    def evict(self) -> None:
        """Overwrites memory of twice the cache, and waits."""
        self._scratch.clear()

    def read(self, part: Any) -> bytes:
        """The bytes of a view, after all work on it."""
        if isinstance(part, memoryview):
            return bytes(part)
        assert self._stream is not None  # noqa: S101 - device memory has one
        copy = bytearray(len(part))
        target = ctypes.addressof((ctypes.c_ubyte * len(copy)).from_buffer(copy))
        self._stream.copy(target, part.pointer, len(copy))
        self._stream.wait()
        return bytes(copy)


class Slots:
    """Places in a pair of memories: slot i is `stride` bytes from i * stride on."""

    def __init__(self, texts: Memory, results: Memory, size: int, cache_bytes: int) -> None:
        self._texts = texts
        self._results = results
        self.stride = stride_of(size)
        self.count = slots_of(size, cache_bytes)
        self.spans_caches = 2 * self.stride * self.count >= CACHES_SPANNED * cache_bytes

    def text(self, slot: int, size: int) -> Any:
        return self._texts.view(slot * self.stride, size)

    def result(self, slot: int, size: int) -> Any:
        return self._results.view(slot * self.stride, size)


def stride_of(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def slots_of(size: int, cache_bytes: int) -> int:
    """How many slots there are: a text and its result are one."""
    wanted = -(-CACHES_SPANNED * cache_bytes // (2 * stride_of(size)))
    return max(1, min(wanted, MOST_SLOTS))


def capacity_of(size: int, cache_bytes: int) -> int:
    """Bytes of each of the two memories of an arena for texts of up to `size` bytes."""
    return stride_of(size) * slots_of(size, cache_bytes)

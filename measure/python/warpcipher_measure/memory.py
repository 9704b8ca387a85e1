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
from typing import Any, Final, TypeAlias

import warpcipher as wc

from . import _native

CACHES_SPANNED = 4
MOST_SLOTS = 1024
ALIGNMENT = 256
FILLING: Final = "aes-128-ctr"


class HostMemory:
    """Pageable or page-locked memory of the host."""

    device = None

    def __init__(self, size: int, *, pinned: bool = False) -> None:
        self.size = size
        owner = wc.pinned(size) if pinned else mmap.mmap(-1, size)
        self._bytes = memoryview(owner).cast("B")
        self.pointer = ctypes.addressof(ctypes.c_ubyte.from_buffer(owner))

    def view(self, start: int, size: int) -> memoryview:
        """A part, as the package takes it."""
        return self._bytes[start : start + size]

    def clear(self) -> None:
        """Zeros, when it returns."""
        ctypes.memset(self.pointer, 0, self.size)

    def write(self, data: bytes) -> None:
        """Bytes to the front."""
        self._bytes[: len(data)] = data

    def read(self, size: int) -> bytes:
        """The first `size` bytes, after all work on them."""
        return bytes(self._bytes[:size])


class DevicePart:
    """Device memory as array libraries show theirs; no stream is named, for all work is on one."""

    def __init__(self, owner: DeviceMemory, start: int, size: int) -> None:
        self._owner = owner
        place = {"data": (owner.pointer + start, False), "shape": (size,), "strides": None}
        self.__cuda_array_interface__ = {"version": 3, "typestr": "|u1", **place}


class DeviceMemory:
    """Memory of a GPU, as of the host. It is freed on the stream, which must live longer."""

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

    def write(self, data: bytes) -> None:
        self._array.fill(0, data)

    def read(self, size: int) -> bytes:
        target = HostMemory(max(size, 1))
        self._stream.copy(target.pointer, self.pointer, size)
        self._stream.wait()
        return target.read(size)


Memory: TypeAlias = "HostMemory | DeviceMemory"


def fill(memory: Memory, stream: _native.WorkStream | None) -> None:
    """Random bytes, of AES in counter mode under a random key; waits until they are there."""
    engine, pointer = "cuda", None if stream is None else stream.pointer
    if memory.device is None:
        hosts = (entry for entry in wc.engines() if entry.usable and entry.memory == "host")
        engine, pointer = next(hosts).name, None
    whole = memory.view(0, memory.size)
    cipher = wc.Cipher(FILLING, os.urandom(16), engine=engine)
    cipher.encrypt(whole, iv=os.urandom(16), out=whole, stream=pointer)
    if stream is not None:
        stream.wait()


class Arena:
    """Memory for texts and memory for results, in one residence, for every row of a run."""

    def __init__(
        self,
        capacity: int,
        cache_bytes: int,
        make: Callable[[int], Memory],
        stream: _native.WorkStream | None,
    ) -> None:
        self.texts, self.results = make(capacity), make(capacity)
        self._cache_bytes = cache_bytes
        fill(self.texts, stream)
        fill(self.results, stream)
        self._scratch = make(2 * cache_bytes)

    def slots(self, size: int) -> Slots:
        """Slots for texts of up to `size` bytes, tags included."""
        return Slots(self.texts, self.results, size, self._cache_bytes)

    def evict(self) -> None:
        """Overwrites memory of twice the cache, and waits."""
        self._scratch.clear()


class Slots:
    """Places in a pair of memories: slot i is `stride` bytes from i * stride on."""

    def __init__(self, texts: Memory, results: Memory, size: int, cache_bytes: int) -> None:
        self._texts, self._results = texts, results
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

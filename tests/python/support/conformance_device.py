# SPDX-License-Identifier: Apache-2.0
"""Memory of the first GPU for the checker in conformance.py, with nothing but the driver: the tests
need no array library, and the library under test sees plain pointers, aligned or not."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any

NON_BLOCKING = 1
"""CU_STREAM_NON_BLOCKING: a stream that does not wait for the legacy default stream."""


@functools.cache
def driver() -> ctypes.CDLL:
    """The driver, with the first GPU's primary context current."""
    library = ctypes.CDLL("libcuda.so.1")
    check(library.cuInit(0), "cuInit", library)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(library.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet", library)
    retained = library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    check(retained, "cuDevicePrimaryCtxRetain", library)
    check(library.cuCtxSetCurrent(context), "cuCtxSetCurrent", library)
    return library


def check(result: int, what: str, library: ctypes.CDLL | None = None) -> None:
    if result:
        name = ctypes.c_char_p()
        (library or driver()).cuGetErrorName(result, ctypes.byref(name))
        raise RuntimeError(f"{what}: {(name.value or b'unknown error').decode()}")


def call(name: str, *arguments: Any) -> None:
    check(getattr(driver(), name)(*arguments), name)


def free_memory() -> int:
    """Bytes of the GPU's memory that nobody uses."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def synchronize() -> None:
    call("cuCtxSynchronize")


def new_stream() -> int:
    stream = ctypes.c_void_p()
    call("cuStreamCreate", ctypes.byref(stream), NON_BLOCKING)
    return stream.value or 0


class Allocation:
    """Device memory, freed with the last view of it. After all work on it: freeing waits."""

    def __init__(self, size: int) -> None:
        pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self.pointer = pointer.value

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, RuntimeError):  # never made, or the driver is gone
            call("cuMemFree_v2", ctypes.c_uint64(self.pointer))


class DeviceArray:
    """Bytes of an allocation, as other libraries show them: the CUDA array interface."""

    def __init__(self, allocation: Allocation, start: int, size: int) -> None:
        self.allocation = allocation
        self.pointer = allocation.pointer + start
        self.size = size
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "strides": None,
            "data": (self.pointer if size else 0, False),
        }

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> DeviceArray:
        start, stop, _ = part.indices(self.size)
        offset = self.pointer - self.allocation.pointer
        return DeviceArray(self.allocation, offset + start, max(0, stop - start))

    def reshape(self, _: int) -> DeviceArray:
        return self

    def view(self, _: str) -> DeviceArray:
        return self

    def store(self, content: bytes) -> None:
        """Fills the first bytes, and waits until they are there."""
        call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(self.pointer), content, ctypes.c_size_t(len(content))
        )
        synchronize()

    def load(self) -> bytes:
        """The content after all work of the GPU."""
        content = ctypes.create_string_buffer(max(self.size, 1))
        synchronize()
        call("cuMemcpyDtoH_v2", content, ctypes.c_uint64(self.pointer), ctypes.c_size_t(self.size))
        return content.raw[: self.size]

    def repeat(self, word: int) -> None:
        """Fills with a 32-bit word, again and again."""
        words = ctypes.c_size_t(self.size // 4)
        call("cuMemsetD32_v2", ctypes.c_uint64(self.pointer), ctypes.c_uint(word), words)
        synchronize()


def allocate(size: int) -> DeviceArray:
    return DeviceArray(Allocation(size), 0, size)


class DeviceMemory:
    """`Memory` of conformance.py on a GPU. stream: as the library takes it; None says nothing."""

    name = "device"

    def __init__(self, stream: int | None = None) -> None:
        self.stream = stream

    def allocate(self, content: bytes) -> DeviceArray:
        array = allocate(len(content))
        array.store(content)
        return array

    def view(self, buffer: DeviceArray, start: int, size: int) -> DeviceArray:
        return buffer[start : start + size]

    def read(self, buffer: DeviceArray) -> bytes:
        return buffer.load()

# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU, by way of CuPy: ciphertext goes there, plaintext is made there."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import warpcipher as wc


class Device:
    """One GPU. device: its CUDA ordinal, or "cuda:N"."""

    def __init__(self, device: int | str) -> None:
        ordinal = str(device).removeprefix("cuda:")
        if not ordinal.isdigit():
            raise ValueError(f"device is {device!r}: expected the number of a GPU, or 'cuda:0'")
        try:
            self._cupy: Any = importlib.import_module("cupy")
        except ImportError:
            raise ValueError("device= needs CuPy: pip install cupy-cuda13x") from None
        self._device = self._cupy.cuda.Device(int(ordinal))

    def empty(self, size: int) -> Any:
        """An array of bytes there, with any content."""
        with self._device:
            return self._cupy.empty(size, "uint8")

    def room(self, size: int) -> wc.PinnedBuffer:
        """Host memory that copies to it leave at full speed: page-locked."""
        return wc.pinned(size)

    def send(self, data: memoryview | bytearray) -> Any:
        """A copy of the bytes there, complete when this returns."""
        with self._device:
            array = self._cupy.empty(len(data), "uint8")
            if len(data):  # not through `asarray`, which copies to memory of its own on the way
                array.set(self._host(data))
                self._cupy.cuda.get_current_stream().synchronize()
            return array

    def scatter(
        self, data: memoryview, places: Sequence[tuple[Sequence[int], Sequence[int]]], out: Any
    ) -> None:
        """Writes pieces that lie back to back in `data` to where they belong in `out`. places: the
        starts of some, and their sizes."""
        import numpy

        starts, sizes = (
            numpy.concatenate([numpy.asarray(each[i], "int64") for each in places])
            if places
            else numpy.zeros(0, "int64")
            for i in (0, 1)
        )
        # Of each byte the distance from its place in `data` to that in `out`, and its own number.
        moves = starts - numpy.cumsum(sizes) + sizes
        index = numpy.repeat(moves, sizes) + numpy.arange(len(data))
        with self._device:
            out[self._cupy.asarray(index)] = self._cupy.asarray(self._host(data))

    def join(self, arrays: list[Any]) -> Any:
        """A copy of arrays of bytes there, back to back."""
        with self._device:
            return self._cupy.concatenate(arrays)

    def as_buffer(self, array: Any, rmm: Any) -> Any:
        """A copy of the bytes as an `rmm.DeviceBuffer`, complete when this returns."""
        with self._device:
            self._cupy.cuda.get_current_stream().synchronize()
            buffer = rmm.DeviceBuffer(ptr=array.data.ptr, size=array.nbytes)
            self._device.synchronize()
            return buffer

    def within(self, call: Callable[[], Any]) -> Any:
        """What the call returns, with this GPU as the current one; its work there is done."""
        with self._device:
            found = call()
            self._device.synchronize()
            return found

    @staticmethod
    def _host(data: memoryview | bytearray) -> Any:
        import numpy

        return numpy.frombuffer(data, "uint8")

# SPDX-License-Identifier: Apache-2.0
"""Images in the memory of a GPU, which comes from CuPy, and tables that pylibcudf decodes there."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from .. import _later
from ..arguments import parse_device
from .crypto import wipe_any
from .footer import PLAIN_MAGIC
from .image import Image, enclosed


class Device:
    """One GPU. device: its CUDA ordinal, or "cuda:N"."""

    def __init__(self, device: int | str) -> None:
        ordinal = parse_device(device)
        if ordinal is None:
            raise ValueError(f"device is {device!r}: expected the number of a GPU, or 'cuda:0'")
        self._cupy = _later.needed("cupy", "device= needs CuPy: pip install cupy-cuda13x")
        self._device = self._cupy.cuda.Device(ordinal)

    def empty(self, size: int) -> Any:
        """An array of bytes there, with any content."""
        with self._device:
            return self._cupy.empty(size, "uint8")

    def filled(self, image: Image) -> Any:
        """The image's beginning, magic and chunks, there."""
        out = self.empty(image.room)
        return out[: image.fill(out, self.send(bytearray(PLAIN_MAGIC)))]

    def send(self, data: memoryview | bytearray) -> Any:
        """A copy of the bytes there, complete when this returns."""
        with self._device:
            array = self._cupy.empty(len(data), "uint8")
            if len(data):  # not through `asarray`, which copies to memory of its own on the way
                array.set(importlib.import_module("numpy").frombuffer(data, "uint8"))
                self._cupy.cuda.get_current_stream().synchronize()
            return array

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
        """The call's result, with this GPU as the current one; its work there is done."""
        with self._device:
            found = call()
            self._device.synchronize()
            return found


class CudfDecoder:
    """pylibcudf on a GPU. device: as for `Device`. Raises ImportError where it is not installed."""

    def __init__(self, device: int | str) -> None:
        says = "needs pylibcudf, whose import failed: {}; pip install pylibcudf-cu13"
        self._cudf = _later.needed("pylibcudf", f"read_table(device=) {says}", ImportError)
        self._rmm = _later.needed("rmm", f"read_table(device=) {says}", ImportError)
        self._device = Device(device)

    def table(self, image: Image, columns: Sequence[str] | None) -> Any:
        """A `pylibcudf.io.types.TableWithMetadata` of these columns, None: all, of an image that
        has them."""
        parts = [self._device.filled(image)]
        try:
            parts.append(self._device.send(bytearray(enclosed(image.footer()))))
            parts.append(self._device.join(parts))
            file = self._cudf.io.SourceInfo([self._device.as_buffer(parts[-1], self._rmm)])
            options = self._cudf.io.parquet.ParquetReaderOptions.builder(file).build()
            if columns is not None:
                # Its older name is set_columns.
                choose = getattr(options, "set_column_names", None) or options.set_columns
                choose(list(columns))
            return self._device.within(lambda: self._cudf.io.parquet.read_parquet(options))
        finally:
            for part in parts:
                wipe_any(part)

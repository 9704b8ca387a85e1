# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy, in host memory, and everything else that has the buffer protocol."""

from __future__ import annotations

import sys
from typing import Any

from .library import refuse_content, refuse_layout, refuse_mask


def check_mask(x: Any, name: str) -> None:
    """BufferError: x is a masked array, whose elements would lose their mask."""
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise refuse_mask(name)


class Buffers:
    """bytes, bytearray, memoryview, array.array, mmap."""

    owns_types = False
    one_stream = False

    def owns(self, x: Any) -> bool:
        try:
            memoryview(x)
        except TypeError:
            return False
        except BufferError:  # the refusal of a bytearray in resizing, say; the run names it
            return True
        return True

    def device(self, x: Any) -> int | None:
        return None

    def current_stream(self, x: Any) -> int:
        return 0

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        return x

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        return bytearray(size)

    def head(self, x: Any, size: int) -> Any:
        return memoryview(x).cast("B")[:size]

    def finish(self, x: Any) -> Any:
        return x


class NumPy(Buffers):
    """Arrays that also lie in host memory, and say of what type their items are."""

    owns_types = True
    one_stream = True

    def owns(self, x: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(x, numpy.ndarray)

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        check_mask(x, name)
        if not x.flags.c_contiguous:
            raise refuse_layout(name, f"numpy.ndarray with strides {x.strides}")
        if write and not x.flags.writeable:
            raise BufferError(f"{name} is a read-only numpy.ndarray: give a writable array")
        if x.dtype.hasobject or self._holds_text(x.dtype):
            what = "text" if self._holds_text(x.dtype) else "Python objects"
            raise refuse_content(name, what, f"numpy.ndarray of dtype {x.dtype}")
        return self._bytes(x)

    def _holds_text(self, dtype: Any) -> bool:
        """Whether strings of code points are in it, which each machine stores in its own way."""
        base = dtype.base
        if base.fields:
            return any(self._holds_text(entry[0]) for entry in base.fields.values())
        return base.kind in "UT"

    @staticmethod
    def _bytes(x: Any) -> Any:
        """x as bytes: some dtypes (bfloat16, datetime64) have no format in the buffer protocol. As
        a plain array: a numpy.matrix never has one dimension."""
        numpy = sys.modules["numpy"]
        return numpy.asarray(x).reshape(-1).view(numpy.uint8)

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        numpy = sys.modules["numpy"]
        return numpy.empty(size, numpy.uint8)

    def head(self, x: Any, size: int) -> Any:
        return self._bytes(x)[:size]

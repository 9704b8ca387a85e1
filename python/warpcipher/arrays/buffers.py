# SPDX-License-Identifier: Apache-2.0
"""Whatever has the buffer protocol alone."""

from __future__ import annotations

from typing import Any


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

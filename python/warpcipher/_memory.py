# SPDX-License-Identifier: Apache-2.0
"""Host memory for large results, taken from the system in whole pages."""

from __future__ import annotations

import contextlib
import errno
import mmap

SMALLEST_MAPPING = 1 << 20
"""Smaller blocks come from the heap: a process may have some 65000 mappings."""


def allocate(size: int) -> memoryview:
    """`size` writable bytes, zeros. They live as long as something has a view of them. Raises
    MemoryError."""
    if size < SMALLEST_MAPPING:
        return memoryview(bytearray(size))
    try:
        # Private: a child of a fork writes to its own copy.
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError(f"{size} bytes of memory") from None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # The kernel needs as long to hand out 92 MiB in pages of 4 KiB as it takes to decrypt them.
        # Some kernels have no huge pages.
        with contextlib.suppress(OSError):
            block.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(block)

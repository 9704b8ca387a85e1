# SPDX-License-Identifier: Apache-2.0
"""A search of this process's whole memory, for tests that no plaintext is in it. The programs that
those tests start import it."""

from __future__ import annotations

from pathlib import Path

PIECE = 1 << 24


def count(needle: bytes) -> int:
    """How often all readable memory holds `needle`, this search's own copies included. Pieces
    overlap by 64 bytes: a longer needle may be missed at an edge."""
    found = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        start, end = (int(part, 16) for part in span.split("-"))
        if not rights.startswith("r") or "[v" in line:
            continue
        with open("/proc/self/mem", "rb", 0) as memory:  # noqa: PTH123
            for place in range(start, end, PIECE):
                try:
                    memory.seek(place)
                    data = memory.read(min(end - place, PIECE + 64))
                except (OSError, ValueError, OverflowError):
                    break
                found += data.count(needle)
                del data  # else the next piece may hold what this one had
    return found

# SPDX-License-Identifier: Apache-2.0
"""How fast is this here, and how near to what the machine can do: what `warpcipher bench` runs.

from warpcipher_measure import bench

report = bench.run(bench.Settings(algorithms=("aes-256-gcm",), sizes=(1 << 20,)))
report.rows[0].gigabytes_per_second.median
"""

from __future__ import annotations

from warpcipher.arguments import parse_size

from .results import Bound, Cpu, Gpu, LeftOut, Machine, PeerRow, Report, Row, Spread
from .runner import run
from .settings import (
    ALGORITHMS,
    DIRECTIONS,
    PEERS,
    RESIDENCES,
    SIZES,
    Effective,
    Settings,
    parse_sizes,
    shown_size,
)

__all__ = [
    "ALGORITHMS",
    "DIRECTIONS",
    "PEERS",
    "RESIDENCES",
    "SIZES",
    "Bound",
    "Cpu",
    "Effective",
    "Gpu",
    "LeftOut",
    "Machine",
    "PeerRow",
    "Report",
    "Row",
    "Settings",
    "Spread",
    "parse_size",
    "parse_sizes",
    "run",
    "shown_size",
]

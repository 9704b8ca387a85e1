# SPDX-License-Identifier: Apache-2.0
"""How fast is this here, and how near to what the machine can do: what `warpcipher bench` runs.

from warpcipher_measure import bench

report = bench.run(bench.Settings(algorithms=("aes-256-gcm",), sizes=(1 << 20,)))
report.rows[0].gigabytes_per_second.median
"""

from .results import Report, Row, Spread
from .runner import run
from .settings import ALGORITHMS, DIRECTIONS, SIZES, Settings

__all__ = ["ALGORITHMS", "DIRECTIONS", "SIZES", "Report", "Row", "Settings", "Spread", "run"]

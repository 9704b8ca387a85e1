# SPDX-License-Identifier: Apache-2.0
"""The commands that this package adds to `warpcipher`, as its entry points name them."""

from .bench_command import bench
from .lab_command import lab

__all__ = ["bench", "lab"]

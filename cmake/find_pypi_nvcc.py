# SPDX-License-Identifier: Apache-2.0
"""Prints the root of the CUDA toolkit that PyPI packages put in this Python's path, or nothing."""

import sys
from pathlib import Path

for entry in sys.path:
    root = Path(entry or ".") / "nvidia" / "cu13"
    if (root / "bin" / "nvcc").is_file():
        print(root.resolve())
        break

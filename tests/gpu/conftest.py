# SPDX-License-Identifier: Apache-2.0
"""These tests need a GPU. Asked for where there is none, they fail: they are not skipped."""

from __future__ import annotations

import pytest
import warpcipher as wc

CUDA = next(info for info in wc.engines() if info.name == "cuda")

if not CUDA.usable:
    pytest.exit(f"tests/gpu needs the cuda engine: {CUDA.reason}", returncode=1)


def pytest_report_header() -> list[str]:
    return [f"GPU: {device}" for device in CUDA.devices]

# SPDX-License-Identifier: Apache-2.0
"""What every run says first: which engines are tested here, and why another is not."""

from __future__ import annotations

import warpcipher as wc


def pytest_report_header() -> list[str]:
    return [
        f"engine {info.name}: {'tested' if info.usable else 'not tested: ' + info.reason}"
        for info in wc.engines()
    ]

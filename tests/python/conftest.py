# SPDX-License-Identifier: Apache-2.0
"""The first lines of every run: which engines are tested here, and why another is not."""

from __future__ import annotations

import os
import signal

# Also for the programs that tests start: objects that nobody freed are reported at exit.
os.environ.setdefault("WARPCIPHER_TEST_LEAKS", "1")

import warpcipher as wc

# A shell starts background jobs with SIGINT ignored, and so would be the programs that the tests
# interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    return [
        f"engine {info.name}: {'tested' if info.usable else 'not tested: ' + info.reason}"
        for info in wc.engines()
    ]

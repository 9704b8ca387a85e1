# SPDX-License-Identifier: Apache-2.0
"""Forks at random moments, while other threads are at work: each child can do all that its parent
could, and ends."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("forking_program.py")


@pytest.mark.cases(12)
def test_children_can_work(choose: random.Random) -> None:
    """A process of its own for each case, as what is made at first use is made once."""
    command = [sys.executable, "-W", "ignore", PROGRAM, str(choose.randrange(1 << 32))]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""

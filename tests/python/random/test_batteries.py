# SPDX-License-Identifier: Apache-2.0
"""Batteries for random numbers, on demand: where nistrng (NIST SP 800-22) or the command dieharder
is installed. docs/testing.md has the longer runs. Keys are fixed: a test passes always or never.

    python tests/python/random/test_batteries.py chacha20 | dieharder -a -g 200
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from warpcipher.random import Generator

KEY = bytes(range(32))
ALGORITHMS = pytest.mark.parametrize("algorithm", ["chacha20", "aes-256-ctr"])


@ALGORITHMS
def test_sp_800_22(algorithm: Any) -> None:
    """No p-value below 10^-4 in 10^5 bits."""
    nistrng: Any = pytest.importorskip("nistrng")
    text = Generator(KEY, algorithm=algorithm).bytes(12_500)
    bits = np.unpackbits(np.frombuffer(text, np.uint8)).astype(np.int64)
    battery = nistrng.SP800_22R1A_BATTERY
    ran = 0
    for name in battery:
        # A copy for each: some tests of nistrng 1.2.3 change what they are given.
        result = nistrng.run_by_name_battery(name, bits.copy(), battery)
        if result is not None:
            print(algorithm, name, float(np.min(result[0].score)))
            assert np.min(result[0].score) > 1e-4
            ran += 1
    assert ran >= 10


@ALGORITHMS
@pytest.mark.parametrize("test", ["15", "100", "205"])
def test_dieharder(algorithm: Any, test: str) -> None:
    if shutil.which("dieharder") is None:
        pytest.skip("dieharder is not installed")
    with subprocess.Popen([sys.executable, __file__, algorithm], stdout=subprocess.PIPE) as stream:
        command = ["dieharder", "-g", "200", "-d", test]
        done = subprocess.run(command, stdin=stream.stdout, capture_output=True, check=True)
        stream.kill()
    assert b"PASSED" in done.stdout
    assert b"FAILED" not in done.stdout


if __name__ == "__main__":
    generator = Generator(KEY, algorithm=sys.argv[1])  # type: ignore[arg-type]
    try:
        while True:
            sys.stdout.buffer.write(generator.bytes(1 << 22))
    except BrokenPipeError:
        sys.stdout = None  # type: ignore[assignment]  # else it would be flushed once more

# SPDX-License-Identifier: Apache-2.0
"""The demonstration, on a small input: every step comes out, and it removes what it made."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[3] / "tools" / "demo.py"


def test_demo(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, DEMO, "--size", "30"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    if importlib.util.find_spec("cryptography") or importlib.util.find_spec("tink"):
        assert "the same plaintext, and every chunk authentic to it" in done.stdout
    for text in (
        "identical to the input, byte for byte",
        "only their chunks were decrypted",
        "exit code 3: one bit",
        "File to file",
        "engine cpu",
        "All of it worked",
    ):
        assert text in done.stdout
    found = re.search(r"files of this machine, in (\S+)", done.stdout)
    assert found is not None
    assert "warpcipher-demo-" in found[1]
    assert not Path(found[1]).exists()

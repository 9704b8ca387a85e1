# SPDX-License-Identifier: Apache-2.0
"""Commands whose standard output or standard error is closed or full: the exit code says so where
something was to be printed, and the files are what they would have been."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from cli_support import COMMAND, names, temporaries
from fuzz_scenes import KEY, SUFFIX

TEXT = b"text"
PAIR = f"{'00' * 16}:66e94bd4ef8a2c3b884cfa59ca342b2e"
"""Of AES-128 with a key of zeros."""
SEARCH = ("search", "--algorithm", "aes-128", "--pair", PAIR, "--template")

# A command, its exit code, whether it prints, and what it makes.
COMMANDS: tuple[tuple[tuple[str, ...], int, bool, set[str]], ...] = (
    (("--help",), 0, True, set()),
    (("--version",), 0, True, set()),
    (("encrypt", "--help"), 0, True, set()),
    (("completion", "bash"), 0, True, set()),
    (("info", "--algorithms"), 0, True, set()),
    (("info", "--json", "--formats"), 0, True, set()),
    (("info", "a"), 0, True, set()),
    (("no-such-command",), 2, False, set()),
    (("keygen", "key"), 2, False, set()),
    (("keygen", "made"), 0, False, {"made"}),
    (("keygen", "--json", "made"), 0, True, {"made"}),
    (("encrypt", "--key", "key", "a"), 0, False, {f"a{SUFFIX}"}),
    (("encrypt", "--key", "key", "--json", "a"), 0, True, {f"a{SUFFIX}"}),
    (("encrypt", "--key", "key", "--json", "missing", "a"), 4, True, {f"a{SUFFIX}"}),
    (("encrypt", "--key", "key", "missing", "a"), 4, False, {f"a{SUFFIX}"}),
    (("encrypt", "--key", "key", "a", "-o", "-"), 0, True, set()),
    (("decrypt", "--key", "key", "a", "-o", "b"), 3, False, set()),
    ((*SEARCH, f"{'00' * 15}??"), 0, True, set()),
    ((*SEARCH, f"{'01' * 15}??"), 6, False, set()),
    ((*SEARCH, f"{'01' * 15}??", "--json"), 6, True, set()),
)  # fmt: skip
STATES = {"open": "", "full": "{}>/dev/full", "closed": "{}>&-"}


@pytest.mark.cases(10)
def test_streams_that_take_nothing(choose: random.Random, tmp_path: Path) -> None:
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "a").write_bytes(TEXT)
    command, code, prints, made = choose.choice(COMMANDS)
    out, err = (choose.choice(list(STATES)) for _ in range(2))
    line = f'"$@" {STATES[out].format(1)} {STATES[err].format(2)}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *COMMAND, *command],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    told = f"{command}, standard output {out}, standard error {err}:\n{done.stderr.decode()}"
    lost = prints and out != "open" and code in (0, 6)
    assert done.returncode == (4 if lost else code), told
    assert b"Traceback" not in done.stderr, told
    assert b"Exception" not in done.stderr, told
    assert err == "open" or done.stderr == b"", told
    assert names(tmp_path) == {"key", "a", *made}, told
    assert not temporaries(tmp_path)

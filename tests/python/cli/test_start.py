# SPDX-License-Identifier: Apache-2.0
"""SIGINT while the command is still starting ends it quietly. A command sets nothing of another
program that runs it."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import cli_support
import pytest
from click.testing import CliRunner
from warpcipher.cli.app import cli

PROJECT = Path(__file__).parents[3] / "pyproject.toml"

# Python runs this before anything else; the process then interrupts itself at a certain import.
INTERRUPTION = """
import os, signal, sys
def interrupt(event, arguments):
    if event == "import" and arguments[0] == os.environ["INTERRUPT_AT"]:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
if os.environ.get("IGNORE_SIGINT"):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
"""
MOMENTS = [
    "warpcipher._errors",
    "warpcipher._native",
    "click",
    "warpcipher.cli.app",
    "warpcipher.cli.errors",
]


def console_script() -> list[str]:
    """The script that pip makes of the line in pyproject.toml."""
    found = re.search(r'^warpcipher = "([\w.]+):(\w+)"$', PROJECT.read_text(), re.MULTILINE)
    assert found is not None
    module, function = found.groups()
    return [sys.executable, "-c", f"import sys; from {module} import {function}; {function}()"]


def start_at(
    moment: str, command: list[str], folder: Path, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    (folder / "sitecustomize.py").write_text(INTERRUPTION)
    path = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [*command, "--version"],
        env={**os.environ, "PYTHONPATH": path, "INTERRUPT_AT": moment, **variables},
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", ["module", "script"])
def test_interrupted_start_ends_quietly(tmp_path: Path, moment: str, way: str) -> None:
    command = cli_support.COMMAND if way == "module" else console_script()
    done = start_at(moment, command, tmp_path)
    assert done.returncode == -signal.SIGINT
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("way", ["module", "script"])
def test_ignored_signal_stays_ignored(tmp_path: Path, way: str) -> None:
    command = cli_support.COMMAND if way == "module" else console_script()
    done = start_at("click", command, tmp_path, IGNORE_SIGINT="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"warpcipher ")


def test_library_leaves_signals_alone(tmp_path: Path) -> None:
    """Whoever imports it gets KeyboardInterrupt, as from any module."""
    program = (
        "try:\n    import warpcipher.cli\nexcept KeyboardInterrupt:\n    print('caught')\n"
        "import signal\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    done = start_at("warpcipher._native", [sys.executable, "-c", program], tmp_path)
    assert (done.returncode, done.stdout) == (0, b"caught\n"), done.stderr


def test_garbage_of_another_program_stays_garbage() -> None:
    """Cycles that are lost when a command begins, and the keys in them, are freed later."""
    assert gc.isenabled()
    frozen = gc.get_freeze_count()
    assert CliRunner().invoke(cli, ["completion", "bash"]).exit_code == 0
    assert gc.get_freeze_count() == frozen
    assert gc.isenabled()

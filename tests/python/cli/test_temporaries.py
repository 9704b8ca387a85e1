# SPDX-License-Identifier: Apache-2.0
"""A signal in the moment before a temporary gets its name: it is removed, and what had the name
stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import COMMAND, make_key, names, run, temporaries

# Python runs this before anything else; the process then interrupts itself.
INTERRUPTION = """
import os, signal, sys
def interrupt(event, arguments):
    renames = event == "os.rename" and os.fsencode(arguments[0]).endswith(b".part")
    if renames or (event == "ctypes.dlsym" and arguments[1] == "renameat2"):
        os.kill(os.getpid(), int(os.environ["INTERRUPT_BY"]))
sys.addaudithook(interrupt)
"""
every_signal = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


def interrupted(number: signal.Signals, *arguments: str, cwd: Path, hook: Path) -> None:
    (hook / "sitecustomize.py").write_text(INTERRUPTION)
    path = os.pathsep.join([str(hook), *sys.path])
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "INTERRUPT_BY": str(int(number))},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -number, done.stderr
    assert done.stderr == b"\nwarpcipher: interrupted\n"


@every_signal
def test_rewrap(
    number: signal.Signals, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    np = pytest.importorskip("numpy", reason="NumPy is not installed")
    from test_cli import web_keys
    from warpcipher import weights

    old = web_keys(tmp_path, "old", 1)
    web_keys(tmp_path, "new", 5)
    weights.save_file({"a": np.zeros(1000)}, tmp_path / "m", old)
    before = (tmp_path / "m").read_bytes()
    arguments = ("rewrap", "--key", "old", "--new-key", "new", "m")
    interrupted(number, *arguments, cwd=tmp_path, hook=tmp_path_factory.mktemp("hook"))
    assert (tmp_path / "m").read_bytes() == before
    assert names(tmp_path) == {"old", "new", "m"}


@every_signal
def test_links_of_a_tree(
    number: signal.Signals, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    make_key(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "t/link").symlink_to("new")
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/link").symlink_to("old")
    arguments = ("decrypt", "--force", "--key", "key", "t.cobblestone", "-o", "out")
    interrupted(number, *arguments, cwd=tmp_path, hook=tmp_path_factory.mktemp("hook"))
    assert not temporaries(tmp_path)
    assert (tmp_path / "out/link").readlink() == Path("old")
    run(*arguments, cwd=tmp_path)
    assert (tmp_path / "out/link").readlink() == Path("new")

# SPDX-License-Identifier: Apache-2.0
"""Commands that write files get a signal before a random line of the package's code: no name ever
stands for half a file, and nothing but SIGKILL leaves a temporary."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from fuzz_scenes import make_scene, places

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(scope="session")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("counted")


@pytest.mark.cases(25)
def test_signal_at_any_line(choose: random.Random, tmp_path: Path, counted: Path) -> None:
    kind, scene = make_scene(choose, tmp_path)
    number = choose.choice((*ENDING, signal.SIGKILL))
    at = choose.randint(1, places(kind, counted)[0])
    done = scene.run({"signal": number, "at": at})
    assert done.returncode in (0, -number), done.stderr.decode()
    assert b"Traceback" not in done.stderr
    killed = number == signal.SIGKILL
    scene.check(finished=done.returncode == 0, leftover=killed)
    if done.returncode and not killed:
        # Before the command has handlers of its own nothing is there to tell of.
        assert done.stderr in (b"", b"\nwarpcipher: interrupted\n")
        scene.check_folders()

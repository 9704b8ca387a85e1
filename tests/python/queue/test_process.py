# SPDX-License-Identifier: Apache-2.0
"""Queue and its process: what it starts, and how collection of garbage, exit and fork end it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warpcipher as wc
from queue_support import HOUR, IV


def run_python(code: str) -> str:
    """The output of a fresh interpreter; fails when it fails or hangs."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("arguments", ["'cpu'", "'auto', max_in_flight=4", "'auto'"])
def test_no_driver_is_started_for_a_queue_that_needs_none(arguments: str, tmp_path: Path) -> None:
    loaded = run_python(
        "import os\n"
        f"os.environ['XDG_CACHE_HOME'] = {os.fspath(tmp_path)!r}  # nothing was tuned\n"
        "os.environ.pop('WARPCIPHER_ENGINE', None)\n"
        "import warpcipher as wc\n"
        f"with wc.Queue({arguments}) as q:\n"
        "    assert q.max_in_flight == 4\n"
        "    q.submit('aes-128-ctr', 'encrypt', bytes(16), b'x', iv=bytes(16)).result(10)\n"
        "print('libcuda.so' in open('/proc/self/maps').read())\n"
    )
    assert loaded == "False\n"


def test_what_is_dropped_is_done_all_the_same() -> None:
    q = wc.Queue(max_delay_us=HOUR)
    future = q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV)
    del q
    gc.collect()
    assert len(future.result(10)) == 1


def test_the_interpreter_exits_after_all_is_done() -> None:
    assert "done 1" in run_python(
        "import warpcipher as wc\n"
        f"q = wc.Queue(max_delay_us={HOUR})\n"
        "f = q.submit('aes-128-ctr', 'encrypt', bytes(16), b'x', iv=bytes(16))\n"
        "f.add_done_callback(lambda f: print('done', len(f.result())))\n"
    )


def test_the_interpreter_exits_while_daemons_submit() -> None:
    run_python(
        "import threading, time\n"
        "import warpcipher as wc\n"
        "q = wc.Queue(memory_limit=10000)\n"
        "def work():\n"
        "    try:\n"
        "        while True:\n"
        "            q.submit('aes-128-ctr', 'encrypt', bytes(16), bytes(2000), iv=bytes(16))\n"
        "    except RuntimeError: pass\n"
        "for _ in range(4): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.2)\n"
    )


def test_the_child_of_a_fork_makes_its_own() -> None:
    assert (
        run_python(
            "import os, warnings\n"
            # Python 3.12 warns of any fork in a process with threads.
            "warnings.simplefilter('ignore', DeprecationWarning)\n"
            "import warpcipher as wc\n"
            f"q = wc.Queue(max_delay_us={HOUR})\n"
            "a = ('aes-128-ctr', 'encrypt', bytes(16), b'x')\n"
            "f = q.submit(*a, iv=bytes(16))\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    try: q.submit(*a, iv=bytes(16))\n"
            "    except wc.EngineError as error: assert 'fork' in str(error)\n"
            "    else: os._exit(3)\n"
            "    assert not f.cancel() and not f.done()\n"
            "    q.close()\n"
            "    with wc.Queue() as own: assert len(own.submit(*a, iv=bytes(16)).result(10)) == 1\n"
            "    os._exit(0)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "q.flush()\n"
            "print(len(f.result(10)))\n"
        )
        == "1\n"
    )

# SPDX-License-Identifier: Apache-2.0
"""Forks while another thread uses the package, for the first time above all: no child may hang."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Children end themselves with SIGALRM if they hang. Python 3.12 warns of every fork in a process
# with threads.
PROGRAM = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import warpcipher as wc

def use():
{use}

def child():
    signal.alarm(40)
    code = 1
    try:
        use()
        code = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(code)

begun = threading.Event()
ended = False

def other():
    global ended
    begun.set()
    use()
    ended = True

thread = threading.Thread(target=other)
thread.start()
begun.wait()
children = []
while not ended and len(children) < 12:
    number = os.fork()
    if number == 0:
        child()
    children.append(number)
thread.join()
failed = [status for number in children for status in [os.waitpid(number, 0)[1]] if status != 0]
print(len(failed), "of", len(children))
sys.exit(1 if failed else 0)
"""

USES = {
    "aead": """
    box = wc.aead.AESGCM(bytes(16))
    sealed = box.encrypt(bytes(12), bytes(40000), b"aad")
    assert box.decrypt(bytes(12), sealed, b"aad") == bytes(40000)
""",
    "arrays": """
    out = bytearray(20000)
    wc.Cipher("aes-256-ctr", bytes(32)).encrypt(bytes(20000), iv=bytes(16), out=out)
    assert any(out)
""",
    "batch": """
    batch = wc.Batch()
    handles = [
        batch.add("aes-128-gcm", "encrypt", bytes(16), bytes(30000), iv=bytes([i] * 12))
        for i in range(20)
    ]
    assert batch.start().wait(30)
    assert all(len(handle.result()) == 30016 for handle in handles)
""",
    "queue": """
    with wc.Queue() as queue:
        future = queue.submit("des-ecb", "encrypt", bytes(8), bytes(8))
        assert len(future.result(30)) == 8
""",
    "formats": """
    import io
    sealed = io.BytesIO()
    wc.formats.encrypt_stream(io.BytesIO(b"text"), sealed, bytes(32), format="cobblestone-256")
    sealed.seek(0)
    text = io.BytesIO()
    wc.formats.decrypt_stream(sealed, text, bytes(32))
    assert text.getvalue() == b"text"
""",
}


LEFT_BEHIND = """
import asyncio, os, signal, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import warpcipher as wc

KEY = bytes(16)

def refuses(action):
    try:
        action()
    except wc.EngineError as error:
        return "fork" in str(error)
    return False

async def wait_for(run):
    await run

def start(sizes, iv=0):
    batch = wc.Batch("reference")
    handles = [
        batch.add("aes-128-gcm", "encrypt", KEY, bytes(size), iv=bytes([iv * i] * 12))
        for i, size in enumerate(sizes)
    ]
    return batch.start(), handles

done, handles = start([100], 1)
failed, _ = start([100, 100])  # the same nonce twice
done.wait()
while not failed.done():
    pass

def check_child(running, pending):
    if running.done():
        return 2
    good = refuses(running.wait) and refuses(lambda: running.wait(0)) and not running.done()
    good = good and refuses(lambda: asyncio.run(wait_for(running)))
    good = good and pending[0].status == "pending"
    good = good and done.done() and done.wait() and len(handles[0].result()) == 116
    asyncio.run(wait_for(done))
    try:
        failed.wait()
        good = False
    except ValueError:
        pass
    return 0 if good else 1

# A long text is not done when the child looks; if the machine paused here, a longer one is not.
for megabytes in (2, 8, 32, 128):
    running, pending = start([megabytes << 20], 1)
    number = os.fork()
    if number == 0:
        signal.alarm(40)
        os._exit(check_child(running, pending))
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    assert running.wait() and pending[0].status == "ok"
    if status != 2:
        break
assert status == 0, status
"""


def run_forking(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.parametrize("use", USES)
def test_no_child_hangs_after_a_fork_in_another_threads_first_use(use: str) -> None:
    for _ in range(3):
        done = run_forking(PROGRAM.format(use=USES[use]))
        assert done.returncode == 0, done.stdout + done.stderr


# A thread derives a file's keys while another one forks: by the end of the fork it must be done.
DERIVING = """
import hmac, io, os, threading
from types import SimpleNamespace
from warpcipher import formats
from warpcipher.formats import cobblestone

begun, may_end, inside = threading.Event(), threading.Event(), False

def digest(*arguments):
    global inside
    inside = True
    begun.set()
    may_end.wait()
    inside = False
    return hmac.digest(*arguments)

names = {name: getattr(hmac, name) for name in dir(hmac)}
cobblestone.hmac = SimpleNamespace(**{**names, "digest": digest})
use = lambda: formats.encrypt_stream(
    io.BytesIO(b"text"), io.BytesIO(), bytes(32), format="cobblestone-256"
)
thread = threading.Thread(target=use)
thread.start()
begun.wait()
threading.Timer(0.5, may_end.set).start()
number = os.fork()
if number == 0:
    os._exit(1 if inside else 0)
status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
thread.join()
raise SystemExit(status)
"""


def test_no_fork_while_a_thread_holds_libcryptos_locks() -> None:
    done = run_forking("import warnings; warnings.simplefilter('ignore')\n" + DERIVING)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_child_does_not_wait_for_a_batch_of_its_parent() -> None:
    done = run_forking(LEFT_BEHIND)
    assert done.returncode == 0, done.stdout + done.stderr

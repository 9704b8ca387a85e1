# SPDX-License-Identifier: Apache-2.0
"""The interpreter exits while daemon threads are in calls: cleanly, not waiting for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import warpcipher as wc

# Each ends in the library's code or in Python code that it called, for most of the time.
CALLS = {
    "one message": "cipher.encrypt(text, iv=iv)",
    "a payload": "b = wc.Batch(engine='cpu')\n"
    "b.add('aes-128-ctr', 'encrypt', key, text, iv=iv)\n"
    "b.run()",
    "a batch in the background": "b = wc.Batch(engine='cpu')\n"
    "b.add('aes-128-ctr', 'encrypt', key, text, iv=iv)\n"
    "b.start().wait()",
    "columns": "wc.run_columns('aes-128-ecb', 'encrypt', [key], text, lengths=[1024] * 64)",
    "a queue": "q = wc.Queue(engine='cpu')\n"
    "q.submit('aes-128-ctr', 'encrypt', key, text, iv=iv).result()\n"
    "q.close()",
    "chunks of a file": "sealed = box.encrypt(nonce, text, None)\n"
    "wc.formats.read_chunks(sealed, 'aes-128-gcm', key, bytearray(65536), engine='cpu',\n"
    "    offsets=[0], lengths=[65536], ivs=nonce, threads=2, piece_size=1)",
    "a search": "for _ in wc.search('des-ecb', [(iv[:8], iv[:8])], engine='cpu'): pass",
    "Python code": "box.encrypt(nonce, memoryview(text).cast('H'), None)",
    "another module's": "wc.aead.AESGCM.generate_key(128)",
}

SETTING = """
import threading, time
import warpcipher as wc
key = iv = bytes(16); nonce = bytes(12); text = bytes(65536)
cipher = wc.Cipher("aes-128-ctr", key, engine="cpu")
box = wc.aead.AESGCM(key, engine="cpu")
started = threading.Semaphore(0)
def call():
    {call}
def work():
    started.release()
    while True: call()
for _ in range(8): threading.Thread(target=work, daemon=True).start()
for _ in range(8): started.acquire()
time.sleep(0.02)
"""


FORK = """
import os, sys, threading, warnings
import warpcipher as wc
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork next to threads: Python 3.12
ready, end = threading.Event(), threading.Event()
def work():
    key = wc.Key("aes-128-ctr", bytes(16))
    ready.set()
    end.wait()
worker = threading.Thread(target=work)
worker.start()
ready.wait()
child = os.fork()
if child == 0:
    wc.Cipher("aes-128-ctr", bytes(16)).encrypt(b"text", iv=bytes(16))
    sys.exit(5)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
end.set()
worker.join()
sys.exit(status)
"""


def test_the_child_of_a_fork_exits_in_silence() -> None:
    """Locks that the parent's other threads held at the fork are never released in the child."""
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (5, "")


LEAK = """
import ctypes
import warpcipher as wc
ctypes.pythonapi.Py_IncRef(ctypes.py_object(wc.Key("aes-128-ctr", bytes(16))))
"""


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_a_leak_is_reported_to_the_tests_only(is_asked_for: bool) -> None:
    environment = {**os.environ, "WARPCIPHER_TEST_LEAKS": "1"}
    if not is_asked_for:
        del environment["WARPCIPHER_TEST_LEAKS"]
    done = subprocess.run(
        [sys.executable, "-c", LEAK],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert ("leaked 1 instances" in done.stderr) == is_asked_for
    assert is_asked_for or done.stderr == ""


READ = """
import threading, time
from array import array
import warpcipher as wc
from warpcipher import formats
key, nonce, size, count = bytes(16), bytes(12), 1 << 20, 1 << 22
sealed = wc.aead.AESGCM(key, engine="cpu").encrypt(nonce, bytes(size), None)
zeros = array("Q", bytes(8 * count))
lengths = array("Q", [size]) * count
ivs = nonce * count
def read():
    formats.read_chunks(sealed, "aes-128-gcm", key, bytearray(), engine="cpu", offsets=zeros,
                        lengths=lengths, ivs=ivs, skips=zeros, takes=zeros)
threading.Thread(target=read, daemon=True).start()
time.sleep(1)
"""


def test_the_interpreter_does_not_wait_for_a_daemon_that_reads_a_file() -> None:
    """4 TiB, the same chunk over and over, take many minutes on any machine."""
    done = subprocess.run(
        [sys.executable, "-c", READ], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_interpreter_exits_while_daemons_are_in_calls(call: str) -> None:
    code = SETTING.replace("{call}", call.replace("\n", "\n    "))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


UNAWAITED = """
import mmap, sys
import warpcipher as wc
with open(sys.argv[1], "r+b") as file:
    out = mmap.mmap(file.fileno(), 0)
batch = wc.Batch("reference")
batch.add("aes-128-ctr", "encrypt", bytes(16), bytes(len(out)), iv=bytes(16), out=out)
batch.start()
"""


def test_the_interpreter_waits_for_a_batch_that_nobody_waits_for(tmp_path: Path) -> None:
    size = 1 << 20
    path = tmp_path / "out"
    path.write_bytes(bytes(size))
    done = subprocess.run(
        [sys.executable, "-c", UNAWAITED, path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    cipher = wc.Cipher("aes-128-ctr", bytes(16))
    assert path.read_bytes() == cipher.encrypt(bytes(size), iv=bytes(16))


INTERRUPTED = """
import signal, threading
import warpcipher as wc

def interrupt_a_wait(megabytes):
    batch = wc.Batch("reference")
    batch.add("aes-128-ctr", "encrypt", bytes(16), bytes(megabytes << 20), iv=bytes(16))
    run = batch.start()
    main = threading.main_thread().ident
    sender = threading.Thread(target=lambda: signal.pthread_kill(main, signal.SIGINT))
    try:
        sender.start()
        run.wait()
        sender.join()
    except KeyboardInterrupt:
        ended = run.done()
        sender.join()
        assert run.wait() and run.done()
        return not ended
    return False

assert any(map(interrupt_a_wait, (1, 4, 16, 64))), "the wait ended with its batch"
"""


def test_an_interrupt_ends_the_wait_for_a_batch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

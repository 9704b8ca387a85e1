# SPDX-License-Identifier: Apache-2.0
"""Forks while threads work: python forking_program.py SEED. Exits with 0 when each child did its
work in time and rightly; says what each did that was stopped.

Some runs fork at once, when the threads make what is made at first use; in others all is warm.
"""

from __future__ import annotations

# These register what happens at a fork when they are imported; in the middle of one Python would
# complain of locks that it releases and never took.
import concurrent.futures.thread  # noqa: F401
import io
import logging  # noqa: F401
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

import warpcipher as wc

PATIENCE = 30  # seconds for a child: what it does takes milliseconds
KEY = bytes(range(16))
TEXT = bytes(5000)


def cipher(choose: random.Random) -> None:
    info = choose.choice(wc.algorithms())
    box = wc.Cipher(info.name, bytes(range(info.key_size)), engine=choose.choice(("auto", "cpu")))
    options = {"iv": bytes(info.iv_size)} if info.iv_size else {}
    text = TEXT[: 16 * choose.randint(1, 300)]
    assert box.decrypt(box.encrypt(text, **options), **options) == text


def aead(choose: random.Random) -> None:
    box = wc.aead.AESGCM(KEY)
    nonce = choose.randbytes(12)
    assert box.decrypt(nonce, box.encrypt(nonce, TEXT, b"aad"), b"aad") == TEXT


def batch(choose: random.Random) -> None:
    made = wc.Batch()
    for _ in range(choose.randint(1, 20)):
        made.add("aes-128-gcm", "encrypt", KEY, TEXT, iv=choose.randbytes(12))
    handle = made.add("aes-128-ecb", "encrypt", KEY, bytes(16))
    made.run()
    assert handle.result().hex() == "c6a13b37878f5b826f4f8162a1c8d879"


def columns(choose: random.Random) -> None:
    lengths = [16] * choose.randint(1, 50)
    found = wc.run_columns("aes-128-ecb", "encrypt", [KEY], bytes(sum(lengths)), lengths=lengths)
    assert set(found.status) == {0}


def queue(choose: random.Random) -> None:
    with wc.Queue(max_delay_us=choose.choice((0, 200))) as made:
        sent = [made.submit("aes-128-ecb", "encrypt", KEY, bytes(16)) for _ in range(20)]
        assert {future.result(PATIENCE).hex() for future in sent} == {
            "c6a13b37878f5b826f4f8162a1c8d879"
        }


def stream(choose: random.Random) -> None:
    sealed, back = io.BytesIO(), io.BytesIO()
    text = TEXT * choose.choice((1, 300))
    wc.formats.encrypt_stream(io.BytesIO(text), sealed, KEY)
    wc.formats.decrypt_stream(io.BytesIO(sealed.getvalue()), back, KEY)
    assert back.getvalue() == text


def search(choose: random.Random) -> None:
    pair = bytes(16), bytes.fromhex("c6a13b37878f5b826f4f8162a1c8d879")
    template = f"{KEY[:-2].hex()}{'??' * 2}" if choose.random() < 0.5 else KEY.hex()
    assert wc.search("aes-128", [pair], template).run() == [KEY]


def settings(choose: random.Random) -> None:
    del choose
    wc.engines()
    wc.tuning.current()


WORK: tuple[Callable[[random.Random], None], ...] = (
    cipher, cipher, cipher, aead, batch, columns, queue, stream, search, settings,
)  # fmt: skip


def child(seed: str, report: int) -> None:
    choose = random.Random(seed)
    for _ in range(choose.randint(1, 4)):
        work = choose.choice(WORK)
        os.write(report, work.__name__.encode() + b" ")
        work(choose)
    os.write(report, b"done")


def fork(seed: str) -> str:
    """The reason why a child did not end well; empty if it did."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        try:
            child(seed, writer)
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:  # noqa: PTH123
        told = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return f"{told} ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return "" if told.endswith("done") else told


def main() -> int:
    seed = sys.argv[1]
    choose = random.Random(seed)
    if choose.random() < 0.4:  # all that is made at first use is there
        for work in WORK:
            work(choose)
    ended = threading.Event()

    def run(work: Callable[[random.Random], None], own: random.Random) -> None:
        while not ended.is_set():
            work(own)

    busy = choose.choices(WORK, k=choose.randint(1, 4))
    threads = [
        threading.Thread(target=run, args=(work, random.Random(choose.random()))) for work in busy
    ]
    for thread in threads:
        thread.start()
    failures = []
    for number in range(choose.randint(1, 4)):
        time.sleep(choose.choice((0, choose.random() * 2e-3, choose.random() * 0.05)))
        if failure := fork(f"{seed} {number}"):
            failures.append(failure)
    ended.set()
    for thread in threads:
        thread.join()
    names = ", ".join(work.__name__ for work in busy)
    for failure in failures:
        print(f"child, while {names} went on: {failure}", file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())

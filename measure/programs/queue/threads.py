# SPDX-License-Identifier: Apache-2.0
"""Many threads with AES-GCM messages: a `Queue` against a loop of AESGCM calls in each thread.

Each thread keeps a window of messages in flight. A latency is the time from before `submit` until
the future is done, as its callback sees it; of a plain call, the time of the call.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import warpcipher as wc
from warpcipher_measure.program import Program

ALGORITHM = "aes-128-gcm"
Message = Callable[[bytes, Callable[[], None]], None]
"""Sends a message with that nonce, and has a function called when it is done."""


def run_threads(count: int, messages: int, window: int, send: Message) -> tuple[float, list[float]]:
    """Seconds until all threads are done, and the latencies of all messages, sorted."""
    latencies: list[float] = []
    start = threading.Barrier(count + 1)

    def client(number: int) -> None:
        free, own = threading.Semaphore(window), []

        def one(nonce: bytes) -> None:
            begin = time.perf_counter()

            def done() -> None:
                own.append(time.perf_counter() - begin)
                free.release()

            send(nonce, done)

        start.wait()
        for i in range(messages):
            free.acquire()
            one(number.to_bytes(4, "big") + i.to_bytes(8, "big"))
        for _ in range(window):
            free.acquire()
        latencies.extend(own)

    with ThreadPoolExecutor(count) as pool:
        clients = [pool.submit(client, number) for number in range(count)]
        start.wait()
        begin = time.perf_counter()
        for each in clients:
            each.result()
        return time.perf_counter() - begin, sorted(latencies)


def main() -> None:
    program = Program(__doc__)
    program.option("--threads", type=int, default=16)
    program.option("--size", type=int, default=16 << 10, help="bytes of a message")
    program.option("--messages", type=int, default=500, help="of each thread")
    program.option("--window", type=int, nargs="+", default=[1, 16])
    program.option("--delays", type=int, nargs="+", default=[0, 50, 200, 1000])
    program.option("--engine", default="auto")
    options = program.parse()
    raw, text = os.urandom(16), os.urandom(options.size)
    key, box = wc.Key(ALGORITHM, raw), wc.aead.AESGCM(raw, engine=options.engine)
    total = options.threads * options.messages * options.size

    def call(nonce: bytes, done: Callable[[], None]) -> None:
        box.encrypt(nonce, text, None)
        done()

    def measure(name: str, window: int, send: Message, note: Callable[[], str] = str) -> None:
        runs = range(options.repetitions)
        found = [run_threads(options.threads, options.messages, window, send) for _ in runs]
        program.add(name, "GB/s", [total / seconds / 1e9 for seconds, _ in found], note())
        for part in (50, 99):
            at = [latencies[len(latencies) * part // 100] * 1e6 for _, latencies in found]
            program.add(f"{name}: p{part}", "us", at)

    measure("AESGCM in a loop", 1, call)
    for window, delay in product(options.window, options.delays):
        with wc.Queue(options.engine, max_delay_us=delay) as queue:

            def submit(nonce: bytes, done: Callable[[], None], queue: wc.Queue = queue) -> None:
                future = queue.submit(ALGORITHM, "encrypt", key, text, iv=nonce)
                future.add_done_callback(lambda _: done())

            def payloads(queue: wc.Queue = queue) -> str:
                counts = queue.statistics()
                return f"{counts.messages / counts.payloads:.1f} messages a payload"

            measure(f"Queue, window {window}, age limit {delay} us", window, submit, payloads)
    program.finish(algorithm=f"{ALGORITHM}, one key, no AAD, host memory", **vars(options))


if __name__ == "__main__":
    main()

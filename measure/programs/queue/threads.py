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

import warpcipher as wc
from warpcipher_measure.program import Program

ALGORITHM = "aes-128-gcm"
Client = Callable[[int, list[float]], None]


def run_threads(count: int, client: Client) -> tuple[float, list[float]]:
    """Seconds until all threads are done, and the latencies of all messages."""
    latencies: list[list[float]] = [[] for _ in range(count)]
    start = threading.Barrier(count + 1)

    def body(number: int) -> None:
        start.wait()
        client(number, latencies[number])

    threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    start.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin, sorted(one for some in latencies for one in some)


def nonce_of(client: int, number: int) -> bytes:
    return client.to_bytes(4, "big") + number.to_bytes(8, "big")


def plain_client(box: wc.aead.AESGCM, text: bytes, messages: int) -> Client:
    def client(number: int, latencies: list[float]) -> None:
        for i in range(messages):
            begin = time.perf_counter()
            box.encrypt(nonce_of(number, i), text, None)
            latencies.append(time.perf_counter() - begin)

    return client


def queue_client(queue: wc.Queue, key: wc.Key, text: bytes, messages: int, window: int) -> Client:
    def client(number: int, latencies: list[float]) -> None:
        free = threading.Semaphore(window)

        def submit(i: int) -> None:
            begin = time.perf_counter()

            def done(future: object) -> None:
                latencies.append(time.perf_counter() - begin)
                free.release()

            nonce = nonce_of(number, i)
            queue.submit(ALGORITHM, "encrypt", key, text, iv=nonce).add_done_callback(done)

        for i in range(messages):
            free.acquire()
            submit(i)
        for _ in range(window):
            free.acquire()

    return client


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
    notes = [""]  # of what was measured last

    def measure(name: str, once: Callable[[], tuple[float, list[float]]]) -> None:
        found = [once() for _ in range(options.repetitions)]
        program.add(name, "GB/s", [total / seconds / 1e9 for seconds, _ in found], notes.pop())
        for part in (50, 99):
            at = [latencies[len(latencies) * part // 100] * 1e6 for _, latencies in found]
            program.add(f"{name}: p{part}", "us", at)

    def queued(delay: int, window: int) -> tuple[float, list[float]]:
        with wc.Queue(options.engine, max_delay_us=delay) as queue:
            client = queue_client(queue, key, text, options.messages, window)
            done = run_threads(options.threads, client)
            counts = queue.statistics()
        notes.append(f"{counts.messages / counts.payloads:.1f} messages a payload")
        return done

    plain = plain_client(box, text, options.messages)
    measure("AESGCM in a loop", lambda: run_threads(options.threads, plain))
    for window in options.window:
        for delay in options.delays:
            name = f"Queue, window {window}, age limit {delay} us"
            measure(name, lambda delay=delay, window=window: queued(delay, window))  # type: ignore[misc]
    program.finish(algorithm=f"{ALGORITHM}, one key, no AAD, host memory", **vars(options))


if __name__ == "__main__":
    main()

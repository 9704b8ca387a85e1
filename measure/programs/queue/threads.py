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
from warpcipher_measure.program import Row, parser, report

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
    return time.perf_counter() - begin, [one for some in latencies for one in some]


def nonce_of(client: int, number: int) -> bytes:
    return client.to_bytes(4, "big") + number.to_bytes(8, "big")


def plain_client(encrypt: Callable[..., bytes], text: bytes, messages: int) -> Client:
    def client(number: int, latencies: list[float]) -> None:
        for i in range(messages):
            begin = time.perf_counter()
            encrypt(nonce_of(number, i), text, None)
            latencies.append(time.perf_counter() - begin)

    return client


def queue_client(
    queue: wc.Queue, key: wc.Key, text: bytes, messages: int, window: int, name: str
) -> Client:
    def client(number: int, latencies: list[float]) -> None:
        free = threading.Semaphore(window)

        def submit(i: int) -> None:
            begin = time.perf_counter()

            def done(future: object) -> None:
                latencies.append(time.perf_counter() - begin)
                free.release()

            nonce = nonce_of(number, i)
            queue.submit(name, "encrypt", key, text, iv=nonce).add_done_callback(done)

        for i in range(messages):
            free.acquire()
            submit(i)
        for _ in range(window):
            free.acquire()

    return client


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--threads", type=int, default=16)
    arguments.add_argument("--size", type=int, default=16 << 10, help="bytes of a message")
    arguments.add_argument("--messages", type=int, default=500, help="of each thread")
    arguments.add_argument("--window", type=int, nargs="+", default=[1, 16])
    arguments.add_argument("--delays", type=int, nargs="+", default=[0, 50, 200, 1000])
    arguments.add_argument("--engine", default="auto")
    options = arguments.parse_args()
    raw = os.urandom(16)
    key, text = wc.Key("aes-128-gcm", raw), os.urandom(options.size)
    total = options.threads * options.messages * options.size
    rows: list[Row] = []

    def measure(name: str, make: Callable[[], tuple[Client, Callable[[], str]]]) -> None:
        rates, p50, p99, note = [], [], [], ""
        for _ in range(options.repetitions):
            client, finish = make()
            seconds, latencies = run_threads(options.threads, client)
            note = finish()
            rates.append(total / seconds / 1e9)
            p50.append(percentile(latencies, 0.5) * 1e6)
            p99.append(percentile(latencies, 0.99) * 1e6)
        rows.append(Row(name, "GB/s", rates, note))
        rows.append(Row(f"{name}: p50", "us", p50))
        rows.append(Row(f"{name}: p99", "us", p99))

    def plain() -> tuple[Client, Callable[[], str]]:
        box = wc.aead.AESGCM(raw, engine=options.engine)
        return plain_client(box.encrypt, text, options.messages), str

    def queued(delay: int, window: int) -> tuple[Client, Callable[[], str]]:
        queue = wc.Queue(options.engine, max_delay_us=delay)

        def finish() -> str:
            counts = queue.statistics()
            queue.close()
            reasons = ", ".join(f"{n} {name}" for name, n in counts.reasons.items() if n)
            return f"{counts.messages / counts.payloads:.1f} messages a payload ({reasons})"

        client = queue_client(queue, key, text, options.messages, window, "aes-128-gcm")
        return client, finish

    measure("AESGCM in a loop", plain)
    for window in options.window:
        for delay in options.delays:
            measure(
                f"Queue, window {window}, age limit {delay} us",
                lambda delay=delay, window=window: queued(delay, window),  # type: ignore[misc]
            )
    report(
        rows,
        options,
        algorithm="aes-128-gcm, one key, no AAD, host memory",
        engine=options.engine,
        threads=options.threads,
        size=options.size,
        messages=options.messages,
    )


if __name__ == "__main__":
    main()

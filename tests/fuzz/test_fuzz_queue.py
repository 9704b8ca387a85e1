# SPDX-License-Identifier: Apache-2.0
"""A queue under random use from many threads: submits, forgeries, cancels, callbacks that submit or
raise, flushes, and a close at any moment. Every future ends, and with what it must."""

from __future__ import annotations

import contextlib
import logging
import queue
import random
import threading
from collections import Counter
from concurrent import futures
from dataclasses import dataclass
from typing import Any

import conformance as c
import numpy as np
import pytest
import warpcipher as wc
from conformance_vectors import Vector

PATIENCE = 60  # seconds for a future that should be done: longer than any machine needs
AEADS = [name for name, info in c.ALGORITHMS.items() if info.is_aead]


class Exported:
    """Memory that others reach only through DLPack, as a whole."""

    def __init__(self, size: int) -> None:
        self.array = np.zeros(size, np.uint8)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __bytes__(self) -> bytes:
        return self.array.tobytes()


@dataclass
class Sent:
    """A message, what came of its submit, and what must come of it."""

    future: wc.QueueFuture
    vector: Vector
    direction: str
    forged: bool
    out: Any
    before: bytes


def any_vector(choose: random.Random) -> Vector:
    algorithm = choose.choice((*c.ALGORITHMS, *AEADS, *AEADS))
    info = c.ALGORITHMS[algorithm]
    padding = choose.choice((None, "pkcs7")) if info.takes_padding else None
    size = choose.randrange(choose.choice((40, 600, 20_000)))
    if padding is None:
        size = c.allowed_size(algorithm, size)
    iv = None
    if info.is_aead:
        sizes = (7, 12, 12) if algorithm.endswith("-ccm") else (12, 12, 12, 8, 16, 60)
        size_of_iv = choose.choice(sizes) if info.iv == "any" else info.iv_size
        iv = choose.randbytes(size_of_iv)
    options: dict[str, Any] = {"aad": choose.randbytes(choose.randrange(40))} if iv else {}
    # Two keys of each algorithm, so that messages share them.
    return c.make_vector(
        algorithm, f"queue {choose.randrange(2)}", size, iv=iv, padding=padding, **options
    )


class Client:
    """The work of a thread on the queue; `vectors` are shared."""

    def __init__(self, choose: random.Random, shared: wc.Queue, vectors: list[Vector]) -> None:
        self.choose = choose
        self.shared = shared
        self.vectors = vectors
        self.sent: list[Sent] = []
        self.called = 0
        self.done: list[object] = []

    def run(self, steps: int) -> None:
        actions = (self.submit, self.submit, self.submit, self.submit, self.cancel, self.wait)
        actions += (self.flush, self.watch)
        for _ in range(steps):
            try:
                self.choose.choice(actions)()
            except RuntimeError as error:
                assert "closed" in str(error)  # noqa: PT017
                return

    def submit(self) -> None:
        choose = self.choose
        v = choose.choice(self.vectors)
        direction = choose.choice(c.DIRECTIONS)
        data = v.text if direction == "encrypt" else v.data
        forged = bool(v.algorithm in AEADS and direction == "decrypt" and choose.random() < 0.2)
        if forged:
            at = choose.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1 << choose.randrange(8)]) + data[at + 1 :]
        options: dict[str, Any] = {} if v.algorithm.endswith("-ecb") else {"iv": v.iv}
        if v.algorithm in AEADS:
            options["aad"] = v.aad
        if choose.random() < 0.3:
            options["submitter"] = choose.randrange(3)
        room = len(v.data) if direction == "encrypt" else len(data)
        room += choose.choice((0, 0, 7))
        out = choose.choice((None, bytearray(room), np.zeros(room, np.uint8), Exported(room)))
        source: Any = choose.choice((bytes, bytearray, memoryview))(data)
        if choose.random() < 0.2:  # in place
            out = bytearray(data.ljust(room, b"\0"))
            source = memoryview(out)[: len(data)]
        before = b"" if out is None else bytes(out)
        try:
            future = self.shared.submit(
                *(v.algorithm, direction, v.key, source),
                **(options | {"padding": v.padding, "out": out}),
                timeout=choose.choice((None, 0, 0.001)),
            )
        except queue.Full:
            return
        self.sent.append(Sent(future, v, direction, forged, out, before))
        if choose.random() < 0.3:
            self.called += 1
            future.add_done_callback(choose.choice((self.count, self.submit_again, self.fail)))

    def cancel(self) -> None:
        if self.sent:
            self.choose.choice(self.sent).future.cancel()

    def wait(self) -> None:
        if self.sent:
            futures.wait([self.choose.choice(self.sent).future], timeout=self.choose.random() / 100)

    def flush(self) -> None:
        self.shared.flush()

    def watch(self) -> None:
        counts = self.shared.statistics()
        assert counts.memory_used <= counts.most_memory_used

    def count(self, future: futures.Future[Any]) -> None:
        assert future.done()
        self.done.append(future)

    def submit_again(self, future: futures.Future[Any]) -> None:
        self.count(future)
        with contextlib.suppress(queue.Full, RuntimeError):  # as docs/queue.md says
            self.shared.submit("aes-128-ecb", "encrypt", bytes(16), bytes(4096))

    def fail(self, future: futures.Future[Any]) -> None:
        self.count(future)
        raise ValueError("what a callback raises goes to the log")


def check(sent: Sent, nonces: Counter[Any]) -> None:
    v = sent.vector
    wanted = v.data if sent.direction == "encrypt" else v.text
    try:
        result = sent.future.result(PATIENCE)
    except futures.CancelledError:
        assert sent.out is None or bytes(sent.out) == sent.before, "a cancelled message was written"
    except wc.InvalidTag:
        assert sent.forged
        text = b"" if sent.out is None else bytes(sent.out)[: len(v.text)]
        assert not any(text), "an unauthentic text was written"
    except ValueError as error:
        if "nonce" in str(error):  # that two messages of a payload have
            assert nonces[v.key, v.iv] > 1
        else:
            assert isinstance(sent.out, Exported)
            assert len(sent.before) > len(wanted)
            assert bytes(sent.out)[: len(wanted)] == wanted
    else:
        assert not sent.forged
        assert bytes(result) == wanted, v


@pytest.mark.cases(6)
def test_random_use(choose: random.Random, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "concurrent.futures")
    vectors = [any_vector(choose) for _ in range(25)]
    limits = {
        "max_bytes": choose.choice((1, 5000, 8 << 20)),
        "max_messages": choose.choice((1, 3, 4096)),
        "max_delay_us": choose.choice((0, 200, 3_600_000_000)),
        "memory_limit": choose.choice((100_000, 1_000_000, 256 << 20)),
        "max_in_flight": choose.choice((None, 1, 2, 7)),
    }
    engine = choose.choice(("auto", "auto", "cpu", "reference"))
    shared = wc.Queue(engine, **limits)
    clients = [Client(random.Random(choose.random()), shared, vectors) for _ in range(5)]
    failures: list[BaseException] = []

    def run(client: Client, steps: int) -> None:
        try:
            client.run(steps)
        except BaseException as error:
            failures.append(error)

    steps = choose.randrange(10, 120)
    threads = [threading.Thread(target=run, args=(client, steps)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads[: choose.randrange(len(threads) + 1)]:
        thread.join(PATIENCE)  # the others are at work when the queue closes
    shared.close(cancel=choose.random() < 0.5)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a client hangs"
    assert failures == []
    sent = [entry for client in clients for entry in client.sent]
    encrypted = [entry.vector for entry in sent if entry.direction == "encrypt"]
    nonces = Counter((v.key, v.iv) for v in encrypted)
    for entry in sent:
        check(entry, nonces)
    counts = shared.statistics()
    assert counts.memory_used == counts.waiting == 0
    assert counts.most_memory_used <= limits["memory_limit"]
    assert [len(client.done) for client in clients] == [client.called for client in clients]

# SPDX-License-Identifier: Apache-2.0
"""Queue under random load: every result is checked, and the process must not grow."""

from __future__ import annotations

import functools
import queue
import random
import time
from concurrent import futures

import warpcipher as wc
from soak_support import SECONDS, resident, run


def test_soak() -> None:
    """Seconds by default; WARPCIPHER_TEST_SOAK_SECONDS=600 goes on for longer."""
    wrong: list[str] = []
    key = wc.Key("aes-256-gcm", bytes(32))
    box = wc.aead.AESGCM(bytes(32))

    def client(number: int, end: float) -> None:
        choose = random.Random(number)
        waiting: list[tuple[wc.QueueFuture, bytes, bytes, bool]] = []
        count = 0
        while time.monotonic() < end and not wrong:
            count += 1
            nonce = number.to_bytes(4, "big") + count.to_bytes(8, "big")
            text = choose.randbytes(choose.randrange(choose.choice((200, 20_000))))
            sealed, forge = box.encrypt(nonce, text, None), choose.random() < 0.1
            if forge:
                sealed = bytes([sealed[0] ^ 1]) + sealed[1:]
            try:
                future = shared.submit(
                    "aes-256-gcm", "decrypt", key, sealed, iv=nonce,
                    timeout=choose.choice((None, 0, 0.01)),
                )  # fmt: skip
            except queue.Full:
                continue
            waiting.append((future, text, nonce, forge))
            if choose.random() < 0.1:
                choose.choice(waiting)[0].cancel()
            while len(waiting) > choose.randrange(30):
                check(*waiting.pop(0))
        for entry in waiting:
            check(*entry)

    def check(future: wc.QueueFuture, text: bytes, nonce: bytes, forged: bool) -> None:
        try:
            if future.result(60) != text or forged:
                wrong.append(f"text of {nonce.hex()}")
        except futures.CancelledError:
            pass
        except wc.InvalidTag:
            if not forged:
                wrong.append(f"tag of {nonce.hex()}")

    with wc.Queue(max_bytes=100_000, memory_limit=400_000, max_delay_us=300) as shared:
        works = [functools.partial(client, number) for number in range(4)]
        run(works, SECONDS / 2)
        before = resident()
        run(works, SECONDS / 2)
        counts = shared.statistics()
        assert wrong == []
        assert counts.messages > 50
        assert counts.memory_used == counts.waiting == 0
        assert counts.most_memory_used <= 400_000
        assert resident() < before + (32 << 20)

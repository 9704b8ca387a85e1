# SPDX-License-Identifier: Apache-2.0
"""Batches in the background: `Batch.start`, and what it returns."""

from __future__ import annotations

import asyncio
import os

import pytest
import warpcipher as wc

KEY = bytes(range(16))


def make_batch(count: int, size: int = 1000) -> tuple[wc.Batch, list[wc.Handle], list[bytes]]:
    batch, handles, expected = wc.Batch(), [], []
    sealer = wc.aead.AESGCM(KEY)
    for i in range(count):
        nonce, text = i.to_bytes(12, "big"), os.urandom(size)
        handles.append(batch.add("aes-128-gcm", "encrypt", KEY, text, iv=nonce))
        expected.append(sealer.encrypt(nonce, text, None))
    return batch, handles, expected


def test_wait() -> None:
    batch, handles, expected = make_batch(50)
    started = batch.start()
    assert started.wait()
    assert started.done()
    assert started.wait(0)
    assert [handle.result() for handle in handles] == expected
    assert repr(started) == "<warpcipher.BatchRun: done>"
    with pytest.raises(RuntimeError, match="has run"):
        batch.run()
    with pytest.raises(RuntimeError, match="has run"):
        batch.start()


def test_wait_for_a_time() -> None:
    batch, handles, _ = make_batch(1, 64 << 20)
    started = batch.start()
    before = started.done()
    ended = started.wait(0)
    assert ended or not before
    assert started.wait(60)
    assert handles[0].status == "ok"


def test_await() -> None:
    made = [make_batch(10) for _ in range(5)]

    async def run_all() -> None:
        async def run(batch: wc.Batch) -> None:
            assert await batch.start() is None

        await asyncio.gather(*(run(batch) for batch, _, _ in made))

    asyncio.run(run_all())
    for _, handles, expected in made:
        assert [handle.result() for handle in handles] == expected


def test_a_waiter_that_is_cancelled_leaves_the_batch_alone() -> None:
    batch, handles, expected = make_batch(20)

    async def give_up() -> wc.BatchRun:
        started = batch.start()

        async def wait() -> None:
            await started

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return started

    assert asyncio.run(give_up()).wait()
    assert [handle.result() for handle in handles] == expected


def test_errors_are_told_to_who_waits() -> None:
    def refused() -> wc.BatchRun:
        batch = wc.Batch()
        for _ in range(2):
            batch.add("aes-128-gcm", "encrypt", KEY, b"text", iv=bytes(12))
        return batch.start()

    with pytest.raises(ValueError, match="same nonce"):
        refused().wait()

    async def run() -> None:
        await refused()

    with pytest.raises(ValueError, match="same nonce"):
        asyncio.run(run())


def test_a_bad_tag_is_told_by_its_handle() -> None:
    batch = wc.Batch()
    handle = batch.add("aes-128-gcm", "decrypt", KEY, bytes(20), iv=bytes(12))
    assert batch.start().wait()
    with pytest.raises(wc.InvalidTag):
        handle.result()

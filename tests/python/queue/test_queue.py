# SPDX-License-Identifier: Apache-2.0
"""Queue: futures of messages that many threads submit, and what becomes of them at every end."""

from __future__ import annotations

import asyncio
import queue
import random
import re
import subprocess
import sys
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from queue_support import HOUR, IV

ROOT = Path(__file__).parents[3]


def test_many_threads_and_algorithms() -> None:
    infos = wc.algorithms()
    wrong: list[Any] = []

    def client(number: int, shared: wc.Queue) -> None:
        choose = random.Random(number)
        waiting = []
        for i in range(60):
            info = choose.choice(infos)
            size = choose.randrange(400)
            size += -size % info.block_size if info.whole_blocks else 0
            size += info.least_size
            key = oracle.painted(f"key {number} {i}", info.key_size)
            iv = oracle.painted("iv", info.iv_size) if info.iv_size else None
            text = oracle.painted(f"text {i}", size)
            sealed = oracle.encrypt(info.name, key, text, iv or b"")
            direction = choose.choice(("encrypt", "decrypt"))
            data, wanted = (text, sealed) if direction == "encrypt" else (sealed, text)
            waiting.append((shared.submit(info.name, direction, key, data, iv=iv), wanted, info))
        wrong.extend(info.name for f, wanted, info in waiting if f.result(60) != wanted)

    with wc.Queue() as shared:
        threads = [threading.Thread(target=client, args=(n, shared)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counts = shared.statistics()
    assert wrong == []
    assert counts.messages == 360
    assert counts.payloads == sum(counts.reasons.values()) < 360
    assert counts.memory_used == counts.waiting == counts.failed == 0


def test_the_exceptions_are_those_of_other_calls() -> None:
    key = wc.Key("aes-128-gcm", bytes(16))
    sealed = oracle.encrypt("aes-128-gcm", bytes(16), b"text", bytes(12))
    with wc.Queue(max_delay_us=2000) as q:
        good = q.submit("aes-128-gcm", "decrypt", key, sealed, iv=bytes(12))
        forged = q.submit("aes-128-gcm", "decrypt", key, sealed, iv=bytes(12), aad=b"other")
        unpadded = q.submit("aes-128-cbc", "decrypt", bytes(16), bytes(16), iv=IV, padding="pkcs7")
        assert good.result(10) == b"text"
        assert isinstance(forged.exception(10), wc.InvalidTag)
        with pytest.raises(ValueError, match="padding"):
            unpadded.result(10)
        with pytest.raises(wc.InvalidTag):
            q.submit("aes-128-gcm", "decrypt", key, bytes(15), iv=bytes(12))
        for arguments, options in (
            (("aes-128-ctr", "encrypt", bytes(15), b""), {"iv": IV}),
            (("aes-128-ctr", "encrypt", bytes(16), b""), {}),
            (("aes-128-xyz", "encrypt", bytes(16), b""), {}),
            (("aes-128-ctr", "upwards", bytes(16), b""), {"iv": IV}),
            (
                (
                    "aes-128-ctr",
                    "encrypt",
                    bytes(16),
                    b"",
                ),
                {"iv": IV, "padding": "pkcs7"},
            ),
            (("aes-128-ctr", "encrypt", key, b""), {"iv": IV}),
        ):
            with pytest.raises(ValueError, match=r"\w"):
                q.submit(*arguments, **options)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            q.submit("aes-128-ctr", "encrypt", bytes(16), 5, iv=IV)
        with pytest.raises(BufferError):
            q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV, out=b"y")
        assert q.statistics().messages == 3


def test_a_nonce_used_twice_in_one_payload_is_refused() -> None:
    key = wc.Key("aes-128-gcm", bytes(16))
    with wc.Queue(max_delay_us=HOUR) as q:
        first, second = (
            q.submit("aes-128-gcm", "encrypt", key, text, iv=bytes(12)) for text in (b"a", b"b")
        )
        other = q.submit("aes-128-gcm", "encrypt", key, b"c", iv=b"\1" * 12)
        q.flush()
        assert first.result(10) == oracle.encrypt("aes-128-gcm", bytes(16), b"a", bytes(12))
        with pytest.raises(ValueError, match="nonce"):
            second.result(10)
        assert len(other.result(10)) == 17
        assert q.statistics().failed == 1


def test_out_and_what_is_held_meanwhile() -> None:
    text = oracle.painted("text", 100)
    wanted = oracle.encrypt("aes-128-ctr", bytes(16), text, IV)
    padded = oracle.encrypt("aes-128-cbc", bytes(16), text, IV, padding="pkcs7")
    place, whole = bytearray(text), bytearray(200)
    key = wc.Key("aes-128-ctr", bytes(16))
    count = sys.getrefcount(key)
    q = wc.Queue(max_delay_us=HOUR)
    in_place = q.submit("aes-128-ctr", "encrypt", key, place, iv=IV, out=place)
    roomy = q.submit("aes-128-cbc", "decrypt", bytes(16), padded, iv=IV, padding="pkcs7", out=whole)
    with pytest.raises(BufferError):
        place.append(0)
    q.close()
    assert in_place.result() is place
    assert place == wanted
    assert roomy.result() == text
    assert isinstance(roomy.result(), memoryview)
    place.append(0)
    assert sys.getrefcount(key) == count


def test_numpy_gives_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    data = numpy.arange(50, dtype=numpy.uint16)
    with wc.Queue() as q:
        made = q.submit("aes-128-ctr", "encrypt", bytes(16), data, iv=IV).result(10)
        back = numpy.empty_like(data)
        assert q.submit("aes-128-ctr", "decrypt", bytes(16), made, iv=IV, out=back).result() is back
    assert made.dtype == numpy.uint8
    assert (back == data).all()


def test_cancel() -> None:
    called: list[QueueState] = []
    with wc.Queue(max_delay_us=HOUR) as q:
        data = bytearray(10)
        taken_back = q.submit("aes-128-ctr", "encrypt", bytes(16), data, iv=IV)
        kept = q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV)
        taken_back.add_done_callback(lambda f: called.append(state_of(f)))
        assert state_of(taken_back) == (False, False, False)
        assert taken_back.cancel()
        assert taken_back.cancel()
        data.append(0)  # let go of at once
        assert called == [(True, False, True)]
        with pytest.raises(futures.CancelledError):
            taken_back.result()
        done, _ = futures.wait([taken_back], timeout=10)
        assert done == {taken_back}
        q.flush()
        assert len(kept.result(10)) == 1
        assert not kept.cancel()
        assert state_of(kept) == (False, False, True)
        assert q.statistics().cancelled == 1


QueueState = tuple[bool, bool, bool]


def state_of(future: futures.Future[Any]) -> QueueState:
    return future.cancelled(), future.running(), future.done()


def test_back_pressure() -> None:
    q = wc.Queue(max_delay_us=HOUR, memory_limit=100_000, max_in_flight=1)
    data = bytes(30_000)
    first = q.submit("aes-128-ctr", "encrypt", bytes(16), data, iv=IV)
    with pytest.raises(queue.Full, match="100000"):
        q.submit("aes-128-ctr", "encrypt", bytes(16), data, iv=IV, timeout=0)
    assert not first.done()
    second = q.submit("aes-128-ctr", "encrypt", bytes(16), data, iv=IV)  # has the first launched
    assert len(first.result(60)) == 30_000  # its memory is free a moment before it is done
    assert q.statistics().reasons["memory"] == 1
    with pytest.raises(ValueError, match="limit is 100000"):
        q.submit("aes-128-ctr", "encrypt", bytes(16), bytes(60_000), iv=IV)
    assert q.statistics().refused == 1
    q.close()
    assert len(second.result()) == 30_000


def test_close() -> None:
    q = wc.Queue(max_delay_us=HOUR)
    waiting = q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV)
    q.close()
    assert len(waiting.result(0)) == 1
    q.close()
    assert repr(q) == "<warpcipher.Queue, engine='auto', closed>"
    with pytest.raises(RuntimeError, match="closed"):
        q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV)
    q = wc.Queue(max_delay_us=HOUR)
    waiting = q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV)
    q.close(cancel=True)
    assert waiting.cancelled()


def test_callbacks_may_submit_but_neither_wait_nor_close() -> None:
    seen: list[Any] = []
    entered, filled, ended = threading.Event(), threading.Event(), threading.Event()

    def callback(future: futures.Future[Any]) -> None:
        entered.set()
        filled.wait(10)
        for action in (
            q.close,
            lambda: q.submit("aes-128-ctr", "encrypt", bytes(16), bytes(30_000), iv=IV),
        ):
            try:
                action()
            except (ValueError, queue.Full) as error:
                seen.append(type(error))
        seen.append(q.submit("aes-128-ctr", "encrypt", bytes(16), b"", iv=IV))
        ended.set()

    with wc.Queue(max_delay_us=HOUR, memory_limit=100_000, max_in_flight=1) as q:
        q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV).add_done_callback(callback)
        q.flush()
        assert entered.wait(10)
        q.submit("aes-128-ctr", "encrypt", bytes(16), bytes(45_000), iv=IV)
        filled.set()
        assert ended.wait(10)
        q.flush()
        assert seen[:2] == [ValueError, queue.Full]
        assert seen[2].result(10) == b""


def test_asyncio() -> None:
    async def main() -> list[int]:
        with wc.Queue() as q:
            waiting = [
                asyncio.wrap_future(q.submit("aes-128-ctr", "encrypt", bytes(16), bytes(n), iv=IV))
                for n in range(50)
            ]
            return [len(text) for text in await asyncio.gather(*waiting)]

    assert asyncio.run(main()) == list(range(50))


def test_asyncio_cancels() -> None:
    async def main() -> wc.QueueStatistics:
        with wc.Queue(max_delay_us=HOUR) as q:
            wrapped = asyncio.wrap_future(q.submit("aes-128-ctr", "encrypt", bytes(16), b"", iv=IV))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wrapped, 0.01)
            return q.statistics()

    assert asyncio.run(main()).cancelled == 1


def test_a_submitter_of_few_messages_does_not_wait_for_one_of_many() -> None:
    order: list[str] = []
    with wc.Queue(max_delay_us=HOUR, max_bytes=1 << 17, max_in_flight=1, engine="cpu") as q:
        for _ in range(200):
            heavy = q.submit("des-ede3-ofb", "encrypt", bytes(range(24)), bytes(8192),
                             iv=bytes(8), submitter="heavy")  # fmt: skip
            heavy.add_done_callback(lambda f: order.append("heavy"))
        light = q.submit("aes-128-ctr", "encrypt", bytes(16), b"x", iv=IV, submitter="light")
        light.add_done_callback(lambda f: order.append("light"))
        q.flush()
        light.result(60)
    assert order.index("light") < 150


def test_payloads_in_flight_by_the_engine() -> None:
    usable = [info for info in wc.engines() if info.usable]
    for info in usable:
        with wc.Queue(info.name) as q:
            assert q.max_in_flight == (8 if info.memory == "device" else 4)
        with wc.Queue(info.name, max_in_flight=3) as q:
            assert q.max_in_flight == 3


def test_options_that_cannot_be_right() -> None:
    for name in ("max_bytes", "max_messages", "memory_limit", "max_in_flight"):
        for value in (0, -1):
            with pytest.raises(ValueError, match=name):
                wc.Queue(**{name: value})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"{name} is str: expected an int"):
            wc.Queue(**{name: "4"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_in_flight is 65: expected 1 to 64"):
        wc.Queue(max_in_flight=65)
    with pytest.raises(ValueError, match="max_delay_us is -1: expected 0 to"):
        wc.Queue(max_delay_us=-1)
    with pytest.raises(wc.EngineError, match="warp"):
        wc.Queue(engine="warp")
    with wc.Queue() as q:
        message = ("aes-128-ctr", "encrypt", bytes(16), b"x")
        with pytest.raises(ValueError, match="timeout is -1: expected 0 seconds or more"):
            q.submit(*message, iv=IV, timeout=-1)
        assert q.submit(*message, iv=IV, timeout=10**400).result(10)
        with pytest.raises(TypeError, match="timeout is str"):
            q.submit(*message, iv=IV, timeout="1")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="tag_length is -1"):
            q.submit(*message, iv=IV, tag_length=-1)


def test_page_example() -> None:
    page = (ROOT / "docs" / "queue.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/queue.md", "exec"), names)  # noqa: S102


def test_example_program() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "queue_threads.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "400 records" in done.stdout

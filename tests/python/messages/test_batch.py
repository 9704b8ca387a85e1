# SPDX-License-Identifier: Apache-2.0
"""Batch: mixed messages in one run, each with its own result."""

from __future__ import annotations

import sys
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from hypothesis import given, settings
from hypothesis import strategies as st

ALGORITHMS = {info.name: info for info in wc.algorithms()}


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, Any], bool]:
    name = draw(st.sampled_from(sorted(ALGORITHMS)))
    info = ALGORITHMS[name]
    padding = "pkcs7" if info.takes_padding and draw(st.booleans()) else None
    size = draw(st.integers(0, 600))
    if info.whole_blocks and padding is None:
        size -= size % info.block_size
    size += info.least_size
    options: dict[str, Any] = {"padding": padding}
    if info.iv_size:
        options["iv"] = draw(st.binary(min_size=info.iv_size, max_size=info.iv_size))
        if name == "chacha20":  # far from the end of its counter
            options["iv"] = bytes(4) + options["iv"][4:]
    if info.is_aead:
        options["aad"] = draw(st.binary(max_size=40))
        options["tag_length"] = draw(st.sampled_from((4, 8, 12, 16) if info.iv == "any" else (16,)))
    direction = draw(st.sampled_from(("encrypt", "decrypt")))
    return name, direction, oracle.painted("text", size), options, draw(st.booleans())


@settings(max_examples=40, deadline=None)
@given(st.lists(messages(), max_size=20))
def test_mixed_messages(cases: list[tuple[str, str, bytes, dict[str, Any], bool]]) -> None:
    batch = wc.Batch()
    expected = []
    for i, (name, direction, text, options, has_out) in enumerate(cases):
        key = oracle.painted(f"key {i}", ALGORITHMS[name].key_size)  # so no nonce comes twice
        sealed = oracle.encrypt(name, key, text, **{"iv": b"", **options})
        data, wanted = (text, sealed) if direction == "encrypt" else (sealed, text)
        out = bytearray(len(data) + 32) if has_out else None
        handle = batch.add(name, direction, key, data, out=out, **options)
        assert handle.status == "pending"
        expected.append((handle, wanted, has_out))
    assert len(batch) == len(cases)
    batch.run()
    for handle, wanted, has_out in expected:
        assert handle.status == "ok"
        result = handle.result()
        assert isinstance(result, memoryview if has_out else bytes)
        assert bytes(result) == wanted


def test_failures_are_told_by_their_own_messages() -> None:
    key, nonce = oracle.painted("key", 32), bytes(12)
    good = oracle.encrypt("aes-256-gcm", key, b"good", nonce)
    bad = bytes([good[0] ^ 1]) + good[1:]
    unpadded = oracle.encrypt("aes-256-cbc", key, b"\xaa" * 32, bytes(16))
    outs = [bytearray(b"\xff" * 32) for _ in range(2)]
    batch = wc.Batch()
    handles = [
        batch.add("aes-256-gcm", "decrypt", key, good, iv=nonce),
        batch.add("aes-256-gcm", "decrypt", key, bad, iv=nonce, out=outs[0]),
        batch.add(
            "aes-256-cbc", "decrypt", key, unpadded, iv=bytes(16), padding="pkcs7", out=outs[1]
        ),
        batch.add("aes-256-gcm", "decrypt", key, good, iv=nonce),
    ]
    batch.run()
    assert [h.status for h in handles] == ["ok", "invalid tag", "invalid padding", "ok"]
    assert handles[0].result() == handles[3].result() == b"good"
    with pytest.raises(wc.InvalidTag, match="message 1"):
        handles[1].result()
    with pytest.raises(ValueError, match=r"message 2.*padding"):
        handles[2].result()
    assert outs[0] == bytes(4) + b"\xff" * 28
    assert outs[1] == bytes(32)


def test_in_place_and_full_out() -> None:
    key, text = bytes(16), oracle.painted("text", 100)
    data = bytearray(text)
    batch = wc.Batch()
    handle = batch.add("aes-128-ctr", "encrypt", key, data, iv=bytes(16), out=data)
    with pytest.raises(BufferError):
        data.append(0)  # the batch holds on to it
    batch.run()
    assert handle.result() is data
    assert data == oracle.encrypt("aes-128-ctr", key, text, bytes(16))
    data.append(0)


def test_keys_may_be_shared() -> None:
    key = wc.Key("aes-128-gcm", bytes(16))
    batch = wc.Batch()
    handles = [
        batch.add("aes-128-gcm", "encrypt", key, b"text", iv=i.to_bytes(12, "big"))
        for i in range(50)
    ]
    count = sys.getrefcount(key)
    batch.run()
    assert sys.getrefcount(key) < count  # let go
    for i, handle in enumerate(handles):
        wanted = oracle.encrypt("aes-128-gcm", bytes(16), b"text", i.to_bytes(12, "big"))
        assert handle.result() == wanted


@pytest.mark.parametrize("key", ["0" * 16, 16, None, [0] * 16])
def test_what_is_no_key_is_refused(key: Any) -> None:
    with pytest.raises(TypeError, match=f"key is {type(key).__name__}"):
        wc.Batch().add("aes-128-ecb", "encrypt", key, bytes(16))


@pytest.mark.parametrize("as_key", [False, True])
def test_a_nonce_used_twice_is_refused(as_key: bool) -> None:
    batch = wc.Batch()
    key = wc.Key("aes-128-gcm", bytes(16)) if as_key else bytes(16)
    out = bytearray(20)
    batch.add("aes-128-gcm", "encrypt", key, b"text", iv=bytes(12), out=out)
    batch.add("aes-128-gcm", "encrypt", bytearray(16) if not as_key else key, b"more", iv=bytes(12))
    with pytest.raises(ValueError, match=r"messages 0 and 1.*nonce"):
        batch.run()
    assert out == bytes(20)


def test_order_of_calls() -> None:
    batch = wc.Batch()
    handle = batch.add("aes-128-ecb", "encrypt", bytes(16), bytes(16))
    with pytest.raises(RuntimeError, match="has not run, or still runs"):
        handle.result()
    batch.run()
    assert handle.result() == oracle.encrypt("aes-128-ecb", bytes(16), bytes(16))
    with pytest.raises(RuntimeError, match="has run"):
        batch.add("aes-128-ecb", "encrypt", bytes(16), bytes(16))
    with pytest.raises(RuntimeError, match="has run"):
        batch.run()


def test_a_message_that_cannot_be_right_is_not_taken_up() -> None:
    batch = wc.Batch()
    wrong: list[tuple[Any, ...]] = [
        ("aes-128-ecb", "encrypt", bytes(16), bytes(15), {}),
        ("aes-128-ecb", "encrypt", bytes(15), bytes(16), {}),
        ("aes-128-cbc", "encrypt", bytes(16), bytes(16), {}),
        ("aes-128-xyz", "encrypt", bytes(16), bytes(16), {}),
        ("aes-128-ecb", "upwards", bytes(16), bytes(16), {}),
        ("aes-128-ecb", "encrypt", bytes(16), bytes(16), {"out": bytearray(15)}),
        ("aes-128-ecb", "encrypt", bytes(16), bytes(16), {"padding": "zero"}),
    ]
    for name, direction, key, data, options in wrong:
        with pytest.raises(ValueError, match=r"\w"):
            batch.add(name, direction, key, data, **options)
    with pytest.raises(wc.InvalidTag):
        batch.add("aes-128-gcm", "decrypt", bytes(16), bytes(15), iv=bytes(12))
    with pytest.raises(BufferError):
        batch.add("aes-128-ecb", "encrypt", bytes(16), bytes(16), out=bytes(16))
    assert len(batch) == 0
    handle = batch.add("aes-128-ecb", "encrypt", bytes(16), bytes(16))
    batch.run()
    assert handle.result() == oracle.encrypt("aes-128-ecb", bytes(16), bytes(16))


def test_a_batch_of_no_messages_runs_once_too() -> None:
    batch = wc.Batch()
    assert (len(batch), repr(batch)) == (0, "<warpcipher.Batch of 0 messages, not run>")
    batch.run()
    assert repr(batch) == "<warpcipher.Batch of 0 messages, done>"
    with pytest.raises(RuntimeError, match="has run"):
        batch.run()


def test_unknown_engine() -> None:
    batch = wc.Batch(engine="warp")
    batch.add("aes-128-ecb", "encrypt", bytes(16), bytes(16))
    with pytest.raises(wc.EngineError, match="unknown engine 'warp'"):
        batch.run()

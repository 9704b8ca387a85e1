# SPDX-License-Identifier: Apache-2.0
"""pinned: a writable buffer that behaves the same with and without a GPU."""

from __future__ import annotations

import gc

import pytest
import warpcipher as wc

HAS_GPU = any(info.name == "cuda" and info.usable for info in wc.engines())


@pytest.mark.parametrize("size", [0, 1, 4095, 100_000])
def test_is_a_writable_buffer(size: int) -> None:
    buffer = wc.pinned(size)
    view = memoryview(buffer)
    assert (len(buffer), view.nbytes, view.readonly, view.format) == (size, size, False, "B")
    assert view == bytes(size)
    view[:] = b"\xaa" * size
    assert bytes(buffer) == b"\xaa" * size


def test_says_what_it_is() -> None:
    buffer = wc.pinned(10)
    assert isinstance(buffer, wc.PinnedBuffer)
    assert buffer.page_locked is HAS_GPU
    assert (buffer.reason == "") is HAS_GPU
    state = "page-locked" if HAS_GPU else "not page-locked"
    assert repr(buffer) == f"<warpcipher.PinnedBuffer of 10 bytes, {state}>"


def test_a_view_keeps_it() -> None:
    view = memoryview(wc.pinned(100_000))
    gc.collect()
    view[:] = bytes(range(250)) * 400
    assert bytes(view) == bytes(range(250)) * 400


def test_memory_that_comes_again_is_zeros() -> None:
    for _ in range(20):
        view = memoryview(wc.pinned(200_000))
        assert not any(view)
        view[:] = b"\xff" * 200_000
        del view


def test_every_call_takes_it() -> None:
    buffer = wc.pinned(64)
    cipher = wc.Cipher("aes-128-ctr", bytes(16))
    wanted = cipher.encrypt(bytes(64), iv=bytes(16))
    assert cipher.encrypt(buffer, iv=bytes(16)) == wanted
    assert cipher.encrypt(buffer, iv=bytes(16), out=buffer) is buffer
    assert bytes(buffer) == wanted
    batch = wc.Batch()
    batch.add("aes-128-ctr", "decrypt", bytes(16), buffer, iv=bytes(16), out=buffer)
    batch.run()
    assert bytes(buffer) == bytes(64)


def test_sizes_that_cannot_be_right() -> None:
    for size in (-1, 1 << 70):
        with pytest.raises(ValueError, match=r"\w"):
            wc.pinned(size)
    with pytest.raises(TypeError):
        wc.pinned("1")  # type: ignore[arg-type]
    with pytest.raises(MemoryError):
        wc.pinned((1 << 63) - 1)

# SPDX-License-Identifier: Apache-2.0
"""Cipher: every algorithm, every way of handing bytes over, and bad input."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from array import array
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from hypothesis import given, settings
from hypothesis import strategies as st

ALGORITHMS = {info.name: info for info in wc.algorithms()}
SIZES = (0, 1, 15, 16, 17, 4095, 4096, 70001)


def parts(name: str) -> tuple[bytes, dict[str, Any]]:
    """A key, and the other arguments that the algorithm takes."""
    info = ALGORITHMS[name]
    options: dict[str, Any] = {}
    if info.iv_size:
        options["iv"] = oracle.painted("iv " + name, info.iv_size)
    if info.is_aead:
        options["aad"] = oracle.painted("aad " + name, 21)
    return oracle.painted("key " + name, info.key_size), options


def sizes(name: str) -> list[int]:
    info = ALGORITHMS[name]
    block = info.block_size if info.whole_blocks else 1
    return sorted({max(n - n % block, info.least_size) for n in SIZES})


def cases() -> list[tuple[str, int]]:
    return [(name, size) for name in ALGORITHMS for size in sizes(name)]


@pytest.mark.parametrize(("name", "size"), cases())
def test_matches_the_oracle_and_comes_back(name: str, size: int) -> None:
    key, options = parts(name)
    text = oracle.painted("text", size)
    cipher = wc.Cipher(name, key)
    data = cipher.encrypt(text, **options)
    assert type(data) is bytes
    assert data == oracle.encrypt(name, key, text, **{"iv": b"", **options})
    back = cipher.decrypt(data, **options)
    assert type(back) is bytes
    assert back == text


PADDED = [info.name for info in wc.algorithms() if info.takes_padding]


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("size", SIZES)
def test_pkcs7(name: str, size: int) -> None:
    key, options = parts(name)
    text = oracle.painted("text", size)
    cipher = wc.Cipher(name, key, padding="pkcs7")
    data = cipher.encrypt(text, **options)
    assert data == oracle.encrypt(name, key, text, options.get("iv", b""), padding="pkcs7")
    assert cipher.decrypt(data, **options) == text


@pytest.mark.parametrize("name", PADDED)
def test_bad_padding_wipes_out(name: str) -> None:
    key, options = parts(name)
    block = ALGORITHMS[name].block_size
    data = wc.Cipher(name, key).encrypt(b"\xaa" * 3 * block, **options)  # 0xaa is no padding
    out = bytearray(b"\xff" * len(data))
    cipher = wc.Cipher(name, key, padding="pkcs7")
    with pytest.raises(ValueError, match="padding"):
        cipher.decrypt(data, **options, out=out)
    assert out == bytes(len(data))
    with pytest.raises(ValueError, match="padding"):
        cipher.decrypt(data, **options)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(ALGORITHMS)),
    size=st.integers(0, 3000),
    front=st.integers(0, 40),
    way=st.sampled_from(
        ("bytes", "bytearray", "memoryview", "in place", "other out", "larger out")
    ),
    tag_length=st.sampled_from((4, 8, 12, 13, 14, 15, 16)),
)
def test_ways_of_handing_over(name: str, size: int, front: int, way: str, tag_length: int) -> None:
    info = ALGORITHMS[name]
    size = size - size % info.block_size if info.whole_blocks else size
    size = max(size, info.least_size)
    key, options = parts(name)
    tag = 0
    if info.is_aead:
        options["tag_length"] = tag = tag_length if name.endswith("-gcm") else 16
    text = oracle.painted("text", size)
    expected = oracle.encrypt(name, key, text, **{"iv": b"", **options})
    cipher = wc.Cipher(name, key)
    for crypt, given_, wanted in (
        (cipher.encrypt, text, expected),
        (cipher.decrypt, expected, text),
    ):
        if way == "bytes":
            result = crypt(given_, **options)
        elif way == "bytearray":
            result = crypt(bytearray(given_), **options)
            assert type(result) is bytes
        elif way == "memoryview":
            result = crypt(memoryview(b"x" * front + given_ + b"y" * 3)[front:-3], **options)
        elif way == "in place":
            room = bytearray(b"x" * front + given_ + bytes(tag) + b"z")
            view = memoryview(room)
            out = view[front : front + len(wanted)]
            result = crypt(view[front : front + len(given_)], **options, out=out)
            assert result is out
            assert room[:front] == b"x" * front
            assert room[-1:] == b"z"
        elif way == "other out":
            out = bytearray(len(wanted))
            result = crypt(given_, **options, out=out)
            assert result is out
        else:
            room = bytearray(b"\xa5" * (len(wanted) + 5))
            result = crypt(given_, **options, out=room)
            assert len(result) == len(wanted)
            assert room[len(wanted) :] == b"\xa5" * 5
        assert bytes(result) == wanted


def test_padded_decryption_returns_the_written_part_of_out() -> None:
    key, options = parts("aes-128-cbc")
    cipher = wc.Cipher("aes-128-cbc", key, padding="pkcs7")
    data = bytearray(cipher.encrypt(b"abc", **options))
    text = cipher.decrypt(data, **options, out=data)
    assert isinstance(text, memoryview)
    assert bytes(text) == b"abc"


def test_other_buffers() -> None:
    key, options = parts("aes-256-ctr")
    cipher = wc.Cipher("aes-256-ctr", key)
    numbers = array("I", range(100))
    data = cipher.encrypt(numbers, **options)
    assert data == cipher.encrypt(numbers.tobytes(), **options)
    back = array("I", bytes(400))
    assert cipher.decrypt(data, **options, out=back) is back
    assert back == numbers


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name.endswith("-xts")])
def test_xts_needs_two_different_keys_and_a_block(name: str) -> None:
    half = oracle.painted("half", ALGORITHMS[name].key_size // 2)
    with pytest.raises(ValueError, match="halves") as caught:
        wc.Cipher(name, half + half)
    assert half.hex() not in str(caught.value)
    key, options = parts(name)
    with pytest.raises(ValueError, match="16"):
        wc.Cipher(name, key).encrypt(bytes(15), **options)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_wrong_arguments(name: str) -> None:
    info = ALGORITHMS[name]
    key, options = parts(name)
    for size in {0, 1, info.key_size - 1, info.key_size + 1, 2 * info.key_size} - {info.key_size}:
        with pytest.raises(ValueError, match=f"{info.key_size} bytes"):
            wc.Cipher(name, bytes(size))
    cipher = wc.Cipher(name, key)
    text = bytes(2 * info.block_size)
    wrong = {
        "none": [bytes(1), bytes(info.block_size)],
        "block": [None, b"", bytes(info.block_size - 1), bytes(info.block_size + 1)],
        "any": [None, b""],
        "fixed": [None, b"", bytes(11), bytes(13), bytes(64)],
    }[info.iv]
    for iv in wrong:
        with pytest.raises(ValueError, match=r"IV|nonce"):
            cipher.encrypt(text, **{**options, "iv": iv})
    if info.whole_blocks:
        with pytest.raises(ValueError, match="multiple"):
            cipher.encrypt(text[:-1], **options)
    if not info.is_aead:
        with pytest.raises(ValueError, match="AAD"):
            cipher.encrypt(text, **options, aad=b"x")
        with pytest.raises(ValueError, match="tag"):
            cipher.encrypt(text, **options, tag_length=12)
    else:
        for length in (0, 3, 5, 11, 17, 100):
            with pytest.raises(ValueError, match="tag"):
                cipher.encrypt(text, **{**options, "tag_length": length})
    if not info.takes_padding:
        with pytest.raises(ValueError, match="padding"):
            wc.Cipher(name, key, padding="pkcs7")


def test_wrong_names() -> None:
    with pytest.raises(ValueError, match=r"aes-512-ecb.*did you mean aes-128-ecb"):
        wc.Cipher("aes-512-ecb", bytes(64))
    with pytest.raises(ValueError, match="pkcs7"):
        wc.Cipher("aes-128-cbc", bytes(16), padding="zero")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="aes-128-ctr"):
        wc.Cipher("aes-128-ecb", wc.Key("aes-128-ctr", bytes(16)))
    with pytest.raises(TypeError, match="key is str"):
        wc.Cipher("aes-128-ecb", "0" * 16)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key is NoneType"):
        wc.Cipher("aes-128-ecb", None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key is NoneType"):
        wc.Key("aes-128-ecb", None)
    with pytest.raises(TypeError, match="algorithm is NoneType"):
        wc.Cipher(None, bytes(16))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("length", "error", "text"),
    [
        (5, ValueError, "got 5"),
        (-1, ValueError, "tag_length is -1: expected"),
        (10**30, ValueError, "tag_length is 1000"),
        (12.0, TypeError, "tag_length is float: expected an int"),
        (16.0, TypeError, "tag_length is float: expected an int"),
        ("16", TypeError, "tag_length is str"),
        (None, TypeError, "tag_length is NoneType"),
    ],
)
def test_wrong_tag_length(length: Any, error: type[Exception], text: str) -> None:
    key, data, iv = bytes(16), bytes(20), bytes(12)
    columns: dict[str, Any] = {"lengths": [20], "ivs": iv, "tag_length": length}
    for refuse in (
        lambda: wc.Cipher("aes-128-gcm", key).encrypt(data, iv=iv, tag_length=length),
        lambda: wc.Batch().add("aes-128-gcm", "decrypt", key, data, iv=iv, tag_length=length),
        lambda: wc.run_columns("aes-128-gcm", "encrypt", key, data, **columns),
    ):
        with pytest.raises(error, match=text):
            refuse()


def test_wrong_buffers() -> None:
    cipher = wc.Cipher("aes-128-ctr", bytes(16))
    iv = bytes(16)
    for data in ("text", 7, None, [1, 2]):
        with pytest.raises(TypeError, match="data is"):
            cipher.encrypt(data, iv=iv)
    with pytest.raises(TypeError, match="iv is str"):
        cipher.encrypt(b"x", iv="0" * 16)  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="data is not C-contiguous"):
        cipher.encrypt(memoryview(bytes(64))[::2], iv=iv)
    with pytest.raises(BufferError, match="out is read-only"):
        cipher.encrypt(bytes(8), iv=iv, out=bytes(8))
    with pytest.raises(BufferError, match="out is not C-contiguous"):
        cipher.encrypt(bytes(8), iv=iv, out=memoryview(bytearray(64))[::2])
    with pytest.raises(TypeError, match="out is"):
        cipher.encrypt(bytes(8), iv=iv, out="here")


def test_nothing_is_written_on_bad_arguments() -> None:
    cipher = wc.Cipher("aes-128-ctr", bytes(16))
    out = bytearray(b"\x5a" * 32)
    with pytest.raises(ValueError, match="room for 32 bytes, 33 are needed"):
        cipher.encrypt(bytes(33), iv=bytes(16), out=out)
    with pytest.raises(ValueError, match="IV"):
        cipher.encrypt(bytes(32), iv=bytes(3), out=out)
    view = memoryview(out)
    with pytest.raises(ValueError, match="overlap"):
        cipher.encrypt(view[:16], iv=bytes(16), out=view[1:17])
    assert out == b"\x5a" * 32


def test_bad_tag_wipes_out() -> None:
    key, options = parts("aes-256-gcm")
    cipher = wc.Cipher("aes-256-gcm", key)
    data = bytearray(cipher.encrypt(b"secret" * 100, **options))
    data[7] ^= 1
    out = bytearray(b"\xff" * 600)
    with pytest.raises(wc.InvalidTag):
        cipher.decrypt(data, **options, out=out)
    assert out == bytes(600)
    with pytest.raises(wc.InvalidTag):
        cipher.decrypt(data, **options)
    for size in range(16):
        with pytest.raises(wc.InvalidTag, match="too short"):
            cipher.decrypt(bytes(size), **options)


@pytest.mark.parametrize("stream", [0, -1, True, "main", 1.5])
def test_wrong_streams(stream: object) -> None:
    with pytest.raises((TypeError, ValueError), match="stream is"):
        wc.Cipher("aes-128-ctr", bytes(16)).encrypt(b"x", iv=bytes(16), stream=stream)


def test_no_key_in_reprs() -> None:
    key = bytes(range(0xA0, 0xC0))
    batch = wc.Batch()
    handle = batch.add("aes-256-ctr", "encrypt", key, b"data", iv=bytes(16))
    things = [
        wc.Cipher("aes-256-ctr", key),
        wc.Cipher("aes-256-cbc", key, padding="pkcs7", engine="cpu"),
        wc.Key("aes-256-ctr", key),
        wc.aead.AESGCM(key),
        batch,
        handle,
    ]
    for thing in things:
        text = repr(thing)
        assert text.startswith("<warpcipher.")
        assert key.hex()[:8] not in text
        assert "\\xa1" not in text
        assert not hasattr(thing, "__dict__") or key not in vars(thing).values()
    assert repr(things[1]) == "<warpcipher.Cipher aes-256-cbc, padding='pkcs7', engine='cpu'>"


def test_threads_share_a_cipher() -> None:
    key, _ = parts("aes-256-gcm")
    cipher = wc.Cipher("aes-256-gcm", key)

    def work(index: int) -> bool:
        nonce = index.to_bytes(12, "big")
        text = oracle.painted(str(index), 50 * index)
        data = cipher.encrypt(text, iv=nonce, aad=b"aad")
        return (
            data == oracle.encrypt("aes-256-gcm", key, text, nonce, b"aad")
            and cipher.decrypt(data, iv=nonce, aad=b"aad") == text
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))


def test_other_threads_run_meanwhile() -> None:
    """While one call is at work, a thread of pure Python gets on."""
    cipher = wc.Cipher("aes-256-cbc", bytes(32))  # serial: one long call
    data, out = bytes(64 << 20), bytearray(64 << 20)
    ticks = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1)  # so that only a release of the GIL lets the other thread in
    try:
        thread.start()
        before = ticks
        cipher.encrypt(data, iv=bytes(16), out=out)
        after = ticks
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert after > before


def test_no_leaks() -> None:
    key, options = parts("aes-256-gcm")
    data, iv = bytearray(1000), bytes(12)

    def work() -> None:
        cipher = wc.Cipher("aes-256-gcm", key)
        sealed = bytearray(cipher.encrypt(data, **options))
        cipher.decrypt(sealed, **options, out=data)
        sealed[0] ^= 1
        with pytest.raises(wc.InvalidTag):
            cipher.decrypt(sealed, **options)
        with pytest.raises(ValueError, match="room"):
            cipher.encrypt(data, iv=iv, out=bytearray(2))
        with pytest.raises(BufferError):
            cipher.encrypt(data, iv=iv, out=bytes(2000))

    for _ in range(20):
        work()
    gc.collect()
    counts = [sys.getrefcount(x) for x in (key, data, iv, options["iv"], options["aad"])]
    tracemalloc.start()
    try:
        for _ in range(20):
            work()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            work()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert counts == [sys.getrefcount(x) for x in (key, data, iv, options["iv"], options["aad"])]
    assert after - before < 20_000  # one object of 1000 bytes a round would be 200 000
    data.append(1)  # no buffer is still exported


def test_a_key_that_is_not_bytes_says_what_to_give() -> None:
    class Tensor:
        def __dlpack__(self) -> None: ...

    for key, text in (
        ("k" * 32, "key is str: expected bytes-like or an array"),
        (wc.keys.from_env("KEY"), "expected bytes: `warpcipher.keys.resolve` has them of a source"),
        (Tensor(), "expected bytes-like, in host memory, such as numpy.asarray of it"),
    ):
        with pytest.raises(TypeError, match=text):
            wc.Cipher("aes-256-ctr", key)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make", [lambda: wc.Cipher("aes-128-ctr", bytes(16), engine=5), lambda: wc.Batch(5)]
)
def test_an_engine_is_named(make: Any) -> None:
    with pytest.raises(TypeError, match="engine is int: expected 'auto', or a name of engines"):
        make()

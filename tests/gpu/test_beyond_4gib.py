# SPDX-License-Identifier: Apache-2.0
"""Messages of more than 4 GiB in device memory: offsets and block numbers beyond 32 bits.

The text is one 32-bit word again and again, so the GPU makes it and nothing has to be brought
there. Windows of the result, around every power of two that a number could wrap at, are compared
with what the oracle says of that part of the message.
"""

from __future__ import annotations

import conformance as c
import conformance_device as device
import conformance_oracle as oracle
import pytest
import warpcipher as wc

GIB = 1 << 30
SIZE = 4 * GIB + (1 << 20) + 16
WORD = 0x01234567
WINDOW = 8192
STARTS = [0, 2 * GIB - WINDOW // 2, 4 * GIB - WINDOW // 2, SIZE - WINDOW]
KEY = oracle.painted("key", 16)


@pytest.fixture
def text() -> device.DeviceArray:
    """SIZE bytes of WORD, with room for a tag."""
    needed = SIZE + 2 * GIB
    if device.free_memory() < needed:
        free = device.free_memory() / GIB
        pytest.skip(f"{needed / GIB:.1f} GiB of device memory needed, {free:.1f} GiB are free")
    array = device.allocate(SIZE + 16)
    array.repeat(WORD)
    return array


def plain(size: int) -> bytes:
    return WORD.to_bytes(4, "little") * (size // 4)


def window_iv(mode: str, iv: bytes, start: int, data: bytes) -> bytes:
    """The IV with which a message would begin at byte `start` of this one; data: the 16 bytes of
    ciphertext before."""
    if mode == "ecb" or start == 0:
        return iv
    if mode == "ctr":
        return ((int.from_bytes(iv, "big") + start // 16) % (1 << 128)).to_bytes(16, "big")
    return data


@pytest.mark.parametrize("mode", ["ecb", "ctr", "cbc", "cfb"])
def test_parallel_modes(text: device.DeviceArray, mode: str) -> None:
    """In place. ECB and CTR encrypt; CBC and CFB decrypt, as only that runs in parallel."""
    algorithm = f"aes-128-{mode}"
    iv = b"" if mode == "ecb" else b"\xff" * 12 + oracle.painted("iv", 4)
    cipher = wc.Cipher(algorithm, KEY, engine="cuda")
    options = oracle.options(algorithm, iv, b"", 16)
    decrypts = not c.ALGORITHMS[algorithm].parallel_encrypt
    work = cipher.decrypt if decrypts else cipher.encrypt
    expect = oracle.decrypt if decrypts else oracle.encrypt
    work(text[:SIZE], out=text[:SIZE], **options)
    for start in STARTS:
        part_iv = window_iv(mode, iv, start, plain(16))
        expected = expect(algorithm, KEY, plain(WINDOW), part_iv)
        assert text[start : start + WINDOW].load() == expected, f"{mode} at byte {start}"


@pytest.mark.parametrize("algorithm", ["des-ecb", "des-ede3-cbc"])
def test_des_decrypts_in_parallel(text: device.DeviceArray, algorithm: str) -> None:
    key = oracle.painted("key", c.ALGORITHMS[algorithm].key_size)
    iv = b"" if algorithm.endswith("-ecb") else oracle.painted("iv", 8)
    cipher = wc.Cipher(algorithm, key, engine="cuda")
    cipher.decrypt(text[:SIZE], out=text[:SIZE], **oracle.options(algorithm, iv, b"", 16))
    for start in STARTS:
        part_iv = plain(8) if iv and start else iv
        expected = oracle.decrypt(algorithm, key, plain(WINDOW), part_iv)
        assert text[start : start + WINDOW].load() == expected, f"{algorithm} at byte {start}"


def test_gcm(text: device.DeviceArray) -> None:
    """The text by windows of the key stream, the tag by the cpu engine, which decrypts it all."""
    nonce = oracle.painted("nonce", 12)
    cipher = wc.Cipher("aes-128-gcm", KEY, engine="cuda")
    cipher.encrypt(text[:SIZE], iv=nonce, aad=b"beyond", out=text)
    for start in STARTS:
        counter = nonce + (2 + start // 16).to_bytes(4, "big")
        expected = oracle.encrypt("aes-128-ctr", KEY, plain(WINDOW), counter)
        assert text[start : start + WINDOW].load() == expected, f"GCM at byte {start}"
    view = memoryview(bytearray(text.load()))
    cpu = wc.Cipher("aes-128-gcm", KEY, engine="cpu")
    cpu.decrypt(view, iv=nonce, aad=b"beyond", out=view[:SIZE])
    assert view[SIZE - WINDOW : SIZE] == plain(WINDOW)
    cipher.decrypt(text, iv=nonce, aad=b"beyond", out=text[:SIZE])
    for start in STARTS:
        assert text[start : start + WINDOW].load() == plain(WINDOW)


def test_columns_of_offsets_beyond_4_gib(text: device.DeviceArray) -> None:
    """Small messages on both sides of 4 GiB of one buffer."""
    starts = [0, 4 * GIB - 4096, 4 * GIB, 4 * GIB + 4096 + 16]
    ivs = [oracle.painted(f"iv {start}", 16) for start in starts]
    wc.run_columns(
        "aes-128-ctr",
        "encrypt",
        KEY,
        text,
        lengths=[4096] * len(starts),
        offsets=starts,
        ivs=b"".join(ivs),
        out=text,
        out_offsets=starts,
        engine="cuda",
    ).raise_for_status()
    for start, iv in zip(starts, ivs, strict=True):
        expected = oracle.encrypt("aes-128-ctr", KEY, plain(4096), iv)
        assert text[start : start + 4096].load() == expected, f"message at byte {start}"
    assert text[4 * GIB + 4096 : 4 * GIB + 4112].load() == plain(16)

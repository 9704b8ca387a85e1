# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU: each library that is installed, lifetimes, and what is refused."""

from __future__ import annotations

import gc
import importlib
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from array_libraries import CBC, CTR, GCM, IV, KEY, LIBRARIES, NONCE, CuPy, Torch


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    return LIBRARIES[request.param]()


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 1000, 65536, 1 << 20])
def test_ctr(library: Any, size: int) -> None:
    text = oracle.painted("text", size)
    cipher = wc.Cipher(CTR, KEY)
    data = cipher.encrypt(library.put(text), iv=IV)
    assert library.get(data) == oracle.encrypt(CTR, KEY, text, IV)
    assert library.get(cipher.decrypt(data, iv=IV)) == text


@pytest.mark.parametrize("size", [0, 5, 16, 1000])
def test_padding(library: Any, size: int) -> None:
    text = oracle.painted("text", size)
    cipher = wc.Cipher(CBC, KEY, padding="pkcs7")
    data = cipher.encrypt(library.put(text), iv=IV)
    assert library.get(data) == oracle.encrypt(CBC, KEY, text, IV, padding="pkcs7")
    assert library.get(cipher.decrypt(data, iv=IV)) == text


@pytest.mark.parametrize("size", [0, 5, 16, 100_000])
def test_aead(library: Any, size: int) -> None:
    text = oracle.painted("text", size)
    wanted = oracle.encrypt(GCM, KEY, text, NONCE, b"aad")
    aead = wc.aead.AESGCM(KEY)
    sealed = aead.encrypt(NONCE, library.put(text), b"aad")
    assert library.get(sealed) == wanted
    assert library.get(aead.decrypt(NONCE, sealed, b"aad")) == text
    bad = library.put(wanted[:-1] + bytes([wanted[-1] ^ 1]))
    with pytest.raises(wc.InvalidTag):
        aead.decrypt(NONCE, bad, b"aad")
    with pytest.raises(wc.InvalidTag):
        wc.Cipher(GCM, KEY).decrypt(bad, iv=NONCE, aad=b"aad")
    if library.writable:
        out = library.put(b"\xff" * (size + 16))
        assert aead.encrypt_into(NONCE, library.put(text), b"aad", out) == size + 16
        assert library.get(out) == wanted
        plain = library.put(b"\xff" * size)
        with pytest.raises(wc.InvalidTag):
            aead.decrypt_into(NONCE, bad, b"aad", plain)
        assert library.get(plain) == bytes(size)


def test_out_and_in_place(library: Any) -> None:
    text = oracle.painted("text", 5000)
    wanted = oracle.encrypt(CTR, KEY, text, IV)
    cipher = wc.Cipher(CTR, KEY)
    array = library.put(text)
    if not library.writable:
        with pytest.raises(BufferError, match="cannot be written"):
            cipher.encrypt(array, iv=IV, out=array)
        return
    out = library.put(bytes(5000))
    assert cipher.encrypt(array, iv=IV, out=out) is out
    assert library.get(out) == wanted
    assert cipher.encrypt(array, iv=IV, out=array) is array
    assert library.get(array) == wanted
    with pytest.raises(ValueError, match="room"):
        cipher.encrypt(library.put(bytes(5001)), iv=IV, out=out)


def test_host_and_device_do_not_mix(library: Any) -> None:
    cipher = wc.Cipher(CTR, KEY)
    array = library.put(bytes(64))
    with pytest.raises(ValueError, match="same place"):
        cipher.encrypt(array, iv=IV, out=bytearray(64))
    if library.writable:
        with pytest.raises(ValueError, match="same place"):
            cipher.encrypt(bytes(64), iv=IV, out=array)
    for engine in ("cpu", "reference"):
        with pytest.raises((ValueError, wc.EngineError), match=engine):
            wc.Cipher(CTR, KEY, engine=engine).encrypt(array, iv=IV)
    batch = wc.Batch()
    batch.add(CTR, "encrypt", KEY, bytes(64), iv=IV)
    with pytest.raises(ValueError, match="separate batches"):
        batch.add(CTR, "encrypt", KEY, array, iv=IV)


def test_batch(library: Any) -> None:
    batch = wc.Batch()
    texts = [oracle.painted(f"text {i}", 100 * i) for i in range(20)]
    handles = [
        batch.add(GCM, "encrypt", KEY, library.put(text), iv=i.to_bytes(12, "big"))
        for i, text in enumerate(texts)
    ]
    padded = oracle.encrypt(CBC, KEY, b"short", IV, padding="pkcs7")
    handles.append(batch.add(CBC, "decrypt", KEY, library.put(padded), iv=IV, padding="pkcs7"))
    bad = batch.add(GCM, "decrypt", KEY, library.put(bytes(40)), iv=NONCE)
    batch.run()
    for i, text in enumerate(texts):
        wanted = oracle.encrypt(GCM, KEY, text, i.to_bytes(12, "big"))
        assert library.get(handles[i].result()) == wanted
    assert library.get(handles[-1].result()) == b"short"
    assert bad.status == "invalid tag"
    with pytest.raises(wc.InvalidTag, match="message 21"):
        bad.result()


def test_columns(library: Any) -> None:
    texts = [oracle.painted(f"text {i}", 37 * i) for i in range(50)]
    nonces = b"".join(i.to_bytes(12, "big") for i in range(50))
    sealed = wc.run_columns(
        GCM,
        "encrypt",
        KEY,
        library.put(b"".join(texts)),
        lengths=[len(t) for t in texts],
        ivs=nonces,
    )
    wanted = [oracle.encrypt(GCM, KEY, text, i.to_bytes(12, "big")) for i, text in enumerate(texts)]
    assert library.get(sealed.out) == b"".join(wanted)
    back = wc.run_columns(GCM, "decrypt", KEY, sealed.out, lengths=sealed.written, ivs=nonces)
    assert library.get(back.raise_for_status().out) == b"".join(texts)


def test_columns_on_the_gpu(library: Any) -> None:
    """All columns and keys on the GPU: messages that need never be looked at on the host."""
    if not isinstance(library, Torch | CuPy):
        pytest.skip("makes no arrays of integers here")
    numpy = importlib.import_module("numpy")
    count, size = 600, 37

    def column(values: Any, kind: str) -> Any:
        array = numpy.asarray(values, kind)
        if isinstance(library, Torch):
            return library.torch.from_numpy(array.astype(kind.replace("u", "i"))).cuda()
        return library.cupy.asarray(array)

    keys = [oracle.painted(f"key {k}", 32) for k in range(3)]
    texts = [oracle.painted(f"text {i}", size) for i in range(count)]
    nonces = [i.to_bytes(12, "big") for i in range(count)]
    arguments: dict[str, Any] = {
        "key_index": column(numpy.arange(count) % 3, "u4"),
        "ivs": library.put(b"".join(nonces)),
        "aad": library.put(b"the same for all"),
    }
    out = library.put(bytes((size + 16) * count))
    sealed = wc.run_columns(
        GCM,
        "encrypt",
        library.put(b"".join(keys)),
        library.put(b"".join(texts)),
        lengths=column([size] * count, "u8"),
        out=out,
        **arguments,
    )
    assert sealed.out is out
    assert list(sealed.written) == [size + 16] * count
    wanted = [
        oracle.encrypt(GCM, keys[i % 3], text, nonces[i], b"the same for all")
        for i, text in enumerate(texts)
    ]
    assert library.get(out) == b"".join(wanted)
    bad = bytearray(b"".join(wanted))
    bad[(size + 16) * 5] ^= 1
    back = library.put(bytes(size * count))
    opened = wc.run_columns(
        GCM,
        "decrypt",
        [wc.Key(GCM, key) for key in keys],
        library.put(bytes(bad)),
        lengths=column([size + 16] * count, "u8"),
        out=back,
        **arguments,
    )
    assert [i for i, status in enumerate(opened.status) if status] == [5]
    assert opened.written[5] == 0
    texts[5] = bytes(size)
    assert library.get(back) == b"".join(texts)
    with pytest.raises(wc.InvalidTag, match="message 5"):
        opened.raise_for_status()
    for change, text in (
        ({"lengths": column([size + 16] * count, "u4")}, "integers of 64 bits"),
        ({"ivs": b"".join(nonces)}, "columns lie together"),
        ({"key_index": column([7] * count, "u4")}, "message 0: key index 7"),
        ({"out": None}, "out is needed"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            wc.run_columns(
                GCM,
                "decrypt",
                library.put(b"".join(keys)),
                library.put(b"".join(wanted)),
                **{
                    "lengths": column([size + 16] * count, "u8"),
                    "out": back,
                    **arguments,
                    **change,
                },
            )


def test_nothing_need_be_kept(library: Any) -> None:
    """Key, IV, data and cipher are dropped while the work may still be on the stream."""
    text = oracle.painted("text", 1 << 20)
    wanted = oracle.encrypt(CTR, KEY, text, IV)
    results = []
    for _ in range(50):
        results.append(wc.Cipher(CTR, bytearray(KEY)).encrypt(library.put(text), iv=bytearray(IV)))
        gc.collect(0)
    for result in results:
        assert library.get(result) == wanted

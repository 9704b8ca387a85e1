# SPDX-License-Identifier: Apache-2.0
"""aead.AESGCMSIV and aead.ChaCha20Poly1305 against pyca/cryptography's classes, and
aead.XChaCha20Poly1305 against its construction: the same calls, bytes and conditions of errors."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from conformance_oracle import painted
from hypothesis import given, settings
from hypothesis import strategies as st
from warpcipher.aead import AESCCM, AESGCMSIV, ChaCha20Poly1305, XChaCha20Poly1305

pyca = pytest.importorskip(
    "cryptography.hazmat.primitives.ciphers.aead", reason="pyca/cryptography is not installed"
)


class Construction:
    """XChaCha20-Poly1305 as draft-irtf-cfrg-xchacha-03, section 2.3, makes it of the other."""

    def __init__(self, key: bytes) -> None:
        pyca.ChaCha20Poly1305(key)
        self._key = key

    def _inner(self, nonce: bytes) -> tuple[Any, bytes]:
        if len(nonce) != 24:
            raise ValueError("Nonce must be 24 bytes")
        subkey = oracle.hchacha20(self._key, bytes(nonce[:16]))
        return pyca.ChaCha20Poly1305(subkey), bytes(4) + bytes(nonce[16:])

    def encrypt(self, nonce: bytes, data: bytes, aad: bytes | None) -> Any:
        box, inner = self._inner(nonce)
        return box.encrypt(inner, data, aad)

    def decrypt(self, nonce: bytes, data: bytes, aad: bytes | None) -> Any:
        box, inner = self._inner(nonce)
        return box.decrypt(inner, data, aad)


KINDS: dict[str, tuple[Any, Any, int, int]] = {  # ours, theirs, bytes of key and of nonce
    "siv-128": (AESGCMSIV, pyca.AESGCMSIV, 16, 12),
    "siv-256": (AESGCMSIV, pyca.AESGCMSIV, 32, 12),
    "chacha20": (ChaCha20Poly1305, pyca.ChaCha20Poly1305, 32, 12),
    "xchacha20": (XChaCha20Poly1305, Construction, 32, 24),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
ENGINES = [info.name for info in wc.engines() if info.usable and "chacha20" in info.algorithms]


def boxes(kind: str, engine: str = "auto") -> tuple[Any, Any, bytes]:
    """Both, under one key, and a nonce."""
    ours, theirs, key_size, nonce_size = KINDS[kind]
    key = painted(f"key {kind}", key_size)
    return ours(key, engine=engine), theirs(key), painted(f"nonce {kind}", nonce_size)


@every_kind
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 63, 64, 65, 4095, 16_384, 100_000])
@pytest.mark.parametrize("aad", [None, b"", b"header", bytes(5000)])
def test_same_bytes(kind: str, engine: str, size: int, aad: bytes | None) -> None:
    if engine == "reference" and size > 20_000:
        size = 20_000
    ours, theirs, nonce = boxes(kind, engine)
    text = painted("text", size)
    sealed = ours.encrypt(nonce, text, aad)
    assert type(sealed) is bytes
    assert sealed == theirs.encrypt(nonce, text, aad)
    assert ours.decrypt(nonce, sealed, aad) == text


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    key=st.binary(min_size=32, max_size=32),
    nonce=st.binary(min_size=24, max_size=24),
    text=st.binary(max_size=700),
    aad=st.none() | st.binary(max_size=100),
    form=st.sampled_from((bytes, bytearray, memoryview)),
)
def test_same_bytes_of_anything(
    kind: str, key: bytes, nonce: bytes, text: bytes, aad: bytes | None, form: Any
) -> None:
    ours, theirs, key_size, nonce_size = KINDS[kind]
    key, nonce = key[:key_size], nonce[:nonce_size]
    sealed = ours(key).encrypt(form(nonce), form(text), aad)
    assert sealed == theirs(key).encrypt(nonce, text, aad)
    assert theirs(key).decrypt(nonce, sealed, aad) == text
    assert ours(key).decrypt(nonce, form(sealed), aad) == text


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    text=st.binary(max_size=100),
    bit=st.integers(0, 10_000),
    what=st.integers(0, 2),
)
def test_any_flipped_bit_is_noticed(kind: str, text: bytes, bit: int, what: int) -> None:
    ours, _, nonce = boxes(kind)
    fields = [bytearray(nonce), bytearray(ours.encrypt(nonce, text, b"aad")), bytearray(b"aad")]
    fields[what][bit // 8 % len(fields[what])] ^= 1 << bit % 8
    with pytest.raises(wc.InvalidTag):
        ours.decrypt(*(bytes(field) for field in fields))


@every_kind
def test_into_and_in_place(kind: str) -> None:
    ours, theirs, nonce = boxes(kind)
    text = painted("text", 1000)
    buf = bytearray(1016)
    assert ours.encrypt_into(nonce, text, b"a", buf) == 1016
    assert buf == theirs.encrypt(nonce, text, b"a")
    view = memoryview(buf)
    assert ours.decrypt_into(nonce, view, b"a", view[:1000]) == 1000
    assert buf[:1000] == text
    assert ours.encrypt_into(nonce, view[:1000], b"a", view) == 1016
    assert buf == theirs.encrypt(nonce, text, b"a")
    out = bytearray(b"\xff" * 1000)
    with pytest.raises(wc.InvalidTag):
        ours.decrypt_into(nonce, buf, b"other", out)
    assert out == bytes(1000)


CALLS: dict[str, Any] = {
    "short key": lambda c, n: c(bytes(15)),
    "long key": lambda c, n: c(bytes(33)),
    "key is text": lambda c, n: c("0" * 32),
    "short nonce": lambda c, n: c(bytes(32)).encrypt(n[:-1], b"", None),
    "long nonce": lambda c, n: c(bytes(32)).encrypt(n + b"0", b"", None),
    "no nonce": lambda c, n: c(bytes(32)).encrypt(b"", b"", None),
    "short nonce to decrypt": lambda c, n: c(bytes(32)).decrypt(n[:-1], bytes(16), None),
    "data is text": lambda c, n: c(bytes(32)).encrypt(n, "x", None),
    "aad is text": lambda c, n: c(bytes(32)).encrypt(n, b"", "x"),
    "two arguments": lambda c, n: c(bytes(32)).encrypt(n, b""),
}


@every_kind
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_same_errors(kind: str, call: Any) -> None:
    ours, theirs, _, nonce_size = KINDS[kind]
    with pytest.raises((TypeError, ValueError, BufferError)) as expected:
        call(theirs, bytes(nonce_size))
    with pytest.raises(expected.type):
        call(ours, bytes(nonce_size))


@pytest.mark.parametrize("name", ["AESGCMSIV", "ChaCha20Poly1305"])
def test_same_words(name: str) -> None:
    ours, theirs = getattr(wc.aead, name), getattr(pyca, name)
    for call in (
        lambda c: c(bytes(32)).encrypt(bytes(11), b"", None),
        lambda c: c(bytes(32)).encrypt_into(bytes(12), b"abc", None, bytearray(3)),
    ):
        with pytest.raises(ValueError, match=r"\w") as expected:
            call(theirs)
        with pytest.raises(ValueError, match=r"\w") as found:
            call(ours)
        assert str(found.value) == str(expected.value)


def test_keys_of_192_bits_are_opensssls_own() -> None:
    """RFC 8452 has none; OpenSSL makes some."""
    assert pyca.AESGCMSIV(bytes(24))
    with pytest.raises(ValueError, match="must be 128 or 256 bits"):
        AESGCMSIV(bytes(24))
    with pytest.raises(ValueError, match="bit_length must be 128 or 256"):
        AESGCMSIV.generate_key(192)
    assert len(AESGCMSIV.generate_key(128)) == 16


def test_generate_key_of_chacha_takes_nothing() -> None:
    for box in (ChaCha20Poly1305, XChaCha20Poly1305):
        keys = {box.generate_key() for _ in range(4)}
        assert {len(key) for key in keys} == {32}
        assert len(keys) == 4


@every_kind
def test_a_box_shows_no_key_and_leaves_the_process_by_no_way(kind: str) -> None:
    ours, _, _ = boxes(kind)
    assert "key of" in repr(ours)
    assert painted(f"key {kind}", 32).hex()[:8] not in repr(ours)
    assert "engine" in inspect.signature(type(ours)).parameters
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            way(ours)


@every_kind
def test_arrays_give_arrays(kind: str) -> None:
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    ours, theirs, nonce = boxes(kind)
    text = numpy.arange(100, dtype="u1")
    sealed = ours.encrypt(nonce, text, b"a")
    assert type(sealed) is numpy.ndarray
    assert sealed.tobytes() == theirs.encrypt(nonce, text.tobytes(), b"a")


# --- rules of nonces, lengths and counters -----------------------------------------------------


@pytest.mark.parametrize("algorithm", ["chacha20-poly1305", "xchacha20-poly1305", "aes-128-gcm"])
def test_a_batch_refuses_a_nonce_twice(algorithm: str) -> None:
    info = next(info for info in wc.algorithms() if info.name == algorithm)
    batch = wc.Batch()
    for text in (b"one", b"two"):
        batch.add(algorithm, "encrypt", bytes(info.key_size), text, iv=bytes(info.iv_size))
    with pytest.raises(ValueError, match="messages 0 and 1 encrypt with the same key and the same"):
        batch.run()


def test_gcm_siv_may_repeat_a_nonce_and_tells_only_equal_messages() -> None:
    texts = [b"one", b"two", b"one"]
    columns = wc.run_columns(
        "aes-256-gcm-siv", "encrypt", bytes(32), b"".join(texts), lengths=[3] * 3, ivs=bytes(36)
    )
    sealed = [columns.out[i : i + 19] for i in (0, 19, 38)]
    assert sealed[0] == sealed[2] != sealed[1]


def test_one_key_and_nonce_for_two_algorithms_is_no_repetition() -> None:
    batch = wc.Batch()
    handles = [
        batch.add(name, "encrypt", bytes(32), b"text", iv=bytes(12))
        for name in ("aes-256-gcm", "chacha20-poly1305")
    ]
    batch.run()
    assert [handle.status for handle in handles] == ["ok", "ok"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_counter_of_chacha20_ends_and_does_not_wrap(engine: str) -> None:
    key, nonce, text = painted("key", 32), painted("nonce", 12), painted("text", 200)
    cipher = wc.Cipher("chacha20", key, engine=engine)

    def iv(first: int) -> bytes:
        return first.to_bytes(4, "little") + nonce

    assert cipher.encrypt(text, iv=iv(2**32 - 4)) == oracle.encrypt(
        "chacha20", key, text, iv(2**32 - 4)
    )
    for first, size in ((2**32 - 1, 65), (2**32 - 3, 193), (2**32 - 4, 300)):
        out = bytearray(size)
        with pytest.raises(ValueError, match="counter of 32 bits that does not wrap"):
            cipher.encrypt(bytes(size), iv=iv(first), out=out)
        assert out == bytes(size)
    assert len(cipher.encrypt(bytes(64), iv=iv(2**32 - 1))) == 64
    assert cipher.encrypt(b"", iv=iv(2**32 - 1)) == b""


def test_a_batch_with_forged_tags() -> None:
    """Only those fail, and their outputs are zeros."""
    for name in ("chacha20-poly1305", "xchacha20-poly1305", "aes-128-gcm-siv", "aes-256-gcm-siv"):
        info = next(info for info in wc.algorithms() if info.name == name)
        key = painted("key", info.key_size)
        texts = [painted(f"text {i}", 37 * i) for i in range(60)]
        ivs = [painted(f"iv {i}", info.iv_size) for i in range(60)]
        pairs = list(zip(texts, ivs, strict=True))
        sealed = [bytearray(oracle.encrypt(name, key, text, iv)) for text, iv in pairs]
        for i in range(0, 60, 7):
            sealed[i][-1 - i % 16] ^= 0x10
        columns = wc.run_columns(
            name,
            "decrypt",
            key,
            b"".join(sealed),
            lengths=[len(each) for each in sealed],
            ivs=b"".join(ivs),
        )
        at = 0
        for i, text in enumerate(texts):
            forged = i % 7 == 0
            assert columns.status[i] == (wc.Status.INVALID_TAG if forged else wc.Status.OK)
            assert columns.out[at : at + len(text)] == (bytes(len(text)) if forged else text)
            at += len(text)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=60, deadline=None)
@given(
    key=st.sampled_from((16, 24, 32)).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
    tag_length=st.sampled_from((4, 6, 8, 10, 12, 14, 16)),
    nonce=st.binary(min_size=7, max_size=13),
    size=st.sampled_from((0, 1, 15, 16, 17, 31, 33, 255, 5000)),
    aad_size=st.sampled_from((None, 0, 1, 13, 14, 15, 30, 65279, 65280, 70_000)),
)
def test_ccm_makes_the_same(
    engine: str, key: bytes, tag_length: int, nonce: bytes, size: int, aad_size: int | None
) -> None:
    """Associated data from 65280 bytes on have a longer length before them."""
    text = painted("text", size)
    aad = None if aad_size is None else painted("aad", aad_size)
    theirs, ours = pyca.AESCCM(key, tag_length), AESCCM(key, tag_length, engine=engine)
    sealed = ours.encrypt(nonce, text, aad)
    assert sealed == theirs.encrypt(nonce, text, aad)
    assert ours.decrypt(nonce, sealed, aad) == text
    forged = bytearray(sealed)
    forged[size // 2] ^= 1
    buf = bytearray(b"\xff" * size)
    with pytest.raises(wc.InvalidTag):
        ours.decrypt_into(nonce, forged, aad, buf)
    assert buf == bytes(size)


def test_ccm_refuses_as_pyca_does() -> None:
    for tag_length in (0, 2, 5, 17, "16"):
        with pytest.raises((TypeError, ValueError)) as expected:
            pyca.AESCCM(bytes(16), tag_length)  # type: ignore[arg-type]
        with pytest.raises(expected.type):
            AESCCM(bytes(16), tag_length)  # type: ignore[arg-type]
    for nonce in (6, 14):
        with pytest.raises(ValueError, match="Nonce must be between 7 and 13 bytes"):
            AESCCM(bytes(16)).encrypt(bytes(nonce), b"", None)
    with pytest.raises(ValueError, match="at most 65535 bytes with a nonce of 13 bytes"):
        AESCCM(bytes(16)).encrypt(bytes(13), bytes(65536), None)
    assert AESCCM(bytes(16)).encrypt(bytes(13), bytes(65535), None)

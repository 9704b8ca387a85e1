# SPDX-License-Identifier: Apache-2.0
"""Format raw with ChaCha20: pieces chain by its counter, which ends; and its AEADs whole."""

from __future__ import annotations

import io

import pytest
import warpcipher as wc
from conformance_oracle import encrypt as oracle_encrypt
from conformance_oracle import painted
from warpcipher import formats
from warpcipher.formats import Options, raw

KEY = painted("key", 32)


def iv_at(block: int) -> bytes:
    return block.to_bytes(4, "little") + painted("nonce", 12)


def run(data: bytes, iv: bytes, *, decrypt: bool = False, algorithm: str = "chacha20") -> bytes:
    out = io.BytesIO()
    call = formats.decrypt_stream if decrypt else formats.encrypt_stream
    call(io.BytesIO(data), out, KEY, format="raw", options=Options(algorithm=algorithm, iv=iv))
    return out.getvalue()


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "PIECE_SIZE", 192)
    monkeypatch.setattr(raw, "CHUNK_SIZE", 64)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 191, 192, 193, 384, 1000])
def test_pieces_chain_to_one_message(size: int) -> None:
    text = painted("text", size)
    sealed = run(text, iv_at(7))
    assert sealed == oracle_encrypt("chacha20", KEY, text, iv_at(7))
    assert run(sealed, iv_at(7), decrypt=True) == text


@pytest.mark.usefixtures("small_pieces")
def test_random_access() -> None:
    text = painted("text", 1000)
    options = Options(algorithm="chacha20", iv=iv_at(2**32 - 16))
    sealed = io.BytesIO(run(text, iv_at(2**32 - 16)))
    with formats.open(sealed, KEY, format="raw", options=options) as file:
        for start, size in ((0, 10), (64, 64), (700, 300), (999, 5), (130, 500)):
            file.seek(start)
            assert file.read(size) == text[start : start + size]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("size", [193, 256, 257, 1000])
def test_a_text_behind_the_last_block_is_refused(size: int) -> None:
    """192 bytes go to the last block exactly, so the next piece has no counter."""
    assert len(run(bytes(192), iv_at(2**32 - 3))) == 192
    with pytest.raises((ValueError, formats.FormatError), match=r"2\^32 - 1|does not wrap"):
        run(bytes(size), iv_at(2**32 - 3))


@pytest.mark.parametrize("algorithm", ["chacha20-poly1305", "xchacha20-poly1305"])
def test_aeads_are_whole_and_authenticate(algorithm: str) -> None:
    size = 12 if algorithm.startswith("chacha") else 24
    iv, text = painted("iv", size), painted("text", 1000)
    sealed = run(text, iv, algorithm=algorithm)
    assert sealed == oracle_encrypt(algorithm, KEY, text, iv)
    assert run(sealed, iv, decrypt=True, algorithm=algorithm) == text
    with pytest.raises(wc.InvalidTag):
        run(sealed[:-1] + b"\0", iv, decrypt=True, algorithm=algorithm)
    with pytest.raises(ValueError, match=f"takes an IV of {size} bytes, got 16 bytes"):
        run(text, bytes(16), algorithm=algorithm)

# SPDX-License-Identifier: Apache-2.0
"""C2SP chunked encryption against the vectors of the cryptography-vectors package.

Those were made with SHA-256 in place of SHA-512 and are the specification's in all else, so the
tests set that hash. The interop tests hold SHA-512 against the peer.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from warpcipher import InvalidTag, formats
from warpcipher.formats import chunks, cobblestone, layout

cryptography_vectors = pytest.importorskip("cryptography_vectors")

FILE = Path(cryptography_vectors.__file__).parent / "chunked-encryption" / "vectors.json"
AEADS = {"AEAD_AES_128_GCM": "cobblestone-128", "AEAD_AES_256_GCM": "cobblestone-256"}
FIELDS = {
    "name",
    "comment",
    "aead",
    "expect",
    "key",
    "aead_key",
    "base_nonce",
    "context",
    "ciphertext",
    "compressed",
    "payload_sha256",
    "payload_length",
}
ALL = json.loads(FILE.read_text())["vectors"]
VECTORS = [vector for vector in ALL if vector["aead"] in AEADS]


def ciphertext_of(vector: dict[str, Any]) -> bytes:
    data = base64.b64decode(vector["ciphertext"] or "")
    return zlib.decompress(data, wbits=47) if vector.get("compressed") else data


def test_the_vectors_are_the_ones_expected() -> None:
    assert {vector["aead"] for vector in ALL} == {*AEADS, "AEAD_CHACHA20_POLY1305"}
    assert set().union(*ALL) <= FIELDS, "a field that no test uses"
    for aead in AEADS:
        outcomes = [vector["expect"] for vector in VECTORS if vector["aead"] == aead]
        assert outcomes.count("success") >= 9
        assert outcomes.count("failure") >= 20


@pytest.fixture
def sha256(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cobblestone.HASH == "sha512", "the hash of both instantiations"
    monkeypatch.setattr(cobblestone, "HASH", "sha256")


@pytest.mark.usefixtures("sha256")
@pytest.mark.parametrize("piece_size", [1 << 14, layout.PIECE_SIZE], ids=["one chunk", "full"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any], piece_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", piece_size)
    name = AEADS[vector["aead"]]
    key = bytes.fromhex(vector["key"])
    sealed = ciphertext_of(vector)
    options = formats.Options(context=vector["context"].encode())
    out = io.BytesIO()
    if vector["expect"] == "success":
        formats.decrypt_stream(io.BytesIO(sealed), out, key, format=name, options=options)
        assert len(out.getvalue()) == vector["payload_length"]
        assert hashlib.sha256(out.getvalue()).hexdigest() == vector["payload_sha256"]
        with formats.open(io.BytesIO(sealed), key, format=name, options=options) as file:
            assert file.read() == out.getvalue()
        return
    wrong_size = len(key) not in (16, 32) or len(key) != int(name[-3:]) // 8
    refused = ValueError if wrong_size else (InvalidTag, formats.FormatError)
    with pytest.raises(refused):
        formats.decrypt_stream(io.BytesIO(sealed), out, key, format=name, options=options)
    # Chunks before the bad one are authentic and may have been written.
    assert len(out.getvalue()) <= vector.get("payload_length", 0)


@pytest.mark.usefixtures("sha256")
@pytest.mark.parametrize(
    "vector", [v for v in VECTORS if v["expect"] == "success"], ids=lambda vector: vector["name"]
)
def test_keys_are_derived_as_published(vector: dict[str, Any]) -> None:
    key, sealed = bytes.fromhex(vector["key"]), ciphertext_of(vector)
    info = b"c2sp.org/chunked-encryption@v1+" + vector["aead"].encode() + b"\0"
    info += sealed[:24] + vector["context"].encode()
    okm = cobblestone.hkdf_expand(bytearray(key), info, len(key) + 12 + 32)
    assert okm[: len(key)].hex() == vector["aead_key"]
    assert okm[len(key) :][:12].hex() == vector["base_nonce"]
    assert okm[len(key) + 12 :] == sealed[24:56]


def test_nonces_are_the_base_xor_the_counter() -> None:
    key, template = bytes(range(16)), bytes(range(0xF0, 0xFC))
    text = bytes(300 * 16384)
    for first in (0, 1, 255, 256, 65535, (1 << 38) - 300, (1 << 32) - 7):
        how = chunks.sealing(
            cobblestone.LAYOUT, "aes-128-gcm", bytearray(key), "cpu", nonce=template
        )
        sealed = bytearray(300 * 16400)
        how.seal(first, 300, False, text, sealed)
        for i in (0, 1, 7, 8, 255, 256, 299):
            nonce = (int.from_bytes(template, "big") ^ (first + i)).to_bytes(12, "big")
            expected = wc.aead.AESGCM(key).encrypt(nonce, text[:16384], None)
            assert sealed[16400 * i : 16400 * (i + 1)] == expected


def test_the_longest_message_is_2_to_the_38_chunks() -> None:
    layout = (
        formats.get("cobblestone-128")
        .decryptor(bytes(16), sealed_empty(), formats.Options())
        .layout
    )
    longest = 56 + ((1 << 38) - 1) * 16400 + 16399
    assert layout.plaintext_size(longest) == (1 << 52) - 1
    with pytest.raises(formats.FormatError, match="too long"):
        layout.plaintext_size(longest + 17)
    with pytest.raises(formats.FormatError, match="too long"):
        layout.count_in(16, 1 << 38, True, sealed=True)


def sealed_empty() -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(), out, bytes(16))
    return out.getvalue()

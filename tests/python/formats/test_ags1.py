# SPDX-License-Identifier: Apache-2.0
"""Iceberg's AES GCM stream: against blocks made here one by one with another library, at random,
and changed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from cli_support import run
from format_cases import paint
from warpcipher import formats
from warpcipher.formats import FormatError, Options, ags1
from warpcipher.formats.reader import DecryptingReader

BLOCK = 1 << 20
PREFIX = b"a file of a table"


def peer(text: bytes, key: bytes, prefix: bytes, block: int = BLOCK) -> bytes:
    """A stream as the specification says, by pyca/cryptography."""
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    out = b"AGS1" + block.to_bytes(4, "little")
    for number, start in enumerate(range(0, max(len(text), 1), block)):
        nonce = os.urandom(12)
        aad = prefix + number.to_bytes(4, "little")
        out += nonce + aead.AESGCM(key).encrypt(nonce, text[start : start + block], aad)
    return out


def peer_reads(data: bytes, key: bytes, prefix: bytes) -> bytes:
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    assert data[:4] == b"AGS1"
    size = int.from_bytes(data[4:8], "little") + 28
    out = b""
    for number, start in enumerate(range(8, len(data), size)):
        aad = prefix + number.to_bytes(4, "little")
        block = data[start : start + size]
        out += aead.AESGCM(key).decrypt(block[:12], block[12:], aad)
    return out


def encrypt(text: bytes, key: bytes, prefix: bytes = PREFIX) -> bytes:
    out = io.BytesIO()
    options = Options(context=prefix)
    formats.encrypt_stream(io.BytesIO(text), out, key, format="ags1", options=options)
    return out.getvalue()


def decrypt(data: bytes, key: bytes, prefix: bytes = PREFIX) -> bytes:
    out = io.BytesIO()
    options = Options(context=prefix)
    formats.decrypt_stream(io.BytesIO(data), out, key, format="ags1", options=options)
    return out.getvalue()


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
@pytest.mark.parametrize("key_size", [16, 24, 32])
def test_both_ways_against_the_specification(size: int, key_size: int) -> None:
    key, text = bytes(range(key_size)), paint(size)
    ours = encrypt(text, key)
    assert len(ours) == 8 + size + 28 * max(-(-size // BLOCK), 1)
    assert peer_reads(ours, key, PREFIX) == text
    assert decrypt(peer(text, key, PREFIX), key) == text
    assert encrypt(text, key) != ours


@pytest.mark.parametrize("block", [1, 16, 100, 4096])
def test_blocks_of_any_length_are_read_at_random(tmp_path: Path, block: int) -> None:
    key, text = bytes(32), paint(1000)
    path = tmp_path / "stream"
    path.write_bytes(peer(text, key, PREFIX, block))
    with formats.open(path, key, format="ags1", options=Options(context=PREFIX)) as file:
        for start, size in ((0, 1000), (17, 300), (999, 5), (500, 1), (0, 0)):
            file.seek(start)
            assert file.read(size) == text[start : start + size]
        assert file.raw.size == 1000  # type: ignore[attr-defined]


def test_a_range_names_the_bad_block(tmp_path: Path) -> None:
    key, text = bytes(16), paint(2000)
    data = bytearray(peer(text, key, PREFIX, 100))
    data[8 + 7 * 128 + 50] ^= 1
    path = tmp_path / "stream"
    path.write_bytes(data)
    for source in (path, io.BytesIO(data)):
        with formats.open(source, key, format="ags1", options=Options(context=PREFIX)) as file:
            assert isinstance(file.raw, DecryptingReader)
            out = bytearray(b"x" * 455)
            file.raw.read_range(850, 455, out)
            assert out == text[850:1305]
            with pytest.raises(wc.InvalidTag, match="chunk 7 failed"):
                file.raw.read_range(333, 455, out)
            assert not any(out)


def test_changes_are_refused() -> None:
    key = bytes(16)
    data = peer(paint(300), key, PREFIX, 100)
    for at in range(0, len(data), 5):
        changed = bytearray(data)
        changed[at] ^= 4
        with pytest.raises((wc.InvalidTag, FormatError)):
            decrypt(bytes(changed), key)
    one, other = data[8:136], data[136:264]
    with pytest.raises(wc.InvalidTag, match="chunk 0 failed"):
        decrypt(data[:8] + other + one + data[264:], key)
    with pytest.raises(wc.InvalidTag):
        decrypt(data, key, b"another prefix")
    with pytest.raises(wc.InvalidTag):
        decrypt(data, bytes([1]) * 16)
    for size in (0, 4, 8, 20, 35, 137, len(data) - 1):
        with pytest.raises((wc.InvalidTag, FormatError)):
            decrypt(data[:size], key)
    # Cases that the specification leaves to whoever knows the length.
    assert decrypt(data[:136], key) == paint(100)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"AGS2" + (100).to_bytes(4, "little"), "not an AGS1 stream"),
        (b"AGS1" + bytes(4), "blocks of 0 bytes"),
        (b"AGS1" + b"\xff" * 4, "blocks of 4294967295 bytes: expected 1 to 67108864"),
        (b"AGS1", "the header has 8"),
    ],
)
def test_headers_that_lie(header: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        decrypt(header + (bytes(60) if len(header) == 8 else b""), bytes(16))


@pytest.mark.parametrize(
    ("key", "options", "error"),
    [
        (bytes(15), {}, ValueError),
        ("text", {}, TypeError),
        (bytes(16), {"iv": bytes(12)}, ValueError),
        (bytes(16), {"engine": "none"}, wc.EngineError),
    ],
)
def test_what_it_does_not_take(key: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        formats.encrypt_stream(
            io.BytesIO(b"x"), io.BytesIO(), key, format="ags1", options=Options(**options)
        )


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "m.avro").write_bytes(paint(2000))
    run("keygen", "--format", "ags1", "key", cwd=tmp_path)
    assert (tmp_path / "key").stat().st_size == 32
    options = ("--format", "ags1", "--key", "key", "--context", "prefix")
    run("encrypt", *options, "m.avro", cwd=tmp_path)
    sealed = (tmp_path / "m.avro.ags1").read_bytes()
    assert peer_reads(sealed, (tmp_path / "key").read_bytes(), b"prefix") == paint(2000)
    run("decrypt", *options, "-o", "back", "m.avro.ags1", cwd=tmp_path)
    assert (tmp_path / "back").read_bytes() == paint(2000)
    (tmp_path / "short").touch(0o600)
    (tmp_path / "short").write_bytes(bytes(16))
    run("encrypt", "--format", "ags1", "--key", "short", "-o", "x", "m.avro", cwd=tmp_path)
    assert ags1.BLOCK_SIZE == BLOCK


def test_the_command_through_pipes(tmp_path: Path) -> None:
    run("keygen", "--format", "ags1", "key", cwd=tmp_path)
    options = ("--format", "ags1", "--key", "key", "-")
    plain = paint(2 * BLOCK + 5)
    sealed = run("encrypt", *options, cwd=tmp_path, stdin=plain).stdout
    assert peer_reads(sealed, (tmp_path / "key").read_bytes(), b"") == plain
    assert run("decrypt", *options, cwd=tmp_path, stdin=sealed).stdout == plain


def test_a_cut_file_passes_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(bytes(32))
    cut = tmp_path / "cut.ags1"
    cut.write_bytes(encrypt(paint(BLOCK + 5), bytes(32), b"")[: 8 + BLOCK + 28])
    done = run("check", "--format", "ags1", "--key", "key", "cut.ags1", cwd=tmp_path)
    assert b"compare its length with one that you trust" in done.stderr


@pytest.mark.parametrize("key_size", [16, 24, 32])
def test_the_magic_number_and_the_first_block_find_it(tmp_path: Path, key_size: int) -> None:
    key, path = os.urandom(key_size), tmp_path / "stream"
    path.write_bytes(peer(paint(300), key, PREFIX, 100))
    data = path.read_bytes()
    assert formats.detect(data[:136], key, context=PREFIX) == "ags1"
    assert formats.detect(data[:135], key, context=PREFIX) is None
    assert formats.detect(data, key) is None
    assert formats.detect(data, bytes(key_size), context=PREFIX) is None
    found = formats.info(path, key, context=PREFIX)
    (one,) = found.candidates
    assert found.certain
    assert (one.format, one.plaintext_size, one.chunk_size, one.chunks) == ("ags1", 300, 100, 3)
    assert formats.info(path, os.urandom(key_size), context=PREFIX).candidates == ()
    (shape,) = [one for one in formats.info(path).candidates if one.format == "ags1"]
    assert (shape.plaintext_size, shape.chunk_size, shape.chunks) == (300, 100, 3)
    path.write_bytes(b"A" + bytes(200))
    assert "ags1" not in {one.format for one in formats.info(path).candidates}

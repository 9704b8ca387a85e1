# SPDX-License-Identifier: Apache-2.0
"""Both ways between warpcipher's crypt4gh format and the package crypt4gh of its authors."""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path

import pytest
from format_cases import paint
from warpcipher import formats
from warpcipher.formats import crypt4gh

lib = pytest.importorskip("crypt4gh.lib", reason="needs the crypt4gh package")
peer_header = pytest.importorskip("crypt4gh.header")
peer_keys = pytest.importorskip("crypt4gh.keys")
c4gh = pytest.importorskip("crypt4gh.keys.c4gh")

SEGMENT = 1 << 16
SIZES = sorted(
    {0, 1, 15, 16, 17, 28, 1000}
    | {edge * SEGMENT + step for edge in (1, 2, 3, 16, 17) for step in (-1, 0, 1)}
    | {3_000_001}
)
ME = crypt4gh.SecretKey.generate()
YOU = crypt4gh.SecretKey.generate()


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("crypt4gh").setLevel(logging.CRITICAL)


def peer_encrypt(plain: bytes, *readers: crypt4gh.SecretKey) -> bytes:
    out = io.BytesIO()
    writer = os.urandom(32)
    lib.encrypt(
        [(0, writer, reader.public_key.public) for reader in readers], io.BytesIO(plain), out
    )
    return out.getvalue()


def peer_decrypt(data: bytes, reader: crypt4gh.SecretKey) -> bytes:
    out = io.BytesIO()
    lib.decrypt([(0, reader.secret, None)], io.BytesIO(data), out)
    return out.getvalue()


@pytest.mark.parametrize("size", SIZES)
def test_both_ways(size: int) -> None:
    plain = paint(size)
    sealed = peer_encrypt(plain, YOU, ME)
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(sealed), out, ME)
    assert out.getvalue() == plain
    with formats.open(io.BytesIO(sealed), ME) as file:
        file.seek(size // 3)
        assert file.read() == plain[size // 3 :]
    ours = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), ours, [ME.public_key, YOU.public_key])
    assert peer_decrypt(ours.getvalue(), YOU) == plain
    assert peer_decrypt(ours.getvalue(), ME) == plain


@pytest.mark.parametrize("phrase", [None, "secret"])
def test_files_of_keys(tmp_path: Path, phrase: str | None) -> None:
    secret, public = tmp_path / "x.sec", tmp_path / "x.pub"
    c4gh.generate(str(secret), str(public), phrase and phrase.encode(), b"a comment")
    key = crypt4gh.SecretKey.parse(secret.read_bytes(), phrase)
    assert crypt4gh.PublicKey.parse(public.read_bytes()) == key.public_key
    ours, ours_public = tmp_path / "y.sec", tmp_path / "y.pub"
    ours.write_text(ME.to_text(phrase))
    ours_public.write_text(ME.public_key.to_text())
    assert peer_keys.get_private_key(str(ours), lambda: phrase) == ME.secret
    assert peer_keys.get_public_key(str(ours_public)) == ME.public_key.public


@pytest.mark.parametrize(
    ("offset", "span"),
    [(0, 5), (5, None), (70_000, 1000), (65_536, 65_536), (60_000, 100_000), (150_000, 90_000)],
)
def test_files_that_the_peer_rearranged(offset: int, span: int | None) -> None:
    plain = paint(200_000)
    sealed, out = peer_encrypt(plain, ME), io.BytesIO()
    lib.rearrange([(0, ME.secret, ME.public_key.public)], io.BytesIO(sealed), out, offset, span)
    expected = plain[offset:][:span]
    assert peer_decrypt(out.getvalue(), ME) == expected
    back = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(out.getvalue()), back, ME)
    assert back.getvalue() == expected


def test_edit_lists_of_several_ranges_as_the_peer_reads_them() -> None:
    plain, lengths = paint(200_000), [5, 70_000, 3, 60_000, 20]
    sealed = peer_encrypt(plain, ME)
    packets = list(peer_header.parse(body := io.BytesIO(sealed)))
    edits = peer_header.make_packet_data_edit_list(lengths)
    packets += list(peer_header.encrypt(edits, [(0, os.urandom(32), ME.public_key.public)]))
    rearranged = peer_header.serialize(packets) + body.read()
    back = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(rearranged), back, ME)
    assert back.getvalue() == peer_decrypt(rearranged, ME)


def test_two_files_that_were_joined() -> None:
    """Segments of two data keys, as `cat` makes them of two files of whole segments."""
    parts = [paint(2 * SEGMENT), paint(SEGMENT + 7)[::-1]]
    packets, bodies = [], b""
    for part in parts:
        packets += peer_header.parse(body := io.BytesIO(peer_encrypt(part, ME)))
        bodies += body.read()
    joined = peer_header.serialize(packets) + bodies
    assert peer_decrypt(joined, ME) == b"".join(parts)
    back = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(joined), back, ME)
    assert back.getvalue() == b"".join(parts)


def test_files_that_the_peer_gave_to_another() -> None:
    sealed = peer_encrypt(paint(100), ME)
    out = io.BytesIO()
    lib.reencrypt(
        [(0, ME.secret, None)],
        [(0, os.urandom(32), YOU.public_key.public)],
        io.BytesIO(sealed),
        out,
        trim=True,
    )
    plain = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(out.getvalue()), plain, YOU)
    assert plain.getvalue() == paint(100)

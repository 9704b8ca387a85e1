# SPDX-License-Identifier: Apache-2.0
"""Both ways between warpcipher's crypt4gh format and the package crypt4gh of its authors, and what
other programs wrote."""

from __future__ import annotations

import base64
import io
import logging
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import warpcipher as wc
from cli_support import run
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


# By github.com/neicnordic/crypt4gh 1.14.0 (Go): a key under the passphrase "pässword", and an empty
# file for it, which has one empty segment.
GO_KEY = """-----BEGIN CRYPT4GH ENCRYPTED PRIVATE KEY-----
YzRnaC12MQAGc2NyeXB0ABQAAAAA2K1UMWudcJM+5y9dVCkM7gARY2hhY2hhMjBf
cG9seTEzMDUAPBn+0XgQ5jFgtLWtj5nJnoAb56+aNCl28STW9BoMEDCL38KoHdPx
ND8oSdK51nroALqc0FzQE+vc3ljlYQ==
-----END CRYPT4GH ENCRYPTED PRIVATE KEY-----
"""
GO_EMPTY = base64.b64decode(
    "Y3J5cHQ0Z2gBAAAAAQAAAGwAAAAAAAAABvqYY29k0dl/UG0NcspT3OjS7GvqKu/zXPu3M9ahyF7B6gKzEhoRAsLPR1"
    "g04lmpwdX0+s8GWirQM+Tqv75uOWxUx3TmX2M7pY+AZvCzO4mV17Xh50ZwNM+WenDSIhbKl9YIdz+G8+2m4Q9vv0rL"
    "xJjPB106s39w9IgBeQMI57A="
)
# By crypt4gh-agent of htslib-crypt4gh 07ff7f9, for samtools: under the passphrase "hello", and one
# of its tests, which is not encrypted.
AGENT_KEYS = [
    (
        """-----BEGIN CRYPT4GH ENCRYPTED PRIVATE KEY-----
YzRnaC12MQAGc2NyeXB0ABQAAAAAqs0E9T1rNYeAbO7pyMpYcQARY2hhY2hhMjBfcG9seTEzMDUAPDWraKK69GQ1IvLZ4UgmZ\
/egWrZDO15B+QXrXxedfDIv2iVN0QlSjTCOvI/Hq8UJW91iFw2I21+DrDCuFwAA
-----END CRYPT4GH ENCRYPTED PRIVATE KEY-----
""",
        "oYHyS+62MVsHtBn108CUkqaDgXBiuxYMq+KE6kirOw8=",
    ),
    (
        """-----BEGIN CRYPT4GH PRIVATE KEY-----
dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=
-----END CRYPT4GH PRIVATE KEY-----
""",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
    ),
]


def test_keys_and_an_empty_file_of_go(tmp_path: Path) -> None:
    assert crypt4gh.keys.is_secret_key(GO_KEY.encode())
    reader = crypt4gh.SecretKey.parse(GO_KEY, "pässword")
    sealed = tmp_path / "sealed"
    sealed.write_bytes(GO_EMPTY)
    formats.decrypt_file(sealed, tmp_path / "plain", reader)
    assert (tmp_path / "plain").read_bytes() == b""


@pytest.mark.parametrize("count", [1, 2, 100])
def test_an_empty_final_segment(count: int, tmp_path: Path) -> None:
    reader = crypt4gh.SecretKey.generate()
    key, plain = os.urandom(32), paint(count * SEGMENT)
    packet = peer_header.make_packet_data_enc(0, key)
    packets = peer_header.encrypt(packet, [(0, os.urandom(32), reader.public_key.public)])
    sealed = bytearray(peer_header.serialize(packets))
    for number in range(count + 1):
        nonce, text = os.urandom(12), plain[number * SEGMENT :][:SEGMENT]
        sealed += nonce + wc.aead.ChaCha20Poly1305(key).encrypt(nonce, text, None)
    (tmp_path / "sealed").write_bytes(sealed)
    with formats.open(tmp_path / "sealed", reader) as file:
        assert file.seek(0, os.SEEK_END) == len(plain)
        file.seek(len(plain) // 2)
        assert file.read() == plain[len(plain) // 2 :]
    formats.decrypt_file(tmp_path / "sealed", tmp_path / "plain", reader)
    assert (tmp_path / "plain").read_bytes() == plain
    out = io.BytesIO()
    with pytest.raises(formats.FormatError, match="truncated"):
        formats.decrypt_stream(io.BytesIO(sealed[:-1]), out, reader)


@pytest.mark.parametrize(("text", "public"), AGENT_KEYS)
def test_keys_of_htslib(text: str, public: str) -> None:
    data = text.encode()
    phrase = "hello" if crypt4gh.keys.is_encrypted(data) else None
    found = crypt4gh.SecretKey.parse(data, phrase).public_key.public
    assert base64.b64encode(found).decode() == public
    # Its agent takes the other label for a bare key.
    assert ME.to_text("hello").startswith("-----BEGIN CRYPT4GH ENCRYPTED PRIVATE KEY-----\n")


@pytest.mark.parametrize("phrase", ["", "phrase"])
def test_ssh_keys(phrase: str, tmp_path: Path) -> None:
    """ssh-ed25519 keys are keys of the peer, too."""
    pytest.importorskip("bcrypt")
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs the command ssh-keygen")
    path = tmp_path / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", path]
    subprocess.run(make, check=True)
    public = peer_keys.get_public_key(f"{path}.pub")
    secret = peer_keys.get_private_key(path, lambda: phrase)
    text = Path(f"{path}.pub").read_text()
    reader = crypt4gh.SecretKey.parse(path.read_bytes(), phrase or None)
    assert crypt4gh.PublicKey.parse(text).public == reader.public_key.public == public
    assert crypt4gh.is_encrypted(path.read_bytes()) is bool(phrase)
    out, back = io.BytesIO(), io.BytesIO()
    formats.encrypt_stream(io.BytesIO(b"ACGT"), out, text, format="crypt4gh")
    lib.decrypt([(0, secret, None)], io.BytesIO(out.getvalue()), back)
    assert back.getvalue() == b"ACGT"
    (tmp_path / "a.c4gh").write_bytes(peer_encrypt(b"TTTT", reader))
    options = ["--passphrase-fd", "0"] if phrase else []
    given = ["decrypt", "--format", "crypt4gh", "-i", path, *options, "a.c4gh", "-o", "-"]
    assert run(*given, cwd=tmp_path, stdin=phrase.encode()).stdout == b"TTTT"
    given = ["decrypt", "-i", path, *options, "a.c4gh", "-o", "-"]
    refused = run(*given, cwd=tmp_path, stdin=phrase.encode(), expect=3)
    assert b"the key is one of age: give --format crypt4gh, too" in refused.stderr
    (tmp_path / "b").write_bytes(b"GGGG")
    run("encrypt", "--format", "crypt4gh", "-R", f"{path}.pub", "b", cwd=tmp_path)
    back = io.BytesIO()
    lib.decrypt([(0, secret, None)], io.BytesIO((tmp_path / "b.c4gh").read_bytes()), back)
    assert back.getvalue() == b"GGGG"


def test_other_ssh_keys_are_refused(tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs the command ssh-keygen")
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", path], check=True)
    for kind, data in (
        (crypt4gh.PublicKey, Path(f"{path}.pub").read_text()),
        (crypt4gh.SecretKey, path.read_text()),
    ):
        with pytest.raises(ValueError, match="SSH keys of kind ssh-ed25519, not ssh-rsa"):
            kind.parse(data)

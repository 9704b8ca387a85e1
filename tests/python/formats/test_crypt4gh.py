# SPDX-License-Identifier: Apache-2.0
"""The format crypt4gh: keys and their files, hostile headers, damage at every byte, random access.
Its peer is in tests/interop."""

from __future__ import annotations

import base64
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crypt4gh_cases import DATA_KEY, ME, SEGMENT, edit_list, edited, head, packet, segments
from format_cases import paint
from warpcipher import InvalidTag, formats, keys
from warpcipher.formats import FormatError, Options, crypt4gh, curve25519
from warpcipher.formats.crypt4gh import header

pytest.importorskip("cryptography")

YOU = crypt4gh.SecretKey(bytes(range(32, 64)))
HEADER = 16 + header.PACKET_SIZE


def encrypt(plain: bytes, *key: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    count = formats.encrypt_stream(io.BytesIO(plain), out, key, options=Options(**options))
    assert count == len(out.getvalue())
    return out.getvalue()


def decrypt(data: bytes, *key: Any) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(data), out, key, format="crypt4gh")
    return out.getvalue()


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 131072, 2_000_003])
def test_sizes_and_ranges(tmp_path: Path, size: int) -> None:
    plain, path = paint(size), tmp_path / "x.c4gh"
    path.write_bytes(encrypt(plain, ME.public_key, YOU.public_key))
    data = path.read_bytes()
    assert len(data) == HEADER + header.PACKET_SIZE + size + 28 * -(-size // SEGMENT)
    assert decrypt(data, ME) == decrypt(data, YOU) == plain
    for source in (path, io.BytesIO(data)):
        with formats.open(source, ME) as file:
            assert file.raw.size == size
            for start in {0, 1, 65530, 65536, size // 2, max(size - 1, 0)}:
                for length in (0, 1, 20, 65536, 70_000, 1_500_000):
                    file.seek(start)
                    assert file.read(length) == plain[start : start + length]


def test_readers() -> None:
    data = encrypt(paint(10), ME, YOU.public_key)
    assert decrypt(data, YOU) == paint(10), "a secret key stands for its public one"
    assert decrypt(data, crypt4gh.SecretKey.generate(), ME) == paint(10)
    with pytest.raises(InvalidTag, match="the key opens none of the 2 packets"):
        decrypt(data, crypt4gh.SecretKey.generate())
    with pytest.raises(ValueError, match="not with a public one"):
        decrypt(data, ME.public_key)
    assert encrypt(paint(10), ME)[16:] != encrypt(paint(10), ME)[16:]


@pytest.mark.parametrize("size", [0, 1, 200])
def test_damage_at_every_byte_and_every_cut(size: int) -> None:
    plain = paint(size)
    data = encrypt(plain, ME)
    for at in range(len(data)):
        for bit in (0, 7):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            with pytest.raises((InvalidTag, FormatError)):
                decrypt(bytes(damaged), ME)
            with (
                pytest.raises((InvalidTag, FormatError)),
                formats.open(io.BytesIO(bytes(damaged)), ME) as file,
            ):
                file.read()
    for length in range(len(data)):
        if length != HEADER:
            with pytest.raises((InvalidTag, FormatError)):
                decrypt(data[:length], ME)
    # The format marks no end: what is cut at the edge of a segment passes for a shorter file.
    assert decrypt(data[:HEADER], ME) == b""


def test_the_bad_segment_is_named(tmp_path: Path) -> None:
    plain = paint(5 * SEGMENT + 5)
    data = bytearray(encrypt(plain, ME))
    data[HEADER + 3 * (SEGMENT + 28) + 500] ^= 1
    with pytest.raises(InvalidTag, match="chunk 3 failed authentication"):
        decrypt(bytes(data), ME)
    path = tmp_path / "x"
    path.write_bytes(data)
    for source in (path, io.BytesIO(data)):
        with formats.open(source, ME) as file:
            assert file.read(SEGMENT) == plain[:SEGMENT]
            file.seek(2 * SEGMENT + 5)
            out = bytearray(b"x" * (2 * SEGMENT))
            with pytest.raises(InvalidTag, match="chunk 3 failed authentication"):
                file.readinto(out)
            assert not any(out)


EDITS = [
    (0,),
    (1,),
    (0, 5),
    (70_000, 1000),
    (5, 70_000, 3, 65_530, 20),
    (0, 65_536, 65_536, 1),
    (3, 0, 4, 10, 0, 10, 5, 1),
    (400_000,),
    (100, 1 << 63),
    ((1 << 64) - 1, 5),
    (10, 5, (1 << 64) - 1, 7),
    tuple([100] * 2001),
]


@pytest.mark.parametrize("lengths", EDITS, ids=lambda lengths: str(lengths[:6]))
@pytest.mark.parametrize("several", [False, True])
def test_edit_lists(tmp_path: Path, lengths: tuple[int, ...], several: bool) -> None:
    plain, path = paint(300_000), tmp_path / "x.c4gh"
    secrets = [os.urandom(32) for _ in range(3 if several else 1)]
    packets = [packet(bytes(8) + secret) for secret in secrets]
    twice = packet(edit_list(*lengths))
    path.write_bytes(head(*packets, twice, twice) + segments(plain, *secrets))
    expected = edited(plain, lengths)
    out = io.BytesIO()
    with path.open("rb") as source:
        count = formats.decrypt_stream(source, out, ME)
    assert count == len(out.getvalue())
    assert out.getvalue() == expected
    (found,) = formats.info(path, ME).candidates
    assert found.plaintext_size == len(expected)
    for source in (path, io.BytesIO(path.read_bytes())):
        with formats.open(source, ME) as file:
            assert file.raw.size == len(expected)
            assert file.read() == expected
            for start in {0, 4, 100, 65_533, max(len(expected) - 5, 0)}:
                for length in (1, 10, 150, 70_000):
                    file.seek(start)
                    assert file.read(length) == expected[start : start + length]
            file.seek(0)
            array = np.zeros(1 << 21, np.uint8)
            assert file.readinto(array) == len(expected)
            assert array[: len(expected)].tobytes() == expected


def test_segments_under_several_keys(tmp_path: Path) -> None:
    plain, path = paint(70 * SEGMENT + 5), tmp_path / "x.c4gh"
    secrets = [os.urandom(32) for _ in range(2)]
    data = bytearray(
        head(*(packet(bytes(8) + secret) for secret in secrets)) + segments(plain, *secrets)
    )
    assert decrypt(bytes(data), ME) == plain
    only_one = head(packet(bytes(8) + secrets[0])) + bytes(
        data[len(head(*[packet(DATA_KEY)] * 2)) :]
    )
    with pytest.raises(InvalidTag, match="chunk 1 failed authentication"):
        decrypt(only_one, ME)
    data[-(SEGMENT + 28)] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidTag, match="chunk 69 failed authentication"):
        decrypt(bytes(data), ME)
    with formats.open(path, ME) as file:
        assert file.read(69 * SEGMENT) == plain[: 69 * SEGMENT]
        out = bytearray(b"x" * 2 * SEGMENT)
        with pytest.raises(InvalidTag, match="chunk 69 failed authentication"):
            file.readinto(out)
        assert not any(out[:SEGMENT])
        with pytest.raises(ValueError, match="several data keys: read it into host memory"):
            file.raw.read_range(0, 5, bytearray(5))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated: 0 bytes"),
        (b"crypt4gH" + bytes(20), "does not begin with crypt4gh"),
        (head(packet(DATA_KEY), version=2), "of version 2 are not read"),
        (head(count=0), "has 0 packets, expected 1 to 4096"),
        (head(count=0xFFFFFFFF), "has 4294967295 packets, expected 1 to 4096"),
        (head(count=1), "ends in its header"),
        (head(bytes(4)), "packet 0 has 0 bytes, and the shortest has"),
        (head(b"\x10\0\0\0" + bytes(12)), "packet 0 has 16 bytes"),
        (head(b"\xff\xff\xff\xff" + bytes(200)), "longer than 1048576 bytes"),
        (head(packet(DATA_KEY), b"\x00\x10\0\0" + bytes(200)), "ends in its header"),
        (head(packet(edit_list(1))), "has an edit list and no data key for this key"),
        (head(packet(DATA_KEY), packet(edit_list())), "the edit list is empty"),
        (head(packet(DATA_KEY), packet(edit_list(1, 2)[:-1])), "2 lengths in a packet of 23"),
        (head(packet(DATA_KEY), packet(b"\1\0\0\0" + b"\xff" * 12)), "has 4294967295 lengths"),
        (head(packet(DATA_KEY), *map(packet, (edit_list(1), edit_list(2)))), "has 2 edit lists"),
        (head(packet(b"\2\0\0\0" + bytes(36))), "a packet of type 2"),
        (head(packet(bytes(4) + b"\1\0\0\0" + bytes(32))), "encrypted by method 1"),
        (head(packet(bytes(39))), "has 39 bytes, expected 40"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # Packets are made with random keys.
)
def test_headers_that_lie(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        decrypt(data, ME)
    with pytest.raises(FormatError, match=says):
        formats.open(io.BytesIO(data), [ME])


def test_packets_for_others_and_of_other_methods_are_passed_over() -> None:
    other = packet(DATA_KEY)
    other = other[:4] + b"\7\0\0\0" + other[8:]
    low_order = packet(DATA_KEY)
    low_order = low_order[:8] + bytes(32) + low_order[40:]
    edits_of_another = packet(b"\1\0\0\0" + bytes(12), YOU)
    assert decrypt(head(other, low_order, edits_of_another, packet(DATA_KEY)), ME) == b""
    assert decrypt(head(packet(DATA_KEY), packet(DATA_KEY)), ME) == b"", "one key, twice"
    with pytest.raises(InvalidTag, match="none of the 2 packets"):
        decrypt(head(other, low_order), ME)


@pytest.mark.parametrize("count", [4096, 4097])
def test_the_most_readers(count: int) -> None:
    packets = [packet(DATA_KEY, YOU)] * (count - 1) + [packet(DATA_KEY)]
    if count <= header.MOST_PACKETS:
        assert decrypt(head(*packets), ME) == b""
    else:
        with pytest.raises(FormatError, match="4097 packets, expected 1 to 4096"):
            decrypt(head(*packets), ME)
        with pytest.raises(ValueError, match="1 to 4096 packets for readers, got 4097"):
            header.build([bytes(40)], [ME.public_key] * count)


def test_the_text_of_a_public_key_encrypts() -> None:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(b"text"), out, ME.public_key.to_text())
    plain = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(out.getvalue()), plain, ME)
    assert plain.getvalue() == b"text"


def test_files_of_keys() -> None:
    for phrase in (None, "secret", b"secret"):
        text = ME.to_text(phrase)
        assert crypt4gh.SecretKey.parse(text, phrase) == ME
        assert crypt4gh.is_encrypted(text.encode()) == (phrase is not None)
    assert crypt4gh.PublicKey.parse(ME.public_key.to_text()) == ME.public_key
    locked = ME.to_text("secret")
    with pytest.raises(ValueError, match="encrypted with a passphrase: give it"):
        crypt4gh.SecretKey.parse(locked)
    with pytest.raises(InvalidTag, match="the passphrase does not open the key"):
        crypt4gh.SecretKey.parse(locked, "wrong")
    with pytest.raises(ValueError, match="the passphrase is empty"):
        crypt4gh.SecretKey.parse(locked, "")
    with pytest.raises(ValueError, match="a public key of Crypt4GH: expected a private"):
        crypt4gh.SecretKey.parse(ME.public_key.to_text())
    with pytest.raises(ValueError, match="a private key of Crypt4GH: expected a public"):
        crypt4gh.PublicKey.parse(locked)


def key_file(*parts: bytes, magic: bytes = b"c4gh-v1") -> str:
    body = magic + b"".join(len(part).to_bytes(2, "big") + part for part in parts)
    text = base64.b64encode(body).decode()
    return f"-----BEGIN CRYPT4GH PRIVATE KEY-----\n{text}\n-----END CRYPT4GH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "expected -----BEGIN CRYPT4GH PRIVATE KEY-----"),
        ("x" * 70_000, "more than 65536 bytes"),
        (key_file(magic=b"c4gh-v2"), "does not begin with c4gh-v1"),
        (key_file(b"none"), "ends too early"),
        (key_file(b"none", b"none", bytes(31)), "has 32 bytes, got 31"),
        (key_file(b"bcrypt", bytes(20), b"chacha20_poly1305", bytes(60)), "goes through 'bcrypt'"),
        (key_file(b"scrypt", bytes(20), b"aes", bytes(60)), "encrypted by 'aes'"),
        (key_file(b"scrypt", bytes(20), b"chacha20_poly1305", bytes(9)), "ends too early"),
        (
            key_file(b"pbkdf2_hmac_sha256", b"\xff" * 20, b"chacha20_poly1305", bytes(60)),
            "asks for 4294967295 rounds of PBKDF2",
        ),
    ],
)
def test_key_files_that_lie(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        crypt4gh.SecretKey.parse(text, "secret")


def test_every_cut_of_a_key_file() -> None:
    for text, phrase in ((ME.to_text(), None), (ME.to_text("x"), "x")):
        body = base64.b64decode(text.split("\n")[1])
        for size in range(len(body)):
            cut = base64.b64encode(body[:size]).decode()
            with pytest.raises((ValueError, InvalidTag)):
                crypt4gh.SecretKey.parse(text.replace(text.split("\n")[1], cut), phrase)


def test_pbkdf2() -> None:
    salt, nonce = bytes(16), bytes(12)
    key = hashlib.pbkdf2_hmac("sha256", b"secret", salt, 1000, 32)
    sealed = nonce + curve25519.seal(key, nonce, ME.secret)
    options = (1000).to_bytes(4, "big") + salt
    text = key_file(b"pbkdf2_hmac_sha256", options, b"chacha20_poly1305", sealed, b"a comment")
    assert crypt4gh.SecretKey.parse(text, "secret") == ME


def test_no_key_shows_itself() -> None:
    for shown in (repr(ME), str(ME), f"{[ME]}"):
        assert repr(ME.secret)[2:-1] not in shown


def test_sources_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "my.sec"
    path.write_text(ME.to_text())
    data = encrypt(b"text", ME)
    for named in ("auto", "crypt4gh"):
        with formats.open(io.BytesIO(data), keys.from_file(path), format=named) as file:
            assert file.read() == b"text"


@pytest.mark.parametrize(
    ("key", "options", "says"),
    [
        (ME, {"context": b"x"}, "takes no context"),
        (ME, {"armor": True}, "takes no armor"),
        ([], {}, "empty list"),
        (7, {}, "takes a crypt4gh.PublicKey or crypt4gh.SecretKey"),
        (bytes(32), {}, "not a key of Crypt4GH"),
    ],
)
def test_what_it_does_not_take(key: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        formats.encrypt_stream(
            io.BytesIO(), io.BytesIO(), key, format="crypt4gh", options=Options(**options)
        )


def test_info_and_detect(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(encrypt(paint(100_000), *[ME] * 30))
    (blind,) = formats.info(path).candidates
    assert (blind.format, blind.plaintext_size, blind.chunks) == ("crypt4gh", 100_000, 2)
    assert "30 packets" in blind.reason
    assert formats.info(path, ME).certain
    assert not formats.info(path, YOU).certain
    assert formats.detect(path.read_bytes(), ME) == "crypt4gh"
    assert formats.detect(path.read_bytes(), YOU) is None

# SPDX-License-Identifier: Apache-2.0
"""Format raw: chained pieces give the bytes of one message; random access, padding, limits."""

from __future__ import annotations

import io
import os
import random

import pytest
import warpcipher as wc
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import FormatError, Options, openssl, raw

ALGORITHMS = [info.name for info in wc.algorithms() if raw.whole_limit(info) is None]
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def key_of(algorithm: str) -> bytes:
    return random.Random(algorithm).randbytes(wc.find_algorithm(algorithm).key_size)


def options_of(algorithm: str, **changes: object) -> Options:
    size = wc.find_algorithm(algorithm).iv_size
    iv = random.Random(algorithm + "iv").randbytes(size) or None
    return Options(algorithm=algorithm, iv=iv, **changes)  # type: ignore[arg-type]


def encrypt(algorithm: str, plain: bytes, options: Options | None = None) -> bytes:
    out = io.BytesIO()
    options = options or options_of(algorithm)
    formats.encrypt_stream(io.BytesIO(plain), out, key_of(algorithm), format="raw", options=options)
    return out.getvalue()


def decrypt(algorithm: str, sealed: bytes, options: Options | None = None) -> bytes:
    out = io.BytesIO()
    options = options or options_of(algorithm)
    formats.decrypt_stream(
        io.BytesIO(sealed), out, key_of(algorithm), format="raw", options=options
    )
    return out.getvalue()


def one_message(algorithm: str, plain: bytes) -> bytes:
    """The message API's result for the whole, PKCS#7 added for ECB and CBC."""
    options = options_of(algorithm)
    padding = "pkcs7" if algorithm.endswith(("-ecb", "-cbc")) else None
    cipher = wc.Cipher(algorithm, key_of(algorithm), padding=padding)
    return bytes(cipher.encrypt(plain, iv=options.iv))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and chunks of a few blocks, so that the chain has many links."""
    monkeypatch.setattr(raw, "PIECE_SIZE", 192)
    monkeypatch.setattr(raw, "CHUNK_SIZE", 64)


def test_every_algorithm_there_is_is_taken() -> None:
    for info in wc.algorithms():
        key = random.Random(info.name).randbytes(info.key_size)
        iv = bytes(info.iv_size) or None
        options = Options(algorithm=info.name, iv=iv)
        out, back = io.BytesIO(), io.BytesIO()
        formats.encrypt_stream(io.BytesIO(paint(99)), out, key, format="raw", options=options)
        formats.decrypt_stream(io.BytesIO(out.getvalue()), back, key, format="raw", options=options)
        assert back.getvalue() == paint(99)
        assert paint(99)[:8] not in out.getvalue()


def test_a_mode_that_nobody_taught_it_to_cut_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(raw.CHAINED, "cbc")
    with pytest.raises(ValueError, match="cannot cut aes-128-cbc into pieces"):
        encrypt("aes-128-cbc", paint(16))
    assert encrypt("aes-128-cfb", paint(16))


SIZES = (0, 1, 7, 8, 9, 15, 16, 17, 47, 48, 49, 95, 96, 97, 191, 192, 193, 1000)


@every_algorithm
@pytest.mark.usefixtures("small_pieces")
def test_pieces_chain_to_one_message(algorithm: str) -> None:
    for size in SIZES:
        plain = paint(size)
        sealed = encrypt(algorithm, plain)
        assert sealed == one_message(algorithm, plain), size
        assert decrypt(algorithm, sealed) == plain, size


@every_algorithm
@pytest.mark.usefixtures("small_pieces")
def test_random_access(algorithm: str) -> None:
    source = random.Random(3)
    for size in (0, 1, 64, 97, 960):
        plain = paint(size)
        sealed = encrypt(algorithm, plain)
        with formats.open(
            io.BytesIO(sealed), key_of(algorithm), format="raw", options=options_of(algorithm)
        ) as file:
            assert file.raw.size == size
            for _ in range(30):
                start, count = source.randrange(size + 2), source.randrange(size + 2)
                file.seek(start)
                file.raw.seek(start)
                assert file.raw.read(count) == plain[start : start + count]
            assert file.seek(0, os.SEEK_END) == size


@pytest.mark.parametrize("algorithm", ["aes-256-ctr", "aes-128-cbc", "des-ede3-cfb8"])
def test_pieces_of_the_real_size(algorithm: str) -> None:
    plain = paint((raw.PIECE_SIZE if algorithm != "des-ede3-cfb8" else 1 << 17) + 100)
    sealed = encrypt(algorithm, plain)
    assert sealed == one_message(algorithm, plain)
    assert decrypt(algorithm, sealed) == plain


@pytest.mark.usefixtures("small_pieces")
def test_the_counter_wraps_over_all_128_bits() -> None:
    for iv in (b"\xff" * 16, b"\xff" * 15 + b"\xfa", bytes(8) + b"\xff" * 8):
        options = Options(algorithm="aes-128-ctr", iv=iv)
        plain = paint(500)
        sealed = encrypt("aes-128-ctr", plain, options)
        counter = int.from_bytes(iv, "big")
        blocks = b"".join(((counter + i) % (1 << 128)).to_bytes(16, "big") for i in range(32))
        keystream = wc.Cipher("aes-128-ecb", key_of("aes-128-ctr")).encrypt(blocks)
        assert sealed == bytes(a ^ b for a, b in zip(plain, keystream, strict=False))
        with formats.open(
            io.BytesIO(sealed), key_of("aes-128-ctr"), format="raw", options=options
        ) as file:
            file.seek(300)
            assert file.read() == plain[300:]


@pytest.mark.parametrize("algorithm", ["aes-128-cbc", "aes-256-ecb", "des-ede3-cbc", "des-ecb"])
@pytest.mark.usefixtures("small_pieces")
def test_without_padding(algorithm: str) -> None:
    bare = options_of(algorithm, padding="none")
    for size in (0, 16, 96, 192, 480):
        sealed = encrypt(algorithm, paint(size), bare)
        assert len(sealed) == size
        assert one_message(algorithm, paint(size)).startswith(sealed)
        assert decrypt(algorithm, sealed, bare) == paint(size)
    for size in (1, 15, 97):
        with pytest.raises(FormatError, match="multiple of the"):
            encrypt(algorithm, paint(size), bare)
        with pytest.raises(FormatError, match="multiple of the"):
            decrypt(algorithm, paint(size), bare)


@pytest.mark.parametrize("algorithm", ["aes-128-cbc", "des-ede3-ecb"])
def test_bad_padding(algorithm: str) -> None:
    block = 16 if algorithm.startswith("aes") else 8
    bare = options_of(algorithm, padding="none")
    endings = [
        bytes(block),
        b"\x11" * block,
        b"x" * (block - 2) + b"\x01\x02",
        b"x" * (block - 1) + b"\x03",
    ]
    for ending in endings:
        sealed = encrypt(algorithm, paint(4 * block) + ending, bare)
        with pytest.raises(FormatError, match=r"no PKCS#7 padding: wrong key"):
            decrypt(algorithm, sealed)
        with pytest.raises(FormatError, match=r"no PKCS#7 padding"):
            formats.open(
                io.BytesIO(sealed), key_of(algorithm), format="raw", options=options_of(algorithm)
            )
    with pytest.raises(FormatError, match=r"no PKCS#7 padding"):
        decrypt(algorithm, b"")
    for length in (1, block - 1, block + 1):
        with pytest.raises(FormatError, match="multiple"):
            decrypt(algorithm, bytes(length))


GCM_KEY = bytes(range(32))


@pytest.mark.parametrize("size", [0, 1, 16, 100_001])
@pytest.mark.parametrize("iv_size", [1, 12, 16, 60])
def test_gcm_is_one_message(size: int, iv_size: int) -> None:
    options = Options(algorithm="aes-256-gcm", iv=bytes(iv_size), context=b"aad")
    plain = paint(size)
    out, back = io.BytesIO(), io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), out, GCM_KEY, format="raw", options=options)
    sealed = out.getvalue()
    assert sealed == bytes(
        wc.Cipher("aes-256-gcm", GCM_KEY).encrypt(plain, iv=options.iv, aad=b"aad")
    )
    formats.decrypt_stream(io.BytesIO(sealed), back, GCM_KEY, format="raw", options=options)
    assert back.getvalue() == plain
    with formats.open(io.BytesIO(sealed), GCM_KEY, format="raw", options=options) as file:
        file.seek(size // 2)
        assert file.read() == plain[size // 2 :]
    for position in {0, len(sealed) // 2, len(sealed) - 1}:
        damaged = bytearray(sealed)
        damaged[position] ^= 1
        out = io.BytesIO()
        with pytest.raises(InvalidTag, match="the message failed authentication"):
            formats.decrypt_stream(io.BytesIO(damaged), out, GCM_KEY, format="raw", options=options)
        assert out.getvalue() == b""
    with pytest.raises(FormatError, match="at least 16 bytes"):
        formats.decrypt_stream(
            io.BytesIO(sealed[:15]), io.BytesIO(), GCM_KEY, format="raw", options=options
        )


@pytest.mark.parametrize("size", [16, 17, 31, 4096, 100_001])
def test_xts_is_one_data_unit(size: int) -> None:
    key = bytes(range(64))
    options = Options(algorithm="aes-256-xts", iv=bytes(range(16)))
    out, back = io.BytesIO(), io.BytesIO()
    formats.encrypt_stream(io.BytesIO(paint(size)), out, key, format="raw", options=options)
    expected = wc.Cipher("aes-256-xts", key).encrypt(paint(size), iv=options.iv)
    assert out.getvalue() == bytes(expected)
    formats.decrypt_stream(io.BytesIO(out.getvalue()), back, key, format="raw", options=options)
    assert back.getvalue() == paint(size)
    with formats.open(io.BytesIO(out.getvalue()), key, format="raw", options=options) as file:
        file.seek(5)
        assert file.read(9) == paint(size)[5:14]
    with pytest.raises(FormatError, match="at least 16 bytes"):
        formats.encrypt_stream(
            io.BytesIO(bytes(15)), io.BytesIO(), key, format="raw", options=options
        )


@pytest.mark.parametrize(("algorithm", "key_size"), [("aes-128-gcm", 16), ("aes-128-xts", 32)])
def test_whole_message_limits_point_to_cobblestone(
    algorithm: str, key_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {raw.whole_limit(wc.find_algorithm(name)) for name in ("aes-128-gcm", "aes-128-xts")}
    assert limits == {128 << 20, 16 << 20}
    monkeypatch.setattr(raw, "WHOLE_LIMIT", 1 << 20)
    options = Options(algorithm=algorithm, iv=bytes(16))
    key = bytes(range(key_size))
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(bytes(1 << 20)), out, key, format="raw", options=options)
    sealed = out.getvalue()
    back = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(sealed), back, key, format="raw", options=options)
    assert back.getvalue() == bytes(1 << 20)
    out = io.BytesIO()
    with pytest.raises(FormatError, match=r"at most 1 MiB.*cobblestone-256"):
        formats.encrypt_stream(
            io.BytesIO(bytes((1 << 20) + 1)), out, key, format="raw", options=options
        )
    with pytest.raises(FormatError, match=r"at most 1 MiB.*cobblestone-256"):
        formats.decrypt_stream(io.BytesIO(sealed + b"x"), out, key, format="raw", options=options)
    with pytest.raises(FormatError, match=r"at most 1 MiB.*cobblestone-256"):
        formats.open(io.BytesIO(sealed + b"x"), key, format="raw", options=options)
    assert out.getvalue() == b""


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"algorithm": None}, "needs an algorithm"),
        ({"algorithm": "aes-128-ocb"}, "unknown algorithm 'aes-128-ocb'"),
        ({"algorithm": "aes-512-ctr"}, "aes-512-ctr"),
        ({"algorithm": "ctr"}, "ctr"),
        ({"algorithm": "aes-256-ctr"}, "32"),
        ({"iv": None}, "takes an IV of 16 bytes, got none"),
        ({"iv": bytes(12)}, "takes an IV of 16 bytes, got 12 bytes"),
        ({"algorithm": "aes-128-gcm", "iv": b""}, "an IV of 1 or more bytes, got 0 bytes"),
        ({"algorithm": "aes-128-ecb"}, "takes no IV"),
        ({"context": b"x"}, "authenticates nothing and takes no context"),
        ({"padding": "pkcs7"}, "no padding"),
    ],
)
def test_options_that_do_not_fit(changes: dict[str, object], complaint: str) -> None:
    given = {"algorithm": "aes-128-ctr", "iv": bytes(16), **changes}
    options = Options(**given)  # type: ignore[arg-type]
    key = b"a secret key 128"
    for run in (formats.encrypt_stream, formats.decrypt_stream):
        out = io.BytesIO()
        with pytest.raises(ValueError, match=complaint) as failure:
            run(io.BytesIO(b"text"), out, key, format="raw", options=options)
        assert out.getvalue() == b""
        assert "secret" not in str(failure.value)


def test_no_repr_shows_the_iv_or_key() -> None:
    assert "\\x07" not in repr(Options(algorithm="aes-128-ctr", iv=b"\x07" * 16))


PASSWORD = openssl.Password("a secret", iterations=2)


def with_password(plain: bytes, **options: object) -> bytes:
    out = io.BytesIO()
    made = Options(algorithm="aes-128-cbc", **options)  # type: ignore[arg-type]
    count = formats.encrypt_stream(io.BytesIO(plain), out, PASSWORD, format="raw", options=made)
    assert count == len(out.getvalue())
    return out.getvalue()


def read_with_password(data: bytes) -> bytes:
    out = io.BytesIO()
    options = Options(algorithm="aes-128-cbc")
    formats.decrypt_stream(io.BytesIO(data), out, PASSWORD, format="raw", options=options)
    return out.getvalue()


def test_base64_in_any_lines() -> None:
    plain = paint(200_000)
    text = with_password(plain, armor=True)
    assert max(map(len, text.split(b"\n"))) == 64
    bare = text.replace(b"\n", b"")
    for other in (bare, bare + b"\n", text.replace(b"\n", b"\r\n"), bare[:100] + b" " + bare[100:]):
        assert read_with_password(other) == plain
    for bad in (bare[:-1], bare[:5000] + b"*" + bare[5001:], bare + b"AAAA", bare + b"==AAAA"):
        with pytest.raises(FormatError, match=r"base64 is malformed|not a multiple"):
            read_with_password(bad)
    # Padding at the edge of what is decoded at a time.
    with pytest.raises(FormatError, match="base64 is malformed"):
        read_with_password(bare[: (1 << 16) - 6] + b"==" + bare[1 << 16 :])


@pytest.mark.parametrize(
    ("beginning", "says"),
    [
        (b"age-encryption.org/v1\n-> X25519 ", "format age"),
        (b"crypt4gh\x01\0\0\0", "format crypt4gh"),
        (b"-----BEGIN PGP MESSAGE-----\n", "an OpenPGP message"),
        (b"LUKS\xba\xbe\0\x02", "a LUKS volume"),
        (b"AGE-SECRET-KEY-1QQQQ", "an identity of age"),
    ],
)
def test_a_file_that_says_what_it_is_does_not_become_garbage(beginning: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=f"the file (is|has) {says}.*: it is not bare ciphertext"):
        decrypt("aes-128-ctr", beginning + bytes(200))


def test_every_cut_of_a_salted_file() -> None:
    data = with_password(b"text")
    assert (data[:8], len(data)) == (b"Salted__", 32)
    for size in range(len(data)):
        with pytest.raises(FormatError):
            read_with_password(data[:size])
        with pytest.raises(FormatError):
            formats.open(
                io.BytesIO(data[:size]),
                PASSWORD,
                format="raw",
                options=Options(algorithm="aes-128-cbc"),
            )


@pytest.mark.parametrize(
    ("key", "options", "says"),
    [
        (PASSWORD, {"algorithm": "aes-256-gcm"}, "openssl enc does not take aes-256-gcm"),
        (PASSWORD, {"algorithm": "aes-256-xts"}, "openssl enc does not take aes-256-xts"),
        (PASSWORD, {"algorithm": "aes-256-cbc", "iv": bytes(16)}, "the IV comes from the password"),
        (PASSWORD, {}, "needs an algorithm"),
        (bytes(16), {"algorithm": "aes-128-ecb", "armor": True}, "armor with a password"),
    ],
)
def test_what_does_not_go_with_a_password(
    key: object, options: dict[str, object], says: str
) -> None:
    made = Options(**options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=says):
        formats.encrypt_stream(io.BytesIO(), io.BytesIO(), key, format="raw", options=made)


def test_passwords_are_checked_and_not_shown() -> None:
    assert "a secret" not in repr(PASSWORD)
    for arguments, says in (
        (("",), "empty"),
        (("x", "sha3"), "digest is 'sha3'"),
        (("x", "sha256", 0), "iterations is 0"),
    ):
        with pytest.raises(ValueError, match=says):
            openssl.Password(*arguments)
    with pytest.raises(TypeError, match="str or bytes, got int"):
        openssl.Password(5)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""aead.AESGCM against pyca/cryptography's class: the same calls, bytes and conditions of errors."""

from __future__ import annotations

import array
import inspect
import subprocess
import sys
from typing import Any

import pytest
import warpcipher as wc
from conformance_oracle import painted
from hypothesis import given, settings
from hypothesis import strategies as st
from warpcipher.aead import AESGCM

pyca = pytest.importorskip(
    "cryptography.hazmat.primitives.ciphers.aead", reason="pyca/cryptography is not installed"
)
pyca_exceptions = pytest.importorskip("cryptography.exceptions")

KEY, NONCE = painted("key", 32), painted("nonce", 12)


@pytest.mark.parametrize("key_size", [16, 24, 32])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 64, 4095, 4096, 100_000])
@pytest.mark.parametrize("aad", [None, b"", b"header", bytes(5000)])
def test_same_bytes(key_size: int, size: int, aad: bytes | None) -> None:
    key, text = painted("key", key_size), painted("text", size)
    ours, theirs = AESGCM(key), pyca.AESGCM(key)
    sealed = ours.encrypt(NONCE, text, aad)
    assert type(sealed) is bytes
    assert sealed == theirs.encrypt(NONCE, text, aad)
    assert ours.decrypt(NONCE, sealed, aad) == text


@settings(max_examples=100, deadline=None)
@given(
    key=st.binary(min_size=16, max_size=16),
    nonce=st.binary(min_size=8, max_size=128),
    text=st.binary(max_size=300),
    aad=st.none() | st.binary(max_size=100),
    kind=st.sampled_from((bytes, bytearray, memoryview)),
)
def test_same_bytes_for_any_nonce(
    key: bytes, nonce: bytes, text: bytes, aad: bytes | None, kind: Any
) -> None:
    sealed = AESGCM(key).encrypt(kind(nonce), kind(text), aad)
    assert sealed == pyca.AESGCM(key).encrypt(nonce, text, aad)
    assert AESGCM(key).decrypt(nonce, kind(sealed), aad) == text


@settings(max_examples=60, deadline=None)
@given(text=st.binary(max_size=100), bit=st.integers(0, 10_000), what=st.integers(0, 2))
def test_any_flipped_bit_is_noticed(text: bytes, bit: int, what: int) -> None:
    fields = [
        bytearray(NONCE),
        bytearray(AESGCM(KEY).encrypt(NONCE, text, b"aad")),
        bytearray(b"aad"),
    ]
    field = fields[what]
    field[bit // 8 % len(field)] ^= 1 << bit % 8
    with pytest.raises(wc.InvalidTag):
        AESGCM(KEY).decrypt(*(bytes(f) for f in fields))


def test_arguments_have_the_same_names() -> None:
    sealed = AESGCM(key=KEY).encrypt(nonce=NONCE, data=b"x", associated_data=None)
    assert AESGCM(KEY).decrypt(nonce=NONCE, data=sealed, associated_data=None) == b"x"
    for name in ("encrypt", "decrypt", "encrypt_into", "decrypt_into"):
        theirs = list(inspect.signature(getattr(pyca.AESGCM, name)).parameters)[1:]
        stub = getattr(AESGCM, name).__doc__ or ""
        positions = [stub.index(f"{argument}:") for argument in theirs]
        assert positions == sorted(positions)


def test_none_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="key is NoneType"):
        AESGCM(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nonce is NoneType"):
        AESGCM(KEY).encrypt(None, b"", None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="data is NoneType"):
        AESGCM(KEY).decrypt_into(NONCE, None, None, bytearray(16))


def test_into() -> None:
    ours, theirs = AESGCM(KEY), pyca.AESGCM(KEY)
    text = painted("text", 1000)
    buf, expected = bytearray(1016), bytearray(1016)
    assert ours.encrypt_into(NONCE, text, b"a", buf) == theirs.encrypt_into(
        NONCE, text, b"a", expected
    )
    assert buf == expected
    back = bytearray(1000)
    assert ours.decrypt_into(NONCE, buf, b"a", back) == 1000
    assert back == text
    view = memoryview(buf)
    assert ours.decrypt_into(NONCE, view, b"a", view[:1000]) == 1000  # in place
    assert buf[:1000] == text


def test_a_bad_tag_leaves_zeros_in_the_buffer() -> None:
    sealed = AESGCM(KEY).encrypt(NONCE, b"secret" * 10, None)
    buf = bytearray(b"\xff" * 60)
    with pytest.raises(wc.InvalidTag):
        AESGCM(KEY).decrypt_into(NONCE, sealed, b"other", buf)
    assert buf == bytes(60)


CALLS: dict[str, Any] = {
    "short key": lambda c: c(bytes(15)),
    "long key": lambda c: c(bytes(33)),
    "key is text": lambda c: c("0" * 16),
    "no key": lambda c: c(),
    "bits": lambda c: c.generate_key(100),
    "bits as float": lambda c: c.generate_key(128.0),
    "bits as text": lambda c: c.generate_key("128"),
    "short nonce": lambda c: c(KEY).encrypt(bytes(7), b"", None),
    "long nonce": lambda c: c(KEY).encrypt(bytes(129), b"", None),
    "short nonce to decrypt": lambda c: c(KEY).decrypt(bytes(7), bytes(16), None),
    "nonce is text": lambda c: c(KEY).encrypt("0" * 12, b"", None),
    "no nonce": lambda c: c(KEY).encrypt(None, b"", None),
    "data is text": lambda c: c(KEY).encrypt(NONCE, "x", None),
    "no data": lambda c: c(KEY).encrypt(NONCE, None, None),
    "aad is text": lambda c: c(KEY).encrypt(NONCE, b"", "x"),
    "two arguments": lambda c: c(KEY).encrypt(NONCE, b""),
    "small buffer": lambda c: c(KEY).encrypt_into(NONCE, b"a", None, bytearray(16)),
    "large buffer": lambda c: c(KEY).encrypt_into(NONCE, b"a", None, bytearray(18)),
    "read-only buffer": lambda c: c(KEY).encrypt_into(NONCE, b"a", None, bytes(17)),
    "read-only view": lambda c: c(KEY).encrypt_into(NONCE, b"a", None, memoryview(bytes(17))),
    "small buffer to decrypt": lambda c: c(KEY).decrypt_into(NONCE, bytes(20), None, bytearray(3)),
    "short nonce into": lambda c: c(KEY).encrypt_into(bytes(7), b"a", None, bytearray(17)),
}
if sys.version_info >= (3, 11):  # before that, pyca's wheel raises TypeError
    CALLS["strided data"] = lambda c: c(KEY).encrypt(NONCE, memoryview(bytes(32))[::2], None)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_same_errors(call: Any) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)) as theirs:
        call(pyca.AESGCM)
    with pytest.raises(theirs.type):
        call(AESGCM)


@pytest.mark.parametrize("size", range(17))
def test_short_data_is_an_invalid_tag(size: int) -> None:
    with pytest.raises(pyca_exceptions.InvalidTag):
        pyca.AESGCM(KEY).decrypt(NONCE, bytes(size), None)
    with pytest.raises(wc.InvalidTag):
        AESGCM(KEY).decrypt(NONCE, bytes(size), None)
    with pytest.raises(wc.InvalidTag):
        AESGCM(KEY).decrypt_into(NONCE, bytes(size), None, bytearray(max(0, size - 16)))


def test_clauses_for_the_other_packages_exception_catch_ours() -> None:
    with pytest.raises(pyca_exceptions.InvalidTag):
        AESGCM(KEY).decrypt(NONCE, bytes(16), None)
    with pytest.raises(pyca_exceptions.InvalidTag):
        raise wc.InvalidTag("raised by Python code")
    program = (
        "import sys, warpcipher as wc\n"
        "def attempt():\n"
        "    try: wc.aead.AESGCM(bytes(16)).decrypt(bytes(12), bytes(16), None)\n"
        "    except wc.InvalidTag as error: return error\n"
        "attempt(); assert 'cryptography' not in sys.modules\n"
        "from cryptography.exceptions import InvalidTag\n"
        "assert isinstance(attempt(), InvalidTag) and issubclass(wc.InvalidTag, InvalidTag)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_arguments_that_do_not_fit_are_named() -> None:
    with pytest.raises(
        TypeError, match=r"encrypt\(\): missing a required argument: 'associated_data'"
    ):
        AESGCM(KEY).encrypt(NONCE, b"text")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"decrypt\(\): got an unexpected keyword argument 'aad'"):
        AESGCM(KEY).decrypt(NONCE, bytes(20), None, aad=None)  # type: ignore[call-overload]


@pytest.mark.parametrize("bits", [128, 192, 256])
def test_generate_key(bits: int) -> None:
    keys = {AESGCM.generate_key(bits) for _ in range(4)}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {bits // 8}
    assert len(AESGCM.generate_key(bit_length=bits)) == bits // 8


def test_generate_key_takes_an_int_of_three() -> None:
    for bits in (0, -1, 129, 2**31, 2**63, 2**70, -(2**70), True):
        with pytest.raises(ValueError, match="bit_length must be 128, 192, or 256"):
            AESGCM.generate_key(bits)
    for other in ("128", 128.0, None, b"128"):
        with pytest.raises(TypeError, match=f"bit_length is {type(other).__name__}: expected"):
            AESGCM.generate_key(other)  # type: ignore[arg-type]

    class Number:
        def __index__(self) -> int:
            return 128

    assert len(AESGCM.generate_key(Number())) == 16  # type: ignore[arg-type]


def items_of_two() -> memoryview:
    return memoryview(bytes(range(16))).cast("H")


WIDE: dict[str, Any] = {
    "key": lambda c, x: c(x).encrypt(NONCE, b"text", None),
    "nonce": lambda c, x: c(KEY).encrypt(x, b"text", None),
    "data": lambda c, x: c(KEY).encrypt(NONCE, x, None),
    "aad": lambda c, x: c(KEY).encrypt(NONCE, b"text", x),
}


@pytest.mark.parametrize("where", WIDE)
def test_buffers_of_wider_items_are_taken_here_alone(where: str) -> None:
    """A difference that docs/python.md names: there TypeError, here their bytes."""
    with pytest.raises(TypeError, match="to a buffer"):
        WIDE[where](pyca.AESGCM, items_of_two())
    wanted = WIDE[where](pyca.AESGCM, bytes(items_of_two()))
    assert WIDE[where](AESGCM, items_of_two()) == wanted
    assert WIDE[where](AESGCM, array.array("d", bytes(items_of_two()))) == wanted


def test_data_of_other_buffers_gives_bytes_and_of_arrays_arrays() -> None:
    text = bytes(range(16))
    wanted = pyca.AESGCM(KEY).encrypt(NONCE, text, None)
    for data in (array.array("B", text), memoryview(text).cast("d"), bytearray(text)):
        sealed = AESGCM(KEY).encrypt(NONCE, data, None)
        assert (type(sealed), sealed) == (bytes, wanted)
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    sealed = AESGCM(KEY).encrypt(NONCE, numpy.frombuffer(text, "u1"), None)
    assert (type(sealed), sealed.tobytes()) == (numpy.ndarray, wanted)
    read_only = numpy.zeros(32, "u1")
    read_only.flags.writeable = False
    with pytest.raises(TypeError, match="not writable"):
        pyca.AESGCM(KEY).encrypt_into(NONCE, text, None, read_only)
    with pytest.raises(BufferError, match="buf is a read-only"):
        AESGCM(KEY).encrypt_into(NONCE, text, None, read_only)


def test_engine() -> None:
    sealed = AESGCM(KEY, engine="reference").encrypt(NONCE, b"text", b"aad")
    assert sealed == AESGCM(KEY).encrypt(NONCE, b"text", b"aad")
    with pytest.raises(wc.EngineError, match="unknown engine 'warp'"):
        AESGCM(KEY, engine="warp").encrypt(NONCE, b"text", b"aad")

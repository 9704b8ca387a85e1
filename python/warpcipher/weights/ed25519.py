# SPDX-License-Identifier: Apache-2.0
"""Ed25519 signatures (RFC 8032) by libcrypto, which the `cpu` engine loads too."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from .._errors import EngineError

KEY_SIZE = 32
SIGNATURE_SIZE = 64
_ED25519 = 1087  # NID_ED25519 of OpenSSL's obj_mac.h


@lru_cache(maxsize=1)
def _libcrypto() -> Any:
    """The library, with the types of its functions. Raises EngineError if it is missing."""
    try:
        library = ctypes.CDLL("libcrypto.so.3")
    except OSError as error:
        raise EngineError(f"Ed25519 needs OpenSSL 3: {error}") from None
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    for name, result, arguments in (
        ("EVP_PKEY_new_raw_public_key", pointer, (ctypes.c_int, pointer, text, size)),
        ("EVP_PKEY_new_raw_private_key", pointer, (ctypes.c_int, pointer, text, size)),
        ("EVP_PKEY_get_raw_public_key", ctypes.c_int, (pointer, pointer, pointer)),
        ("EVP_PKEY_free", None, (pointer,)),
        ("EVP_MD_CTX_new", pointer, ()),
        ("EVP_MD_CTX_free", None, (pointer,)),
        ("EVP_DigestVerifyInit", ctypes.c_int, (pointer,) * 5),
        ("EVP_DigestVerify", ctypes.c_int, (pointer, text, size, text, size)),
        ("EVP_DigestSignInit", ctypes.c_int, (pointer,) * 5),
        ("EVP_DigestSign", ctypes.c_int, (pointer, pointer, pointer, text, size)),
    ):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


@contextlib.contextmanager
def _key(kind: str, key: bytes) -> Iterator[int]:
    if len(key) != KEY_SIZE:
        raise ValueError(f"an Ed25519 key has {KEY_SIZE} bytes, got {len(key)}")
    library = _libcrypto()
    made = getattr(library, f"EVP_PKEY_new_raw_{kind}_key")(_ED25519, None, key, len(key))
    if not made:
        raise EngineError("libcrypto takes no Ed25519 key: its providers may not have it")
    try:
        yield made
    finally:
        library.EVP_PKEY_free(made)


def _run(step: str, kind: str, key: bytes, *arguments: Any) -> int:
    """One step of a digest, "Sign" or "Verify", with a key of a kind; returns what that returns."""
    library = _libcrypto()
    with _key(kind, key) as made:
        context = library.EVP_MD_CTX_new()
        try:
            init = getattr(library, f"EVP_Digest{step}Init")
            if not context or init(context, None, None, None, made) != 1:
                raise EngineError(f"libcrypto: EVP_Digest{step}Init failed for Ed25519")
            return int(getattr(library, f"EVP_Digest{step}")(context, *arguments))
        finally:
            library.EVP_MD_CTX_free(context)


def verify(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the signature is the message's. Raises ValueError for a key of another size."""
    sized = signature, len(signature), message, len(message)
    return _run("Verify", "public", public_key, *sized) == 1


def sign(private_key: bytes, message: bytes) -> bytes:
    """The signature, 64 bytes. Raises ValueError for a key of another size."""
    out = ctypes.create_string_buffer(SIGNATURE_SIZE)
    size = ctypes.byref(ctypes.c_size_t(SIGNATURE_SIZE))
    if _run("Sign", "private", private_key, out, size, message, len(message)) != 1:
        raise EngineError("libcrypto: EVP_DigestSign failed for Ed25519")
    return out.raw


def public_key_of(private_key: bytes) -> bytes:
    """The public Ed25519 key, 32 bytes, of a private one, 32 bytes. Raises ValueError."""
    out = ctypes.create_string_buffer(KEY_SIZE)
    size = ctypes.c_size_t(KEY_SIZE)
    with _key("private", private_key) as key:
        if _libcrypto().EVP_PKEY_get_raw_public_key(key, out, ctypes.byref(size)) != 1:
            raise EngineError("libcrypto: EVP_PKEY_get_raw_public_key failed for Ed25519")
    return out.raw

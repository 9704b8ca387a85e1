# SPDX-License-Identifier: Apache-2.0
"""The expected results, by somebody else's code: pyca/cryptography (OpenSSL) where it is installed,
this library's `reference` engine where it is not or does not know the case."""

from __future__ import annotations

import hashlib
import struct
import warnings
from typing import Any

import warpcipher as wc

try:
    from cryptography.hazmat.decrepit.ciphers import algorithms as decrepit
    from cryptography.hazmat.decrepit.ciphers import modes as old_modes
    from cryptography.hazmat.primitives import padding as padders
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes
except ImportError:
    HAVE_PYCA = False
else:
    HAVE_PYCA = True

BLOCK_BITS = {"aes": 128, "des": 64}


def painted(label: str, size: int) -> bytes:
    """`size` bytes that depend on every one of their positions, the same for the same label."""
    return hashlib.shake_128(label.encode()).digest(size)


def pyca_takes(algorithm: str, iv: bytes) -> bool:
    """GCM IVs shorter than 8 bytes or longer than 128 are beyond pyca's interface."""
    return HAVE_PYCA and not (algorithm.endswith("-gcm") and not 8 <= len(iv) <= 128)


def is_aead(algorithm: str) -> bool:
    return wc.find_algorithm(algorithm).is_aead


def hchacha20(key: bytes, nonce: bytes) -> bytes:
    """draft-irtf-cfrg-xchacha-03, section 2.2, from OpenSSL's ChaCha20: a block of its key stream
    is the state after the rounds plus the state before them."""
    encryptor = Cipher(algorithms.ChaCha20(key, nonce), None).encryptor()
    block = struct.unpack("<16I", encryptor.update(bytes(64)))
    before = struct.unpack("<16I", b"expand 32-byte k" + key + nonce)
    after = [(a - b) % 2**32 for a, b in zip(block, before, strict=True)]
    return struct.pack("<8I", *after[:4], *after[12:])


def pyca_aead(algorithm: str, key: bytes, iv: bytes, tag_length: int) -> tuple[Any, bytes]:
    """The one-shot AEAD, and its nonce; of GCM not, whose class has no short tags."""
    if algorithm.endswith("-gcm-siv"):
        return aead.AESGCMSIV(key), iv
    if algorithm.endswith("-ccm"):
        return aead.AESCCM(key, tag_length), iv
    if algorithm == "xchacha20-poly1305":
        return aead.ChaCha20Poly1305(hchacha20(key, iv[:16])), bytes(4) + iv[16:]
    return aead.ChaCha20Poly1305(key), iv


def pyca_cipher(algorithm: str, key: bytes, iv: bytes) -> Cipher:
    if algorithm == "chacha20":
        return Cipher(algorithms.ChaCha20(key, iv), None)
    name, mode = algorithm.rsplit("-", 1)
    # SP 800-67, section 3.2: DES is K, K, K; two-key triple DES is K1, K2, K1
    aes = name.startswith("aes")
    block = algorithms.AES(key) if aes else decrepit.TripleDES((key * 3)[:24])
    chain = {
        "ecb": lambda: modes.ECB(),  # noqa: S305
        "cbc": lambda: modes.CBC(iv),
        "cfb": lambda: old_modes.CFB(iv),
        "cfb8": lambda: old_modes.CFB8(iv),
        "ofb": lambda: old_modes.OFB(iv),
        "ctr": lambda: modes.CTR(iv),
        "gcm": lambda: modes.GCM(iv),
        "xts": lambda: modes.XTS(iv),
    }[mode]
    with warnings.catch_warnings():  # DES as triple DES with one key has its use in tests
        warnings.simplefilter("ignore")
        return Cipher(block, chain())


def encrypt(
    algorithm: str,
    key: bytes,
    text: bytes,
    iv: bytes = b"",
    aad: bytes = b"",
    *,
    tag_length: int = 16,
    padding: str | None = None,
) -> bytes:
    """The ciphertext, for AEADs with the tag after it."""
    if not pyca_takes(algorithm, iv):
        cipher = reference(algorithm, key, padding)
        return bytes(cipher.encrypt(text, **options(algorithm, iv, aad, tag_length)))
    if padding == "pkcs7":
        padder = padders.PKCS7(BLOCK_BITS[algorithm[:3]]).padder()
        text = padder.update(text) + padder.finalize()
    if is_aead(algorithm) and not algorithm.endswith("-gcm"):
        box, nonce = pyca_aead(algorithm, key, iv, tag_length)
        return bytes(box.encrypt(nonce, text, aad))
    encryptor = pyca_cipher(algorithm, key, iv).encryptor()
    if not algorithm.endswith("-gcm"):
        return encryptor.update(text) + encryptor.finalize()
    encryptor.authenticate_additional_data(aad)
    return encryptor.update(text) + encryptor.finalize() + encryptor.tag[:tag_length]


def decrypt(algorithm: str, key: bytes, data: bytes, iv: bytes = b"") -> bytes:
    """The text of `data` in a mode without tag and padding."""
    if not pyca_takes(algorithm, iv):
        cipher = reference(algorithm, key, None)
        return bytes(cipher.decrypt(data, **options(algorithm, iv, b"", 16)))
    decryptor = pyca_cipher(algorithm, key, iv).decryptor()
    return decryptor.update(data) + decryptor.finalize()


def reference(algorithm: str, key: bytes, padding: str | None) -> wc.Cipher:
    return wc.Cipher(algorithm, key, padding=padding, engine="reference")


def options(algorithm: str, iv: bytes, aad: bytes, tag_length: int) -> dict[str, object]:
    """The keyword arguments of Cipher.encrypt that the algorithm takes."""
    info = wc.find_algorithm(algorithm)
    chosen: dict[str, object] = {} if info.iv == "none" else {"iv": iv}
    if info.is_aead:
        chosen |= {"aad": aad, "tag_length": tag_length}
    return chosen


# --- GF(2^128), SP 800-38D section 6.3, for IVs that give a chosen initial counter ---------------

R = 0xE1 << 120
ONE = 1 << 127


def multiply(x: int, y: int) -> int:
    product = 0
    for bit in range(127, -1, -1):
        product ^= y if x >> bit & 1 else 0
        y = (y >> 1) ^ (R if y & 1 else 0)
    return product


def inverse(x: int) -> int:
    """x^(2^128 - 2)."""
    result = ONE
    for _ in range(127):
        x = multiply(x, x)
        result = multiply(result, x)
    return result


def iv_for_counter(key: bytes, counter: bytes) -> bytes:
    """The 16-byte IV whose pre-counter block J0 is `counter`: J0 = (IV * H + length) * H, with
    length = 128 (SP 800-38D, section 7.1, step 2)."""
    ecb = f"aes-{8 * len(key)}-ecb"
    h_inverse = inverse(int.from_bytes(encrypt(ecb, key, bytes(16)), "big"))
    inner = multiply(int.from_bytes(counter, "big"), h_inverse) ^ 128
    return multiply(inner, h_inverse).to_bytes(16, "big")

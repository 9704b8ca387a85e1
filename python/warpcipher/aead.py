# SPDX-License-Identifier: Apache-2.0
"""Authenticated encryption with the interface of cryptography.hazmat.primitives.ciphers.aead."""

# aead.pyi has the types: the native class cannot say that arrays give arrays, and bytes give bytes.
from ._native import AESCCM, AESGCM, AESGCMSIV, ChaCha20Poly1305, XChaCha20Poly1305

__all__ = ["AESCCM", "AESGCM", "AESGCMSIV", "ChaCha20Poly1305", "XChaCha20Poly1305"]

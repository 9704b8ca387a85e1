# SPDX-License-Identifier: Apache-2.0
"""Authenticated encryption with the interface of cryptography.hazmat.primitives.ciphers.aead."""

from ._native import AESGCM

__all__ = ["AESGCM"]

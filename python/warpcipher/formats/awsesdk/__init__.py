# SPDX-License-Identifier: Apache-2.0
"""Keys and options of the format awsesdk, the messages of the AWS Encryption SDK.

from warpcipher import formats
from warpcipher.formats import awsesdk

key = awsesdk.RawAES(secret, namespace="prod", name="2026")
formats.encrypt_file("plain", "secret", [key, awsesdk.KMS("arn:aws:kms:...")])
formats.open("secret", key)
"""

from __future__ import annotations

from .format import FRAME_LENGTH, Options
from .header import SUITES, Suite
from .keys import KMS, Discovery, RawAES, RawRSA, keyring

__all__ = [
    "FRAME_LENGTH",
    "KMS",
    "SUITES",
    "Discovery",
    "Options",
    "RawAES",
    "RawRSA",
    "Suite",
    "keyring",
]

# SPDX-License-Identifier: Apache-2.0
"""Keys of the format crypt4gh: who a file is encrypted for, and who opens it.

from warpcipher import formats
from warpcipher.formats import crypt4gh

reader = crypt4gh.PublicKey.parse(Path("reader.pub").read_bytes())
formats.encrypt_stream(source, target, [reader])
secret = crypt4gh.SecretKey.parse(Path("reader.sec").read_bytes(), passphrase="...")
formats.open("sample.bam.c4gh", secret)
"""

from __future__ import annotations

from .keys import PublicKey, SecretKey, is_encrypted, is_key, is_secret_key

__all__ = ["PublicKey", "SecretKey", "is_encrypted", "is_key", "is_secret_key"]

# SPDX-License-Identifier: Apache-2.0
"""Recognizes files of other programs, and keys, by their first bytes. It names them; it cannot read
them."""

from __future__ import annotations

import re
from typing import NamedTuple


class Foreign(NamedTuple):
    """A kind of file. certain: its beginning is too long for chance. hint: what opens it."""

    name: str
    description: str
    hint: str
    certain: bool = True


PREFIX_SIZE = 4096
"""Bytes of a file that `identify` looks at."""
ENDING_SIZE = 4
"""Bytes of its end that it looks at."""

_PARQUET = {
    b"PARE": Foreign("parquet", "an encrypted Parquet file", "warpcipher parquet decrypt"),
    b"PAR1": Foreign(
        "parquet",
        "a Parquet file with a plaintext footer, which says whether columns are encrypted",
        "warpcipher parquet info",
    ),
}
_GPG = Foreign("gpg", "an OpenPGP message", "gpg -d")
_OPENSSL = Foreign(
    "openssl",
    "encrypted by `openssl enc` with a password",
    "warpcipher raw decrypt -p --algorithm NAME if it was made with -pbkdf2; else openssl enc -d",
)
_KEYS = Foreign("pem", "a PEM: a key or a certificate", "openssl pkey, openssl x509")
_IDENTITY = "nothing: it opens files, with -i FILE"
_KEY_FILE = "nothing: it opens files, with --key FILE"
_TO_IT = "nothing: files are encrypted to it, with -R FILE"


def _key(description: str, hint: str) -> Foreign:
    return Foreign("key", description, hint)


_BEGINNINGS = (
    (rb"-----BEGIN PGP MESSAGE-----", _GPG),
    (
        rb"-----BEGIN CRYPT4GH (?:ENCRYPTED )?PRIVATE KEY-----",
        _key("a secret key of Crypt4GH", _IDENTITY),
    ),
    (rb"-----BEGIN CRYPT4GH PUBLIC KEY-----", _key("a public key of Crypt4GH", _TO_IT)),
    (rb"-----BEGIN OPENSSH PRIVATE KEY-----", _key("a secret key of SSH", "ssh, ssh-keygen")),
    (rb"(?:\s*#[^\n]*\n)*\s*AGE-SECRET-KEY-", _key("an identity of age", _IDENTITY)),
    (rb"(?:\s*#[^\n]*\n)*\s*age1[a-z0-9]{20}", _key("a recipient of age, which is public", _TO_IT)),
    (rb"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ AAAA", _key("a public key of SSH", "ssh, ssh-keygen")),
    (rb'\s*\{\s*"(?:primaryKeyId|primary_key_id|key)"\s*:', _key("a Tink keyset", _KEY_FILE)),
    (
        rb'\s*\{\s*"encrypted_?[kK]eyset"\s*:',
        _key("a Tink keyset that a KMS encrypted", f"{_KEY_FILE} --kms URI"),
    ),
    (rb'\s*\{(?:\s*"keys"\s*:\s*\[\s*\{)?[^{}]{0,400}"kty"\s*:', _key("a JSON Web Key", _KEY_FILE)),
    (rb"-----BEGIN [A-Z0-9 ]{1,40}-----", _KEYS),
    (rb"Salted__", _OPENSSL),
    (rb"U2FsdGVkX1", _OPENSSL),
    (rb"LUKS\xba\xbe\x00[\x01\x02]", Foreign("luks", "a LUKS volume", "cryptsetup open")),
    # RFC 9580, 4.2: a packet with a session key encrypted to a public key (version 3, 6) or with a
    # password (4, 5, 6), in the old form of a header and in the new one.
    (rb"(?:\x84[\x10-\xff]|\x85..)\x03.{8}[\x01\x02\x10\x12]", _GPG._replace(certain=False)),
    (rb"\x8c[\x04-\x40][\x04\x05][\x01-\x0d][\x00\x01\x03\x04]", _GPG._replace(certain=False)),
    (rb"\xc1(?:[\x10-\xbf]|[\xc0-\xdf].)[\x03\x06]", _GPG._replace(certain=False)),
    (rb"\xc3[\x04-\x40][\x04\x05\x06][\x01-\x0d][\x00\x01\x03\x04]", _GPG._replace(certain=False)),
)
_LONGEST_HEADER = 100_000_000
"""Of a safetensors file, as its own library has it."""


def identify(prefix: bytes, size: int, ending: bytes = b"") -> Foreign | None:
    """The kind of a file of `size` bytes that begins with `prefix` (all, or PREFIX_SIZE bytes)
    and ends with `ending` (ENDING_SIZE bytes); None: nothing known. An encrypted file of a format
    here has no such beginning, but by chance where the answer is not certain."""
    for beginning, found in _BEGINNINGS:
        if re.match(beginning, prefix, re.DOTALL):
            return found
    if (table := _PARQUET.get(prefix[:ENDING_SIZE])) is not None:
        # Four bytes may be chance, the same four at both ends are not.
        return table._replace(certain=ending == prefix[:ENDING_SIZE])
    header = int.from_bytes(prefix[:8], "little")
    if re.match(rb'\{\s*["}]', prefix[8:]) and 2 <= header <= min(_LONGEST_HEADER, size - 8):
        return Foreign("safetensors", "tensors, not encrypted", "safetensors.safe_open")
    return None

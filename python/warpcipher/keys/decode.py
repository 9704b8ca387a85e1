# SPDX-License-Identifier: Apache-2.0
"""The bytes of a key from what a file, variable or program holds: raw, hex or base64.

Keys of one use have one size or a few, so the length decides between the three. Anything else is
named: a PEM, an age identity, the ciphertext of a KMS.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Collection
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from .. import _protobuf
from .._errors import counted

Encoding: TypeAlias = Literal["auto", "raw", "hex", "base64"]

LONGEST = 1 << 20
"""Bytes of the largest keyset that is read."""
SIZES = (8, 16, 24, 32, 64)
"""Of the keys of all algorithms, where the caller knows none."""

_FEWEST_HEX_DIGITS = 14
"""Of a DES key without its parity bits."""
_BASE64_DIGITS = (22, 32, 43, 86)
"""Of keys of 16, 24, 32 and 64 bytes, without padding."""

_HEX = re.compile(rb"[0-9a-fA-F]+")
_BASE64 = re.compile(rb"[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9_-]+={0,2}")
_IDENTITIES = re.compile(
    rb"AGE-SECRET-KEY-(?:PQ-)?1|-----BEGIN (?:CRYPT4GH(?: ENCRYPTED)?|OPENSSH) PRIVATE KEY-----"
)
_SECRETS = re.compile(
    r"AGE-SECRET-KEY-|AGE-PLUGIN-|-----BEGIN |PRIVATE KEY--|YzRnaC12M", re.IGNORECASE
)
"""Marks of secret keys of age, of PEMs, and of the start of Crypt4GH's keys (in base64)."""
_SPACE = b" \t\r\n\v\f"
_UTF16 = rb"\xff\xfe|\xfe\xff"

# Bytes that begin like this are not a key of ours: (beginning, their kind).
_BEGINNINGS = (
    (rb"-----BEGIN PGP", "an OpenPGP message or key"),
    (rb"-----BEGIN AGE ENCRYPTED FILE", "a file encrypted by age"),
    (rb"age-encryption\.org/v1", "a file encrypted by age"),
    (rb"AGE-SECRET-KEY-|AGE-PLUGIN-", "an age identity"),
    (rb"age1[a-z0-9]{20}", "an age recipient, which is public"),
    (rb"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ ", "an SSH public key"),
    (rb"Salted__|U2FsdGVkX1", "a file encrypted by `openssl enc` with a password"),
    (rb"LUKS\xba\xbe", "a LUKS header"),
    (rb"AQICAH", "a key that AWS KMS encrypted: decrypt it with `aws kms decrypt`"),
    (rb"vault:v\d+:", "a key that Vault encrypted: decrypt it with `vault write transit/decrypt`"),
)
# So may a random key, so that these count where the length fits no key and all of it is text.
_SHORT_BEGINNINGS = (
    (_UTF16, "utf-16", "text in UTF-16: write it in ASCII"),
    (rb"\xef\xbb\xbf", "utf-8", "text with a byte order mark: write it without one"),
    (rb"\{", "utf-8", "text that begins as JSON and is not"),
)


def identify(data: bytes | bytearray) -> str | None:
    """The kind of data that are not a key, as "a PEM (PRIVATE KEY)"; None: they may be a key.

    Looks only at the beginning. A cleartext Tink keyset and a keyring of awsesdk are None: they are
    keys of formats.

    >>> from warpcipher import keys
    >>> keys.identify(b"-----BEGIN PRIVATE KEY-----") is not None
    True
    """
    text = _uncommented(data)
    for beginning, what in _BEGINNINGS:
        if re.match(beginning, text):
            return what
    if found := re.match(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----", text):
        return f"a PEM ({found[1].decode('ascii')})"
    document = _json_object(data)
    return None if document is None else _identify_json(document)


def in_utf16(data: bytes | bytearray) -> bool:
    """Whether data begin with the byte order mark of UTF-16, which text of Windows may be in."""
    return re.match(_UTF16, data) is not None


def _uncommented(data: bytes | bytearray) -> bytes:
    """The beginning, without the comments that a file of an age identity has first."""
    return re.sub(rb"\A(?:#[^\n]*(?:\n\s*|\Z))+", b"", bytes(data[:4096]).lstrip(_SPACE))


def _json_object(data: bytes | bytearray) -> dict[str, object] | None:
    if bytes(data[:64]).lstrip(_SPACE)[:1] != b"{" or len(data) > LONGEST:
        return None
    import json

    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _identify_json(document: dict[str, object]) -> str | None:
    if "encryptedKeyset" in document or "encrypted_keyset" in document:
        return (
            "a Tink keyset that a KMS encrypted: give keys.from_tink(keyset, kms=URI), or --kms URI"
        )
    if "kty" in document:
        return "a JSON Web Key: its field k is the key in base64"
    if {"Plaintext", "plaintext"} & document.keys():
        return "the JSON of a KMS: take only its field Plaintext (`--query Plaintext`)"
    if not {"key", "keyring"} & document.keys():
        return "JSON, and no Tink keyset"
    return None


class Expected(TypedDict, total=False):
    """The keywords that say what a key may be: `decode` has their meaning."""

    sizes: Collection[int]
    keyset: bool
    identities: bool
    what: str


def json_of_binary(data: bytes | bytearray) -> bytes | None:
    """The JSON of a cleartext Tink keyset in binary, the message Keyset of tink.proto; None for
    anything else."""
    if data[:1] != b"\x08" or b"type.googleapis.com/google.crypto.tink." not in data[:200]:
        return None
    import base64
    import json

    def named(message: Any, *names: str) -> dict[str, Any]:
        return {names[number - 1]: value for number, value in _protobuf.fields(message)}

    try:
        fields = list(_protobuf.fields(bytes(data)))
        entries = []
        for number, value in fields:
            if number == 2:
                entry = named(value, "keyData", "status", "keyId", "outputPrefixType")
                key = named(entry["keyData"], "typeUrl", "value", "keyMaterialType")
                key["typeUrl"] = key["typeUrl"].decode("ascii")
                key["value"] = base64.b64encode(key["value"]).decode("ascii")
                entries.append({**entry, "keyData": key})
        return json.dumps({"primaryKeyId": dict(fields)[1], "key": entries}).encode()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def decode(
    data: bytes | bytearray,
    name: str,
    *,
    encoding: Encoding = "auto",
    sizes: Collection[int] = (),
    keyset: bool = True,
    identities: bool = False,
    text: bool = False,
    what: str = "a key",
) -> bytearray:
    """The key that `data` hold.

    name: what holds them, for errors. encoding: "auto" finds it by the length, in the order hex,
    base64, raw. sizes: that a key may have, in bytes; empty: sizes of all algorithms, with an
    encoding named any. keyset: whether a Tink keyset may stand for the key; JSON is returned as it
    is, a binary one as JSON. identities: whether secret keys of age or Crypt4GH may, which are
    returned as they are too. text: raw bytes are not expected unless the encoding says so. what:
    how an error calls what was expected.
    Raises ValueError, which says what was found and never shows it.

    >>> from warpcipher import keys
    >>> keys.decode(b"000102030405060708090a0b0c0d0e0f", "the setting KEY").hex()
    '000102030405060708090a0b0c0d0e0f'
    """
    if encoding not in get_args(Encoding):
        raise ValueError(f"encoding is {encoding!r}: expected {', '.join(get_args(Encoding))}")
    if len(data) > LONGEST:
        raise ValueError(f"{name} holds more than {LONGEST} bytes: that is not a key")
    stripped = bytes(data).strip(_SPACE)
    expected = _expected(what, sizes, keyset, identities)
    if encoding != "raw":
        if identities and _IDENTITIES.match(_uncommented(data)):
            return bytearray(stripped)
        found = identify(data)
        if not stripped:
            found = "nothing" if not data else "only white space"
        if found is not None:
            raise ValueError(f"{name} holds {found}; {expected}")
        if _json_object(data) is not None:
            if keyset:
                return bytearray(stripped)
            raise ValueError(f"{name} holds a Tink keyset; {expected}")
        if keyset and (found_json := json_of_binary(data)):
            return bytearray(found_json)
        if identities and not (sizes or keyset):
            raise ValueError(f"{name} holds {_shape(data, stripped)}; {expected}")
    readings = _readings(data, stripped, encoding, text)
    if encoding == "auto":
        allowed = frozenset(sizes or SIZES)
        readings = {form: key for form, key in readings.items() if len(key) in allowed}
        if "hex" in readings:
            return readings["hex"]
        if "raw" in readings and len(stripped) >= 16 and _HEX.fullmatch(stripped):
            readings = {}  # digits that are too few or too many, and no random key
    elif sizes:
        readings = {form: key for form, key in readings.items() if len(key) in sizes}
    for key in readings.values():
        return key
    raise ValueError(f"{name} holds {_shape(data, stripped)}; {expected}")


def _readings(
    data: bytes | bytearray, stripped: bytes, encoding: Encoding, text: bool
) -> dict[str, bytearray]:
    """The keys that the data may mean, by encoding: hex first, then base64, then raw."""
    readings: dict[str, bytearray] = {}
    if encoding in ("auto", "hex") and len(stripped) % 2 == 0 and _HEX.fullmatch(stripped):
        readings["hex"] = bytearray.fromhex(stripped.decode("ascii"))
    if encoding in ("auto", "base64") and (key := _from_base64(stripped)):
        readings["base64"] = key
    if encoding == "raw" or (encoding == "auto" and not text and data):
        readings["raw"] = bytearray(data)
    return readings


def _from_base64(stripped: bytes) -> bytearray | None:
    """The bytes of base64 or base64url, with or without padding, on one line or several."""
    digits = b"".join(stripped.split())
    if not _BASE64.fullmatch(digits):
        return None
    bare = digits.rstrip(b"=")
    if b"=" in digits and len(digits) % 4:
        return None
    import base64

    try:
        bare = bare.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(bare) % 4)
        return bytearray(base64.b64decode(bare, validate=True))
    except binascii.Error:
        return None


def extra_in_hex(text: bytes) -> str | None:
    """The characters between hex digits that do not belong there, not shown; None: something
    else."""
    digits = len(re.sub(rb"^0[xX]|[^0-9a-fA-F]", b"", text))
    if re.fullmatch(rb"0[xX][0-9a-fA-F]+", text):
        return f"{digits} hex digits after 0x: leave 0x out"
    if re.fullmatch(rb"[0-9a-fA-F]{2}(?:[:\s-][0-9a-fA-F]{2})+", text):
        return f"{digits} hex digits with separators: leave them out"
    return None


def _shape(data: bytes | bytearray, stripped: bytes) -> str:
    """Describes data that fit nothing, without showing them."""
    if _HEX.fullmatch(stripped):
        return counted(len(stripped), "hex digit")
    if (extra := extra_in_hex(stripped)) is not None:
        return extra
    key = _from_base64(stripped)
    if key is not None and len(stripped) >= 16:
        return f"{len(stripped)} characters, {len(key)} bytes if they are base64"
    for beginning, encoding, what in _SHORT_BEGINNINGS:
        if re.match(beginning, stripped) and _is_text(data, encoding):
            return what
    if stripped.isascii() and bytes(data).decode("latin-1").strip().isprintable():
        return f"a text of {counted(len(data), 'byte')}"
    return counted(len(data), "byte")


def _is_text(data: bytes | bytearray, encoding: str) -> bool:
    try:
        return bool(data.decode(encoding))
    except UnicodeDecodeError:
        return False


def _expected(what: str, sizes: Collection[int], keyset: bool, identities: bool) -> str:
    if identities and not sizes:
        return f"expected {what}"
    counts = " or ".join(map(str, sizes or SIZES))
    also = ", or a Tink keyset in JSON" if keyset else ""
    also += ", or an identity of age or Crypt4GH" if identities else ""
    return f"expected {what}: {counts} bytes, raw, in hex digits or in base64{also}"


def is_secret(text: str) -> bool:
    """Whether text has what no name has by chance, and the secret keys of age and Crypt4GH have."""
    return _SECRETS.search(text) is not None


def may_be_key(text: str) -> bool:
    """Whether text that was given as a name looks like the key itself: a keyset, a PEM, an identity
    of age, hex or base64. An error then does not repeat it."""
    if "{" in text or is_secret(text):
        return True
    text = re.sub(r"\s", "", text)
    digits = re.sub(r"^0[xX]|[\s:_-]", "", text.rpartition("/")[2])
    if len(digits) >= _FEWEST_HEX_DIGITS and re.fullmatch(r"[0-9a-fA-F]+", digits):
        return True
    bare = text.rstrip("=")
    return bool(re.fullmatch(r"[A-Za-z0-9+/_-]+", bare)) and (
        len(bare) in _BASE64_DIGITS or len(text) > len(bare)
    )

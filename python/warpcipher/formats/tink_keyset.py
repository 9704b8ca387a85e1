# SPDX-License-Identifier: Apache-2.0
"""Tink keysets of streaming AEAD keys: cleartext JSON, read and written without Tink or protobuf.

A keyset is JSON; the key inside is a serialised protobuf message, base64. Both streaming key types
are

    message AesGcmHkdfStreamingKey / AesCtrHmacStreamingKey {
      uint32 version = 1;      // 0
      Params params  = 2;      // { uint32 ciphertext_segment_size = 1; uint32 derived_key_size = 2;
                               //   HashType hkdf_hash_type = 3; HmacParams hmac_params = 4; }
      bytes key_value = 3;     // HmacParams { HashType hash = 1; uint32 tag_size = 2; }
    }
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .. import _protobuf
from .._errors import explained
from .._uncopied import INSTEAD_OF_A_KEY, Uncopied
from ..arguments import text_bytes, view_bytes
from ..keys.decode import json_of_binary
from .layout import FormatError

TYPE_URL_PREFIX = "type.googleapis.com/google.crypto.tink."
GCM_HKDF = "AesGcmHkdfStreamingKey"
CTR_HMAC = "AesCtrHmacStreamingKey"
HASHES = {1: "sha1", 3: "sha256", 4: "sha512"}
HASH_SIZES = {"sha1": 20, "sha256": 32, "sha512": 64}
STATUSES = ("UNKNOWN_STATUS", "ENABLED", "DISABLED", "DESTROYED")
PREFIXES = ("UNKNOWN_PREFIX", "TINK", "LEGACY", "RAW", "CRUNCHY")
MAX_SEGMENT_SIZE = 32 << 20
"""Larger segments are refused: a segment is held in memory whole, in each buffer of the
pipeline."""
GCM_TAG_SIZE = 16
NONCE_PREFIX_SIZE = 7


@dataclass(frozen=True)
class StreamingKey(Uncopied):
    """One key of a keyset. Sizes in bytes; hashes "sha1", "sha256", "sha512"; mac_hash is None for
    AES-GCM-HKDF."""

    key_id: int
    status: str
    output_prefix: str
    segment_size: int
    derived_key_size: int
    hkdf_hash: str
    mac_hash: str | None
    tag_size: int
    value: bytes = field(repr=False)

    _instead = INSTEAD_OF_A_KEY

    def __post_init__(self) -> None:
        who = f"key {self.key_id} of the keyset"
        if self.derived_key_size not in (16, 32):
            raise FormatError(f"{who}: derived_key_size is {self.derived_key_size}: not 16 or 32")
        if len(self.value) < self.derived_key_size:
            raise FormatError(
                f"{who}: {len(self.value)} bytes of key for derived keys of {self.derived_key_size}"
            )
        if self.mac_hash is not None and not 10 <= self.tag_size <= HASH_SIZES[self.mac_hash]:
            raise FormatError(
                f"{who}: tag_size is {self.tag_size}, expected 10 to {HASH_SIZES[self.mac_hash]}"
            )
        shortest = self.header_size + self.tag_size + 1
        if not shortest <= self.segment_size <= MAX_SEGMENT_SIZE:
            raise FormatError(
                f"{who}: ciphertext_segment_size is {self.segment_size}, expected {shortest} to "
                f"{MAX_SEGMENT_SIZE}"
            )

    @property
    def header_size(self) -> int:
        """One byte of length, the salt, the nonce prefix."""
        return 1 + self.derived_key_size + NONCE_PREFIX_SIZE

    @property
    def type_name(self) -> str:
        return GCM_HKDF if self.mac_hash is None else CTR_HMAC


# The names Tink gives to its key templates.
TEMPLATES: dict[str, tuple[int, int, bool]] = {
    f"AES{bits}_{kind}_{label}": (bits // 8, segment, kind != "GCM_HKDF")
    for bits in (128, 256)
    for kind in ("GCM_HKDF", "CTR_HMAC_SHA256")
    for label, segment in (("4KB", 4 << 10), ("1MB", 1 << 20))
}


@dataclass(frozen=True)
class Keyset(Uncopied):
    """Keys, one of them primary: it encrypts, and every enabled one is tried to decrypt."""

    keys: tuple[StreamingKey, ...]
    primary_key_id: int

    _instead = INSTEAD_OF_A_KEY

    def __post_init__(self) -> None:
        ids = [key.key_id for key in self.keys]
        if len(set(ids)) != len(ids):
            raise FormatError("the keyset has two keys with one keyId")
        primaries = [key for key in self.keys if key.key_id == self.primary_key_id]
        if not primaries:
            raise FormatError(f"the keyset has no key with its primaryKeyId {self.primary_key_id}")
        if primaries[0].status != "ENABLED":
            raise FormatError(
                f"the primary key {self.primary_key_id} is {primaries[0].status}, not ENABLED"
            )

    @property
    def primary(self) -> StreamingKey:
        """The key that encrypts."""
        return next(key for key in self.keys if key.key_id == self.primary_key_id)

    @property
    def enabled(self) -> tuple[StreamingKey, ...]:
        """Every enabled key, the primary first."""
        others = (
            key
            for key in self.keys
            if key.status == "ENABLED" and key.key_id != self.primary_key_id
        )
        return (self.primary, *others)

    @classmethod
    def generate(cls, template: str = "AES256_GCM_HKDF_1MB") -> Keyset:
        """A keyset with one fresh key. template: one of `TEMPLATES`, Tink's names."""
        key = _fresh_key(template, frozenset())
        return cls((key,), key.key_id)

    def added(self, template: str | None = None) -> Keyset:
        """This keyset with a fresh key, its last, which decrypts. template: None: a key of the kind
        of the primary one."""
        taken = frozenset(key.key_id for key in self.keys)
        if template is not None:
            key = _fresh_key(template, taken)
        else:
            like = self.primary
            key = replace(like, key_id=_fresh_id(taken), value=os.urandom(len(like.value)))
        return Keyset((*self.keys, key), self.primary_key_id)

    def rotated(self, template: str | None = None) -> Keyset:
        """As `added`, and the fresh key is the primary one; the former keys still decrypt."""
        keys = self.added(template).keys
        return Keyset(keys, keys[-1].key_id)

    def promoted(self, key_id: int) -> Keyset:
        """This keyset with another primary key, which must be enabled. Raises ValueError."""
        if (status := self._find(key_id).status) != "ENABLED":
            raise ValueError(f"key {key_id} is {status}: enable it first")
        return Keyset(self.keys, key_id)

    def with_status(self, key_id: int, status: Literal["ENABLED", "DISABLED"]) -> Keyset:
        """This keyset with a key enabled, or disabled: kept and not tried. Raises ValueError for
        the primary key."""
        self._find(key_id, other_than_primary=status != "ENABLED")
        keys = (replace(one, status=status) if one.key_id == key_id else one for one in self.keys)
        return Keyset(tuple(keys), self.primary_key_id)

    def without(self, key_id: int) -> Keyset:
        """This keyset without a key: what it encrypted is lost. Raises ValueError for the primary
        key."""
        self._find(key_id, other_than_primary=True)
        return Keyset(tuple(one for one in self.keys if one.key_id != key_id), self.primary_key_id)

    def _find(self, key_id: int, *, other_than_primary: bool = False) -> StreamingKey:
        """The key of that number. Raises ValueError if there is none."""
        ids = {key.key_id: key for key in self.keys}
        if key_id not in ids:
            raise ValueError(
                f"the keyset has no key {key_id}; there are {', '.join(map(str, ids))}"
            )
        if other_than_primary and key_id == self.primary_key_id:
            raise ValueError(f"key {key_id} is the primary one, which encrypts: promote another")
        return ids[key_id]

    @classmethod
    def from_json(cls, text: str | bytes | bytearray) -> Keyset:
        """Parses a cleartext JSON keyset. Raises FormatError; its text shows no key material."""
        try:
            document = json.loads(text_bytes("the keyset", text))
        except (ValueError, RecursionError):
            raise FormatError("the keyset is not JSON") from None
        if not isinstance(document, dict):
            raise FormatError("the keyset is not a JSON object")
        if "encryptedKeyset" in document or "encrypted_keyset" in document:
            raise FormatError(
                "the keyset is encrypted: decrypt it with Tink first, only cleartext ones are read"
            )
        entries = document.get("key")
        if not isinstance(entries, list) or not entries:
            raise FormatError("the keyset has no list named key")
        keys = (_parse_entry(place, entry) for place, entry in enumerate(entries))
        known = tuple(key for key in keys if key is not None)
        return cls(known, _uint32(document, "primaryKeyId", "the keyset"))

    @classmethod
    def from_binary(cls, data: bytes | bytearray) -> Keyset:
        """Parses a cleartext keyset of Tink's BinaryKeysetWriter or TinkProtoKeysetFormat. Raises
        FormatError; its text shows no key material."""
        if (text := json_of_binary(bytes(view_bytes("the keyset", data)))) is None:
            raise FormatError("this is not a cleartext Tink keyset in binary")
        return cls.from_json(text)

    def to_json(self) -> str:
        """The cleartext JSON keyset as Tink's JsonKeysetReader takes it. It holds the keys: guard
        it."""
        entries = [
            {
                "keyData": {
                    "typeUrl": TYPE_URL_PREFIX + key.type_name,
                    "value": base64.b64encode(_serialise(key)).decode("ascii"),
                    "keyMaterialType": "SYMMETRIC",
                },
                "status": key.status,
                "keyId": key.key_id,
                "outputPrefixType": key.output_prefix,
            }
            for key in self.keys
        ]
        return json.dumps({"primaryKeyId": self.primary_key_id, "key": entries}, indent=2) + "\n"


def _fresh_id(taken: frozenset[int]) -> int:
    while (key_id := int.from_bytes(os.urandom(4), "big")) == 0 or key_id in taken:
        pass
    return key_id


def _fresh_key(template: str, taken: frozenset[int]) -> StreamingKey:
    try:
        size, segment, ctr_hmac = TEMPLATES[template]
    except KeyError:
        raise ValueError(
            f"unknown template {template!r}; there are {', '.join(TEMPLATES)}"
        ) from None
    return StreamingKey(
        key_id=_fresh_id(taken),
        status="ENABLED",
        output_prefix="RAW",
        segment_size=segment,
        derived_key_size=size,
        hkdf_hash="sha256",
        mac_hash="sha256" if ctr_hmac else None,
        tag_size=32 if ctr_hmac else GCM_TAG_SIZE,
        value=os.urandom(size),
    )


# JSON: protobuf's mapping takes lowerCamelCase and original names, numbers and names of
# enumerations.


def _field(document: dict[str, Any], name: str) -> Any:
    original = "".join("_" + c.lower() if c.isupper() else c for c in name)
    return document.get(name, document.get(original))


def _uint32(document: dict[str, Any], name: str, who: str) -> int:
    value = _field(document, name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
        raise FormatError(f"{who}: {name} is missing or not an unsigned 32-bit number")
    return value


def _enum(document: dict[str, Any], name: str, names: tuple[str, ...], who: str) -> str:
    value = _field(document, name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < len(names):
        return names[value]
    if isinstance(value, str) and value in names[1:]:
        return value
    raise FormatError(f"{who}: {name} is missing or none of {', '.join(names[1:])}")


def _parse_entry(place: int, entry: Any) -> StreamingKey | None:
    """The key of one entry; None for a destroyed key, which has no material."""
    who = f"key number {place} of the keyset"
    if not isinstance(entry, dict):
        raise FormatError(f"{who} is not a JSON object")
    key_id = _uint32(entry, "keyId", who)
    status = _enum(entry, "status", STATUSES, who)
    output_prefix = _enum(entry, "outputPrefixType", PREFIXES, who)
    if status == "DESTROYED":
        return None
    data = _field(entry, "keyData")
    if not isinstance(data, dict):
        raise FormatError(f"{who}: keyData is missing or not a JSON object")
    type_url = _field(data, "typeUrl")
    value = data.get("value")
    kinds = [kind for kind in (GCM_HKDF, CTR_HMAC) if type_url == TYPE_URL_PREFIX + kind]
    if not kinds:
        raise FormatError(
            f"{who}: typeUrl is not a streaming AEAD key's: expected "
            f"{TYPE_URL_PREFIX}{GCM_HKDF} or {CTR_HMAC}"
        )
    if not isinstance(value, str):
        raise FormatError(f"{who}: value is missing or not a string")
    try:
        message = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError(f"{who}: value is not base64") from None
    return _parse_key(message, kinds[0], key_id, status, output_prefix)


_Numbers = dict[int, tuple[str, type]]
"""Fields of a message by number: their names and types."""


def _message(data: bytes, numbers: _Numbers, who: str) -> dict[str, Any]:
    found: dict[str, Any] = {name: kind() for name, kind in numbers.values()}
    with explained("the keyset holds a malformed key", FormatError):
        pairs = list(_protobuf.fields(data))
    for number, value in pairs:
        name, kind = numbers.get(number, ("", object))
        if not isinstance(value, kind) or not name:
            raise FormatError(f"{who}: field {number} is unknown or of the wrong type")
        found[name] = value
    return found


def _hash(number: int, who: str) -> str:
    if number not in HASHES:
        raise FormatError(f"{who}: hash {number} is none of {', '.join(HASHES.values())}")
    return HASHES[number]


def _parse_key(
    message: bytes, kind: str, key_id: int, status: str, output_prefix: str
) -> StreamingKey:
    who = f"key {key_id} of the keyset"
    key = _message(message, {1: ("version", int), 2: ("params", bytes), 3: ("value", bytes)}, who)
    if key["version"] != 0:
        raise FormatError(f"{who}: version is {key['version']}, expected 0")
    numbers: _Numbers = {1: ("segment", int), 2: ("derived", int), 3: ("hkdf", int)}
    mac_hash: str | None = None
    tag_size = GCM_TAG_SIZE
    if kind == CTR_HMAC:
        numbers[4] = ("hmac", bytes)
    params = _message(key["params"], numbers, who)
    if kind == CTR_HMAC:
        mac = _message(params["hmac"], {1: ("hash", int), 2: ("tag_size", int)}, who)
        mac_hash, tag_size = _hash(mac["hash"], who), mac["tag_size"]
    return StreamingKey(
        key_id=key_id,
        status=status,
        output_prefix=output_prefix,
        segment_size=params["segment"],
        derived_key_size=params["derived"],
        hkdf_hash=_hash(params["hkdf"], who),
        mac_hash=mac_hash,
        tag_size=tag_size,
        value=key["value"],
    )


def _serialise(key: StreamingKey) -> bytes:
    put = _protobuf.field
    numbers = {name: number for number, name in HASHES.items()}
    params = put(1, key.segment_size) + put(2, key.derived_key_size)
    params += put(3, numbers[key.hkdf_hash])
    if key.mac_hash is not None:
        params += put(4, put(1, numbers[key.mac_hash]) + put(2, key.tag_size))
    return put(2, params) + put(3, key.value)

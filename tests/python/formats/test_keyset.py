# SPDX-License-Identifier: Apache-2.0
"""Tink keysets: read, written, rotated; every malformed one is an error that shows no key."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from format_cases import paint, streaming_key
from hypothesis import given
from hypothesis import strategies as st
from warpcipher import InvalidTag, formats
from warpcipher.formats import FormatError, Keyset
from warpcipher.formats.tink_keyset import MAX_SEGMENT_SIZE

every_template = pytest.mark.parametrize("template", formats.TEMPLATES)


def test_templates_are_those_the_format_has() -> None:
    assert sorted(formats.TEMPLATES) == [
        "AES128_CTR_HMAC_SHA256_1MB",
        "AES128_CTR_HMAC_SHA256_4KB",
        "AES128_GCM_HKDF_1MB",
        "AES128_GCM_HKDF_4KB",
        "AES256_CTR_HMAC_SHA256_1MB",
        "AES256_CTR_HMAC_SHA256_4KB",
        "AES256_GCM_HKDF_1MB",
        "AES256_GCM_HKDF_4KB",
    ]


@every_template
def test_json_round_trip(template: str) -> None:
    keyset = Keyset.generate(template)
    assert Keyset.from_json(keyset.to_json()) == keyset
    assert Keyset.from_json(keyset.to_json().encode()) == keyset
    assert keyset.primary.segment_size == (4096 if template.endswith("4KB") else 1 << 20)
    assert keyset.primary.derived_key_size == len(keyset.primary.value)
    assert Keyset.generate(template).primary.value != keyset.primary.value


def encrypt(key: object, plain: bytes) -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), out, key)
    return out.getvalue()


def decrypt(key: object, sealed: bytes) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(sealed), out, key)
    return out.getvalue()


def test_every_enabled_key_reads_and_the_primary_writes() -> None:
    keyset = Keyset.generate("AES128_GCM_HKDF_4KB")
    plain = paint(3 << 20)
    sealed = [encrypt(keyset, plain)]
    for template in formats.TEMPLATES:
        keyset = keyset.rotated(template)
        sealed.append(encrypt(keyset, plain))
    for one in sealed:
        assert decrypt(keyset, one) == plain
        assert (
            decrypt(keyset, encrypt(Keyset((keyset.primary,), keyset.primary_key_id), b"")) == b""
        )
    alone = Keyset((keyset.primary,), keyset.primary_key_id)
    assert decrypt(alone, sealed[-1]) == plain
    with pytest.raises(InvalidTag, match="no enabled key of the keyset"):
        decrypt(alone, sealed[0])


@pytest.mark.parametrize("size", [0, 1, 60, 61, 5000])
def test_keys_with_segments_of_different_sizes_are_told_apart(size: int) -> None:
    # One key's only segment is cut where another key's first one would end.
    keys = tuple(streaming_key(i, segment_size=s) for i, s in enumerate((100, 4096, 101, 1 << 20)))
    for key in keys:
        sealed = encrypt(Keyset(keys, key.key_id), paint(size))
        for primary in keys:
            assert decrypt(Keyset(keys, primary.key_id), sealed) == paint(size)


def test_disabled_and_destroyed_keys_read_nothing() -> None:
    keyset = Keyset.generate("AES128_GCM_HKDF_4KB")
    sealed = encrypt(keyset, paint(100))
    document = json.loads(keyset.rotated("AES256_GCM_HKDF_4KB").to_json())
    for status in ("DISABLED", 2, "DESTROYED", 3):
        document["key"][0]["status"] = status
        if status in ("DESTROYED", 3):
            document["key"][0].pop("keyData", None)
        with pytest.raises(InvalidTag, match="no enabled key"):
            decrypt(json.dumps(document), sealed)
    document = json.loads(keyset.to_json())
    document["key"][0]["status"] = "DISABLED"
    with pytest.raises(FormatError, match="is DISABLED, not ENABLED"):
        Keyset.from_json(json.dumps(document))


def test_names_and_numbers_as_protobuf_writes_them() -> None:
    keyset = Keyset.generate("AES256_CTR_HMAC_SHA256_4KB")
    document = json.loads(keyset.to_json())
    (entry,) = document["key"]
    data = entry["keyData"]
    spelled = {
        "primary_key_id": str(document["primaryKeyId"]),
        "key": [
            {
                "key_data": {
                    "type_url": data["typeUrl"],
                    "value": data["value"],
                    "key_material_type": 1,
                },
                "status": 1,
                "key_id": entry["keyId"],
                "output_prefix_type": 3,
            }
        ],
    }
    assert Keyset.from_json(json.dumps(spelled)) == keyset


def test_no_repr_shows_a_key() -> None:
    keyset = Keyset.generate("AES256_GCM_HKDF_1MB")
    for shown in (repr(keyset), str(keyset), repr(keyset.primary)):
        assert repr(keyset.primary.value)[2:-1] not in shown
        assert keyset.primary.value.hex() not in shown


def entry_of(message: bytes, kind: str = "AesGcmHkdfStreamingKey", **changes: Any) -> str:
    data = {
        "typeUrl": f"type.googleapis.com/google.crypto.tink.{kind}",
        "value": base64.b64encode(message).decode(),
        "keyMaterialType": "SYMMETRIC",
    }
    entry = {"keyData": data, "status": "ENABLED", "keyId": 5, "outputPrefixType": "RAW"}
    return json.dumps({"primaryKeyId": 5, "key": [{**entry, **changes}]})


SECRET = b"sixteen byte key"
GCM_PARAMS = b"\x08\x80\x20\x10\x10\x18\x03"  # segment 4096, derived key 16, SHA-256
CTR_PARAMS = GCM_PARAMS + b"\x22\x04\x08\x03\x10\x20"  # HMAC SHA-256, tag 32


def message(params: bytes = GCM_PARAMS, value: bytes = SECRET, before: bytes = b"") -> bytes:
    return before + b"\x12" + bytes([len(params)]) + params + b"\x1a" + bytes([len(value)]) + value


def test_the_hand_written_messages_are_good() -> None:
    assert Keyset.from_json(entry_of(message())).primary.value == SECRET
    good = Keyset.from_json(entry_of(message(CTR_PARAMS), "AesCtrHmacStreamingKey"))
    assert (good.primary.mac_hash, good.primary.tag_size) == ("sha256", 32)
    assert Keyset.from_json(entry_of(message(before=b"\x08\x00"))).primary.value == SECRET


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (b"\xff\xfe{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "no list named key"),
        ('{"key": {}}', "no list named key"),
        ('{"primaryKeyId": 1, "key": []}', "no list named key"),
        ('{"primaryKeyId": 1, "key": [3]}', "number 0 of the keyset is not a JSON object"),
        ('{"encryptedKeyset": "AAAA"}', "is encrypted"),
        (entry_of(message(), keyId=6), "no key with its primaryKeyId 5"),
        (entry_of(message(), keyId="x"), "keyId is missing or not"),
        (entry_of(message(), keyId=-1), "keyId is missing or not"),
        (entry_of(message(), keyId=1 << 32), "keyId is missing or not"),
        (entry_of(message(), keyId=True), "keyId is missing or not"),
        (entry_of(message(), keyId=5.5), "keyId is missing or not"),
        (entry_of(message(), status="ON"), "status is missing or none of"),
        (entry_of(message(), status=0), "status is missing or none of"),
        (entry_of(message(), outputPrefixType=9), "outputPrefixType is missing or none of"),
        (entry_of(message(), keyData=None), "keyData is missing"),
        (entry_of(message(), keyData={"typeUrl": 4}), "typeUrl is not a streaming AEAD key's"),
        (entry_of(message(), "AesGcmKey"), "typeUrl is not a streaming AEAD key's"),
        (entry_of(message(before=b"\x08\x01")), "version is 1, expected 0"),
        (entry_of(message(value=b"short")), "5 bytes of key for derived keys of 16"),
        (entry_of(message(b"\x08\x80\x20\x10\x11\x18\x03")), "derived_key_size is 17"),
        (entry_of(message(b"\x08\x80\x20\x10\x10\x18\x02")), "hash 2 is none of"),
        (entry_of(message(b"\x08\x80\x20\x10\x10")), "hash 0 is none of"),
        (entry_of(message(b"\x08\x28\x10\x10\x18\x03")), "ciphertext_segment_size is 40"),
        (entry_of(message(b"\x10\x10\x18\x03")), "ciphertext_segment_size is 0"),
        (
            entry_of(message(b"\x08\xff\xff\xff\xff\x0f\x10\x10\x18\x03")),
            f"to {MAX_SEGMENT_SIZE}",
        ),
        (entry_of(message(CTR_PARAMS)), "field 4 is unknown"),
        (entry_of(message(), "AesCtrHmacStreamingKey"), "hash 0 is none of"),
        (
            entry_of(message(CTR_PARAMS[:-1] + b"\x21"), "AesCtrHmacStreamingKey"),
            "tag_size is 33, expected 10 to 32",
        ),
        (
            entry_of(message(CTR_PARAMS[:-1] + b"\x09"), "AesCtrHmacStreamingKey"),
            "tag_size is 9, expected 10 to 32",
        ),
        (entry_of(message()[:-1]), "a field ends early"),
        (entry_of(message() + b"\x80"), "a number ends early"),
        (entry_of(message() + b"\xff" * 12), "a number ends early or is too long"),
        (entry_of(message() + b"\x0d\x00\x00\x00\x00"), "unknown type"),
        (entry_of(message() + b"\x10\x01"), "of the wrong type"),
        (entry_of(b""), "hash 0 is none of"),
    ],
)
def test_malformed_keysets(text: str | bytes, complaint: str) -> None:
    with pytest.raises(FormatError) as failure:
        Keyset.from_json(text)
    assert complaint in str(failure.value)
    assert SECRET.decode() not in str(failure.value)
    assert failure.value.__cause__ is None


def test_a_value_that_is_not_base64() -> None:
    document = json.loads(entry_of(message()))
    for value in ("%%%", "AAA", 7, None):
        document["key"][0]["keyData"]["value"] = value
        with pytest.raises(FormatError, match="value is"):
            Keyset.from_json(json.dumps(document))


def test_two_keys_with_one_id() -> None:
    document = json.loads(entry_of(message()))
    document["key"] *= 2
    with pytest.raises(FormatError, match="two keys with one keyId"):
        Keyset.from_json(json.dumps(document))


@given(st.binary(max_size=80))
def test_any_message_parses_or_is_a_format_error(noise: bytes) -> None:
    for kind in ("AesGcmHkdfStreamingKey", "AesCtrHmacStreamingKey"):
        try:
            keyset = Keyset.from_json(entry_of(noise, kind))
        except FormatError:
            continue
        assert Keyset.from_json(keyset.to_json()) == keyset


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["key", "primaryKeyId", "keyData", "keyId", "status", "value", "typeUrl"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_parses_or_is_a_format_error(document: object) -> None:
    with pytest.raises(FormatError):
        Keyset.from_json(json.dumps(document))


def test_an_unknown_template_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="unknown template 'X'; there are AES128_GCM_HKDF_4KB"):
        Keyset.generate("X")

# SPDX-License-Identifier: Apache-2.0
"""Both ways between warpcipher's tink format and Tink itself: files, keysets, rotation."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from cli_support import run
from format_cases import paint, streaming_key
from warpcipher import formats, keys
from warpcipher.formats import FormatError, Keyset
from warpcipher.formats.tink import layout

tink = pytest.importorskip("tink", reason="needs the tink package")
from tink import (  # noqa: E402
    cleartext_keyset_handle,
    json_proto_keyset_format,
    proto_keyset_format,
    secret_key_access,
    streaming_aead,
)

streaming_aead.register()

every_template = pytest.mark.parametrize("template", formats.TEMPLATES)
CONTEXT = b"associated data"
OPTIONS = formats.Options(context=CONTEXT)


def primitive(text: str) -> Any:
    """Tink's streaming AEAD over a JSON keyset."""
    handle = json_proto_keyset_format.parse(text, secret_key_access.TOKEN)
    return handle.primitive(streaming_aead.StreamingAead)


class KeptOpen(io.BytesIO):
    """Tink closes the files it is given; this one keeps its bytes."""

    def close(self) -> None:
        pass


def seal_with_tink(text: str, plain: bytes) -> bytes:
    out = KeptOpen()
    with primitive(text).new_encrypting_stream(out, CONTEXT) as stream:
        stream.write(plain)
    return out.getvalue()


def open_with_tink(text: str, sealed: bytes) -> bytes:
    with primitive(text).new_decrypting_stream(io.BytesIO(sealed), CONTEXT) as stream:
        return bytes(stream.read())


def seal(key: object, plain: bytes) -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), out, key, options=OPTIONS)
    return out.getvalue()


def unseal(key: object, sealed: bytes) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(sealed), out, key, options=OPTIONS)
    return out.getvalue()


def sizes_of(keyset: Keyset) -> list[int]:
    """Plaintext sizes at every edge of the primary key's segments."""
    shape = layout(keyset.primary)
    edges = {0, 1, 15, 16, 17}
    for count in (1, 2, 5) if shape.chunk < 1 << 16 else (1, 2):
        end = shape.plaintext_start(count)
        edges |= {end - 1, end, end + 1}
    return sorted(edges)


@every_template
def test_tink_reads_what_is_written(template: str) -> None:
    keyset = Keyset.generate(template)
    for size in sizes_of(keyset):
        assert open_with_tink(keyset.to_json(), seal(keyset, paint(size))) == paint(size), size


@every_template
def test_what_tink_writes_is_read(template: str) -> None:
    handle = tink.new_keyset_handle(getattr(streaming_aead.streaming_aead_key_templates, template))
    text = json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN)
    for size in sizes_of(Keyset.from_json(text)):
        sealed = seal_with_tink(text, paint(size))
        assert unseal(text, sealed) == paint(size), size
        with formats.open(io.BytesIO(sealed), text, options=OPTIONS) as file:
            file.seek(size // 3)
            assert file.read() == paint(size)[size // 3 :]


@pytest.mark.parametrize("mac_hash", [None, "sha1", "sha256", "sha512"])
@pytest.mark.parametrize("hkdf_hash", ["sha1", "sha256", "sha512"])
@pytest.mark.parametrize("size", [16, 32])
def test_other_hashes_tags_and_segments(mac_hash: str | None, hkdf_hash: str, size: int) -> None:
    tag_size = 16 if mac_hash is None else {"sha1": 10, "sha256": 17, "sha512": 64}[mac_hash]
    key = streaming_key(
        3,
        segment_size=203,
        mac_hash=mac_hash,
        size=size,
        hkdf_hash=hkdf_hash,
        tag_size=tag_size,
        value=bytes(range(40)),
    )
    keyset = Keyset((key,), 3)
    for length in sizes_of(keyset):
        plain = paint(length)
        assert open_with_tink(keyset.to_json(), seal(keyset, plain)) == plain
        assert unseal(keyset, seal_with_tink(keyset.to_json(), plain)) == plain


@every_template
def test_keysets_agree_field_by_field(template: str) -> None:
    keyset = Keyset.generate(template)
    handle = json_proto_keyset_format.parse(keyset.to_json(), secret_key_access.TOKEN)
    written = json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN)
    assert json.loads(written) == json.loads(keyset.to_json())
    assert Keyset.from_json(written) == keyset


def test_the_reader_and_writer_of_cleartext_keysets() -> None:
    keyset = Keyset.generate("AES128_CTR_HMAC_SHA256_4KB")
    handle = cleartext_keyset_handle.read(tink.JsonKeysetReader(keyset.to_json()))
    out = io.StringIO()
    cleartext_keyset_handle.write(tink.JsonKeysetWriter(out), handle)
    assert Keyset.from_json(out.getvalue()) == keyset


def test_rotated_keysets_read_old_files_on_both_sides() -> None:
    keyset = Keyset.generate("AES128_GCM_HKDF_4KB")
    for template in ("AES256_CTR_HMAC_SHA256_1MB", "AES256_GCM_HKDF_4KB", "AES128_GCM_HKDF_1MB"):
        former = keyset
        keyset = keyset.rotated(template)
        text = keyset.to_json()
        for plain in (b"", paint(10_000)):
            assert open_with_tink(text, seal(former, plain)) == plain
            assert unseal(keyset, seal_with_tink(former.to_json(), plain)) == plain
            assert open_with_tink(text, seal(keyset, plain)) == plain
            assert unseal(former.rotated(template), seal(former, plain)) == plain


def test_keysets_that_were_changed_by_hand() -> None:
    keyset = Keyset.generate("AES256_CTR_HMAC_SHA256_4KB").rotated()
    old, fresh = (key.key_id for key in keyset.keys)
    sealed = seal(keyset, b"text")
    keyset = keyset.promoted(old).with_status(fresh, "DISABLED")
    assert open_with_tink(keyset.to_json(), seal(keyset, b"text")) == b"text"
    for changed in (keyset, keyset.without(fresh)):
        with pytest.raises(tink.TinkError):
            open_with_tink(changed.to_json(), sealed)
    assert open_with_tink(keyset.with_status(fresh, "ENABLED").to_json(), sealed) == b"text"


def test_tink_refuses_what_is_refused_here() -> None:
    keyset = Keyset.generate("AES128_GCM_HKDF_4KB")
    sealed = seal(keyset, paint(9000))
    for damaged in (sealed[:4096], sealed[:-1], sealed + b"x", sealed[:4096] + sealed[8192:]):
        with pytest.raises(tink.TinkError):
            open_with_tink(keyset.to_json(), damaged)


@every_template
def test_binary_keysets(template: str, tmp_path: Path) -> None:
    handle = tink.new_keyset_handle(getattr(streaming_aead.streaming_aead_key_templates, template))
    data = proto_keyset_format.serialize(handle, secret_key_access.TOKEN)
    keyset = Keyset.from_binary(data)
    text = json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN)
    assert keyset == Keyset.from_json(text) == Keyset.from_json(keys.decode(data, "a test"))
    assert open_with_tink(text, seal(data, b"text")) == b"text"
    for size in range(len(data)):
        with pytest.raises(FormatError, match="keyset"):
            Keyset.from_binary(data[:size])
    path = tmp_path / "keyset"
    path.write_bytes(data)
    (tmp_path / "sealed").write_bytes(seal_with_tink(text, b"text"))
    formats.decrypt_file(
        tmp_path / "sealed", tmp_path / "plain", keys.from_file(path), options=OPTIONS
    )
    assert (tmp_path / "plain").read_bytes() == b"text"
    assert str(keyset.primary_key_id).encode() in run("keyset", path, cwd=tmp_path).stdout
    refused = run("keyset", "--rotate", path, cwd=tmp_path, expect=2)
    assert b"is binary, and JSON is written: give -o" in refused.stderr

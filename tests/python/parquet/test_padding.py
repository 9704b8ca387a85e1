# SPDX-License-Identifier: Apache-2.0
"""Modules in which something follows the struct, as parquet-java writes them: it is ignored, and is
in no plain image."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_support import run
from parquet_cases import CTR, KEY, KEYS, bloomed, read_by_pyarrow, read_plain, table, write
from test_device import cupy as cupy
from warpcipher import parquet
from warpcipher.formats import FormatError
from warpcipher.parquet import crypto, encrypting, footer, sealing
from warpcipher.parquet import metadata as md

aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")

PADDING = {"zeros": bytes(60), "junk": b"\x15\x02\x19" * 9, "one zero": b"\0"}
KINDS = [
    crypto.Kind.FOOTER,
    crypto.Kind.COLUMN_METADATA,
    crypto.Kind.DATA_PAGE_HEADER,
    crypto.Kind.DICTIONARY_PAGE_HEADER,
    crypto.Kind.COLUMN_INDEX,
    crypto.Kind.OFFSET_INDEX,
    crypto.Kind.BLOOM_FILTER_HEADER,
]
KEYS_OF_COLUMNS = {b"": KEY, "s": KEYS[32]}
Pad = Callable[..., bytes]


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch) -> Pad:
    """Encrypts a plain file with padding (None: cut short) in the modules of these kinds. Those
    outside of chunks are encrypted by pyca/cryptography."""

    def encrypt(plain: bytes, kinds: list[int], padding: bytes | None, **options: Any) -> bytes:
        seal_header = sealing.seal_header

        def pad(text: bytes) -> bytes:
            return text[:-1] if padding is None else text + padding

        def seal(texts: Any, file_crypto: crypto.FileCrypto, _: str) -> list[bytes]:
            found = []
            for text, key, place in texts:
                nonce = os.urandom(crypto.NONCE)
                whole = pad(text) if place.kind in kinds else text
                box = aead.AESGCM(key)
                sealed = nonce + box.encrypt(nonce, whole, file_crypto.module_aad(place))
                found.append(len(sealed).to_bytes(crypto.LENGTH, "little") + sealed)
            return found

        def pad_header(header: bytes, what: str, overhead: int) -> tuple[bytes, int, int, int]:
            text, page, *sizes = seal_header(header, what, overhead)
            is_dictionary = page == md.DICTIONARY_PAGE
            kind = (
                crypto.Kind.DICTIONARY_PAGE_HEADER
                if is_dictionary
                else crypto.Kind.DATA_PAGE_HEADER
            )
            return pad(text) if kind in kinds else text, page, *sizes

        sink = io.BytesIO()
        with monkeypatch.context() as patch:
            for module in (encrypting, footer):
                patch.setattr(module, "seal_modules", seal)
            patch.setattr(sealing, "seal_header", pad_header)
            config = parquet.EncryptionConfig(KEY, column_keys={"s": KEYS[32]}, **options)
            parquet.encrypt(plain, sink, config)
        return sink.getvalue()

    return encrypt


@functools.cache
def plain_file(blooms: bool) -> bytes:
    """With indexes or Bloom filters, dictionaries, and several pages and row groups."""
    return bloomed() if blooms else write(table(250), None, write_page_index=True)


@functools.cache
def without_padding(blooms: bool) -> bytes:
    sink = io.BytesIO()
    config = parquet.EncryptionConfig(KEY, column_keys={"s": KEYS[32]})
    parquet.encrypt(plain_file(blooms), sink, config)
    return sink.getvalue()


def plain_of(source: Any, keys: Any) -> bytes:
    """The plain file, the same by both ways."""
    sink = io.BytesIO()
    parquet.to_plain(source, keys, sink)
    whole = parquet.to_plain(source, keys)
    assert sink.getvalue() == whole
    return sink.getvalue()


def rekeyed(source: Any, keys: Any) -> bytes:
    sink = io.BytesIO()
    parquet.rekey(source, sink, keys, parquet.EncryptionConfig(KEYS[24], algorithm=CTR))
    return sink.getvalue()


def all_chunks(source: Any, keys: Any, device: int | None = None) -> Any:
    found = parquet.column_chunks(source, keys, device=device)
    return found.footer, [(chunk.offset, bytes(chunk.data)) for chunk in found.chunks]


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_follows_a_struct_is_ignored(
    padded: Pad, cupy: object, kind: int, padding: str, tmp_path: Path
) -> None:
    """Every way through the file gives what the file without padding gives."""
    blooms = kind == crypto.Kind.BLOOM_FILTER_HEADER
    plain, like = plain_file(blooms), without_padding(blooms)
    data = padded(plain, [kind], PADDING[padding])
    assert len(data) > len(like)
    path = tmp_path / "padded.parquet"
    path.write_bytes(data)
    expected = read_plain(plain)
    assert parquet.read_table(data, KEYS_OF_COLUMNS).equals(expected)
    assert parquet.read_table(path, KEYS_OF_COLUMNS, ["s"]).equals(expected.select(["s"]))
    assert plain_of(path, KEYS_OF_COLUMNS) == plain_of(like, KEYS_OF_COLUMNS)
    chunks = all_chunks(like, KEYS_OF_COLUMNS)
    for source in (path, data):
        for device in (None, 0):
            assert all_chunks(source, KEYS_OF_COLUMNS, device) == chunks
    again = rekeyed(path, KEYS_OF_COLUMNS)
    assert plain_of(again, KEYS[24]) == plain_of(rekeyed(like, KEYS_OF_COLUMNS), KEYS[24])
    assert read_by_pyarrow(again, KEYS[24]).equals(expected)


@pytest.mark.parametrize(
    "options", [{"algorithm": CTR}, {"plaintext_footer": True}, {"columns": ["a"]}]
)
def test_padding_everywhere(
    padded: Pad, cupy: object, options: dict[str, Any], tmp_path: Path
) -> None:
    """In longer columns, which are decrypted by several threads and read by one."""
    content = table(30_000)
    plain = write(
        content, None, data_page_size=20_000, row_group_size=20_000, write_page_index=True
    )
    path = tmp_path / "padded.parquet"
    path.write_bytes(padded(plain, KINDS, bytes(75), **options))
    assert parquet.read_table(path, KEYS_OF_COLUMNS).equals(content)
    assert read_plain(plain_of(path, KEYS_OF_COLUMNS)).equals(content)
    assert all_chunks(path, KEYS_OF_COLUMNS, 0) == all_chunks(path, KEYS_OF_COLUMNS)


def test_a_struct_that_the_module_cuts_short_is_refused(padded: Pad) -> None:
    for kind in KINDS[:-1]:
        data = padded(plain_file(False), [kind], None)
        with pytest.raises(FormatError, match=r"cut short|are left"):
            parquet.to_plain(data, KEYS_OF_COLUMNS)


def test_the_command(padded: Pad, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "own").write_bytes(KEYS[32])
    for name in ("key", "own"):
        (tmp_path / name).chmod(0o600)
    (tmp_path / "padded").write_bytes(padded(plain_file(False), KINDS, bytes(50)))
    keys = ("--key", "key", "--column-key", "s=own")
    run("parquet", "decrypt", *keys, "-o", "plain", "padded", cwd=tmp_path)
    assert (tmp_path / "plain").read_bytes() == plain_of(without_padding(False), KEYS_OF_COLUMNS)
    command = ("parquet", "rekey", *keys, "--new-key", "own", "--new-column-key", "s=key")
    run(*command, "-o", "again", "padded", cwd=tmp_path)
    found = parquet.read_table(tmp_path / "again", {b"": KEYS[32], "s": KEY})
    assert found.equals(table(250))

# SPDX-License-Identifier: Apache-2.0
"""The age file format, version 1 (age-encryption.org/v1, c2sp.org/age).

    +--------+----------+-----------------+-----+---------------------+
    | header | nonce 16 | chunk 0: 65552  | ... | final: 17 to 65552  |
    +--------+----------+-----------------+-----+---------------------+

The header (header.py) has the file key, wrapped for each recipient (keys.py). The rest is the
STREAM construction over ChaCha20-Poly1305:

    payload key = HKDF-SHA-256(ikm = file key, salt = nonce, info = "payload")
    chunk i     = 65536 bytes of text, nonce = i (11, big-endian) || final (1: 00, 01)

The final chunk is empty only where the plaintext is.
"""

from __future__ import annotations

import datetime
import io
import os
import re
from collections.abc import Callable
from typing import Any

import warpcipher as wc

from .. import curve25519
from ..base import Buffer, Candidate, Decryptor, Encryptor, Format, NewKey, Options, several_keys
from ..chunks import ChunkDecryptor, ChunkEncryptor, sealing
from ..layout import FormatError, Layout
from ..whole import Parts, Reader, TextWriter, Writer
from . import armor, header, hybrid, key_files, ssh
from .hybrid import HybridIdentity, HybridRecipient
from .keys import FILE_KEY_SIZE, Identity, Passphrase, Recipient, unwrap
from .ssh import SshIdentity, SshRecipient

CHUNK_SIZE = 64 << 10
NONCE_SIZE = 16
MAX_CHUNKS = 1 << 47
"""So that 64 bits hold every place in the file; the format has more."""

_TEXT = re.compile(r"age1[0-9a-z]|ssh-(?:ed25519|rsa) ")
"""How a recipient begins."""
_KEY_TEXT = re.compile(
    rb"(?:\s|#[^\n]*\n)*"
    rb"(?:age1[0-9a-z]{58}|AGE-(?:SECRET-KEY|PLUGIN)-|ssh-(?:ed25519|rsa) AAAA)"
)
"""How a file of keys begins: longer than a random key may by chance."""


def _layout(header_size: int) -> Layout:
    """header_size: of the header without the payload's nonce."""
    return Layout(
        header_size=header_size + NONCE_SIZE,
        chunk=CHUNK_SIZE,
        overhead=curve25519.TAG_SIZE,
        first_chunk=CHUNK_SIZE,
        final_short=False,
        max_chunks=MAX_CHUNKS,
    )


def _sealing(chunks: Layout, file_key: bytes, nonce: bytes, engine: str) -> wc._native.Sealing:
    key = bytearray(wc._native.hkdf("sha256", file_key, nonce, b"payload", curve25519.KEY_SIZE))
    base = bytes(curve25519.NONCE_SIZE)
    return sealing(
        chunks, curve25519.ALGORITHM, key, engine, nonce=base, counter_shift=8, final_shift=0
    )


def _parsed(key: object) -> list[Any]:
    takes = "a recipient, an identity or a Passphrase of formats.age"
    return several_keys(key, _known, "format age", takes)


def _known(key: object) -> list[Any] | None:
    """Keys of age, or their text. None: something else. ValueError."""
    if isinstance(key, key_files.KEYS):
        return [key]
    if isinstance(key, str):
        if "\n" not in key.strip() and _TEXT.match(key):
            return list(key_files.recipients(key))
        return list(key_files.identities(key))
    if isinstance(key, (bytes, bytearray, memoryview)):
        return list(key_files.identities(bytes(key)))
    return None


def _opened(data: bytes, key: object) -> tuple[header.Header, bytes]:
    """The header that a file begins with, authentic, and its file key."""
    identities = _parsed(key)
    if any(isinstance(one, (Recipient, HybridRecipient, SshRecipient)) for one in identities):
        raise ValueError(
            "format age decrypts with an identity or a passphrase, not with a recipient"
        )
    parsed = header.parse(data)
    file_key = unwrap(parsed.stanzas, identities)
    parsed.check(file_key)
    return parsed, file_key


def _wrapped(
    file_key: bytes, key: object, kept: tuple[header.Stanza, ...] = ()
) -> tuple[header.Stanza, ...]:
    """The stanzas of a header for these recipients. kept: those that it has."""
    recipients = _parsed(key)
    several = len(recipients) + len(kept) > 1
    if any(one.type == "scrypt" for one in kept) or (
        several and any(isinstance(one, Passphrase) for one in recipients)
    ):
        raise ValueError("format age takes a passphrase only without other recipients")
    stanzas = (*kept, *(one.wrap(file_key) for one in recipients))
    if len({one.type == hybrid.TYPE for one in stanzas}) > 1:
        raise ValueError(
            "a post-quantum recipient stands beside one that is not: who breaks that one reads "
            "the file, so age does not take them together"
        )
    return stanzas


class Age(Format):
    """`age`; the key is a recipient, an identity or a passphrase, or several of them."""

    name = "age"
    description = (
        "age, ChaCha20-Poly1305 in chunks of 64 KiB, for X25519, post-quantum and SSH keys, or a "
        "passphrase"
    )
    found_by_key = True
    extension = ".age"
    authenticated = True
    binds_chunks = True
    magic = header.MAGIC
    takes = ("armor",)
    unwrap_size = armor.MOST_SPACE + len(armor.BEGIN) + len(armor.MARK)
    takes_identity = True
    takes_passphrase = True
    pq_template = hybrid.TYPE

    def name_of_key(self, algorithm: str | None) -> str:
        return "identities of age"

    def key_needed(self) -> str:
        return "an identity of a recipient, or the passphrase"

    def asks_passphrase(self, head: bytes) -> bool:
        return any(stanza.type == "scrypt" for stanza in header.stanzas(head))

    def of_passphrase(self, passphrase: bytes) -> Passphrase:
        return Passphrase(passphrase)

    def opening(self, key: object) -> object:
        # A recipient encrypts, and opens nothing.
        return [one for one in _parsed(key) if hasattr(one, "unwrap")]

    def public_keys(self, data: bytes | str) -> list[key_files.Recipient]:
        return list(key_files.recipients(data))

    def secret_keys(self, data: bytes, passphrase: Callable[[], bytes]) -> list[key_files.Identity]:
        return key_files.identities(data, passphrase() if key_files.is_encrypted(data) else None)

    def public_text(self, secret: Identity | HybridIdentity | SshIdentity) -> str:
        return str(secret.recipient)

    def opened_by(self, head: bytes) -> str:
        if self.asks_passphrase(head):
            return "its passphrase, with --passphrase"
        if stanzas := header.stanzas(head):
            return f"an identity, with -i FILE: it is for {header.recipients_text(stanzas)}"
        return "an identity, with -i FILE, or --passphrase"

    def make_key(self, template: str, passphrase: bytes | None) -> NewKey:
        """As age-keygen writes it; a passphrase makes it a file of age itself."""
        identity = (HybridIdentity if template == hybrid.TYPE else Identity).generate()
        recipient = str(identity.recipient)
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        text = f"# created: {now.isoformat()}\n# public key: {recipient}\n{identity.to_text()}\n"
        if passphrase is None:
            return NewKey(text.encode(), recipient)
        key, sealed = Passphrase(passphrase), io.BytesIO()
        options = Options(armor=True)
        text_file = io.BytesIO(text.encode())
        wc.formats.encrypt_stream(text_file, sealed, key, format=self.name, options=options)
        return NewKey(sealed.getvalue(), recipient)

    def knows(self, key: object) -> bool:
        if isinstance(key, (str, bytes, bytearray)):
            text = key.encode() if isinstance(key, str) else bytes(key)
            return bool(_KEY_TEXT.match(text)) or ssh.is_secret_key(text)
        if isinstance(key, (list, tuple)):
            return bool(key) and all(self.knows(one) for one in key)
        return isinstance(key, key_files.KEYS)

    def encryptor(self, key: object, options: Options) -> Encryptor:
        options.check(self)
        file_key = os.urandom(FILE_KEY_SIZE)
        head = header.build(file_key, _wrapped(file_key, key))
        chunks, nonce = _layout(len(head)), os.urandom(NONCE_SIZE)
        how = _sealing(chunks, file_key, nonce, options.engine)
        return ChunkEncryptor(chunks, head + nonce, how)

    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        if armor.is_armor(prefix):
            return Candidate(self.name, f"it begins with {armor.BEGIN.decode()}")
        if not self.begins(prefix):
            return None
        reason = f"it begins with {header.MAGIC.decode().strip()}"
        try:
            parsed = header.parse(prefix)
            reason = f"{reason}, and is for {header.recipients_text(parsed.stanzas)}"
            return self.candidate(_layout(parsed.size), size, reason)
        except FormatError as error:
            return Candidate(self.name, f"{reason}; {error}")

    def begins(self, prefix: bytes) -> bool:
        return prefix.startswith(header.ANY_VERSION) or armor.is_armor(prefix)

    def probe_size(self, key: object, options: Options, prefix: Buffer = b"") -> int:
        size = header.wanted(bytes(prefix))
        return size if size >= header.LONGEST else size + NONCE_SIZE

    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        options.check(self)
        data = bytes(prefix)
        parsed, file_key = _opened(data, key)
        nonce = data[parsed.size : parsed.size + NONCE_SIZE]
        if len(nonce) < NONCE_SIZE:
            raise FormatError("truncated: the file ends in the nonce after its header")
        chunks = _layout(parsed.size)
        return ChunkDecryptor(chunks, _sealing(chunks, file_key, nonce, options.engine))

    def rewrapped(
        self, key: object, new_key: object, prefix: Buffer, options: Options, *, keep: bool
    ) -> tuple[int, bytes]:
        options.check(self)
        parsed, file_key = _opened(bytes(prefix), key)
        stanzas = _wrapped(file_key, new_key, parsed.stanzas if keep else ())
        return parsed.size, header.build(file_key, stanzas)

    def unwrapped(self, prefix: bytes, reader: Reader) -> Reader | None:
        return Parts(armor.decoded(reader)) if armor.is_armor(prefix) else None

    def wrapped(self, writer: Writer, options: Options) -> TextWriter | None:
        return armor.armored(writer) if options.armor else None


FORMATS = (Age(),)

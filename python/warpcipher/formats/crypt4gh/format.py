# SPDX-License-Identifier: Apache-2.0
"""Crypt4GH, version 1 (GA4GH): the format of genomic archives.

    +--------+---------------------------------+-----+-----------------------+
    | header | nonce 12 | text 65536 | tag 16  | ... | final: 1 to 65536 text |
    +--------+---------------------------------+-----+-----------------------+

The header (header.py) has the data key, for each reader; of files that others wrote also several
of them, and which bytes of the text are the content. A segment is ChaCha20-Poly1305 under it
and a random nonce, without associated data: nothing binds it to its place, and nothing marks the
final one. An empty file has no segment.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ..._errors import counted
from .. import curve25519
from ..age import SshIdentity, SshRecipient, ssh
from ..base import Buffer, Candidate, Decryptor, Encryptor, Format, NewKey, Options, several_keys
from ..chunks import NONCE_SIZE, TAG_SIZE, ChunkDecryptor, ChunkEncryptor, sealing
from ..layout import FormatError, Layout
from . import header, keys
from .keys import PublicKey, SecretKey

SEGMENT_SIZE = 64 << 10


def layout(header_size: int) -> Layout:
    """Where the segments lie."""
    return Layout(
        header_size=header_size,
        chunk=SEGMENT_SIZE,
        overhead=NONCE_SIZE + TAG_SIZE,
        first_chunk=SEGMENT_SIZE,
        final_short=False,
        max_chunks=1 << 47,
        has_empty=False,
        empty_final=True,
    )


def _parsed(key: object) -> list[PublicKey | SecretKey]:
    takes = "a crypt4gh.PublicKey or crypt4gh.SecretKey"
    return several_keys(key, _known, "format crypt4gh", takes)


def _known(key: object) -> list[PublicKey | SecretKey] | None:
    """A key of Crypt4GH or ssh-ed25519, or the text of one. None: something else. ValueError."""
    if isinstance(key, (PublicKey, SecretKey)):
        return [key]
    if isinstance(key, SshRecipient):
        return [PublicKey.of_ssh(key)]
    if isinstance(key, SshIdentity):
        return [SecretKey.of_ssh(key)]
    if isinstance(key, (str, bytes, bytearray, memoryview)):
        data = key.encode() if isinstance(key, str) else bytes(key)
        is_secret = keys.is_secret_key(data) or ssh.is_secret_key(data)
        kind = SecretKey if is_secret else PublicKey
        return [kind.parse(data)]
    return None


def _readers(key: object) -> list[PublicKey]:
    return [one.public_key if isinstance(one, SecretKey) else one for one in _parsed(key)]


def _opened(prefix: Buffer, secrets: list[SecretKey]) -> tuple[header.Header, header.Content]:
    """The header that a file begins with, and what it says to these keys."""
    if not secrets:
        raise ValueError("format crypt4gh decrypts with a secret key, not with a public one")
    parsed = header.Header.parse(bytes(prefix))
    return parsed, header.content(parsed, secrets)


class Crypt4gh(Format):
    """`crypt4gh`; the key is a PublicKey or SecretKey, or several of them."""

    name = "crypt4gh"
    description = "Crypt4GH, ChaCha20-Poly1305 in segments of 64 KiB, for X25519 keys"
    found_by_key = True
    extension = ".c4gh"
    authenticated = True
    binds_chunks = False
    binds_order = False
    takes = ()
    magic = header.MAGIC
    takes_identity = True
    takes_passphrase = True
    public_suffix = ".pub"

    def name_of_key(self, algorithm: str | None) -> str:
        return "a secret key of Crypt4GH"

    def key_needed(self) -> str:
        return "the secret key of a reader"

    def opened_by(self, head: bytes) -> str:
        return "the reader's secret key, with -i FILE"

    def make_key(self, template: str, passphrase: bytes | None) -> NewKey:
        secret = SecretKey.generate()
        text, public = secret.to_text(passphrase), secret.public_key.to_text()
        return NewKey(text.encode(), public_file=public.encode())

    def public_keys(self, data: bytes | str) -> list[PublicKey]:
        return [PublicKey.parse(data)]

    def secret_keys(self, data: bytes, passphrase: Callable[[], bytes]) -> list[SecretKey]:
        return [SecretKey.parse(data, passphrase() if keys.is_encrypted(data) else None)]

    def public_text(self, secret: SecretKey) -> str:
        return secret.public_key.to_text()

    def opening(self, key: object) -> list[SecretKey]:
        return [one for one in _parsed(key) if isinstance(one, SecretKey)]

    def knows(self, key: object) -> bool:
        if isinstance(key, (str, bytes, bytearray)):
            return keys.is_key(key.encode() if isinstance(key, str) else bytes(key))
        if isinstance(key, (list, tuple)):
            return bool(key) and all(self.knows(one) for one in key)
        return isinstance(key, (PublicKey, SecretKey, SshRecipient, SshIdentity))

    def encryptor(self, key: object, options: Options) -> Encryptor:
        options.check(self)
        secret = bytearray(os.urandom(header.DATA_KEY_SIZE))
        head = header.build([header.text_of(bytes(secret))], _readers(key))
        segments = layout(len(head))
        how = sealing(segments, curve25519.ALGORITHM, secret, options.engine)
        return ChunkEncryptor(segments, head, how)

    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        if not self.begins(prefix):
            return None
        reason = f"it begins with {header.MAGIC.decode()}"
        try:
            parsed = header.Header.parse(prefix)
            more = f"{reason}, and has {counted(len(parsed.packets), 'packet')} for readers"
            return self.candidate(layout(parsed.size), size, more)
        except FormatError as error:
            return Candidate(self.name, f"{reason}; {error}")

    def probe_size(self, key: object, options: Options, prefix: Buffer = b"") -> int:
        return header.wanted(bytes(prefix))

    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        options.check(self)
        parsed, found = _opened(prefix, self.opening(key))
        secret_keys = list(map(bytearray, found.data_keys))
        segments = layout(parsed.size)
        how = sealing(segments, curve25519.ALGORITHM, secret_keys, options.engine)
        decryptor = ChunkDecryptor(segments, how, has_several_keys=len(secret_keys) > 1)
        decryptor.edits = found.edits
        return decryptor

    def rewrapped(
        self, key: object, new_key: object, prefix: Buffer, options: Options, *, keep: bool
    ) -> tuple[int, bytes]:
        options.check(self)
        secrets = self.opening(key)
        parsed, found = _opened(prefix, secrets)
        have = {one.public_key for one in secrets} if keep else set()
        readers = [one for one in _readers(new_key) if one not in have]
        return parsed.size, header.build(found.texts, readers, parsed.packets if keep else ())


FORMATS = (Crypt4gh(),)

# SPDX-License-Identifier: Apache-2.0
"""C2SP chunked encryption, c2sp.org/chunked-encryption@v1: Cobblestone-128 and Cobblestone-256.

    key || base nonce || commitment = HKDF-Expand-SHA-512(input key,
        "c2sp.org/chunked-encryption@v1+" || "AEAD_AES_128_GCM" || 0x00 || salt || context)

    +---------+----------------+-----------------+-----+--------------------+
    | salt 24 | commitment 32  | chunk 0: 16400  | ... | final: 16 to 16399 |
    +---------+----------------+-----------------+-----+--------------------+

A chunk is AES-GCM of 16384 plaintext bytes under `key`, nonce = base nonce XOR chunk number
(big-endian), no AAD. The final chunk is shorter and may be empty: that marks the end. There is no
magic number: the salt comes first.
"""

from __future__ import annotations

import hmac
import os

import warpcipher as wc

from .._not_at_fork import NOT_AT_FORK
from .base import Buffer, Candidate, Decryptor, Encryptor, Format, Options, key_bytes, wipe
from .chunks import NONCE_SIZE, TAG_SIZE, ChunkDecryptor, ChunkEncryptor, aes, sealing
from .layout import FormatError, Layout

SALT_SIZE = 24
COMMITMENT_SIZE = 32
HEADER_SIZE = SALT_SIZE + COMMITMENT_SIZE
CHUNK_SIZE = 16 << 10
MAX_CHUNKS = 1 << 38
HASH = "sha512"
INFO_PREFIX = b"c2sp.org/chunked-encryption@v1+"

LAYOUT = Layout(
    header_size=HEADER_SIZE,
    chunk=CHUNK_SIZE,
    overhead=TAG_SIZE,
    first_chunk=CHUNK_SIZE,
    final_short=True,
    max_chunks=MAX_CHUNKS,
)


def hkdf_expand(prk: bytearray, info: bytes, length: int) -> bytearray:
    """Only HKDF-Expand of RFC 5869, section 2.3: the specification has no extract step."""
    okm = bytearray()
    block = b""
    counter = 0
    while len(okm) < length:
        counter += 1
        # It works without the interpreter's lock, and takes libcrypto's own.
        with NOT_AT_FORK:
            block = hmac.digest(prk, block + info + bytes([counter]), HASH)
        okm += block
    wipe(memoryview(okm)[length:])
    return okm[:length]


def _keys_of_file(
    input_key: bytearray, salt: bytes, context: bytes
) -> tuple[bytearray, bytes, bytes]:
    """Key, base nonce and commitment of one file, from the input key, which is wiped."""
    size = len(input_key)
    aead = b"AEAD_AES_%d_GCM" % (8 * size)
    info = INFO_PREFIX + aead + b"\0" + salt + context
    okm = hkdf_expand(input_key, info, size + NONCE_SIZE + COMMITMENT_SIZE)
    wipe(input_key)
    end = size + NONCE_SIZE
    found = okm[:size], bytes(okm[size:end]), bytes(okm[end:])
    wipe(okm)
    return found


class Cobblestone(Format):
    """`cobblestone-128` or `cobblestone-256`; the key is 16 or 32 uniformly random bytes."""

    authenticated = True
    binds_chunks = True
    extension = ".cobblestone"
    found_by_key = True

    def __init__(self, bits: int) -> None:
        self.name = f"cobblestone-{bits}"
        self.key_sizes = (bits // 8,)
        self.description = f"C2SP chunked encryption, AES-{bits}-GCM in chunks of 16 KiB"

    def _key(self, key: object, options: Options) -> bytearray:
        options.check(self)
        return key_bytes(key, self.key_sizes, self.name)

    def encryptor(self, key: object, options: Options) -> Encryptor:
        salt, secret = os.urandom(SALT_SIZE), self._key(key, options)
        file_key, nonce, commitment = _keys_of_file(secret, salt, options.context)
        how = sealing(LAYOUT, aes("gcm", file_key), file_key, options.engine, nonce=nonce)
        return ChunkEncryptor(LAYOUT, salt + commitment, how)

    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        try:
            return self.candidate(LAYOUT, size, "the size fits; this format has no magic number")
        except FormatError:
            return None

    def probe_size(self, key: object, options: Options, prefix: Buffer = b"") -> int:
        wipe(self._key(key, options))
        return HEADER_SIZE

    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        if len(prefix) < HEADER_SIZE:
            raise FormatError(f"truncated: {len(prefix)} bytes, and the header has {HEADER_SIZE}")
        secret, header = self._key(key, options), bytes(prefix[:HEADER_SIZE])
        file_key, nonce, commitment = _keys_of_file(secret, header[:SALT_SIZE], options.context)
        if not hmac.compare_digest(commitment, header[SALT_SIZE:]):
            wipe(file_key)
            raise wc.InvalidTag(
                f"wrong key or context, not a {self.name} file, a damaged header, or a file of a "
                "tree under another name than there: the header's key commitment does not match"
            )
        how = sealing(LAYOUT, aes("gcm", file_key), file_key, options.engine, nonce=nonce)
        return ChunkDecryptor(LAYOUT, how)


FORMATS = (Cobblestone(128), Cobblestone(256))

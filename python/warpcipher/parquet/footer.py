# SPDX-License-Identifier: Apache-2.0
"""The end of a file: found, decrypted or verified, and decoded (Encryption.md 5.4, 5.5).

PAR1 ... FileMetaData | length | PAR1                            not encrypted
PAR1 ... FileMetaData | nonce 12 | tag 16 | length | PAR1        encrypted columns, signed footer
PARE ... FileCryptoMetaData | footer module | length | PARE      encrypted footer
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from functools import cached_property

import warpcipher as wc

from ..arguments import require_bytes
from ..formats import FormatError
from . import crypto as modules
from . import metadata as md
from .crypto import FileCrypto, Kind, Place, not_authentic, open_modules, seal_modules
from .keyring import KeyRing, Keys, MissingKeyError, NoKeysError
from .storage import Source
from .thrift import BINARY, FALSE, STRUCT, TRUE, Struct, read, read_whole, write

PLAIN_MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
SIGNATURE = modules.NONCE + modules.TAG
_GUESS = 64 << 10


@dataclass(frozen=True)
class Footer:
    """A decoded footer.

    text:         FileMetaData, as it was written, without padding behind it.
    outline:      the same without what is in the row groups.
    encrypted:    the footer is; False: it is plain, and signed if `crypto` is given.
    crypto:       None where the file is not encrypted.
    key:          the footer's key; None without `crypto`, or where it was not needed.
    key_metadata: the file's text about that key.
    prefix:       the AAD prefix; b"": none.
    stored:       whether the prefix lies in the file.
    """

    text: bytes
    outline: Struct
    encrypted: bool
    crypto: FileCrypto | None
    key: bytes | None
    key_metadata: bytes
    prefix: bytes
    stored: bool

    @cached_property
    def fields(self) -> Struct:
        """All of it, row groups and chunks included: made when it is first asked for."""
        return read_whole(self.text, md.FOOTER_SHAPE, "the footer")

    def check_prefix(self) -> None:
        """Raises FormatError where a byte of the prefix may have been moved to what follows it, or
        from there: who relies on the prefix must ask."""
        if self.crypto is not None:
            _check_boundary(self.prefix, len(self.crypto.aad) - len(self.prefix))


def tail(source: Source) -> tuple[bytes, bytes]:
    """The magic of a file and what lies between its columns and its length."""
    size = source.size
    if size < 12:
        raise FormatError(f"{size} bytes are too few for a Parquet file")
    start = max(0, size - _GUESS)
    end = bytes(source.read(start, size - start))
    magic = end[-4:]
    first = bytes(source.read(0, 4))
    known = first in (PLAIN_MAGIC, ENCRYPTED_MAGIC)
    if not known or first != magic:
        what = "a Parquet file that was cut short" if known else "not a Parquet file"
        raise FormatError(f"{what}: it begins with {first!r} and ends with {magic!r}")
    length = int.from_bytes(end[-8:-4], "little")
    if length > size - 12:
        raise FormatError(f"a footer of {length} bytes does not fit a file of {size}: cut short?")
    if length + 8 <= len(end):
        return magic, end[-8 - length : -8]
    return magic, bytes(source.read(size - 8 - length, length))


def read_footer(
    source: Source, keys: Keys | None, aad_prefix: bytes | None, *, check_footer: bool, engine: str
) -> tuple[Footer, KeyRing | None]:
    """The footer of a file, authentic, and the finder of its keys.

    Raises FormatError, InvalidTag, MissingKeyError, ValueError.
    """
    if aad_prefix is not None:
        aad_prefix = require_bytes("aad_prefix", aad_prefix)
    magic, data = tail(source)
    if magic == ENCRYPTED_MAGIC:
        if keys is None:
            raise NoKeysError("the footer is encrypted: give keys")
        ring = KeyRing(keys, source.place)
        return _read_encrypted(data, ring, aad_prefix, engine), ring
    fields, end = read(data, md.OUTLINE_SHAPE, "the footer")
    algorithm = md.substruct(fields, md.ENCRYPTION_ALGORITHM)
    if algorithm is None:
        if keys is not None or aad_prefix:
            raise ValueError(
                "the file is not encrypted, and keys or an AAD prefix were given: an attacker may "
                "have exchanged it; read it without them if it is meant to be plain"
            )
        if end != len(data):
            raise FormatError(f"the footer: {len(data) - end} bytes follow its end")
        return Footer(data, fields, False, None, None, b"", b"", True), None
    if len(data) - end != SIGNATURE:
        raise FormatError(
            f"the footer is followed by {len(data) - end} bytes: expected its signature of "
            f"{SIGNATURE}"
        )
    if keys is None:
        raise NoKeysError("columns of the file are encrypted: give keys")
    ring = KeyRing(keys, source.place)
    crypto, prefix, stored = _algorithm(algorithm, aad_prefix)
    metadata = md.binary(fields, md.FOOTER_KEY_METADATA, "the footer's key metadata") or b""
    key = None
    if check_footer:
        try:
            key = ring.find(metadata)
        except MissingKeyError as error:
            raise MissingKeyError(
                f"{error}; with open(..., check_footer=False) what is plain, and columns whose "
                "keys are there, can be read without verifying the footer's signature"
            ) from None
        verify(data[:end], data[end:], key, crypto)
    return Footer(data[:end], fields, False, crypto, key, metadata, prefix, stored), ring


def _read_encrypted(data: bytes, ring: KeyRing, aad_prefix: bytes | None, engine: str) -> Footer:
    outer, end = read(data, md.FILE_CRYPTO_SHAPE, "the file's crypto metadata")
    algorithm = md.substruct(outer, md.CRYPTO_ALGORITHM)
    if algorithm is None:
        raise FormatError("the file's crypto metadata names no encryption algorithm")
    if len(data) - end < modules.OVERHEAD:
        raise FormatError(f"the footer's module has {len(data) - end} bytes: cut short")
    crypto, prefix, stored = _algorithm(algorithm, aad_prefix)
    metadata = md.binary(outer, md.CRYPTO_KEY_METADATA, "the footer's key metadata") or b""
    key = ring.find(metadata)
    module = data[end:]
    length = int.from_bytes(module[: modules.LENGTH], "little") + modules.LENGTH
    try:
        (plain,) = open_modules([(module[:length], key, Place(Kind.FOOTER))], crypto, engine)
    except wc.InvalidTag:
        _refuse_without_aad(module[modules.LENGTH : length], key, crypto)
        raise
    if length != len(module):
        raise FormatError(f"the footer: {len(module) - length} bytes follow its module")
    fields, end = read(plain, md.OUTLINE_SHAPE, "the footer")
    return Footer(plain[:end], fields, True, crypto, key, metadata, prefix, stored)


def _refuse_without_aad(sealed: bytes, key: bytes, crypto: FileCrypto) -> None:
    """Raises InvalidTag where the footer is authentic, except for the AAD that it does not have."""
    if crypto.aad:
        return
    try:
        wc.aead.AESGCM(key).decrypt(sealed[: modules.NONCE], sealed[modules.NONCE :], None)
    except wc.InvalidTag:
        return
    raise wc.InvalidTag(
        "the footer: the key is right, but the file has no AADs, without which its parts could be "
        "exchanged. DuckDB writes such files, and only DuckDB reads them (duckdb issue 18524): let "
        "it copy the table to a plain file, and encrypt that one here"
    )


def describe(source: Source) -> tuple[str, str, bytes, bytes, bool]:
    """A file's description of its encryption, which needs no key: its kind, the algorithm, the
    footer's key metadata, the AAD prefix, and whether one must be given."""
    magic, data = tail(source)
    if magic == ENCRYPTED_MAGIC:
        kind = "encrypted footer"
        fields, _ = read(data, md.FILE_CRYPTO_SHAPE, "the file's crypto metadata")
        union = md.substruct(fields, md.CRYPTO_ALGORITHM) or {}
        number = md.CRYPTO_KEY_METADATA
    else:
        kind = "signed footer"
        fields, _ = read(data, md.OUTLINE_SHAPE, "the footer")
        found = md.substruct(fields, md.ENCRYPTION_ALGORITHM)
        number = md.FOOTER_KEY_METADATA
        if found is None:
            return "none", "", b"", b"", False
        union = found
    name, inner = _named_algorithm(union)
    prefix = md.binary(inner, md.AAD_PREFIX, "the AAD prefix") or b""
    metadata = md.binary(fields, number, "the footer's key metadata") or b""
    return kind, name, metadata, prefix, _needs_prefix(inner)


def _needs_prefix(fields: Struct) -> bool:
    return fields.get(md.SUPPLY_AAD_PREFIX, (0, False))[1] is True


def _named_algorithm(union: Struct) -> tuple[str, Struct]:
    if len(union) != 1 or next(iter(union)) not in (1, 2):
        raise FormatError(
            f"unknown encryption algorithm {sorted(union)}: {', '.join(modules.ALGORITHMS)}"
        )
    number = next(iter(union))
    fields = md.substruct(union, number)
    if fields is None:
        raise FormatError("the encryption algorithm is not a struct")
    return modules.ALGORITHMS[number - 1], fields


def _algorithm(union: Struct, aad_prefix: bytes | None) -> tuple[FileCrypto, bytes, bool]:
    """The algorithm that a file names, with the AAD prefix that holds: from the file, or the
    caller's."""
    name, fields = _named_algorithm(union)
    stored = md.binary(fields, md.AAD_PREFIX, "the AAD prefix")
    unique = md.binary(fields, md.AAD_FILE_UNIQUE, "the file's unique AAD") or b""
    supply = _needs_prefix(fields)
    if supply and not aad_prefix:
        raise ValueError(
            "the file was written with an AAD prefix that is not in it: give it, with aad_prefix= "
            "(--aad-prefix in the command)"
        )
    if aad_prefix and not supply and not stored:
        raise ValueError("an AAD prefix was given, and the file was written without one")
    if aad_prefix and stored and not hmac.compare_digest(stored, aad_prefix):
        raise ValueError(
            f"the file's AAD prefix is {stored!r}, given was {aad_prefix!r}: another file?"
        )
    prefix = aad_prefix or stored or b""
    if aad_prefix:
        _check_boundary(aad_prefix, len(unique))
    return FileCrypto(name, prefix + unique), prefix, not supply


def _check_boundary(prefix: bytes, unique: int) -> None:
    if prefix and unique != modules.UNIQUE:
        raise FormatError(
            f"the file's own part of its AADs has {unique} bytes after the AAD prefix {prefix!r}: "
            f"expected {modules.UNIQUE}; it may have been written with another prefix"
        )


def signature(footer: bytes, key: bytes, crypto: FileCrypto, nonce: bytes) -> bytes:
    """nonce || tag of a plaintext footer."""
    aad = crypto.module_aad(Place(Kind.FOOTER))
    return nonce + wc.aead.AESGCM(key).encrypt(nonce, footer, aad)[-modules.TAG :]


def verify(footer: bytes, given: bytes, key: bytes, crypto: FileCrypto) -> None:
    """InvalidTag where a plaintext footer is not what was signed."""
    if not hmac.compare_digest(signature(footer, key, crypto, given[: modules.NONCE]), given):
        raise not_authentic(Place(Kind.FOOTER))


def seal_footer(
    fields: Struct,
    crypto: FileCrypto,
    key: bytes,
    metadata: bytes,
    prefix: tuple[bytes, bool],
    *,
    encrypted: bool,
    engine: str = "auto",
) -> bytes:
    """The end of a file from its footer on, up to the last magic. fields: FileMetaData. metadata:
    the file's text about the footer's key. prefix: of the AADs, and whether it is stored.
    encrypted: the footer is; False: it is signed."""
    algorithm = algorithm_struct(crypto, *prefix)
    if encrypted:
        outer: Struct = {md.CRYPTO_ALGORITHM: (STRUCT, algorithm)}
        if metadata:
            outer[md.CRYPTO_KEY_METADATA] = BINARY, metadata
        (sealed,) = seal_modules([(write(fields), key, Place(Kind.FOOTER))], crypto, engine)
        found = write(outer) + sealed
    else:
        fields[md.ENCRYPTION_ALGORITHM] = STRUCT, algorithm
        if metadata:
            fields[md.FOOTER_KEY_METADATA] = BINARY, metadata
        plain = write(fields)
        found = plain + signature(plain, key, crypto, secrets.token_bytes(modules.NONCE))
    return found + len(found).to_bytes(4, "little")


def algorithm_struct(crypto: FileCrypto, prefix: bytes, stored: bool) -> Struct:
    """EncryptionAlgorithm, as a writer puts it into a file."""
    fields: Struct = {md.AAD_FILE_UNIQUE: (BINARY, crypto.aad[len(prefix) :])}
    if prefix and stored:
        fields[md.AAD_PREFIX] = BINARY, prefix
    is_supplied = bool(prefix) and not stored
    # Optional, but arrow-go (18.2) crashes without it.
    fields[md.SUPPLY_AAD_PREFIX] = TRUE if is_supplied else FALSE, is_supplied
    return {modules.ALGORITHMS.index(crypto.algorithm) + 1: (12, fields)}

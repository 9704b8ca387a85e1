# SPDX-License-Identifier: Apache-2.0
"""Files of identities and of recipients: one a line, with comments (#) and empty lines."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TypeVar

from ..whole import read_whole
from . import armor, header, keys, payload

Key = TypeVar("Key")

LONGEST = 1 << 20
"""Bytes of the largest file of keys that is read."""


def is_encrypted(data: bytes) -> bool:
    """Whether a file of identities is itself a file that age encrypted."""
    return data.startswith(header.ANY_VERSION) or armor.is_armor(data)


def identities(data: bytes | str, passphrase: str | bytes | None = None) -> list[keys.Identity]:
    """The identities in a file's content: AGE-SECRET-KEY-1... a line.

    passphrase: of a file that is encrypted with one, armored or not.
    Raises ValueError, which shows nothing of an identity, and InvalidTag for a wrong passphrase.
    """
    data = data.encode() if isinstance(data, str) else bytes(data)
    if is_encrypted(data):
        if passphrase is None:
            raise ValueError("the identities are encrypted with a passphrase: give it")
        data = _opened(data, keys.Passphrase(passphrase))
    found = [_named(keys.Identity.parse, line, place) for place, line in _lines(data, "identity")]
    if not found:
        raise ValueError("there is no identity: expected a line AGE-SECRET-KEY-1...")
    return found


def recipients(data: bytes | str) -> list[keys.Recipient]:
    """The recipients in a file's content: age1... a line. Raises ValueError."""
    data = data.encode() if isinstance(data, str) else bytes(data)
    found = [_named(keys.Recipient.parse, line, place) for place, line in _lines(data, "recipient")]
    if not found:
        raise ValueError("there is no recipient: expected a line age1...")
    return found


def _lines(data: bytes, what: str) -> Iterator[tuple[int, str]]:
    if len(data) > LONGEST:
        raise ValueError(f"more than {LONGEST} bytes: that is no file of keys")
    for place, line in enumerate(data.split(b"\n"), 1):
        text = line.strip()
        if text and not text.startswith(b"#"):
            if not text.isascii():
                raise ValueError(f"line {place} is not ASCII: expected an {what} of age")
            yield place, text.decode("ascii")


def _named(parse: Callable[[str], Key], text: str, place: int) -> Key:
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"line {place}: {error}") from None


def _opened(data: bytes, passphrase: keys.Passphrase) -> bytes:
    """The plaintext of a small file."""
    if len(data) > LONGEST:
        raise ValueError(f"more than {LONGEST} bytes: that is no file of keys")
    if armor.is_armor(data):
        decoded = bytearray(len(data))
        count = read_whole(armor.ArmorReader(io.BytesIO(data)), memoryview(decoded))
        data = bytes(decoded[:count])
    parsed = header.parse(data)
    file_key = keys.unwrap(parsed.stanzas, [passphrase])
    parsed.check(file_key)
    decryptor = payload.decryptor(file_key, parsed.size, data, "auto")
    sealed = memoryview(data)[decryptor.layout.header_size :]
    plain = bytearray()
    try:
        while True:
            piece, sealed = sealed[: decryptor.piece], sealed[decryptor.piece :]
            out = bytearray(len(piece))
            count = decryptor.process(piece, memoryview(out), final=not sealed)
            plain += out[:count]
            if not sealed:
                return bytes(plain)
    finally:
        decryptor.close()

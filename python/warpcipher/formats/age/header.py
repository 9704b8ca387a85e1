# SPDX-License-Identifier: Apache-2.0
"""The header of an age file, to the letter of the specification.

    age-encryption.org/v1
    -> TYPE ARGUMENT ...            a stanza: the file key, wrapped for one recipient
    body, base64 in lines of 64; the last one is shorter, and may be empty
    --- MAC                         HMAC-SHA-256 of all before, "---" included

Base64 has no padding, and only its canonical form is read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

import warpcipher as wc

from ..layout import FormatError
from . import armor

MAGIC = b"age-encryption.org/v1\n"
ANY_VERSION = b"age-encryption.org/"
FOOTER = b"---"
COLUMNS = 64
MAC_SIZE = 32

LONGEST = 1 << 20
"""Bytes of the largest header that is read or written."""
MOST_STANZAS = 4096
"""Recipients of a file. Each costs a Diffie-Hellman with each identity that is tried."""

_WORD = re.compile(rb"[\x21-\x7e]+")


@dataclass(frozen=True)
class Stanza:
    """The file key, wrapped for one recipient. type: the first of the arguments."""

    type: str
    arguments: tuple[str, ...]
    body: bytes

    def to_bytes(self) -> bytes:
        text = encode(self.body)
        lines = [text[i : i + COLUMNS] for i in range(0, len(text) + 1, COLUMNS)]
        head = " ".join(("->", self.type, *self.arguments)).encode("ascii")
        return b"\n".join([head, *lines]) + b"\n"


@dataclass(frozen=True)
class Header:
    """stanzas: one for each recipient. signed: what the MAC is of. size: bytes of the header."""

    stanzas: tuple[Stanza, ...]
    signed: bytes
    mac: bytes
    size: int

    def check(self, file_key: bytes) -> None:
        """Raises InvalidTag if the file key is not of this header."""
        if not hmac.compare_digest(_mac(file_key, self.signed), self.mac):
            raise wc.InvalidTag("the header's MAC does not match its file key: it was changed")


def recipients_text(stanzas: Sequence[Stanza]) -> str:
    """The recipients of a file, for people: "3 recipients (X25519: 2, ssh-rsa: 1)"."""
    kinds = [re.sub(r"[^\w.+-]", "?", stanza.type)[:30] for stanza in stanzas]
    if len(kinds) == 1:
        return f"1 recipient ({kinds[0]})"
    counts = [f"{kind}: {kinds.count(kind)}" for kind in sorted(set(kinds))][:5]
    return f"{len(kinds)} recipients ({', '.join(counts)})"


def _mac(file_key: bytes, signed: bytes) -> bytes:
    key = wc._native.hkdf("sha256", file_key, None, b"header", MAC_SIZE)
    return hmac.digest(key, signed, "sha256")


def build(file_key: bytes, stanzas: tuple[Stanza, ...]) -> bytes:
    """The header of a file. Raises ValueError for more recipients than a file may have."""
    if not 1 <= len(stanzas) <= MOST_STANZAS:
        raise ValueError(f"format age takes 1 to {MOST_STANZAS} recipients, got {len(stanzas)}")
    signed = MAGIC + b"".join(stanza.to_bytes() for stanza in stanzas) + FOOTER
    head = signed + b" " + encode(_mac(file_key, signed)) + b"\n"
    if len(head) > LONGEST:
        raise ValueError(f"a header for {len(stanzas)} recipients is longer than {LONGEST} bytes")
    return head


def wanted(prefix: bytes) -> int:
    """Bytes of the beginning of a file that hold its header, as far as those that it begins with
    tell."""
    if not prefix:
        return 1024
    end = prefix.find(b"\n" + FOOTER)
    end = prefix.find(b"\n", end + 1) + 1 if end >= 0 else 0
    return end or min(2 * len(prefix), LONGEST)


def parse(prefix: bytes) -> Header:
    """The header that a file begins with. Raises FormatError."""
    if not prefix.startswith(MAGIC):
        if prefix.startswith(MAGIC.replace(b"\n", b"\r\n")):
            raise FormatError(
                "damaged: its line ends were changed to CR LF: send it as a binary file, or with "
                "--armor"
            )
        if prefix.startswith(ANY_VERSION):
            version = prefix[len(ANY_VERSION) :].split(b"\n")[0][:20].decode("ascii", "replace")
            raise FormatError(f"age files of version {version!r} are not read: v1 is")
        if MAGIC.startswith(prefix):
            raise FormatError(f"truncated: {len(prefix)} bytes, not even the first line of age")
        why = armor.misplaced(prefix) or "it does not begin with age-encryption.org/v1"
        raise FormatError(f"not an age file: {why}")
    lines = _Lines(prefix, len(MAGIC))
    stanzas: list[Stanza] = []
    while (line := lines.take()).startswith(b"-> "):
        stanzas.append(_stanza(line, lines))
        if len(stanzas) > MOST_STANZAS:
            raise FormatError(f"the header has more than {MOST_STANZAS} recipients")
    found = re.fullmatch(rb"--- ([A-Za-z0-9+/]{43})", line)
    if found is None:
        raise FormatError("malformed header: expected a stanza (->) or the MAC (---) in a line")
    if not stanzas:
        raise FormatError("malformed header: it has no recipient")
    signed = prefix[: lines.start + len(FOOTER)]
    return Header(tuple(stanzas), signed, decode(found[1], "the MAC"), lines.position)


def stanzas(prefix: bytes) -> tuple[Stanza, ...]:
    """The recipients of a file, armored or not; none where its beginning does not hold them."""
    try:
        return parse(armor.beginning(prefix) if armor.is_armor(prefix) else prefix).stanzas
    except FormatError:
        return ()


class _Lines:
    """The lines of a header. start: of the last one; position: after it."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self.start = self.position = position

    def take(self) -> bytes:
        end = self._data.find(b"\n", self.position)
        if end < 0:
            if len(self._data) >= LONGEST:
                raise FormatError(f"the header is longer than {LONGEST} bytes")
            raise FormatError("truncated: the file ends in its header")
        self.start, self.position = self.position, end + 1
        return self._data[self.start : end]


def _stanza(line: bytes, lines: _Lines) -> Stanza:
    words = line[3:].split(b" ")
    if not all(_WORD.fullmatch(word) for word in words):
        raise FormatError("malformed header: a stanza has an argument that is empty or not ASCII")
    body = bytearray()
    while True:
        text = lines.take()
        if len(text) > COLUMNS:
            raise FormatError(f"malformed header: a body has a line of more than {COLUMNS} bytes")
        body += decode(text, "a body")
        if len(text) < COLUMNS:
            break
    name, *arguments = (word.decode("ascii") for word in words)
    return Stanza(name, tuple(arguments), bytes(body))


def encode(data: bytes) -> bytes:
    """Base64 without padding."""
    return base64.b64encode(data).rstrip(b"=")


def require(what: str, count: int, expected: int) -> None:
    """Raises FormatError where a header has another number of something."""
    if count != expected:
        raise FormatError(f"malformed header: {what.format(count)}, expected {expected}")


def decode(text: bytes, what: str) -> bytes:
    """The bytes of base64 without padding. Raises FormatError for any other form."""
    try:
        data = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        data = None
    if data is None or encode(data) != text:
        raise FormatError(f"malformed header: {what} is not canonical base64 without padding")
    return data

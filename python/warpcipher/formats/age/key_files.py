# SPDX-License-Identifier: Apache-2.0
"""Files of identities and of recipients: one a line, with comments (#) and empty lines; and the
file of an SSH secret key."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

import warpcipher as wc

from ..._errors import explained
from ...arguments import text_bytes
from ...keys import identify
from ...keys.decode import in_utf16
from . import armor, header, hybrid, keys, ssh

Key = TypeVar("Key")
Recipient: TypeAlias = "keys.Recipient | hybrid.HybridRecipient | ssh.SshRecipient"
Identity: TypeAlias = "keys.Identity | hybrid.HybridIdentity | ssh.SshIdentity | keys.OtherIdentity"
KEYS = (
    keys.Recipient,
    keys.Identity,
    keys.Passphrase,
    keys.OtherIdentity,
    hybrid.HybridRecipient,
    hybrid.HybridIdentity,
    ssh.SshRecipient,
    ssh.SshIdentity,
)

_SSH = ("ssh-", "ecdsa-", "sk-")
LONGEST = 1 << 20
"""Bytes of the largest file of keys that is read."""


def is_encrypted(data: bytes) -> bool:
    """Whether a passphrase is needed for a file of identities: it is itself a file that age
    encrypted, or an SSH key under a passphrase. Raises ValueError."""
    if ssh.is_secret_key(data):
        return ssh.is_encrypted(data)
    return data.startswith(header.ANY_VERSION) or armor.is_armor(data)


def identities(data: bytes | str, passphrase: str | bytes | None = None) -> list[Identity]:
    """The identities in a file's content: AGE-SECRET-KEY-1... a line, or the secret key of SSH that
    ssh-keygen wrote.

    passphrase: of a file that is encrypted with one, armored or not, or of an SSH key.
    An identity of a kind that is not taken (of a plugin, ECDSA) is an OtherIdentity, which opens
    nothing, so that those beside it do. Raises ValueError, which shows nothing of an identity, and
    InvalidTag for a wrong passphrase.
    """
    data = _content(data)
    if ssh.is_secret_key(data):
        try:
            return [ssh.SshIdentity.parse(data, passphrase)]
        except ssh.NotTakenError as error:
            return [keys.OtherIdentity(str(error))]
    if is_encrypted(data):
        if passphrase is None:
            raise ValueError("the identities are encrypted with a passphrase: give it")
        data = _opened(data, keys.Passphrase(passphrase))
    _refuse_others(data, "an identity of age, AGE-SECRET-KEY-1..., or an SSH secret key")
    found = list(_parsed(data, _identity))
    if not found:
        raise ValueError("no identity: expected a line AGE-SECRET-KEY-1...")
    return found


def recipients(data: bytes | str) -> list[Recipient]:
    """The recipients in a file's content: age1..., ssh-ed25519 ... or ssh-rsa ... a line. Raises
    ValueError."""
    data = _content(data)
    if ssh.is_secret_key(data):
        raise ValueError(
            "an SSH secret key was given for a recipient: the public key is mostly beside it, "
            "in FILE.pub"
        )
    _refuse_others(data, "a recipient, age1..., ssh-ed25519 ... or ssh-rsa ...")
    found = list(_parsed(data, _recipient))
    if not found:
        raise ValueError("no recipient: expected a line age1...")
    return found


def _content(data: bytes | str) -> bytes:
    """Without a byte order mark, which Windows puts before text."""
    data = text_bytes("the content", data)
    if len(data) > LONGEST and not is_encrypted(data):
        raise ValueError(f"more than {LONGEST} bytes: that is not a file of keys")
    if in_utf16(data):
        raise ValueError("text in UTF-16: write it in ASCII")
    return data.removeprefix(codecs.BOM_UTF8)


def _refuse_others(data: bytes, expected: str) -> None:
    """Names a file that has no key of age in any line, such as a PEM."""
    found = identify(data)
    if found is not None and not found.startswith(("an age ", "an SSH public key")):
        raise ValueError(f"{found}: expected {expected}")


def _identity(text: str) -> Identity:
    if text.startswith(_SSH):
        raise ValueError(
            "an SSH public key was given for an identity: the secret key is mostly in the file "
            "without .pub"
        )
    if text.startswith("AGE-SECRET-KEY-PQ-1"):
        return hybrid.HybridIdentity.parse(text)
    return keys.OtherIdentity.find(text) or keys.Identity.parse(text)


def _recipient(text: str) -> Recipient:
    if text.startswith("age1pq1"):
        return hybrid.HybridRecipient.parse(text)
    return ssh.SshRecipient.parse(text) if text.startswith(_SSH) else keys.Recipient.parse(text)


def _parsed(data: bytes, parse: Callable[[str], Key]) -> Iterator[Key]:
    """The keys of the lines. If there are several lines, an error names the line."""
    several = b"\n" in data.strip()
    for place, line in enumerate(data.split(b"\n"), 1):
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        with explained(f"line {place}" if several else ""):
            found = parse(_ascii(text))
        yield found


def _ascii(text: bytes) -> str:
    try:
        # The comment of an SSH key may be in any language.
        return text.decode("utf-8" if text.startswith(b"ssh-") else "ascii")
    except UnicodeDecodeError:  # which would show a byte of a secret
        raise ValueError("not a key of age: it has characters that are not ASCII") from None


def _opened(data: bytes, passphrase: keys.Passphrase) -> bytes:
    """The plaintext of a small file."""
    if len(data) > LONGEST:
        raise ValueError(f"more than {LONGEST} bytes: that is not a file of keys")
    text = io.BytesIO()
    wc.formats.decrypt_stream(io.BytesIO(data), text, passphrase, format="age")
    return text.getvalue()

# SPDX-License-Identifier: Apache-2.0
"""SSH keys as recipients and identities of age: the two kinds that age takes (c2sp.org/age).

ssh-ed25519  -> ssh-ed25519 TAG SHARE      SHARE: the public key of a fresh secret one
             point    = the key on Curve25519 (RFC 7748, 4.1)
             tweak    = HKDF-SHA-256(ikm = "", salt = KEY, info = INFO)
             wrap key = HKDF-SHA-256(ikm = X25519(tweak, X25519(secret, point)),
                                     salt = SHARE || point, info = INFO)
             body     = ChaCha20-Poly1305(wrap key, nonce = 0, file key)
ssh-rsa      -> ssh-rsa TAG
             body     = RSA-OAEP(SHA-256, label = INFO, file key)

KEY: the public key in the encoding of RFC 4253, 6.6; TAG: 4 bytes of SHA-256(KEY);
INFO: "age-encryption.org/v1/ssh-ed25519" or ".../ssh-rsa".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import warpcipher as wc

from ..._errors import explained
from ..._uncopied import Uncopied
from ...arguments import require_text, text_bytes
from .. import curve25519
from ..curve25519 import primitives
from ..layout import FormatError
from .header import Stanza, decode, encode, require
from .keys import FILE_KEY_SIZE, ZERO_NONCE, take

ED25519 = "ssh-ed25519"
RSA = "ssh-rsa"
KINDS = (ED25519, RSA)
TAG_SIZE = 4
FEWEST_BITS = 2048
"""Of an RSA key that is encrypted to, as age itself has it."""

_PRIME = 2**255 - 19
_MAGIC = b"openssh-key-v1\0"
_LABEL = re.compile(rb"\s*-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----\r?\n")
_OPENSSH = b"OPENSSH PRIVATE KEY"
_LABELS = (_OPENSSH, b"RSA PRIVATE KEY", b"PRIVATE KEY", b"ENCRYPTED PRIVATE KEY")
_OTHER_LABELS = {b"EC PRIVATE KEY": "ecdsa", b"DSA PRIVATE KEY": "ssh-dss"}


def _info(kind: str) -> bytes:
    return b"age-encryption.org/v1/" + kind.encode()


class NotTakenError(ValueError):
    """A whole SSH key, of a kind that age does not take."""

    @classmethod
    def of(cls, kind: str) -> NotTakenError:
        name = re.sub(r"[^\w@.+-]", "?", kind)[:40]
        return cls(f"an SSH key of kind {name} is not taken: {' and '.join(KINDS)} are")


def _strings(data: bytes, count: int | None = None) -> list[bytes]:
    """The first strings of SSH's encoding, `count` of them; None: all, and nothing else."""
    found: list[bytes] = []
    while data if count is None else len(found) < count:
        end = 4 + int.from_bytes(data[:4], "big")
        if len(data) < max(end, 4):
            raise ValueError("malformed SSH key: it ends too early")
        found.append(data[4:end])
        data = data[end:]
    return found


@dataclass(frozen=True)
class SshRecipient:
    """A public key of SSH, ssh-ed25519 or ssh-rsa: files can be encrypted to it.

    blob: the key in SSH's own encoding (RFC 4253, 6.6).
    """

    blob: bytes

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise NotTakenError.of(self.kind)
        if self.kind == ED25519:
            self.point()
        elif (bits := self._rsa().key_size) < FEWEST_BITS:
            raise NotTakenError(
                f"an RSA key of {bits} bits is not taken: {FEWEST_BITS} or more are"
            )

    @classmethod
    def parse(cls, text: str) -> SshRecipient:
        """From a line such as ssh-ed25519 AAAA... comment, as FILE.pub holds. Raises ValueError."""
        kind, coded, *_ = [*require_text("the key", text).split(None, 2), "", ""]
        if kind not in KINDS:
            raise NotTakenError.of(kind)
        try:
            blob = base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("malformed SSH key: its second word is not base64") from None
        if _strings(blob, 1) != [kind.encode()]:
            raise ValueError(f"malformed SSH key: it is not of kind {kind}, as its line says")
        return cls(blob)

    def __str__(self) -> str:
        return f"{self.kind} {base64.b64encode(self.blob).decode('ascii')}"

    @property
    def kind(self) -> str:
        """ssh-ed25519 or ssh-rsa."""
        return _strings(self.blob, 1)[0].decode("ascii", "replace")

    @property
    def tag(self) -> str:
        """The name of the key in a stanza."""
        return encode(hashlib.sha256(self.blob).digest()[:TAG_SIZE]).decode("ascii")

    def point(self) -> bytes:
        """The u coordinate of an Ed25519 key's point: u = (1 + y) / (1 - y), RFC 7748, 4.1."""
        strings = _strings(self.blob)
        if [len(part) for part in strings[1:]] != [32]:
            raise ValueError("malformed SSH key: expected one value of 32 bytes")
        y = int.from_bytes(strings[1], "little") & ((1 << 255) - 1)
        # x^2 = (y^2 - 1) / (d y^2 + 1) has a root, with d = -121665 / 121666 (RFC 8032, 5.1.3).
        square = y * y % _PRIME
        over = 121666 - 121665 * square
        ratio = (square - 1) * 121666 * over
        if y % _PRIME == 1 or pow(ratio, (_PRIME - 1) // 2, _PRIME) == _PRIME - 1:
            raise ValueError("malformed SSH key: it is not a point of the curve")
        u = (1 + y) * pow(1 - y, -1, _PRIME) % _PRIME
        return u.to_bytes(32, "little")

    def _rsa(self) -> Any:
        serialization = primitives("serialization")
        try:
            return serialization.load_ssh_public_key(str(self).encode("ascii"))
        except ValueError:
            raise ValueError("malformed SSH key: it is not one of RSA") from None

    def wrap(self, file_key: bytes) -> Stanza:
        """The stanza that gives the file key to the recipient."""
        if self.kind == RSA:
            return Stanza(RSA, (self.tag,), self._rsa().encrypt(file_key, _oaep()))
        secret = os.urandom(curve25519.KEY_SIZE)
        share = curve25519.public_key(secret)
        key = self.wrap_key(secret, self.point(), share)
        body = curve25519.seal(key, ZERO_NONCE, file_key)
        return Stanza(ED25519, (self.tag, encode(share).decode("ascii")), body)

    def wrap_key(self, secret: bytes, point: bytes, share: bytes) -> bytes:
        """Of ssh-ed25519, from the secret key of one side and the public one of the other. Raises
        ValueError for a point of low order."""
        info = _info(ED25519)
        tweak = wc._native.hkdf("sha256", b"", self.blob, info, curve25519.KEY_SIZE)
        shared = curve25519.exchange(tweak, curve25519.exchange(secret, point))
        salt = share + self.point()
        return wc._native.hkdf("sha256", shared, salt, info, curve25519.KEY_SIZE)


@dataclass(frozen=True)
class SshIdentity(Uncopied):
    """A secret key of SSH: it opens what was encrypted to its recipient.

    recipient: its public key. key: of ssh-ed25519 the 32 bytes of its scalar, of ssh-rsa the key
    as pyca/cryptography holds it.
    """

    recipient: SshRecipient
    key: Any = field(repr=False, compare=False)

    @classmethod
    def parse(cls, data: bytes | str, passphrase: str | bytes | None = None) -> SshIdentity:
        """From what ssh-keygen writes (-----BEGIN OPENSSH PRIVATE KEY-----), or a PEM of PKCS #1 or
        #8, encrypted with a passphrase or not.

        Raises ValueError, which shows nothing of the key, and InvalidTag for a wrong passphrase.
        """
        data = text_bytes("the key", data)
        if (kind := _other_kind(data)) is not None:
            raise NotTakenError.of(kind)
        key = _load(data, passphrase)
        recipient = _recipient_of(key)
        if recipient.kind == ED25519:
            key = hashlib.sha512(key.private_bytes_raw()).digest()[: curve25519.KEY_SIZE]
        return cls(recipient, key)

    def wrap(self, file_key: bytes) -> Stanza:
        """The stanza for its own recipient."""
        return self.recipient.wrap(file_key)

    def unwrap(self, stanzas: Sequence[Stanza]) -> bytes | None:
        """The file key, from the stanza that is for this identity; None without such a stanza."""
        kind = self.recipient.kind
        count = 2 if kind == ED25519 else 1
        for stanza in stanzas:
            if stanza.type != kind:
                continue
            require(f"{kind} has {{}} arguments", len(stanza.arguments), count)
            if stanza.arguments[0] != self.recipient.tag:
                continue
            opened = self._open_ed25519(stanza) if kind == ED25519 else self._open_rsa(stanza)
            if opened is not None:
                return opened
        return None

    def _open_ed25519(self, stanza: Stanza) -> bytes | None:
        share = decode(stanza.arguments[1].encode("ascii"), "a share of ssh-ed25519")
        with explained("malformed header: a share of ssh-ed25519", FormatError):
            if len(share) != curve25519.KEY_SIZE:
                raise ValueError(f"{len(share)} bytes, expected {curve25519.KEY_SIZE}")
            key = self.recipient.wrap_key(self.key, share, share)
        return take(stanza, key)

    def _open_rsa(self, stanza: Stanza) -> bytes | None:
        try:
            file_key: bytes = self.key.decrypt(stanza.body, _oaep())
        except ValueError:
            return None
        require(f"{RSA} wraps {{}} bytes", len(file_key), FILE_KEY_SIZE)
        return file_key


def _oaep() -> Any:
    hashes, padding = primitives("hashes"), primitives("asymmetric.padding")
    mask = padding.MGF1(hashes.SHA256())
    return padding.OAEP(mgf=mask, algorithm=hashes.SHA256(), label=_info(RSA))


def _label(data: bytes) -> bytes | None:
    found = _LABEL.match(data)
    return found[1] if found and found[1] in (*_LABELS, *_OTHER_LABELS) else None


def is_secret_key(data: bytes) -> bool:
    """Whether this is the content of a file of a secret key, of whatever kind."""
    return _label(data) is not None


def _container(data: bytes) -> list[bytes]:
    """Cipher and public key of OpenSSH's own form (PROTOCOL.key), which are not encrypted."""
    body = b"".join(data.split(b"-----")[2].split())
    try:
        raw = base64.b64decode(body, validate=True)
    except binascii.Error:
        raw = b""
    if not raw.startswith(_MAGIC):
        raise ValueError("malformed SSH key: its text does not hold openssh-key-v1")
    cipher, kdf, options = _strings(raw[len(_MAGIC) :], 3)
    start = len(_MAGIC) + 12 + len(cipher + kdf + options) + 4  # 4: the number of keys
    return [cipher, *_strings(raw[start:], 1)]


def _other_kind(data: bytes) -> str | None:
    """The kind of a secret key that is not taken, as far as its file says it in plain; None where
    it is taken or must be opened first. Raises ValueError."""
    label = _label(data) or b""
    if label == _OPENSSH:
        kind = _strings(_container(data)[1], 1)[0].decode("ascii", "replace")
        return None if kind in KINDS else kind
    return _OTHER_LABELS.get(label)


def is_encrypted(data: bytes) -> bool:
    """Whether a passphrase is needed for a secret key that is taken. Raises ValueError."""
    if _other_kind(data) is not None:
        return False
    if _label(data) == _OPENSSH:
        return _container(data)[0] != b"none"
    return _label(data) == b"ENCRYPTED PRIVATE KEY" or b"\nProc-Type: 4,ENCRYPTED" in data


def _load(data: bytes, passphrase: str | bytes | None) -> Any:
    """The key as pyca/cryptography holds it."""
    serialization = primitives("serialization")
    from cryptography.exceptions import UnsupportedAlgorithm

    locked = is_encrypted(data)
    if locked and passphrase is None:
        raise ValueError("the SSH key is encrypted with a passphrase: give it")
    password = passphrase.encode() if isinstance(passphrase, str) else passphrase
    is_openssh = _label(data) == _OPENSSH
    load = serialization.load_ssh_private_key if is_openssh else serialization.load_pem_private_key
    try:
        return load(data.strip(), password if locked else None)
    except UnsupportedAlgorithm as error:
        if "bcrypt" in str(error):
            raise ValueError(
                "an encrypted SSH key needs the package bcrypt: pip install 'warpcipher[age]'"
            ) from None
        raise ValueError("the SSH key is encrypted or made in a way that is not read") from None
    except (ValueError, TypeError):
        if locked:
            raise wc.InvalidTag(
                "wrong key: the passphrase is another, or the SSH key is damaged"
            ) from None
        raise ValueError("malformed SSH key: it cannot be read") from None


def _recipient_of(key: Any) -> SshRecipient:
    serialization = primitives("serialization")
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    if not isinstance(key, (ed25519.Ed25519PrivateKey, rsa.RSAPrivateKey)):
        raise NotTakenError.of(type(key).__name__)
    line = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return SshRecipient.parse(line.decode("ascii"))

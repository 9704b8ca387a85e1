# SPDX-License-Identifier: Apache-2.0
"""The keys that encrypt the data key of a message: raw AES, raw RSA, and keys of AWS KMS.

              provider    information                                       encrypted data key
    raw AES   namespace   name | tag bits (4) 128 | IV length (4) 12 | IV   ciphertext | tag (16)
    raw RSA   namespace   name                                              of RSA
    KMS       aws-kms     ARN of the key                                    what the KMS returns

Raw AES is AES-GCM; the encryption context is its associated data, and the KMS's.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import warpcipher as wc

from ... import _later
from ..._uncopied import Uncopied
from .header import IV_SIZE, TAG_SIZE, EncryptedKey, context_bytes

PROVIDER = "aws-kms"
_ARN = re.compile(r"arn:([a-z-]+):kms:([a-z0-9-]+):([0-9]+):(key|alias)/.+")

Padding = Literal["oaep-sha1", "oaep-sha256", "oaep-sha384", "oaep-sha512", "pkcs1"]
PADDINGS = ("oaep-sha1", "oaep-sha256", "oaep-sha384", "oaep-sha512", "pkcs1")


class DataKeyError(Exception):
    """A key does not open an encrypted data key that names it."""


class _Key(Uncopied):
    """The base of all keys. A key `owns` an encrypted data key that names it."""

    def generate(self, size: int, context: Mapping[str, str]) -> tuple[bytearray, EncryptedKey]:
        """A fresh data key, and the same encrypted."""
        data_key = bytearray(os.urandom(size))
        return data_key, self.wrap(data_key, context)

    def wrap(self, data_key: bytearray, context: Mapping[str, str]) -> EncryptedKey:
        raise NotImplementedError

    def owns(self, key: EncryptedKey) -> bool:
        raise NotImplementedError

    def unwrap(self, key: EncryptedKey, context: Mapping[str, str]) -> bytes:
        """The data key. Raises DataKeyError; of a KMS also what boto3 raises."""
        raise NotImplementedError


def _check_name(namespace: str, name: str) -> None:
    for what, value in (("namespace", namespace), ("name", name)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"the {what} of a raw key is text, and not empty")
    if namespace.startswith(PROVIDER):
        raise ValueError(f"namespace {namespace!r} is that of AWS KMS: choose another")


@dataclass(frozen=True)
class RawAES(_Key):
    """A raw AES key. key: 16, 24 or 32 bytes. namespace, name: say in the message which key it is;
    they are the SDK's key namespace (provider id) and key name (key id)."""

    key: bytes = field(repr=False)
    namespace: str
    name: str

    def __post_init__(self) -> None:
        _check_name(self.namespace, self.name)
        if len(self.key) not in (16, 24, 32):
            raise ValueError(f"a raw AES key has 16, 24 or 32 bytes, got {len(self.key)}")

    @property
    def _prefix(self) -> bytes:
        return self.name.encode() + (8 * TAG_SIZE).to_bytes(4, "big") + IV_SIZE.to_bytes(4, "big")

    def wrap(self, data_key: bytearray, context: Mapping[str, str]) -> EncryptedKey:
        iv = os.urandom(IV_SIZE)
        sealed = wc.aead.AESGCM(self.key).encrypt(iv, data_key, context_bytes(context))
        return EncryptedKey(self.namespace.encode(), self._prefix + iv, sealed)

    def owns(self, key: EncryptedKey) -> bool:
        prefix = self._prefix
        return (
            key.provider == self.namespace.encode()
            and key.info.startswith(prefix)
            and len(key.info) == len(prefix) + IV_SIZE
        )

    def unwrap(self, key: EncryptedKey, context: Mapping[str, str]) -> bytes:
        try:
            return wc.aead.AESGCM(self.key).decrypt(
                key.info[-IV_SIZE:], key.sealed, context_bytes(context)
            )
        except (wc.InvalidTag, ValueError):
            raise DataKeyError("another key, or the encryption context was changed") from None


@dataclass(frozen=True)
class RawRSA(_Key):
    """A raw RSA key. key: a PEM, private or public; a public one encrypts only. namespace, name: as
    of RawAES. padding: oaep-sha1, oaep-sha256, oaep-sha384, oaep-sha512 (its MGF1 has the same
    hash), or pkcs1, which is for old messages. Needs the package cryptography."""

    key: bytes = field(repr=False)
    namespace: str
    name: str
    padding: Padding = "oaep-sha256"

    def __post_init__(self) -> None:
        _check_name(self.namespace, self.name)
        if self.padding not in PADDINGS:
            raise ValueError(f"padding is {self.padding!r}: expected {', '.join(PADDINGS)}")
        object.__setattr__(self, "_loaded", _load_rsa(self.key))

    @property
    def _parts(self) -> tuple[Any, Any]:
        """Private key, or None, and public key."""
        loaded: tuple[Any, Any] = self._loaded  # type: ignore[attr-defined]
        return loaded

    def _scheme(self) -> Any:
        padding = cryptography("primitives.asymmetric.padding")
        if self.padding == "pkcs1":
            return padding.PKCS1v15()
        hashes = cryptography("primitives.hashes")
        hash_of = getattr(hashes, self.padding.removeprefix("oaep-").upper())
        return padding.OAEP(padding.MGF1(hash_of()), hash_of(), None)

    def wrap(self, data_key: bytearray, context: Mapping[str, str]) -> EncryptedKey:
        sealed = self._parts[1].encrypt(bytes(data_key), self._scheme())
        return EncryptedKey(self.namespace.encode(), self.name.encode(), sealed)

    def owns(self, key: EncryptedKey) -> bool:
        names = self.namespace.encode(), self.name.encode()
        return self._parts[0] is not None and (key.provider, key.info) == names

    def unwrap(self, key: EncryptedKey, context: Mapping[str, str]) -> bytes:
        try:
            data_key: bytes = self._parts[0].decrypt(key.sealed, self._scheme())
        except ValueError:
            raise DataKeyError("another key or padding, or a damaged header") from None
        return data_key


def cryptography(name: str) -> Any:
    """A module of pyca/cryptography, which is imported when it is needed. ValueError."""
    return _needed(f"cryptography.hazmat.{name}", "signatures and RSA keys of format awsesdk")


def _needed(name: str, who: str) -> Any:
    package = name.partition(".")[0]
    says = f"{who} need the package {package}: pip install 'warpcipher[awsesdk]'"
    return _later.needed(name, says)


def _load_rsa(pem: bytes) -> tuple[Any, Any]:
    serialization = cryptography("primitives.serialization")
    rsa = cryptography("primitives.asymmetric.rsa")
    data = bytes(pem)
    try:
        if b"PRIVATE KEY" in data[:64]:
            private = serialization.load_pem_private_key(data, None)
            public = private.public_key()
        else:
            private, public = None, serialization.load_pem_public_key(data)
    except (ValueError, TypeError):
        raise ValueError(
            "the key of RawRSA is not a PEM of an RSA key without a passphrase"
        ) from None
    if not isinstance(public, rsa.RSAPublicKey):
        raise ValueError("the key of RawRSA is not one of RSA")
    return private, public


def _client(arn: str) -> Any:
    """Of boto3, for the Region of a key."""
    boto3 = _needed("boto3", "keys of AWS KMS")
    found = _ARN.fullmatch(arn)
    return boto3.client("kms", region_name=found and found[2])


class _Asked(_Key):
    """Keys that stay in AWS KMS."""

    def _client_of(self, arn: str) -> Any:
        raise NotImplementedError

    def _ask(self, arn: str, call: str, context: Mapping[str, str], **arguments: Any) -> Any:
        client = self._client_of(arn)
        if context:
            arguments["EncryptionContext"] = dict(context)
        try:
            return getattr(client, call)(KeyId=arn, **arguments)
        except Exception as error:
            # Of botocore, whose errors are made at run time, or of the network under it.
            raise PermissionError(
                f"the KMS did not {call}, for {arn}: {type(error).__name__}: {error}"
            ) from error

    def _decrypted(self, arn: str, key: EncryptedKey, context: Mapping[str, str]) -> bytes:
        answer = self._ask(arn, "decrypt", context, CiphertextBlob=key.sealed)
        if answer["KeyId"] != arn:
            raise DataKeyError(f"the KMS answered with another key, {answer['KeyId']}")
        data_key: bytes = answer["Plaintext"]
        return data_key


@dataclass(frozen=True)
class KMS(_Asked):
    """A symmetric key of AWS KMS, asked through boto3. key: its ARN; to encrypt also that of an
    alias. client: of boto3; None: one for the ARN's region, with the credentials that boto3 finds.

    To decrypt the message must name this ARN, or that of the same multi-Region key in another
    Region, and the KMS must answer with this one, as the SDK demands.
    """

    key: str
    client: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not _ARN.fullmatch(self.key):
            raise ValueError(
                "the key of KMS is not an ARN: expected arn:aws:kms:REGION:ACCOUNT:key/ID"
            )

    def _client_of(self, arn: str) -> Any:
        if self.client is None:
            object.__setattr__(self, "client", _client(self.key))
        return self.client

    def _encrypted(self, answer: Any) -> EncryptedKey:
        found = _ARN.fullmatch(answer["KeyId"])
        if found is None or found[4] != "key":
            raise PermissionError("the KMS answered for a key that it gave no ARN of")
        return EncryptedKey(PROVIDER.encode(), answer["KeyId"].encode(), answer["CiphertextBlob"])

    def generate(self, size: int, context: Mapping[str, str]) -> tuple[bytearray, EncryptedKey]:
        answer = self._ask(self.key, "generate_data_key", context, NumberOfBytes=size)
        if len(answer["Plaintext"]) != size:
            raise PermissionError("the KMS answered with a data key of another length")
        return bytearray(answer["Plaintext"]), self._encrypted(answer)

    def wrap(self, data_key: bytearray, context: Mapping[str, str]) -> EncryptedKey:
        return self._encrypted(self._ask(self.key, "encrypt", context, Plaintext=bytes(data_key)))

    def owns(self, key: EncryptedKey) -> bool:
        named = key.info.decode("utf-8", "replace")
        return key.provider == PROVIDER.encode() and _anywhere(named) == _anywhere(self.key)

    def unwrap(self, key: EncryptedKey, context: Mapping[str, str]) -> bytes:
        return self._decrypted(self.key, key, context)


@dataclass(frozen=True)
class Discovery(_Asked):
    """Whichever key of AWS KMS a message names: it decrypts, and does not encrypt.

    accounts, partition: only keys of these are asked for, as by the SDK's discovery filter; an
    account comes with its partition ("aws"). (), "": any key that the message names, whoever wrote
    that. region: the KMS of this Region is asked, for its own keys and for multi-Region keys of
    others; "": each key's Region. client: of boto3; None: as of `KMS`.
    """

    accounts: Sequence[str] = ()
    partition: str = ""
    region: str = ""
    client: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        accounts = self.accounts
        if isinstance(accounts, str) or not all(re.fullmatch("[0-9]{12}", a) for a in accounts):
            raise ValueError("the accounts of Discovery are a sequence of numbers of 12 digits")
        if bool(accounts) != bool(self.partition):
            raise ValueError('Discovery takes accounts and their partition, such as "aws", or none')
        object.__setattr__(self, "_clients", {})

    def _client_of(self, arn: str) -> Any:
        clients: dict[str, Any] = self._clients  # type: ignore[attr-defined]
        region = arn.split(":")[3]
        if self.client is None and region not in clients:
            clients[region] = _client(arn)
        return self.client or clients[region]

    def wrap(self, data_key: bytearray, context: Mapping[str, str]) -> EncryptedKey:
        raise ValueError("Discovery only decrypts: to encrypt, name the key with KMS")

    def _asked(self, key: EncryptedKey) -> str:
        """The ARN that the KMS is asked with."""
        arn = key.info.decode("utf-8", "replace")
        if not self.region:
            return arn
        return _anywhere(arn).replace(":kms:*:", f":kms:{self.region}:", 1)

    def owns(self, key: EncryptedKey) -> bool:
        found = _ARN.fullmatch(self._asked(key))
        if key.provider != PROVIDER.encode() or found is None or found[4] != "key":
            return False
        if self.accounts and (found[1] != self.partition or found[3] not in self.accounts):
            return False
        return self.region in ("", found[2])

    def unwrap(self, key: EncryptedKey, context: Mapping[str, str]) -> bytes:
        return self._decrypted(self._asked(key), key, context)


def _anywhere(arn: str) -> str:
    """The ARN of a key; of a multi-Region key without its Region, as all its copies are one key."""
    return re.sub(r"^(arn:[^:]+:kms:)[^:]+(:[^:]+:key/mrk-)", r"\1*\2", arn)


AnyKey = RawAES | RawRSA | KMS | Discovery
KEYS = (RawAES, RawRSA, KMS, Discovery)


def is_keyring(data: object) -> bool:
    """Whether this is the content of a file of keys."""
    text = data.encode() if isinstance(data, str) else data
    if not isinstance(text, (bytes, bytearray, memoryview)):
        return False
    return bool(re.match(rb'\s*\{\s*"keyring"\s*:', bytes(text[:256])))


def keyring(data: bytes | str) -> list[AnyKey]:
    """The keys in a file, JSON: {"keyring": [KEY, ...]}, with "type" and more of each:

    raw-aes: namespace, name, key (base64); raw-rsa: namespace, name, key (a PEM), padding; aws-kms:
    key (an ARN); aws-kms-discovery: accounts (a list), partition, region, or none of them. Raises
    ValueError, which shows nothing of a key.

    >>> from warpcipher.formats import awsesdk
    >>> kms = '{"type": "aws-kms", "key": "arn:aws:kms:eu-west-1:1:key/2"}'
    >>> awsesdk.keyring('{"keyring": [' + kms + "]}")
    [KMS(key='arn:aws:kms:eu-west-1:1:key/2')]
    """
    try:
        entries = json.loads(bytes(data) if not isinstance(data, str) else data)["keyring"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError('not a keyring: expected JSON, {"keyring": [...]}') from None
    if not isinstance(entries, list) or not entries:
        raise ValueError("a keyring has a list of one key or more")
    return [_entry(place, entry) for place, entry in enumerate(entries)]


_FIELDS = {
    "raw-aes": (RawAES, ("namespace", "name", "key")),
    "raw-rsa": (RawRSA, ("namespace", "name", "key", "padding")),
    "aws-kms": (KMS, ("key",)),
    "aws-kms-discovery": (Discovery, ("accounts", "partition", "region")),
}


_NEEDED = {"namespace", "name", "key"}


def _entry(place: int, entry: object) -> AnyKey:
    who = f"key {place} of the keyring"
    fields = dict(entry) if isinstance(entry, dict) else {}
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise ValueError(f"{who} has no type of {', '.join(_FIELDS)}")
    made, names = _FIELDS[kind]
    missing = [name for name in names if name not in fields and name in _NEEDED]
    unknown = [name for name in fields if name not in names]
    accounts = fields.get("accounts", [])
    texts = [value for name, value in fields.items() if name != "accounts"]
    is_text = isinstance(accounts, list) and all(isinstance(t, str) for t in (*texts, *accounts))
    if missing or unknown or not is_text:
        each = "accounts a list, the others text" if "accounts" in names else "all of them text"
        raise ValueError(f"{who} is {kind}: expected {', '.join(names)}, {each}")
    try:
        if kind == "raw-aes":
            fields["key"] = base64.b64decode(fields["key"], validate=True)
        elif kind == "raw-rsa":
            fields["key"] = fields["key"].encode()
        key: AnyKey = made(**fields)
    except ValueError as error:
        reason = "its key is not base64" if "base64" in str(error) else str(error)
        raise ValueError(f"{who}: {reason}") from None
    return key


def new_keyring() -> bytes:
    """A keyring with a fresh raw AES key."""
    key = base64.b64encode(os.urandom(32)).decode()
    entry = {"type": "raw-aes", "namespace": "warpcipher", "name": os.urandom(4).hex(), "key": key}
    return json.dumps({"keyring": [entry]}, indent=2).encode() + b"\n"

# SPDX-License-Identifier: Apache-2.0
"""Tink keysets that a KMS encrypted, through the KMS clients of the `tink` package.

The package is imported when such a key is needed; nothing else here needs it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from .. import _later
from .decode import identify, may_be_key
from .source import KeyId, KeySource
from .sources import name_of_file, open_key, read_bounded, unnamed

SCHEMES = ("aws-kms://", "gcp-kms://", "hcvault://")


class Aead(Protocol):
    """Decrypts the keyset: an Aead of Tink, such as `KmsClient.get_aead(uri)` returns."""

    def decrypt(self, ciphertext: bytes, associated_data: bytes, /) -> bytes: ...


Kms: TypeAlias = "str | Aead"


class _TinkKeyset(KeySource):
    def __init__(
        self, keyset: str | bytes | os.PathLike[str], kms: Kms | None, associated_data: bytes
    ) -> None:
        self._kms = kms
        self._associated_data = associated_data
        self._path: str | None = None
        self._content = b""
        if isinstance(keyset, (bytes, bytearray)):
            self._content = bytes(keyset)
        elif isinstance(keyset, str) and keyset.lstrip()[:1] == "{":
            self._content = keyset.encode()
        else:
            self._path = os.fspath(keyset)
        super().__init__("the Tink keyset" if self._path is None else name_of_file(self._path))

    def read(self, key_id: KeyId) -> bytes:
        content = self._content
        if self._path is not None:
            with open_key(self._path, self.name) as file:
                content = bytes(read_bounded(file.fileno(), self.name))
        if self._kms is None:
            return content
        is_json = content.lstrip()[:1] == b"{"
        if is_json and identify(content) is None:
            raise ValueError(f"{self.name} is not encrypted: give it without a KMS")
        return self._decrypt(content, is_json)

    def _decrypt(self, content: bytes, is_json: bool) -> bytes:
        tink = _tink(self.name)
        access = import_module("tink.secret_key_access").TOKEN
        with _asking(self.name, "decrypt"):
            handle = _parsed(tink, content, is_json, self._kms, self._associated_data)
            text: str = tink.json_proto_keyset_format.serialize(handle, access)
        return text.encode()


def _tink(name: str) -> Any:
    says = "a keyset that a KMS encrypted needs the package tink ({}): pip install tink"
    return _later.needed("tink", f"{name}: {says}")


@contextlib.contextmanager
def _asking(name: str, verb: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ValueError(f"{name}: the KMS's client is missing: {error}") from None
    except Exception as error:
        # Of Tink, of a KMS's client library or of the network under it: none has a common base.
        raise PermissionError(
            f"{name}: the KMS did not {verb} it: {type(error).__name__}: {error}"
        ) from error


def _parsed(
    tink: Any, content: bytes, is_json: bool, kms: Kms | None, associated_data: bytes
) -> Any:
    """The handle of an encrypted keyset."""
    aead = _aead(tink, kms)
    if is_json:
        text = content.decode("utf-8")
        return tink.json_proto_keyset_format.parse_encrypted(text, aead, associated_data)
    return tink.proto_keyset_format.parse_encrypted(content, aead, associated_data)


def _aead(tink: Any, kms: Kms | None) -> Any:
    """The Aead of a KMS's key: from a registered client, else from one made for the URI."""
    if not isinstance(kms, str):
        return kms
    try:
        return tink.kms_client_from_uri(kms).get_aead(kms)
    except tink.TinkError:
        pass
    if kms.startswith("aws-kms://"):
        return import_module("tink.integration.awskms").AwsKmsClient(kms, None).get_aead(kms)
    if kms.startswith("gcp-kms://"):
        return import_module("tink.integration.gcpkms").GcpKmsClient(kms, None).get_aead(kms)
    client = import_module("hvac").Client()
    return import_module("tink.integration.hcvault").new_aead(
        kms.removeprefix("hcvault://"), client
    )


def from_tink(
    keyset: str | bytes | os.PathLike[str], *, kms: Kms | None = None, associated_data: bytes = b""
) -> KeySource:
    """The keys of a Tink keyset, for format tink; mostly one that a KMS encrypted.

    keyset: a path, or the keyset itself: its JSON text, or bytes (JSON or binary).
    kms:    decrypts it: the URI of a KMS's key (aws-kms://, gcp-kms://, hcvault://), whose
            credentials are found as the KMS's own tools find them (Vault: VAULT_ADDR, VAULT_TOKEN),
            or an Aead of Tink, such as `client.get_aead(uri)`. None: the keyset is cleartext JSON.
    associated_data: that the keyset was encrypted with.
    The KMS is asked each time the key is needed. Needs the package tink with its extra for the KMS
    (`pip install tink[awskms]`). Raises ValueError for anything but such a keyset, PermissionError
    where the KMS does not decrypt it.
    """
    if kms is not None:
        _check("kms", kms, "decrypt")
    return _TinkKeyset(keyset, kms, associated_data)


def _check(name: str, kms: Kms, method: str) -> None:
    if isinstance(kms, str):
        if not kms.startswith(SCHEMES):
            # The key itself may have been given, or a passphrase.
            told = repr(kms) if "://" in kms and not may_be_key(kms) else unnamed(kms)
            raise ValueError(f"{name} is {told}: expected a URI of {', '.join(SCHEMES)}")
    elif not callable(getattr(kms, method, None)):
        raise TypeError(f"{name} is {type(kms).__name__}: expected a URI or an Aead of Tink")


def rewrap_tink(
    keyset: bytes,
    kms: Kms,
    new_kms: Kms,
    *,
    associated_data: bytes = b"",
    new_associated_data: bytes | None = None,
) -> bytes:
    """A keyset that a KMS encrypted, encrypted by another key of a KMS: the keys in it, and so the
    data, stay as they are.

    keyset:   as JSON or binary; the result is of the same kind.
    kms, new_kms: as of `from_tink`: of the keyset as it is, and as it shall be.
    associated_data, new_associated_data: likewise; None: the new is the old.

    Anyone who kept the old keyset and may use the old key of the KMS can still read the data.
    Raises ValueError for anything but such a keyset, PermissionError if a KMS refuses.
    """
    _check("kms", kms, "decrypt")
    _check("new_kms", new_kms, "encrypt")
    is_json = keyset.lstrip()[:1] == b"{"
    if is_json and identify(keyset) is None:
        raise ValueError("the keyset is not encrypted")
    name = "the Tink keyset"
    tink = _tink(name)
    with _asking(name, "decrypt"):
        handle = _parsed(tink, keyset, is_json, kms, associated_data)
    fresh = associated_data if new_associated_data is None else new_associated_data
    with _asking(name, "encrypt"):
        aead = _aead(tink, new_kms)
        if is_json:
            text: str = tink.json_proto_keyset_format.serialize_encrypted(handle, aead, fresh)
            return text.encode()
        return bytes(tink.proto_keyset_format.serialize_encrypted(handle, aead, fresh))

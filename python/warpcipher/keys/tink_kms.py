# SPDX-License-Identifier: Apache-2.0
"""Tink keysets that a KMS encrypted, through the KMS clients of the `tink` package.

The package is imported when such a key is needed; nothing else here needs it.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from .decode import identify
from .source import KeyId, KeySource
from .sources import read_bounded, shown

SCHEMES = ("aws-kms://", "gcp-kms://", "hcvault://")


class Aead(Protocol):
    """What decrypts the keyset: an Aead of Tink, such as `KmsClient.get_aead(uri)` returns."""

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
        super().__init__("the Tink keyset" if self._path is None else shown(self._path))

    def read(self, key_id: KeyId) -> bytes:
        content = self._content
        if self._path is not None:
            with open(self._path, "rb", buffering=0) as file:  # noqa: PTH123
                content = bytes(read_bounded(file.fileno(), self.name))
        if self._kms is None:
            return content
        is_json = content.lstrip()[:1] == b"{"
        if is_json and identify(content) is None:
            raise ValueError(f"{self.name} is not encrypted: give it without a KMS")
        return self._decrypt(content, is_json)

    def _decrypt(self, content: bytes, is_json: bool) -> bytes:
        try:
            tink = import_module("tink")
            access = import_module("tink.secret_key_access").TOKEN
        except ImportError as error:
            raise ValueError(
                f"{self.name}: a keyset that a KMS encrypted needs the package tink ({error}): "
                "pip install tink"
            ) from None
        try:
            aead = _aead(tink, self._kms)
            if is_json:
                handle = tink.json_proto_keyset_format.parse_encrypted(
                    content.decode("utf-8"), aead, self._associated_data
                )
            else:
                handle = tink.proto_keyset_format.parse_encrypted(
                    content, aead, self._associated_data
                )
            text: str = tink.json_proto_keyset_format.serialize(handle, access)
        except ImportError as error:
            raise ValueError(f"{self.name}: the KMS's client is missing: {error}") from None
        except Exception as error:
            # Of Tink, of a KMS's client library or of the network under it: none has a common base.
            raise PermissionError(
                f"{self.name}: the KMS did not decrypt it: {type(error).__name__}: {error}"
            ) from error
        return text.encode()


def _aead(tink: Any, kms: Kms | None) -> Any:
    """The Aead of a KMS's key: that of a registered client, else of one made for the URI."""
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
    keyset: str | bytes | os.PathLike[str],
    *,
    kms: Kms | None = None,
    associated_data: bytes = b"",
) -> KeySource:
    """The keys of a Tink keyset, for format tink; mostly one that a KMS encrypted.

    keyset: a path, or the keyset itself: its JSON text, or bytes (JSON or binary).
    kms:    what decrypts it: the URI of a KMS's key (aws-kms://, gcp-kms://, hcvault://), whose
            credentials are found as the KMS's own tools find them (Vault: VAULT_ADDR, VAULT_TOKEN),
            or an Aead of Tink, such as `client.get_aead(uri)`. None: the keyset is cleartext JSON.
    associated_data: that the keyset was encrypted with.
    The KMS is asked each time the key is needed. Needs the package tink with its extra for the KMS
    (`pip install tink[awskms]`). Raises ValueError for what is no such keyset, PermissionError
    where the KMS does not decrypt it.
    """
    if isinstance(kms, str):
        if not kms.startswith(SCHEMES):
            raise ValueError(f"kms is {kms!r}: expected a URI of {', '.join(SCHEMES)}")
    elif kms is not None and not callable(getattr(kms, "decrypt", None)):
        raise TypeError(f"kms is {type(kms).__name__}: expected a URI or an Aead of Tink")
    return _TinkKeyset(keyset, kms, associated_data)

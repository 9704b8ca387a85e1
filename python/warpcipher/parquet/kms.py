# SPDX-License-Identifier: Apache-2.0
"""Keys that a key management service wrapped, as pyarrow, Spark and parquet-java store them: key
material of type PKMT1 in JSON, in the file's key metadata or in a file beside the table.

    single wrapping   wrappedDEK = the KMS' wrapping of the data key
    double wrapping   wrappedDEK = base64(nonce 12 | AES-GCM of the data key under a key encryption
                      key | tag 16), AAD = that key's id; wrappedKEK = the KMS' wrapping of it
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import secrets
from collections.abc import Mapping
from typing import Any, Protocol

import warpcipher as wc

from .. import stores
from .._types import PathLike
from ..formats import FormatError
from ..formats.source import Regular, open_source, write_changed
from ..formats.whole import write_whole
from ..stores.store import shown
from .config import EncryptionConfig
from .storage import writing

_TYPE = "PKMT1"
_FOOTER = "footerKey"
_LONGEST = 1 << 24
"""Bytes of a file of key material; a key takes some 400."""
_KEK_BYTES, _ID_BYTES, _NONCE = 16, 16, 12


class KmsClient(Protocol):
    """Wraps and unwraps keys; `pyarrow.parquet.encryption.KmsClient` is one."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str, /) -> bytes | str:
        """The key as the KMS wraps it under that master key, in text that JSON can hold."""

    def unwrap_key(self, wrapped_key: Any, master_key_identifier: str, /) -> bytes:
        """The key again."""


class KmsKeys:
    """Keys from a KMS, for `keys=`, and for `encrypt`.

    client: wraps and unwraps. table: where key material is not in the table itself, the path or URL
    of the table, one Parquet file: material is read from `_KEY_MATERIAL_FOR_<name>.json` beside it,
    and `save` writes it. None: to read, material is found beside each file that has a path or URL.
    The KMS instance and URL in a file are not used: the client is the caller's.
    """

    def __init__(self, client: KmsClient, table: PathLike | None = None) -> None:
        if isinstance(client, type) or not callable(getattr(client, "unwrap_key", None)):
            given = repr(client) if isinstance(client, type) else type(client).__name__
            raise TypeError(f"client is {given}: expected an object with wrap_key and unwrap_key")
        self._client = client
        self._table = None if table is None else os.fspath(stores.local_path(table))
        self._external: dict[str, str] | None = None
        self._new: dict[str, str] = {}
        self._keks: dict[tuple[str, str], bytes] = {}
        self._fresh: dict[str, tuple[bytes, bytes, str]] = {}

    def beside(self, table: PathLike) -> KmsKeys:
        """These keys for a file, whose material may lie beside it; the same where a table is
        named. A key encryption key that several files share is unwrapped once."""
        if self._table is not None:
            return self
        found = KmsKeys(self._client, table)
        found._keks = self._keks
        return found

    def __call__(self, key_metadata: bytes) -> bytes:
        """The key that key metadata stands for.

        Raises FormatError where it is not key material, OSError, and the client's errors.
        """
        material = _parse(key_metadata, "the key metadata")
        if material.get("internalStorage") is False:
            material = self._look_up(_text(material, "keyReference"))
        return self._unwrap(material)

    def _unwrap(self, material: dict[str, Any]) -> bytes:
        master, wrapped = _text(material, "masterKeyID"), _text(material, "wrappedDEK")
        if material.get("doubleWrapping") is not True:
            return self._client.unwrap_key(wrapped, master)
        identity = _text(material, "keyEncryptionKeyID")
        wrapped_kek = _text(material, "wrappedKEK")
        if (identity, wrapped_kek) not in self._keks:
            self._keks[identity, wrapped_kek] = self._client.unwrap_key(wrapped_kek, master)
        sealed = _decode(wrapped, "wrappedDEK")
        box = wc.aead.AESGCM(self._keks[identity, wrapped_kek])
        if len(sealed) <= _NONCE:
            raise FormatError(f"wrappedDEK has {len(sealed)} bytes: cut short")
        try:
            aad = _decode(identity, "keyEncryptionKeyID")
            return box.decrypt(sealed[:_NONCE], sealed[_NONCE:], aad)
        except wc.InvalidTag:
            raise wc.InvalidTag(
                f"the data key under master key {master!r} is not authentic"
            ) from None

    def _look_up(self, reference: str) -> dict[str, Any]:
        if self._table is None:
            raise ValueError(
                "the key material lies in a file of its own, beside a table that has no path or "
                "URL here: name its copy with KmsKeys(client, table=...)"
            )
        if self._external is None:
            path = material_path(self._table)
            with open_source(path) as source:
                self._external = _materials(source, path)
        found = self._external.get(reference)
        if not isinstance(found, str):
            raise FormatError(f"{_name(material_path(self._table))} has no key {reference!r}")
        return _parse(found.encode(), f"the key material of {reference!r}")

    def rotate_master_keys(
        self, masters: Mapping[str, str] | None = None, *, client: KmsClient | None = None
    ) -> int:
        """Wraps the data keys of the table again, and returns how many: its key material beside it
        is replaced in one step, and the table stays as it is. With double wrapping the data keys
        get fresh key encryption keys. Material that another program has written meanwhile stays:
        OSError. S3, Google and Azure decide that themselves; for other stores and files it
        is looked at before the new file appears.

        masters: ids of master keys to the ids that take their place. Others stay, and the KMS
        wraps under its present version of them. client: wraps, where another KMS does.
        Raises ValueError where material lies in the table itself, for a master key that none of its
        keys has; FileNotFoundError; and as a call. Nothing is replaced then.
        """
        if self._table is None:
            raise ValueError(
                "rotation replaces key material beside a table: name it with KmsKeys(client, "
                "table=...). `rewrap` also writes material in the table itself again"
            )
        path = material_path(self._table)
        with open_source(path) as source:
            self._external = _materials(source, path)
            rotation = Rotation(self, masters or {}, client)
            rotated = {name: rotation.of_material(self._look_up(name)) for name in self._external}
            rotation.check(_name(path))
            data, nothing = json.dumps(rotated).encode(), (source.size, source.size)
            write_changed(path, source, path, nothing, beginning=data, replace=True, copy=True)
        self._external = None
        return len(rotated)

    def new_key(
        self,
        master_key_id: str,
        *,
        footer: bool = False,
        double_wrapping: bool = True,
        bits: int = 128,
    ) -> tuple[bytes, bytes]:
        """A fresh data key, and the key metadata by which a reader gets it from the KMS."""
        if bits not in (128, 192, 256):
            raise ValueError(f"bits is {bits}: expected 128, 192 or 256")
        key = secrets.token_bytes(bits // 8)
        material: dict[str, Any] = {"keyMaterialType": _TYPE, "isFooterKey": footer}
        if footer:
            material |= {"kmsInstanceID": "DEFAULT", "kmsInstanceURL": "DEFAULT"}
        material |= self._wrap(key, master_key_id, double=double_wrapping)
        if self._table is None:
            return key, json.dumps({**material, "internalStorage": True}).encode()
        if footer and _FOOTER in self._new:
            raise ValueError(
                f"there is a new footer key already: {self._table} is one file and has one; make a "
                "KmsKeys for each file"
            )
        reference = _FOOTER if footer else f"columnKey{len(self._new) - (_FOOTER in self._new)}"
        self._new[reference] = json.dumps(material)
        outer = {"keyMaterialType": _TYPE, "internalStorage": False, "keyReference": reference}
        return key, json.dumps(outer).encode()

    def _wrap(self, key: bytes, master_key_id: str, *, double: bool) -> dict[str, Any]:
        """The fields of key material for a data key: its wrapped form, and who wrapped it."""
        found: dict[str, Any] = {"masterKeyID": master_key_id, "doubleWrapping": double}
        if not double:
            return {**found, "wrappedDEK": _as_text(self._client.wrap_key(key, master_key_id))}
        kek, identity, wrapped_kek = self._kek(master_key_id)
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + wc.aead.AESGCM(kek).encrypt(nonce, key, identity)
        return {
            **found,
            "wrappedDEK": base64.b64encode(sealed).decode(),
            "keyEncryptionKeyID": base64.b64encode(identity).decode(),
            "wrappedKEK": wrapped_kek,
        }

    def _kek(self, master_key_id: str) -> tuple[bytes, bytes, str]:
        """One key encryption key for all data keys of a master key: the KMS is asked once."""
        if master_key_id not in self._fresh:
            kek = secrets.token_bytes(_KEK_BYTES)
            wrapped = _as_text(self._client.wrap_key(kek, master_key_id))
            self._fresh[master_key_id] = kek, secrets.token_bytes(_ID_BYTES), wrapped
        return self._fresh[master_key_id]

    def config(
        self,
        footer: str,
        columns: Mapping[str, str] | None = None,
        *,
        double_wrapping: bool = True,
        bits: int = 128,
        **options: Any,
    ) -> EncryptionConfig:
        """An `EncryptionConfig` with fresh data keys. footer, columns: ids of master keys, for the
        footer and by the names of columns. options: others of `EncryptionConfig`."""
        how = {"double_wrapping": double_wrapping, "bits": bits}
        key, metadata = self.new_key(footer, footer=True, **how)  # type: ignore[arg-type]
        own = {
            name: self.new_key(master, **how)  # type: ignore[arg-type]
            for name, master in (columns or {}).items()
        }
        return EncryptionConfig(
            key,
            metadata,
            {name: entry[0] for name, entry in own.items()},
            {name: entry[1] for name, entry in own.items()},
            **options,
        )

    def save(self, *, replace: bool = False) -> None:
        """Writes the key material of new keys beside the table, whose name it takes part in.

        replace: it may replace material that is there, whose keys are then lost. Raises ValueError
        where material lies in the table, or there is none; FileExistsError.
        """
        if self._table is None or not self._new:
            raise ValueError("there is no key material to write beside a table")
        path = material_path(self._table)
        if not replace and _is_there(path):
            raise FileExistsError(
                f"{shown(path)} exists, and a file may need its keys: save(replace=True) replaces "
                "it"
            )
        with writing(path) as file:
            write_whole(file, memoryview(json.dumps(self._new).encode()))
        self._external = None

    def __repr__(self) -> str:
        return f"<KmsKeys of {type(self._client).__name__}>"


class Rotation:
    """Data keys wrapped again. masters, client: see `KmsKeys.rotate_master_keys`. count: how many
    keys were."""

    def __init__(self, keys: KmsKeys, masters: Mapping[str, str], client: KmsClient | None) -> None:
        self._keys = keys
        self._masters = masters
        self._fresh = KmsKeys(client or keys._client)
        self._seen: set[str] = set()
        self._made: dict[bytes, bytes] = {}
        self.count = 0

    def of_material(self, material: dict[str, Any]) -> str:
        """Key material in the place of some."""
        master = _text(material, "masterKeyID")
        self._seen.add(master)
        self.count += 1
        key, double = self._keys._unwrap(material), material.get("doubleWrapping") is True
        wrapped = self._fresh._wrap(key, self._masters.get(master, master), double=double)
        return json.dumps({**material, **wrapped})

    def of_metadata(self, metadata: bytes) -> bytes:
        """Key metadata in the place of some, which hold their material. The same of several chunks
        stays the same."""
        if metadata not in self._made:
            if is_external(metadata):
                raise FormatError("a table with key material both in it and beside it")
            self._made[metadata] = self.of_material(_parse(metadata, "the key metadata")).encode()
        return self._made[metadata]

    def check(self, what: str) -> None:
        """Raises ValueError for a master key that none of the keys of `what` had."""
        for master in self._masters:
            if master not in self._seen:
                raise ValueError(
                    f"{what} has no key under master key {master!r}: it has "
                    f"{', '.join(sorted(self._seen))}"
                )


def is_external(metadata: bytes) -> bool:
    """Whether key metadata only names material that lies beside the table."""
    return _parse(metadata, "the key metadata").get("internalStorage") is False


def material_path(table: PathLike) -> str:
    """Where the external key material of a table lies: a path or a URL."""
    folder, slash, name = os.fspath(table).rpartition("/")
    return f"{folder}{slash}_KEY_MATERIAL_FOR_{name}.json"


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_there(path: str) -> bool:
    try:
        (stores.stat if stores.is_url(path) else os.stat)(path)
    except FileNotFoundError:
        return False
    return True


def _materials(source: Regular | stores.ObjectFile, path: str) -> dict[str, Any]:
    """The content of a file of key material, which others may have written."""
    if source.size > _LONGEST:
        raise FormatError(f"{_name(path)} has more than {_LONGEST} bytes: that is not key material")
    return _parse(source.read_at(0, source.size), _name(path))


def _parse(text: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise FormatError(f"{what} is not JSON: expected key material of type {_TYPE}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{what} is not a JSON object: expected key material of type {_TYPE}")
    kind = found.get("keyMaterialType")
    if kind not in (None, _TYPE):
        raise FormatError(f"{what} has key material of type {kind!r}: expected {_TYPE}")
    return found


def _text(material: dict[str, Any], name: str) -> str:
    found = material.get(name)
    if not isinstance(found, str):
        raise FormatError(f"key material without {name}")
    return found


def _decode(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError(f"{name} is not base64") from None


def _as_text(wrapped: bytes | str) -> str:
    return wrapped if isinstance(wrapped, str) else bytes(wrapped).decode("ascii")

# SPDX-License-Identifier: Apache-2.0
"""The keys of a cryptotensors file: one that wraps the keys of its tensors, and a pair that signs
its header. They come as bytes, from `warpcipher.keys`, or as JSON Web Keys (RFC 7517)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from .. import keys
from .._uncopied import Uncopied
from . import ed25519

ALGORITHMS = {
    "aes128gcm": ("aes-128-gcm", 16),
    "aes256gcm": ("aes-256-gcm", 32),
    "chacha20poly1305": ("chacha20-poly1305", 32),
}
"""The name of an algorithm in cryptotensors: its name here, and the bytes of its key."""

LONGEST_JWK = 1 << 20


@dataclass(frozen=True)
class CryptotensorsKey(Uncopied):
    """The keys of a cryptotensors file; given as `key` to whatever takes a model's key.

    wrapping:   wraps the keys of the tensors: 16 or 32 bytes, or what `warpcipher.keys.resolve`
                takes; a function is called with the file's key id.
    verify:     the public key that checks the signature, 32 bytes, or a source that `keys.resolve`
                takes. None: the one of `sign`. It is never taken from the file.
    sign:       the private key that signs, 32 bytes, or what `keys.resolve` takes: to save and to
                rewrap.
    key_id, sign_key_id: their names in a file that is saved; else they are taken from the file.
    plain_tensors: whether tensors that a file leaves unencrypted are taken. Nothing protects their
                bytes, so they are refused otherwise.
    """

    wrapping: object = field(repr=False)
    _: KW_ONLY
    verify: object = field(default=None, repr=False)
    sign: object = field(default=None, repr=False)
    key_id: str | None = None
    sign_key_id: str | None = None
    plain_tensors: bool = False

    @classmethod
    def from_jwk(cls, document: object, *, plain_tensors: bool = False) -> CryptotensorsKey:
        """The keys in a JSON Web Key Set: its text, a dict, or a source of `warpcipher.keys`.

        Keys of type "oct" wrap ("k"), keys of type "okp" verify ("x") and sign ("d"), in base64 or
        base64url. Of several keys of a type the one with the file's id is taken; to save, the
        first that wraps, and the first that signs. Raises ValueError and TypeError without showing
        a key.
        """
        found = _parse(document)
        wrapping = [entry for entry in found if str(entry.get("kty")).lower() == "oct"]
        pairs = [entry for entry in found if str(entry.get("kty")).lower() == "okp"]
        if not wrapping or not pairs:
            raise ValueError(
                f'the JSON Web Keys are {len(wrapping)} of type "oct" and {len(pairs)} of type '
                '"okp": expected one of each at least, to unwrap and to verify'
            )
        return cls(
            _chosen(wrapping, "k"),
            verify=_chosen(pairs, "x"),
            sign=_chosen(pairs, "d") if any("d" in entry for entry in pairs) else None,
            key_id=_first_id(wrapping, "k"),
            sign_key_id=_first_id(pairs, "d"),
            plain_tensors=plain_tensors,
        )

    def wrapping_key(self, key_id: str | None, sizes: tuple[int, ...]) -> bytes:
        """The wrapping key for a file's key id. Raises ValueError for one of another size."""
        return _sized(self.wrapping, key_id, sizes, "a wrapping key of cryptotensors")

    def verifying_key(self, key_id: str | None) -> bytes:
        """The public key. Raises ValueError if there is none."""
        what = "a public Ed25519 key"
        if self.verify is not None:
            return _sized(self.verify, key_id, (ed25519.KEY_SIZE,), what)
        if self.sign is None:
            raise ValueError(
                "a cryptotensors file is signed, and there is no key to check it with: give verify="
            )
        return ed25519.public_key_of(self.signing_key(key_id))

    def signing_key(self, key_id: str | None) -> bytes:
        """The private key. Raises ValueError if there is none."""
        if self.sign is None:
            raise ValueError("a cryptotensors file is signed when it is written: give sign=")
        return _sized(self.sign, key_id, (ed25519.KEY_SIZE,), "a private Ed25519 key")

    def checked_signing_key(self) -> bytes:
        """The private key for a file of `sign_key_id`. Raises ValueError if there is none, and
        if these keys would not verify its signatures."""
        private = self.signing_key(self.sign_key_id)
        if self.verifying_key(self.sign_key_id) != ed25519.public_key_of(private):
            raise ValueError(
                f"the private key of id {self.sign_key_id!a} does not go with the public key that "
                "verifies files of this id: give both keys of one pair"
            )
        return private


def _sized(key: object, key_id: str | None, sizes: tuple[int, ...], what: str) -> bytes:
    found = keys.resolve(key, key_id, sizes=sizes, keyset=False, what=what)
    if len(found) not in sizes:
        raise ValueError(f"{what} has {' or '.join(map(str, sizes))} bytes, got {len(found)}")
    return found


def _parse(document: object) -> list[dict[str, Any]]:
    """The keys of a set, or the one key."""
    if not isinstance(document, dict):
        if isinstance(document, str):
            text = document.encode()
        elif isinstance(document, keys.KeySource):
            text = bytes(document.read(None))
        elif isinstance(document, bytes | bytearray | memoryview):
            text = bytes(document)
        else:
            raise TypeError(
                f"JSON Web Keys are text, a dict or a source of warpcipher.keys, got "
                f"{type(document).__name__}"
            )
        if len(text) > LONGEST_JWK:
            raise ValueError(f"{len(text)} bytes are not a JSON Web Key Set: at most {LONGEST_JWK}")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("the keys are not JSON: expected a JSON Web Key Set") from None
    found = document.get("keys", [document]) if isinstance(document, dict) else document
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ValueError('the JSON is not a JSON Web Key Set: expected {"keys": [...]}')
    return found


def _id(entry: dict[str, Any]) -> str | None:
    kid = entry.get("kid")
    return kid if isinstance(kid, str) else None


def _first_id(entries: list[dict[str, Any]], name: str) -> str | None:
    """The id of the first entry that has the field."""
    return next((_id(entry) for entry in entries if name in entry), None)


def _chosen(entries: list[dict[str, Any]], name: str) -> Callable[[object], bytes]:
    """A function of the key's id that gives the field of the right entry."""
    found = [(_id(entry), _bytes(entry[name], name)) for entry in entries if name in entry]

    def choose(key_id: object) -> bytes:
        fitting = [value for kid, value in found if kid == key_id]
        if not fitting and (len(found) == 1 or key_id is None):
            fitting = [value for _, value in found]
        if not fitting:
            raise ValueError(
                f"no JSON Web Key with the field {name} has the id {key_id!a}: there are "
                f"{len(found)} others"
            )
        return fitting[0]

    return choose


def _bytes(text: object, name: str) -> bytes:
    try:
        if not isinstance(text, str):
            raise ValueError
        plain = text.rstrip("=").replace("-", "+").replace("_", "/")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (ValueError, binascii.Error):
        raise ValueError(f"the field {name} of a JSON Web Key is not base64") from None

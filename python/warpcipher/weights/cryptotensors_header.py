# SPDX-License-Identifier: Apache-2.0
"""The header of a cryptotensors file, version 2: its signed part, and how each tensor is
encrypted.

A cryptotensors file is a safetensors file whose data is ciphertext of the same size. Four texts of
the metadata say the rest, each of them JSON:

    __crypto_keys__  {"version": "2", "chunk_size": 2097152, "enc": {"alg", "kid", ...},
                      "sign": {"alg": "ed25519", "kid", ...}}
    __encryption__   {name: {"wrapped_key", "key_iv", "key_tag", "base_iv", "tags"}}, in base64
    __policy__       a program in Rego; it is not evaluated here
    __signature__    Ed25519 of the header without this text

A tensor has its own key, wrapped by AES-GCM. Its chunk i is an AES-GCM message without AAD;
IV = base_iv[0:8] || BE32(base_iv[8:12] + i), tag = tags[16 i : 16 i + 16]. A tensor without bytes
has one empty chunk. The format's source is github.com/aiyah-meloken/cryptotensors, FORMAT.md.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from itertools import repeat
from typing import Any, NamedTuple, cast

import warpcipher as wc

from .._types import AlgorithmName
from ..formats import FormatError
from . import ed25519
from .cryptotensors_key import ALGORITHMS, CryptotensorsKey
from .header import Header, TensorInfo, canonical, shown

KEYS, ENCRYPTION, POLICY, SIGNATURE = (
    "__crypto_keys__",
    "__encryption__",
    "__policy__",
    "__signature__",
)
RESERVED = (KEYS, ENCRYPTION, POLICY, SIGNATURE)
DEFAULT_POLICY = json.dumps(dict.fromkeys(("local", "remote"), "package model\nallow = true"))
"""The policy of the cryptotensors library: everything is allowed."""

CHUNK_SIZE = 2 << 20
MAX_CHUNK_SIZE = 1 << 30
IV_SIZE, TAG_SIZE = 12, 16
LONGEST_KEYS = 1 << 16
"""Of `__crypto_keys__`, which is read before the signature is checked."""


class Scheme(NamedTuple):
    """The content of `__crypto_keys__`.

    algorithm: of the tensors and of the wrapping, as `warpcipher` names it. key_size: bytes.
    chunk_size: plaintext bytes of a full chunk. key_id, sign_key_id: the names of the keys in it.
    """

    algorithm: AlgorithmName
    key_size: int
    chunk_size: int
    key_id: str | None
    sign_key_id: str | None


class Wrapped(NamedTuple):
    """How a tensor is encrypted, with its key still wrapped. tags: the chunks' tags in a row."""

    wrapped_key: bytes
    key_iv: bytes
    key_tag: bytes
    base_iv: bytes
    tags: bytes


def read_scheme(metadata: Mapping[str, str]) -> Scheme:
    """Reads `__crypto_keys__`. Raises FormatError."""
    missing = [name for name in RESERVED if name not in metadata]
    if len(missing) == len(RESERVED):
        raise FormatError(
            "not a cryptotensors file: its metadata name no keys. With a key, files that are not "
            "encrypted are refused"
        )
    if missing:
        raise FormatError(f"not a cryptotensors file: its metadata has no {missing[0]}")
    text = metadata[KEYS]
    found = _json(text, KEYS) if len(text) <= LONGEST_KEYS else None
    if not isinstance(found, dict):
        raise FormatError(f"{KEYS} is not a JSON object of at most {LONGEST_KEYS} characters")
    version = found.get("version")
    if version != "2":
        raise FormatError(f"the cryptotensors file has version {str(version)[:20]!a}: expected '2'")
    size = found.get("chunk_size", CHUNK_SIZE)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= MAX_CHUNK_SIZE:
        raise FormatError(f"{KEYS} has no chunk_size from 1 to {MAX_CHUNK_SIZE}")
    enc, sign = (found.get(name) for name in ("enc", "sign"))
    if not isinstance(enc, dict) or not isinstance(sign, dict):
        raise FormatError(f"{KEYS} does not describe the keys: expected enc and sign")
    algorithm, key_size = _algorithm(enc.get("alg"))
    if str(sign.get("alg")).lower() != "ed25519":
        raise FormatError(f"{KEYS} names another signature than ed25519")
    kids = _text(enc.get("kid")), _text(sign.get("kid"))
    return Scheme(cast("AlgorithmName", algorithm), key_size, size, *kids)


def _algorithm(name: object) -> tuple[str, int]:
    plain = str(name).replace("-", "").lower()
    if plain not in ALGORITHMS:
        raise FormatError(
            f"{KEYS} names the algorithm {str(name)[:40]!a}: expected one of "
            f"{', '.join(ALGORITHMS)}"
        )
    return ALGORITHMS[plain]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def check_signature(header: Header, public_key: bytes) -> None:
    """Raises InvalidTag if the owner of the key did not sign this header."""
    metadata = dict(header.metadata or {})
    try:
        signature = base64.b64decode(metadata.pop(SIGNATURE), validate=True)
    except ValueError:
        signature = b""
    if not ed25519.verify(public_key, signature, canonical(header.tensors, metadata)):
        raise wc.InvalidTag("the signature is not this header's: damaged, or by another key")


def read_wrapped(header: Header, scheme: Scheme) -> dict[str, Wrapped]:
    """Reads `__encryption__` of a header whose signature was checked. Raises FormatError."""
    found = _json((header.metadata or {})[ENCRYPTION], ENCRYPTION)
    if not isinstance(found, dict):
        raise FormatError(f"{ENCRYPTION} is not a JSON object")
    wrapped = {}
    for name, entry in found.items():
        if name not in header.tensors:
            raise FormatError(f"{ENCRYPTION} has {shown(name)}, and no tensor is called so")
        count = chunk_count(header.tensors[name].size, scheme.chunk_size)
        lengths = (scheme.key_size, IV_SIZE, TAG_SIZE, IV_SIZE, TAG_SIZE * count)
        wrapped[name] = Wrapped(*map(_bytes, repeat(entry), Wrapped._fields, lengths, repeat(name)))
        if counter_of(wrapped[name].base_iv) + count > 1 << 32:
            raise FormatError(f"tensor {shown(name)} has more chunks than its base_iv can number")
    return wrapped


def _bytes(entry: object, field: str, length: int, name: str) -> bytes:
    try:
        found = base64.b64decode(entry[field], validate=True)  # type: ignore[index]
    except (KeyError, TypeError, ValueError, binascii.Error):
        found = None
    if found is None or len(found) != length:
        raise FormatError(
            f"{ENCRYPTION} of tensor {shown(name)}: expected {field}, {length} bytes in base64"
        )
    return found


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FormatError(f"{what} is not JSON") from None


def chunk_count(size: int, chunk_size: int) -> int:
    """Chunks of a tensor of `size` bytes; one, without bytes, if it has none."""
    return max(1, -(-size // chunk_size))


def counter_of(base_iv: bytes) -> int:
    """The counter in the IV."""
    return int.from_bytes(base_iv[8:], "big")


def chunk_ivs(base_iv: bytes, first: int, count: int) -> bytes:
    """The IVs of `count` chunks from number `first` on, back to back."""
    start = counter_of(base_iv) + first
    return b"".join(base_iv[:8] + (start + i).to_bytes(4, "big") for i in range(count))


def unwrap(wrapped: Mapping[str, Wrapped], key: bytes, scheme: Scheme) -> dict[str, bytes]:
    """The keys of the tensors. Raises InvalidTag where the wrapping key is another."""
    if not wrapped:
        return {}
    columns = wc.run_columns(
        scheme.algorithm,
        "decrypt",
        key,
        b"".join(entry.wrapped_key + entry.key_tag for entry in wrapped.values()),
        lengths=[scheme.key_size + TAG_SIZE] * len(wrapped),
        ivs=b"".join(entry.key_iv for entry in wrapped.values()),
        engine="cpu",
    )
    try:
        columns.raise_for_status()
    except wc.InvalidTag:
        raise wc.InvalidTag(
            "the wrapping key does not open the keys of the tensors: it is another key"
        ) from None
    size = scheme.key_size
    found = bytes(columns.out)
    return {name: found[i * size : (i + 1) * size] for i, name in enumerate(wrapped)}


def wrap(tensor_keys: Mapping[str, bytes], key: bytes, scheme: Scheme) -> dict[str, dict[str, str]]:
    """The fields of `__encryption__` that hold the tensors' keys, wrapped with fresh IVs."""
    if not tensor_keys:
        return {}
    ivs = [os.urandom(IV_SIZE) for _ in tensor_keys]
    sealed = wc.run_columns(
        scheme.algorithm,
        "encrypt",
        [key],
        b"".join(tensor_keys.values()),
        lengths=[scheme.key_size] * len(ivs),
        key_index=[0] * len(ivs),
        ivs=b"".join(ivs),
        engine="cpu",
    ).raise_for_status()
    step = scheme.key_size + TAG_SIZE
    found = {}
    for i, name in enumerate(tensor_keys):
        text = sealed.out[i * step : (i + 1) * step]
        found[name] = {
            "wrapped_key": encoded(text[: scheme.key_size]),
            "key_iv": encoded(ivs[i]),
            "key_tag": encoded(text[scheme.key_size :]),
        }
    return found


def encoded(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode("ascii")


def write_metadata(
    user: dict[str, str], scheme: Scheme, encryption: Mapping[str, dict[str, str]], policy: str
) -> dict[str, str]:
    """The metadata of a file, not yet signed."""
    names = {here: there for there, (here, _) in ALGORITHMS.items()}
    described = {
        "chunk_size": scheme.chunk_size,
        "enc": _described("oct", names[scheme.algorithm], scheme.key_id),
        "sign": _described("okp", "ed25519", scheme.sign_key_id),
        "version": "2",
    }
    return {
        **user,
        KEYS: json.dumps(described, separators=(",", ":")),
        ENCRYPTION: json.dumps(dict(sorted(encryption.items())), separators=(",", ":")),
        POLICY: policy,
    }


def _described(kind: str, algorithm: str, key_id: str | None) -> dict[str, str]:
    found = {"alg": algorithm, "kty": kind}
    return found if key_id is None else {**found, "kid": key_id}


def sign(
    tensors: Mapping[str, TensorInfo], metadata: Mapping[str, str], private_key: bytes
) -> dict[str, str]:
    """The metadata with its signature."""
    return {**metadata, SIGNATURE: encoded(ed25519.sign(private_key, canonical(tensors, metadata)))}


def user_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """The user's part of a file's metadata."""
    return {name: text for name, text in metadata.items() if name not in RESERVED}


def opened(header: Header, key: CryptotensorsKey) -> tuple[Scheme, dict[str, Wrapped]]:
    """The scheme and the wrapped keys of a header, after its signature was checked."""
    scheme = read_scheme(header.metadata or {})
    check_signature(header, key.verifying_key(scheme.sign_key_id))
    return scheme, read_wrapped(header, scheme)

# SPDX-License-Identifier: Apache-2.0
"""cryptotensors files: those of the library load here and ours load there; what is changed in one
is found."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from warpcipher import InvalidTag, weights
from warpcipher.formats import FormatError
from warpcipher.weights import cryptotensors, ed25519, header
from warpcipher.weights.cryptotensors_header import (
    ENCRYPTION,
    KEYS,
    SIGNATURE,
    chunk_ivs,
    sign,
)
from weights_cases import METADATA, assert_same, painted, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")
peer = pytest.importorskip("cryptotensors.numpy", reason="cryptotensors is not installed")

WRAPPING, SEED = bytes(range(32)), bytes(range(32, 64))
PUBLIC = ed25519.public_key_of(SEED)
KEY = weights.CryptotensorsKey(WRAPPING, sign=SEED, key_id="w", sign_key_id="s")
READER = weights.CryptotensorsKey(WRAPPING, verify=PUBLIC)


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def jwks(wrapping: bytes = WRAPPING, seed: bytes = SEED, alg: str = "aes256gcm") -> dict[str, Any]:
    """The keys as the library takes them."""
    public = text(ed25519.public_key_of(seed))
    return {
        "enc_key": {"kty": "oct", "alg": alg, "k": text(wrapping), "kid": "w"},
        "sign_key": {"kty": "okp", "alg": "ed25519", "d": text(seed), "x": public, "kid": "s"},
    }


def library_loads(path: Path, keys: dict[str, Any]) -> dict[str, Any]:
    import cryptotensors

    cryptotensors.register_direct_key_provider(keys=list(keys.values()))
    return dict(peer.load_file(path))


def load(path: Path, key: object = READER) -> dict[str, Any]:
    return weights.load_file(path, key, framework="np")


@pytest.mark.parametrize("chunk_size", [None, 1, 1000, 4096])
@pytest.mark.parametrize("alg", ["aes256gcm", "aes128gcm", "chacha20poly1305"])
def test_files_of_the_library_load_here(alg: str, chunk_size: int | None, tmp_path: Path) -> None:
    model = tensors()
    wrapping = WRAPPING[:16] if "128" in alg else WRAPPING
    config = {**jwks(wrapping, alg=alg), **({"chunk_size": chunk_size} if chunk_size else {})}
    metadata = {"format": "pt", "note": 'a "quoted" \u00e9\u2028 \x7f\x01 text\n'}
    peer.save_file(model, tmp_path / "x", metadata=metadata, config=config)
    key = weights.CryptotensorsKey(wrapping, verify=PUBLIC)
    assert_same(load(tmp_path / "x", key), model)
    with weights.safe_open(tmp_path / "x", "np", key=key) as opened:
        assert opened.metadata() == metadata
        assert_same({name: opened.get_tensor(name) for name in model}, model)
        for index in (np.s_[3:5], np.s_[:, 2:9], np.s_[7, 8], np.s_[::3, 1:2]):
            assert np.array_equal(opened.get_slice("embed")[index], model["embed"][index])


@pytest.mark.parametrize("size", [16, 32])
def test_ours_load_in_the_library(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors import safe_open

    monkeypatch.setattr(cryptotensors, "CHUNK_SIZE", 1000)
    monkeypatch.setattr(cryptotensors, "PIECE", 3000)
    model = {**tensors(), 'a "quoted" \u00e9\n': np.arange(3)}
    wrapping = WRAPPING[:size]
    key = weights.CryptotensorsKey(wrapping, sign=SEED, key_id="w", sign_key_id="s")
    weights.save_file(model, tmp_path / "x", key, METADATA)
    assert_same(load(tmp_path / "x", key), model)
    alg = f"aes{8 * size}gcm"
    assert_same(library_loads(tmp_path / "x", jwks(wrapping, alg=alg)), model)
    with safe_open(tmp_path / "x", "np") as plain:  # a safetensors file, of ciphertext
        assert plain.get_slice("embed").get_shape() == [40, 37]
        assert not np.array_equal(plain.get_tensor("embed"), model["embed"])


def test_no_plaintext_is_in_the_file(tmp_path: Path) -> None:
    model = {"a": np.full(100_000, 0x5A, np.uint8)}
    weights.save_file(model, tmp_path / "x", KEY)
    data = (tmp_path / "x").read_bytes()
    assert b"\x5a" * 8 not in data
    assert WRAPPING not in data
    # Members of keys in the clear. Three bytes stand in the ciphertext by chance, now and then.
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    assert b'"k"' not in header
    assert b'"d"' not in header


def test_wrong_keys(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file(tensors(), path, KEY)
    other = ed25519.public_key_of(bytes(32))
    for key, message in (
        (weights.CryptotensorsKey(WRAPPING, verify=other), "signature is not this"),
        (weights.CryptotensorsKey(bytes(32), verify=PUBLIC), "wrapping key does not open"),
    ):
        with pytest.raises(InvalidTag, match=message):
            load(path, key)
    for key, message in (
        (weights.CryptotensorsKey(WRAPPING), "no key to check it with"),
        (weights.CryptotensorsKey(WRAPPING[:16], verify=PUBLIC), "has 32 bytes, got 16"),
        (weights.CryptotensorsKey(WRAPPING, verify=PUBLIC[:31]), "has 32 bytes, got 31"),
    ):
        with pytest.raises(ValueError, match=message):
            load(path, key)
    with pytest.raises(FormatError, match="give its keys as a CryptotensorsKey"):
        load(path, None)
    with pytest.raises((InvalidTag, FormatError)):
        load(path, WRAPPING)
    with pytest.raises(ValueError, match="a cryptotensors file has none"):
        weights.load_file(path, READER, framework="np", context=b"c")


def test_the_signature_is_checked_before_the_wrapping_key_is_asked_for(tmp_path: Path) -> None:
    def fail(_: object) -> bytes:
        raise AssertionError

    weights.save_file(tensors(), tmp_path / "x", KEY)
    key = weights.CryptotensorsKey(fail, verify=ed25519.public_key_of(bytes(32)))
    with pytest.raises(InvalidTag, match="signature"):
        load(tmp_path / "x", key)


def test_a_plain_file_is_refused_with_a_key(tmp_path: Path) -> None:
    weights.save_file(tensors(), tmp_path / "x")
    with pytest.raises(FormatError, match="not a cryptotensors file"):
        load(tmp_path / "x")


def test_every_damaged_or_moved_chunk_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cryptotensors, "CHUNK_SIZE", 512)
    model = {"a": np.arange(2000, dtype=np.uint16), "b": np.arange(2000, dtype=np.uint16)}
    path = tmp_path / "x"
    weights.save_file(model, path, KEY)
    sealed = path.read_bytes()
    start = len(sealed) - 8000
    with weights.safe_open(path, "np", key=READER) as opened:
        for name in model:
            info = opened.info(name)
            for place in range(start + info.start, start + info.end, 512):
                painted(path, place, 3)
                with pytest.raises(InvalidTag, match=f"tensor '{name}' is not authentic"):
                    opened.get_tensor(name)
                with pytest.raises(InvalidTag):
                    load(path)
                painted(path, place, 3)
        assert_same({name: opened.get_tensor(name) for name in model}, model)
    for first, second in ((0, 512), (0, 4000), (1024, 5024)):  # swapped, and of another tensor
        one, other = sealed[start + first :][:512], sealed[start + second :][:512]
        swapped = bytearray(sealed)
        swapped[start + first : start + first + 512] = other
        swapped[start + second : start + second + 512] = one
        path.write_bytes(swapped)
        with pytest.raises(InvalidTag):
            load(path)
    for cut in (1, 512, 8000):
        path.write_bytes(sealed[:-cut])
        with pytest.raises(FormatError, match="truncated"):
            load(path)


def test_every_bit_of_the_header_is_signed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file({"a": np.arange(3, dtype=np.uint8), "bb": np.zeros((1, 2))}, path, KEY)
    length = len(path.read_bytes()) - 3 - 16
    for place in range(length):
        painted(path, place)
        with pytest.raises((InvalidTag, FormatError)):
            load(path)
        painted(path, place)
    assert load(path)["a"].tolist() == [0, 1, 2]


def resigned(path: Path, **changes: Any) -> None:
    """The header with changes to its metadata, signed again: what the owner of the key may do."""
    data = path.read_bytes()
    found = header.read_header(lambda offset, size: data[offset : offset + size], len(data))
    metadata = {k: v for k, v in (found.metadata or {}).items() if k != SIGNATURE}
    for name, change in changes.items():
        document = json.loads(metadata[name])
        change(document)
        metadata[name] = json.dumps(document)
    made = header.encode(found.tensors, sign(found.tensors, metadata, SEED))
    path.write_bytes(made + data[found.data_start :])


BAD_FIELDS: dict[str, tuple[str, Any, str]] = {
    "version 1": (KEYS, lambda d: d.update(version="1"), "version '1': expected '2'"),
    "no version": (KEYS, lambda d: d.pop("version"), "version 'None'"),
    "chunks of nothing": (KEYS, lambda d: d.update(chunk_size=0), "no chunk_size"),
    "huge chunks": (KEYS, lambda d: d.update(chunk_size=1 << 40), "no chunk_size"),
    "chunks of a fraction": (KEYS, lambda d: d.update(chunk_size=1.5), "no chunk_size"),
    "no keys": (KEYS, lambda d: d.pop("enc"), "does not describe the keys"),
    "an algorithm": (
        KEYS,
        lambda d: d["enc"].update(alg="rot13"),
        "'rot13': expected one of aes128gcm",
    ),
    "a signature": (KEYS, lambda d: d["sign"].update(alg="rsa"), "another signature"),
    "a long text": (KEYS, lambda d: d.update(x="y" * 70_000), "at most 65536"),
    "a tensor too many": (ENCRYPTION, lambda d: d.update(x=d["embed"]), "no tensor is called so"),
    "a field less": (ENCRYPTION, lambda d: d["embed"].pop("tags"), "expected tags, 16 bytes"),
    "no object": (ENCRYPTION, lambda d: d.update(embed=3), "expected wrapped_key, 32 bytes"),
    "no base64": (ENCRYPTION, lambda d: d["embed"].update(base_iv="?"), "expected base_iv"),
    "a tag too many": (
        ENCRYPTION,
        lambda d: d["embed"].update(tags=text(bytes(32))),
        "expected tags, 16 bytes",
    ),
    "a short IV": (ENCRYPTION, lambda d: d["embed"].update(key_iv=text(bytes(11))), "key_iv, 12"),
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_signed_header_is_checked_too(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file(tensors(), path, KEY)
    resigned(path)
    assert_same(load(path), tensors())
    field, change, message = BAD_FIELDS[name]
    resigned(path, **{field: change})
    with pytest.raises(FormatError, match=message):
        load(path)


def test_a_damaged_wrapped_key_is_an_invalid_tag(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file(tensors(), path, KEY)
    resigned(path, **{ENCRYPTION: lambda d: d["ids"].update(wrapped_key=text(bytes(32)))})
    with pytest.raises(InvalidTag, match="wrapping key"):
        load(path)


def test_the_chunk_of_a_tensor_without_bytes_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file(tensors(), path, KEY)
    resigned(path, **{ENCRYPTION: lambda d: d["none"].update(tags=text(bytes(16)))})
    with pytest.raises(InvalidTag, match="chunk 0 of tensor 'none'"):
        load(path)


def test_ivs_count_up_in_four_bytes(tmp_path: Path) -> None:
    base = bytes(8) + b"\xff\xff\xff\xfd"
    assert chunk_ivs(base, 1, 2) == bytes(8) + b"\xff\xff\xff\xfe" + bytes(8) + b"\xff\xff\xff\xff"
    path = tmp_path / "x"
    weights.save_file({"a": np.zeros(1)}, path, KEY)
    resigned(
        path,
        **{
            KEYS: lambda d: d.update(chunk_size=2),
            ENCRYPTION: lambda d: d["a"].update(base_iv=text(base), tags=text(bytes(64))),
        },
    )
    with pytest.raises(FormatError, match="more chunks than its base_iv can number"):
        load(path)


def test_unencrypted_tensors_are_refused_unless_asked_for(tmp_path: Path) -> None:
    model = tensors()
    path = tmp_path / "x"
    peer.save_file(model, path, config={**jwks(), "tensors": ["embed", "ids"]})
    with pytest.raises(FormatError, match=r"leaves tensor '.*' unencrypted"):
        load(path)
    with weights.safe_open(path, "np", key=READER) as opened:
        assert np.array_equal(opened.get_tensor("embed"), model["embed"])
        with pytest.raises(FormatError, match="leaves tensor 'mask' unencrypted"):
            opened.get_tensor("mask")
    lenient = weights.CryptotensorsKey(WRAPPING, verify=PUBLIC, plain_tensors=True)
    assert_same(load(path, lenient), model)


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for key, message in (
        (READER, "give sign="),
        (weights.CryptotensorsKey(bytes(24), sign=SEED), "has 16 or 32 bytes, got 24"),
        (weights.CryptotensorsKey(WRAPPING, sign=SEED[:5]), "has 32 bytes, got 5"),
    ):
        with pytest.raises(ValueError, match=message):
            weights.save_file(tensors(), path, key)
    with pytest.raises(ValueError, match="a name of the format"):
        weights.save_file(tensors(), path, KEY, {SIGNATURE: ""})
    with pytest.raises(ValueError, match="no context"):
        weights.save_file(tensors(), path, KEY, context=b"c")
    with pytest.raises(ValueError, match="goes with format cryptotensors"):
        weights.save_file(tensors(), path, KEY, format="tink")
    with pytest.raises(ValueError, match="as a CryptotensorsKey"):
        weights.save_file(tensors(), path, WRAPPING, format="cryptotensors")
    assert list(tmp_path.iterdir()) == []

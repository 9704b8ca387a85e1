# SPDX-License-Identifier: Apache-2.0
"""New keys for cryptotensors files, and the signatures that they carry."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cryptotensors import (
    KEY,
    PUBLIC,
    READER,
    SEED,
    WRAPPING,
    jwks,
    library_loads,
    load,
    peer,
)
from warpcipher import InvalidTag, weights
from warpcipher.weights import ed25519
from weights_cases import METADATA, assert_same, tensors


@pytest.mark.parametrize("in_place", [False, True])
def test_rewrap_changes_the_keys_and_not_the_data(in_place: bool, tmp_path: Path) -> None:
    model = tensors()
    path = tmp_path / "x"
    peer.save_file(model, path, metadata=METADATA, config={**jwks(), "chunk_size": 1000})
    before = path.read_bytes()
    seed = bytes(range(100, 132))
    new = weights.CryptotensorsKey(bytes(range(50, 82)), sign=seed, key_id="w", sign_key_id="s")
    target = path if in_place else tmp_path / "y"
    weights.rewrap(path, READER, new, None if in_place else target)
    size = sum(tensor.nbytes for tensor in model.values())
    assert target.read_bytes()[-size:] == before[-size:]
    assert in_place or path.read_bytes() == before
    assert_same(load(target, new), model)
    with weights.safe_open(target, "np", key=new) as opened:
        assert opened.metadata() == METADATA
    with pytest.raises(InvalidTag):
        load(target)
    assert_same(library_loads(target, jwks(bytes(range(50, 82)), seed)), model)
    weights.rewrap(target, new, KEY)
    assert_same(load(target), model)


def test_what_the_library_rewraps_loads_here(tmp_path: Path) -> None:
    import cryptotensors as library

    weights.save_file(tensors(), tmp_path / "x", KEY)
    new = jwks(bytes(32), bytes(32))
    old = library.DeserializeCryptoConfig(**jwks()).to_dict()
    library.rewrap_file(str(tmp_path / "x"), new, old)
    key = weights.CryptotensorsKey.from_jwk({"keys": list(new.values())})
    assert_same(load(tmp_path / "x", key), tensors())


def test_a_rewrap_that_fails_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    weights.save_file(tensors(), path, KEY)
    before = path.read_bytes()
    wrong = weights.CryptotensorsKey(bytes(32), verify=PUBLIC)
    unsigned = weights.CryptotensorsKey(WRAPPING, verify=PUBLIC)
    short = weights.CryptotensorsKey(WRAPPING[:16], sign=SEED)
    with pytest.raises(InvalidTag):
        weights.rewrap(path, wrong, KEY)
    with pytest.raises(ValueError, match="give sign="):
        weights.rewrap(path, READER, unsigned)
    with pytest.raises(ValueError, match="has 32 bytes, got 16"):
        weights.rewrap(path, READER, short)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_its_file_has_the_new_key(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    blob, link = tmp_path / "blobs/x", tmp_path / "model"
    weights.save_file(tensors(), blob, KEY)
    link.symlink_to("blobs/x")
    new = weights.CryptotensorsKey(bytes(range(50, 82)), sign=SEED)
    weights.rewrap(link, KEY, new)
    assert link.readlink() == Path("blobs/x")
    assert_same(load(blob, new), tensors())
    assert {path.name for path in tmp_path.rglob("*")} == {"blobs", "model", "x"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
@pytest.mark.parametrize("key", [None, WRAPPING, KEY], ids=["plain", "cobblestone", "signed"])
def test_a_file_that_is_replaced_keeps_its_permissions(
    mode: int, key: object, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    weights.save_file(tensors(), path, key)
    path.chmod(mode)
    weights.save_file(tensors(1), path, key)
    assert path.stat().st_mode & 0o777 == mode
    if key is KEY:
        weights.rewrap(path, KEY, KEY)
        assert path.stat().st_mode & 0o777 == mode


def test_ed25519_is_that_of_rfc_8032() -> None:
    """Section 7.1, test 2; and signatures of another library."""
    seed = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert ed25519.public_key_of(seed) == public
    assert ed25519.sign(seed, b"\x72") == signature
    assert ed25519.verify(public, signature, b"\x72")
    assert not ed25519.verify(public, signature, b"\x73")
    assert not ed25519.verify(public, signature[:-1], b"\x72")
    assert not ed25519.verify(public, b"", b"\x72")
    for function in (ed25519.sign, ed25519.public_key_of):
        with pytest.raises(ValueError, match="has 32 bytes, got 31"):
            function(seed[:31], *([b""] if function is ed25519.sign else []))
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    other = Ed25519PrivateKey.generate()
    message = bytes(1000)
    assert ed25519.sign(other.private_bytes_raw(), message) == other.sign(message)
    assert ed25519.verify(other.public_key().public_bytes_raw(), other.sign(message), message)

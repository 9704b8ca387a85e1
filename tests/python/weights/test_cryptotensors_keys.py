# SPDX-License-Identifier: Apache-2.0
"""The keys of cryptotensors files: JSON Web Keys, functions, and which of several is taken."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from test_cryptotensors import KEY, PUBLIC, SEED, WRAPPING, jwks, library_loads, load, text
from warpcipher import keys, weights
from warpcipher.weights import ed25519
from weights_cases import assert_same, tensors


def test_keys_as_json_web_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tensors()
    weights.save_file(model, tmp_path / "x", KEY)
    pair = list(jwks().values())
    others = list(jwks(bytes(32), bytes(32)).values())
    for entry in others:
        entry["kid"] = "another"
    url = [{**pair[0], "k": base64.urlsafe_b64encode(WRAPPING).decode().rstrip("=")}, pair[1]]
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": pair}))
    monkeypatch.setenv("MODEL_KEYS", json.dumps(pair))
    for document in (
        {"keys": pair},
        json.dumps({"keys": others + pair}),
        json.dumps(pair).encode(),
        {"keys": url},
        keys.from_file(file),
        keys.from_env("MODEL_KEYS"),
    ):
        assert_same(load(tmp_path / "x", weights.CryptotensorsKey.from_jwk(document)), model)
    saver = weights.CryptotensorsKey.from_jwk({"keys": pair})
    weights.save_file(model, tmp_path / "y", saver)
    assert_same(library_loads(tmp_path / "y", jwks()), model)
    several = [*others, *({**entry, "kid": "third"} for entry in others)]
    key = weights.CryptotensorsKey.from_jwk({"keys": several})
    with pytest.raises(ValueError, match="no JSON Web Key with the field x has the id 's'"):
        load(tmp_path / "x", key)


@pytest.mark.parametrize("known", [True, False])
def test_the_key_that_signs_is_the_one_that_verifies(known: bool, tmp_path: Path) -> None:
    """A set may begin with public keys of others, and with keys that have no id."""
    wrapping, pair = jwks().values()
    other = {**jwks(bytes(32), bytes(32))["sign_key"], "kid": "another"}
    del other["d"]
    if not known:
        del pair["kid"]
    key = weights.CryptotensorsKey.from_jwk({"keys": [other, wrapping, pair]})
    assert key.sign_key_id == ("s" if known else None)
    weights.save_file(tensors(), tmp_path / "x", key)
    assert_same(load(tmp_path / "x", key), tensors())
    assert_same(load(tmp_path / "x"), tensors())


def test_keys_of_two_pairs_save_nothing(tmp_path: Path) -> None:
    wrapping, pair = jwks().values()
    other = text(ed25519.public_key_of(bytes(32)))
    weights.save_file(tensors(), tmp_path / "x", KEY)
    for key in (
        weights.CryptotensorsKey(WRAPPING, sign=SEED, verify=base64.b64decode(other)),
        weights.CryptotensorsKey.from_jwk({"keys": [wrapping, {**pair, "x": other}]}),
    ):
        with pytest.raises(ValueError, match="give both keys of one pair"):
            weights.save_file(tensors(), tmp_path / "y", key)
        with pytest.raises(ValueError, match="give both keys of one pair"):
            weights.rewrap(tmp_path / "x", KEY, key)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_functions_are_given_the_key_ids(tmp_path: Path) -> None:
    model = tensors()
    weights.save_file(model, tmp_path / "x", KEY)
    asked: list[object] = []

    def give(key: bytes) -> Any:
        return lambda key_id: (asked.append(key_id), key)[1]

    key = weights.CryptotensorsKey(give(WRAPPING), verify=give(PUBLIC))
    assert_same(load(tmp_path / "x", key), model)
    assert asked == ["s", "w"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "are not JSON"),
        ("[" * 100_000, "are not JSON"),
        ("1", "not a JSON Web Key Set"),
        ('{"keys": [1]}', "not a JSON Web Key Set"),
        ('{"keys": []}', '0 of type "oct"'),
        (json.dumps(jwks()["enc_key"]), '0 of type "okp"'),
        (json.dumps([{**jwks()["enc_key"], "k": "?secret?"}, jwks()["sign_key"]]), "field k"),
        (json.dumps([{**jwks()["enc_key"], "k": 5}, jwks()["sign_key"]]), "field k"),
    ],
)
def test_bad_json_web_keys(document: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        weights.CryptotensorsKey.from_jwk(document)
    assert "secret" not in str(caught.value)
    with pytest.raises(TypeError, match="JSON Web Keys are"):
        weights.CryptotensorsKey.from_jwk(5)


def test_keys_are_not_shown() -> None:
    shown = repr(KEY) + repr(weights.CryptotensorsKey.from_jwk({"keys": list(jwks().values())}))
    assert "x1f" not in shown
    assert text(WRAPPING) not in shown

# SPDX-License-Identifier: Apache-2.0
"""`warpcipher info` of models, and `warpcipher rewrap`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cli_support import make_key, names, run, run_json
from job_support import invoke
from step_store import step_store
from warpcipher import weights
from warpcipher.weights import ed25519
from weights_cases import METADATA, assert_same, painted, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")


def web_keys(folder: Path, name: str, number: int) -> weights.CryptotensorsKey:
    """A file of JSON Web Keys, and what it holds."""
    wrapping, seed = bytes([number]) * 32, bytes([number + 1]) * 32
    text = [base64.b64encode(k).decode() for k in (wrapping, seed, ed25519.public_key_of(seed))]
    document = {
        "keys": [
            {"kty": "oct", "alg": "aes256gcm", "kid": f"{name}-enc", "k": text[0]},
            {"kty": "okp", "alg": "ed25519", "kid": f"{name}-sign", "d": text[1], "x": text[2]},
        ]
    }
    path = folder / name
    path.touch(0o600)
    path.write_text(json.dumps(document))
    return weights.CryptotensorsKey.from_jwk(document)


def model_of(*arguments: str | Path, cwd: Path, expect: int = 0) -> Any:
    (file,) = run_json("info", *arguments, cwd=cwd, expect=expect)["files"]
    return file.get("model")


def assert_lists(model: Any, expected: dict[str, Any]) -> None:
    found = {entry["name"]: entry for entry in model["tensors"]}
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name]["shape"] == list(tensor.shape)
        assert found[name]["size"] == tensor.nbytes
    assert found["embed"]["dtype"] == "F32"
    assert model["parameters"] == sum(tensor.size for tensor in expected.values())
    assert model["metadata"] == METADATA


def test_info_lists_the_tensors_of_an_encrypted_model(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    weights.save_file(tensors(), tmp_path / "m.safetensors.cobblestone", key.read_bytes(), METADATA)
    model = model_of("m.safetensors.cobblestone", "--key", "key", cwd=tmp_path)
    assert_lists(model, tensors())
    assert (model["protection"], model["authentic"]) == ("format", True)
    text = run("info", "--key", "key", "m.safetensors.cobblestone", cwd=tmp_path).stdout.decode()
    assert "  is cobblestone-256: " in text
    assert "\n    metadata   format: pt\n    tensors    13 tensors, " in text
    assert "\n      embed  F32 40x37, 5920 bytes\n" in text
    assert "\n      scale  F16 scalar, 2 bytes\n" in text
    assert model_of("m.safetensors.cobblestone", cwd=tmp_path) is None


def test_info_lists_a_plain_model(tmp_path: Path) -> None:
    weights.save_file(tensors(), tmp_path / "m.safetensors", metadata=METADATA)
    model = model_of("m.safetensors", cwd=tmp_path)
    assert_lists(model, tensors())
    assert (model["protection"], model["authentic"]) == ("none", False)
    assert (
        "holds safetensors, not encrypted"
        in run("info", "m.safetensors", cwd=tmp_path).stdout.decode()
    )
    make_key(tmp_path)
    assert model_of("m.safetensors", "--key", "key", cwd=tmp_path, expect=3) is None


def test_info_of_a_cryptotensors_model(tmp_path: Path) -> None:
    key = web_keys(tmp_path, "k", 1)
    web_keys(tmp_path, "other", 5)
    weights.save_file(tensors(), tmp_path / "m.safetensors", key, METADATA)
    model = model_of("m.safetensors", cwd=tmp_path)
    assert_lists(model, tensors())
    assert (model["protection"], model["authentic"]) == ("cryptotensors", False)
    model = model_of("m.safetensors", "--key", "k", cwd=tmp_path)
    assert_lists(model, tensors())
    assert model["authentic"]
    text = run("info", "m.safetensors", cwd=tmp_path).stdout.decode()
    assert "signature  not checked: no key was given" in text
    done = run("info", "--key", "other", "m.safetensors", cwd=tmp_path, expect=3)
    assert "no JSON Web Key" not in done.stderr.decode()
    assert "signature is not this header's" in done.stderr.decode()
    make_key(tmp_path)
    done = run("info", "--key", "key", "m.safetensors", cwd=tmp_path, expect=2)
    assert "expected a JSON Web Key Set" in done.stderr.decode()


def test_info_shows_some_of_very_many_tensors(tmp_path: Path) -> None:
    weights.save_file({f"t{i:03}": np.zeros(1) for i in range(300)}, tmp_path / "m.safetensors")
    text = run("info", "m.safetensors", cwd=tmp_path).stdout.decode()
    assert text.count("F64 1, 8 bytes") == 20
    assert "and 280 more: --json lists them all" in text
    assert len(model_of("m.safetensors", cwd=tmp_path)["tensors"]) == 300


def test_info_of_a_damaged_model(tmp_path: Path) -> None:
    from warpcipher import formats

    key = make_key(tmp_path).read_bytes()
    path = tmp_path / "m.safetensors.cobblestone"
    weights.save_file(tensors(), path, key)
    painted(path, 100)
    done = run("info", "--key", "key", path.name, cwd=tmp_path, expect=3)
    assert "failed authentication" in done.stderr.decode()
    with path.open("wb") as writer, (tmp_path / "key").open("rb") as reader:
        formats.encrypt_stream(reader, writer, key)
    done = run("info", "--key", "key", path.name, cwd=tmp_path, expect=3)
    assert "not a safetensors file" in done.stderr.decode()
    path.rename(tmp_path / "x.cobblestone")  # other files may hold what they like
    assert model_of("x.cobblestone", "--key", "key", cwd=tmp_path) is None


def test_names_in_a_model_are_escaped(tmp_path: Path) -> None:
    weights.save_file(
        {"a\x1b[31m": np.zeros(1)}, tmp_path / "m.safetensors", None, {"\x07": "\x1b"}
    )
    text = run("info", "m.safetensors", cwd=tmp_path).stdout
    assert b"\x1b" not in text
    assert b"\x07" not in text


def test_rewrap_at_a_url(tmp_path: Path) -> None:
    old, new = web_keys(tmp_path, "old", 1), web_keys(tmp_path, "new", 5)
    url = "step://m.safetensors"
    given = (f"--key={tmp_path / 'old'}", f"--new-key={tmp_path / 'new'}")
    with step_store():
        weights.save_file(tensors(), url, old)
        assert "--copy" in invoke("rewrap", *given, url, expect=2)
        invoke("rewrap", *given, "--copy", url)
        assert weights.load_file(url, new, framework="np").keys() == tensors().keys()


def test_rewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = web_keys(tmp_path, "old", 1), web_keys(tmp_path, "new", 5)
    path = tmp_path / "m.safetensors"
    weights.save_file(tensors(), path, old)
    before = path.read_bytes()
    made = run_json(
        "rewrap", "--key", "old", "--new-key", "new", "-o", "n", "m.safetensors", cwd=tmp_path
    )
    assert made == {"path": "n", "key_id": "new-enc", "sign_key_id": "new-sign"}
    assert path.read_bytes() == before
    assert_same(weights.load_file(tmp_path / "n", new, framework="np"), tensors())
    done = run(
        "rewrap", "--key", "old", "--new-key", "new", "-o", "n", path.name, cwd=tmp_path, expect=2
    )
    assert "n exists: use --force" in done.stderr.decode()
    run("rewrap", "--key", "old", "--new-key", "new", "-f", "-o", "n", path.name, cwd=tmp_path)
    command = ("--new-key-command", "cat new")
    assert run("rewrap", "--key", "old", *command, path.name, cwd=tmp_path).stdout == b""
    assert_same(weights.load_file(path, new, framework="np"), tensors())
    assert names(tmp_path) == {"old", "new", "n", "m.safetensors"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--new-key", "new"), 2, "give one key"),
        (("--key", "old"), 2, "give the new key"),
        (
            ("--key", "old", "--new-key", "new", "--new-key-env", "X"),
            2,
            "one of --new-key, --new-key-env",
        ),
        (("--key", "-", "--new-key", "-"), 2, "both keys"),
        (("--key", "old", "--new-key", "new", "-f"), 2, "--force is for --output"),
        (("--key", "old", "--new-key", "raw"), 2, "raw: the keys are not JSON"),
        (("--key", "new", "--new-key", "old"), 3, "m.safetensors: the signature is not this"),
        (("--key", "old", "--new-key", "absent"), 4, "absent: No such file"),
        (
            ("--key", "old", "--kms", "gcp-kms://x", "--new-key", "new"),
            2,
            "--kms needs a Tink keyset",
        ),
    ],
)
def test_a_rewrap_that_cannot_be(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    old = web_keys(tmp_path, "old", 1)
    web_keys(tmp_path, "new", 5)
    make_key(tmp_path, "raw")
    path = tmp_path / "m.safetensors"
    weights.save_file(tensors(), path, old)
    before = path.read_bytes()
    done = run("rewrap", *arguments, path.name, cwd=tmp_path, expect=code)
    assert message in done.stderr.decode()
    assert path.read_bytes() == before
    assert names(tmp_path) == {"old", "new", "raw", "m.safetensors"}

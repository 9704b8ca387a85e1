# SPDX-License-Identifier: Apache-2.0
"""`warpcipher rewrap` of a Tink keyset. The KMS is one of the test's own, so the command runs in
this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from warpcipher import formats, keys
from warpcipher.cli.rewrap import rewrap

tink = pytest.importorskip("tink")

OLD, NEW = "gcp-kms://old", "gcp-kms://new"


@pytest.fixture
def keyset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> formats.Keyset:
    """A keyset that OLD encrypts, in the file `keyset`."""
    from tink import aead, secret_key_access

    aead.register()
    primitives = {
        uri: tink.new_keyset_handle(aead.aead_key_templates.AES256_GCM).primitive(aead.Aead)
        for uri in (OLD, NEW)
    }

    class Client(tink.KmsClient):  # type: ignore[misc]
        def does_support(self, key_uri: str) -> bool:
            return key_uri in primitives

        def get_aead(self, key_uri: str) -> Any:
            return primitives[key_uri]

    monkeypatch.setattr("tink._kms_clients._kms_clients", [Client()])
    made = formats.Keyset.generate()
    handle = tink.json_proto_keyset_format.parse(made.to_json(), secret_key_access.TOKEN)
    text = tink.json_proto_keyset_format.serialize_encrypted(handle, primitives[OLD], b"")
    (tmp_path / "keyset").write_text(text)
    monkeypatch.chdir(tmp_path)
    return made


def call(*arguments: str) -> Result:
    return CliRunner().invoke(rewrap, arguments)


def held(path: str, kms: str) -> formats.Keyset:
    return formats.Keyset.from_json(keys.resolve(keys.from_tink(path, kms=kms)))


def test_in_place_and_to_another_file(keyset: formats.Keyset) -> None:
    before = Path("keyset").read_bytes()
    done = call("--kms", OLD, "--new-kms", NEW, "-o", "other", "--json", "keyset")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"path": "other", "kms": NEW}
    assert held("other", NEW) == keyset
    assert Path("keyset").read_bytes() == before
    assert call("--kms", OLD, "--new-kms", NEW, "-o", "other", "keyset").exit_code != 0
    Path("link").symlink_to("keyset")
    assert call("--kms", OLD, "--new-kms", NEW, "link").exit_code == 0
    assert held("keyset", NEW) == keyset
    assert Path("link").is_symlink()


@pytest.mark.usefixtures("keyset")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--new-kms", NEW),
        ("--kms", OLD, "--new-kms", NEW, "--key", "k"),
        ("--kms", OLD, "--new-kms", NEW, "--new-key", "k"),
        ("--kms", OLD, "--new-kms", NEW, "--force"),
        ("--kms", NEW, "--new-kms", OLD),
        ("--kms", OLD, "--new-kms", "https://x"),
    ],
)
def test_what_cannot_be_changes_nothing(arguments: tuple[str, ...]) -> None:
    before = Path("keyset").read_bytes()
    assert call(*arguments, "keyset").exit_code != 0
    assert Path("keyset").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["keyset"]

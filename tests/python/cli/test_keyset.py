# SPDX-License-Identifier: Apache-2.0
"""`warpcipher keyset`: what it changes, encrypts and decrypts as it says; no key is printed. Tink
reads the keysets in tests/interop."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from warpcipher import InvalidTag, formats
from warpcipher.cli.keygen import keyset


def call(*arguments: str | int | Path) -> Result:
    return CliRunner().invoke(keyset, [str(argument) for argument in arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "keyset.json"
    place.write_text(formats.Keyset.generate("AES128_GCM_HKDF_4KB").to_json())
    place.chmod(0o600)
    return place


def read(path: Path) -> formats.Keyset:
    return formats.Keyset.from_json(path.read_text())


def test_rotation_and_the_end_of_a_key(tmp_path: Path, path: Path) -> None:
    plain, sealed, back = (tmp_path / name for name in ("plain", "sealed", "back"))
    plain.write_bytes(b"text")
    first = read(path).primary
    formats.encrypt_file(plain, sealed, read(path))
    assert call("--rotate", path).exit_code == 0
    second = read(path).primary
    assert second.key_id != first.key_id
    assert second.value != first.value
    assert (second.segment_size, second.type_name) == (first.segment_size, first.type_name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    formats.decrypt_file(sealed, back, read(path))
    assert call("--disable", first.key_id, path).exit_code == 0
    with pytest.raises(InvalidTag):
        formats.decrypt_file(sealed, back, read(path))
    assert call("--enable", first.key_id, path).exit_code == 0
    assert call("--promote", first.key_id, path).exit_code == 0
    assert read(path).primary == first
    assert call("--delete", second.key_id, path).exit_code == 0
    assert read(path).keys == (first,)
    formats.decrypt_file(sealed, back, read(path))


def test_a_key_that_another_program_adds_meanwhile_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotated = formats.Keyset.rotated

    def meanwhile(old: formats.Keyset, template: str | None) -> formats.Keyset:
        other = path.with_name("other")
        other.write_text(rotated(old).to_json())
        other.replace(path)
        return rotated(old, template)

    monkeypatch.setattr(formats.Keyset, "rotated", meanwhile)
    done = call("--rotate", path)
    assert (done.exit_code, len(read(path).keys)) == (4, 2)
    assert "another program changed it meanwhile: nothing was written" in done.output
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_fresh_key_of_another_kind_waits(tmp_path: Path, path: Path) -> None:
    before, out = path.read_bytes(), tmp_path / "out.json"
    arguments = ("--add", "--template", "AES256_CTR_HMAC_SHA256_1MB", "-o", out, path)
    assert call(*arguments).exit_code == 0
    assert path.read_bytes() == before
    made = read(out)
    assert made.primary == read(path).primary
    assert (made.keys[1].mac_hash, made.keys[1].status) == ("sha256", "ENABLED")
    assert call(*arguments).exit_code == 2
    assert call("-f", *arguments).exit_code == 0


def test_the_list_shows_no_key(path: Path) -> None:
    call("--rotate", path)
    found = read(path)
    text = call(path).output
    (document,) = [json.loads(call("--json", path).output)]
    assert [entry["id"] for entry in document["keys"]] == [key.key_id for key in found.keys]
    assert [entry["primary"] for entry in document["keys"]] == [False, True]
    assert [len(line.split()) for line in text.splitlines()] == [8, 9]
    values = [entry["keyData"]["value"] for entry in json.loads(found.to_json())["key"]]
    for shown in (text, json.dumps(document)):
        assert not any(value in shown or value[10:30] in shown for value in values)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--disable", "ID"), "is the primary one, which encrypts: promote another"),
        (("--delete", "ID"), "is the primary one, which encrypts: promote another"),
        (("--promote", "5"), "the keyset has no key 5; there are "),
        (("--rotate", "--add"), "one change a call"),
        (("--template", "AES128_GCM_HKDF_4KB"), "--template is for a fresh key"),
        (("--rotate", "--template", "AES"), "unknown template 'AES'; there are "),
        (("-o", "x"), "-o is for a changed keyset"),
        (("--rotate", "-f"), "--force is for --output"),
    ],
)
def test_what_is_refused_leaves_the_keyset(
    path: Path, arguments: tuple[str, ...], says: str
) -> None:
    before = path.read_bytes()
    key_id = str(read(path).primary_key_id)
    done = call(*(key_id if one == "ID" else one for one in arguments), path)
    assert done.exit_code == 2
    assert says in done.output
    assert path.read_bytes() == before


def test_a_disabled_key_is_not_promoted(path: Path) -> None:
    first = read(path).primary_key_id
    call("--rotate", path)
    call("--disable", first, path)
    done = call("--promote", first, path)
    assert done.exit_code == 2
    assert "is DISABLED: enable it first" in done.output


def test_what_is_not_a_keyset(path: Path) -> None:
    for text, says in (
        ("{", "the keyset is not JSON"),
        ('{"encryptedKeyset": "AAAA"}', "the keyset is encrypted"),
    ):
        path.write_text(text)
        done = call("--rotate", path)
        assert done.exit_code == 2
        assert says in done.output
        assert path.read_text() == text

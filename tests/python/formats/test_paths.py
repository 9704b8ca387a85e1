# SPDX-License-Identifier: Apache-2.0
"""`formats.encrypt_file` and `decrypt_file`, from path to path: all of the target, or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from format_cases import paint
from warpcipher import InvalidTag, formats

KEY = bytes(range(32))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("size", [0, 5, 3_000_000])
def test_there_and_back(tmp_path: Path, size: int) -> None:
    plain, sealed, back = (tmp_path / name for name in ("plain", "sealed", "back"))
    plain.write_bytes(paint(size))
    plain.chmod(0o640)
    seen: list[int] = []
    count = formats.encrypt_file(plain, str(sealed), KEY, progress=seen.append)
    assert count == sealed.stat().st_size
    assert seen[-1] == size
    assert formats.info(sealed, KEY).candidates[0].format == "cobblestone-256"
    assert formats.decrypt_file(str(sealed), back, KEY, format="cobblestone-256") == size
    assert back.read_bytes() == plain.read_bytes()
    assert {path.stat().st_mode & 0o777 for path in (sealed, back)} == {0o640}


def test_a_target_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    plain, sealed, back = (tmp_path / name for name in ("plain", "sealed", "back"))
    plain.write_bytes(paint(3_000_000))
    formats.encrypt_file(plain, sealed, KEY)
    damaged = bytearray(sealed.read_bytes())
    damaged[-1] ^= 1
    sealed.write_bytes(damaged)
    with pytest.raises(InvalidTag):
        formats.decrypt_file(sealed, back, KEY)
    assert names(tmp_path) == ["plain", "sealed"]
    back.write_bytes(b"former")
    with pytest.raises(InvalidTag):
        formats.decrypt_file(sealed, back, KEY)
    with pytest.raises(FileExistsError, match="back"):
        formats.encrypt_file(plain, back, KEY, replace=False)
    assert back.read_bytes() == b"former"
    back.chmod(0o600)
    formats.encrypt_file(plain, back, KEY)
    assert back.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["back", "plain", "sealed"]


def test_what_is_refused(tmp_path: Path) -> None:
    plain, link = tmp_path / "plain", tmp_path / "link"
    plain.write_bytes(b"text")
    os.link(plain, link)
    for target in (plain, link):
        with pytest.raises(ValueError, match="is the source: name another target"):
            formats.encrypt_file(plain, target, KEY)
    assert plain.read_bytes() == b"text"
    for call in (formats.encrypt_file, formats.decrypt_file):
        with pytest.raises(FileNotFoundError):
            call(tmp_path / "none", tmp_path / "out", KEY)
        with plain.open("rb") as file:
            source: Any = file
            with pytest.raises(TypeError, match="source is BufferedReader: expected a path"):
                call(source, tmp_path / "out", KEY)
    with pytest.raises(TypeError, match=r"reader is str: .*; encrypt_file and decrypt_file take"):
        formats.encrypt_stream("a", "b", KEY)  # type: ignore[arg-type]
    assert names(tmp_path) == ["link", "plain"]


def test_what_an_opened_file_shows(tmp_path: Path) -> None:
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    plain.write_bytes(b"text")
    formats.encrypt_file(plain, sealed, KEY)
    with formats.open(str(sealed), KEY) as file:
        assert repr(file) == f"<DecryptedFile {str(sealed)!r}, cobblestone-256, 4 bytes>"
        assert file.name == str(sealed)
    assert repr(file).endswith("4 bytes, closed>")

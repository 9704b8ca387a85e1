# SPDX-License-Identifier: Apache-2.0
"""Files that get their names when they are whole: what is on the disk, in which order."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from warpcipher.formats.replaced import replaced


@pytest.mark.parametrize("replace", [True, False])
def test_file_and_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool
) -> None:
    """The file before it has its name, then the folder: else a loss of power may undo the name."""
    place = tmp_path / "table"
    synced: list[tuple[str, bool]] = []

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        kind = "folder" if stat.S_ISDIR(status.st_mode) else "file"
        if kind == "folder":
            assert os.path.samestat(status, tmp_path.stat())
        synced.append((kind, place.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with replaced(place, replace=replace) as file:
        file.write(b"whole")
    assert synced == [("file", False), ("folder", True)]
    assert place.read_bytes() == b"whole"


def test_a_folder_that_cannot_be_synced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    with replaced(tmp_path / "table") as file:
        file.write(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["table"]

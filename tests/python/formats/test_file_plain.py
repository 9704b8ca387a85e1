# SPDX-License-Identifier: Apache-2.0
"""Bytes of files that are not encrypted, read and written on all cores; tests/gpu does it with a
GPU."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
from pathlib import Path

import pytest
from format_cases import paint
from warpcipher.formats import FormatError
from warpcipher.formats.file_chunks import read_plain
from warpcipher.formats.write_chunks import Texts, write_plain

SIZE = (9 << 20) + 5
"""Of several pieces."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "x"
    path.write_bytes(paint(SIZE))
    return path


def test_ranges(stored: Path) -> None:
    plain = stored.read_bytes()
    with stored.open("rb") as file:
        for begin, length in ((0, SIZE), (1, SIZE - 1), (SIZE, 0), (SIZE - 1, 1), (77, 4 << 20)):
            out = bytearray(b"\xa5" * (length + 2))
            read_plain(file.fileno(), begin, memoryview(out)[1:-1])
            assert bytes(out) == b"\xa5" + plain[begin : begin + length] + b"\xa5"
        assert file.tell() == 0


def test_a_file_that_ends(stored: Path) -> None:
    with stored.open("rb") as file:
        for begin in (0, SIZE - 3, SIZE, SIZE + 7):
            end = max(begin, SIZE)
            with pytest.raises(FormatError, match=f"ended at byte {end} while it was read"):
                read_plain(file.fileno(), begin, bytearray(SIZE + 8 - min(begin, SIZE)))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="byte 3 of the file") as failed:
            read_plain(directory, 3, bytearray(9))
    finally:
        os.close(directory)
    assert failed.value.errno == errno.EISDIR
    with pytest.raises(OSError, match="Bad file descriptor"):
        read_plain(directory, 0, bytearray(9))


def test_bad_arguments(stored: Path) -> None:
    with stored.open("rb") as file:
        with pytest.raises(ValueError, match=r"expected at most 2\^62"):
            read_plain(file.fileno(), (1 << 62) + 1, bytearray(1))
        with pytest.raises(BufferError, match="read-only"):
            read_plain(file.fileno(), 0, b"constant")


def texts(*parts: bytes) -> Texts:
    return Texts([memoryview(part) for part in parts], [], None, sum(map(len, parts)))


@pytest.mark.parametrize("folder", ["/dev/shm", None])  # noqa: S108  # a tmpfs, which is mapped
def test_parts_are_written_one_after_another(folder: str | None) -> None:
    whole = paint(SIZE)
    for ends in ((0, SIZE), (0, 1, 1, 4 << 20, SIZE), (0, 5000, (4 << 20) + 1, SIZE - 1, SIZE)):
        parts = [whole[a:b] for a, b in itertools.pairwise(ends)]
        with tempfile.TemporaryFile(dir=folder) as file:
            write_plain(file.fileno(), texts(*parts, b""))
            assert file.read() == whole
    with tempfile.TemporaryFile(dir=folder) as file:
        write_plain(file.fileno(), texts())
        assert file.read() == b""


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"as it was")
    for path, mode, says in (
        (tmp_path / "x", "rb", "Bad file descriptor: at byte 0 of the file"),
        (Path("/dev/full"), "r+b", "No space left on device: at byte"),
    ):
        with path.open(mode) as file, pytest.raises(OSError, match=says):
            write_plain(file.fileno(), texts(bytes(SIZE)))
    assert (tmp_path / "x").read_bytes() == b"as it was"

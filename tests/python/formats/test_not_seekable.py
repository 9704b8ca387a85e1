# SPDX-License-Identifier: Apache-2.0
"""Only a regular file is read at any place: a FIFO, a socket or a terminal under its name is an
error at once, and nothing waits for a program that never writes."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import names, run
from warpcipher import formats, parquet
from warpcipher._descriptors import open_seekable
from warpcipher.parquet.kms import material_path

# In a process of its own, which a FIFO that is opened would keep for ever.
OPEN = """
import sys
from warpcipher import formats, parquet, weights
key, table, index = bytes(16), sys.argv[1], ".safetensors.index.json"
client = type("Client", (), {"wrap_key": min, "unwrap_key": min})()
external = b'{"keyMaterialType": "PKMT1", "internalStorage": false, "keyReference": "k"}'
ways = {
    "formats.open": lambda path: formats.open(path, key),
    "formats.info": formats.info,
    "load_file": lambda path: weights.load_file(path, framework="numpy"),
    "load_file with a key": lambda path: weights.load_file(path, key, framework="numpy"),
    "load_file of an index": lambda path: weights.load_file(path + index, framework="numpy"),
    "parquet.open": parquet.open,
    "parquet.inspect": parquet.inspect,
    "KmsKeys": lambda path: parquet.KmsKeys(client, table)(external),
}
for name, way in ways.items():
    try: way(table)
    except OSError as error: print(name, error.errno, error.filename)
"""
FILES = {
    "formats.open": "t",
    "formats.info": "t",
    "load_file": "t",
    "load_file with a key": "t",
    "load_file of an index": "t.safetensors.index.json",
    "parquet.open": "t",
    "parquet.inspect": "t",
    "KmsKeys": Path(material_path("t")).name,
}
"""The way that each of these opens table or model `t`."""


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_every_way_to_open_a_file_refuses_it(tmp_path: Path, kind: str) -> None:
    for name in set(FILES.values()):
        if kind == "fifo":
            os.mkfifo(tmp_path / name)
        else:
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(os.fspath(tmp_path / name))
    done = subprocess.run(
        [sys.executable, "-c", OPEN, tmp_path / "t"], timeout=60, capture_output=True, check=True
    )
    expected = [f"{way} {errno.ESPIPE} {tmp_path / name}" for way, name in FILES.items()]
    assert done.stdout.decode().splitlines() == expected
    assert names(tmp_path) == set(FILES.values())


def test_terminals_and_folders_are_refused(tmp_path: Path) -> None:
    main, terminal = os.openpty()
    try:
        with pytest.raises(OSError, match="not a regular file") as refused:
            formats.open(os.ttyname(terminal), bytes(16))
        assert refused.value.errno == errno.ESPIPE
    finally:
        os.close(main)
        os.close(terminal)
    with pytest.raises(IsADirectoryError):
        formats.open(tmp_path, bytes(16))
    with pytest.raises(IsADirectoryError):
        parquet.open(tmp_path)


def test_a_fifo_that_takes_the_name_after_the_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without O_NONBLOCK this would wait for ever: a writer at the other end ends the wait."""
    path = tmp_path / "a"
    path.write_bytes(b"text")
    before = path.stat()
    path.unlink()
    os.mkfifo(path)
    writer = subprocess.Popen([sys.executable, "-c", f"open({os.fspath(path)!r}, 'wb').close()"])
    monkeypatch.setattr(os, "stat", lambda _: before)
    try:
        with pytest.raises(OSError, match="not a regular file"):
            open_seekable(path)
    finally:
        writer.kill()
        writer.wait()


def test_commands_end_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.parquet")
    done = run("parquet", "info", "t.parquet", cwd=tmp_path, expect=4)
    assert done.stderr == b"warpcipher: t.parquet: not a regular file, which this needs\n"


def test_key_material_without_end_is_not_read(tmp_path: Path) -> None:
    path = Path(material_path(tmp_path / "t"))
    with path.open("wb") as file:
        file.truncate(1 << 40)  # without a byte on the disk
    client = type("Client", (), {"wrap_key": min, "unwrap_key": min})()
    keys = parquet.KmsKeys(client, tmp_path / "t")
    external = b'{"keyMaterialType": "PKMT1", "internalStorage": false, "keyReference": "k"}'
    with pytest.raises(formats.FormatError, match="has more than 16777216 bytes"):
        keys(external)

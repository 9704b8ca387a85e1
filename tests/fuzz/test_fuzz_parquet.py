# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the reader of encrypted Parquet: files of random options, changed at random.

Whatever the change, a reader gives the documented errors. What it gives of a file whose footer and
pages are all authenticated is the table. Files that were not changed are read the same on every way
there is: by pyarrow, as a table, as an image, as chunks.
"""

from __future__ import annotations

import contextlib
import io
import random
from array import array
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import (
    CTR,
    GCM,
    KEY,
    KEYS,
    modules_of,
    pa,
    pq,
    read_plain,
    table,
    write,
)
from warpcipher import _native, parquet
from warpcipher.formats import FormatError

REFUSED = (wc.InvalidTag, FormatError, ValueError)


def plain_file(choose: random.Random) -> tuple[bytes, Any]:
    """A file without encryption, and its table. pyarrow 26 writes some files that it cannot read,
    of a column of nulls alone for one: these are drawn again."""
    while True:
        content = table(choose.choice((0, 1, 7, 120))).select(
            choose.sample(["a", "s", "l", "t"], choose.randint(1, 4))
        )
        shape = {
            "row_group_size": choose.choice((1, 50, 200)),
            "data_page_size": choose.choice((1, 200, 1 << 20)),
            "write_batch_size": choose.choice((1, 16, 500)),
            "data_page_version": choose.choice(("1.0", "2.0")),
            "compression": choose.choice(("none", "snappy", "zstd")),
            "use_dictionary": choose.random() < 0.5,
            "write_page_index": choose.random() < 0.5,
            "write_page_checksum": choose.random() < 0.3,
        }
        data = write(content, None, **shape)
        with contextlib.suppress(pa.ArrowInvalid):
            if read_plain(data).equals(content):
                return data, content


def made(choose: random.Random) -> tuple[bytes, Any, Any, bool]:
    """A file, its keys, its table, and whether all of it is authenticated."""
    plain, content = plain_file(choose)
    algorithm = choose.choice((GCM, CTR))
    signed = choose.random() < 0.3
    names = [name for name in content.column_names if choose.random() < 0.3]
    config = parquet.EncryptionConfig(
        KEYS[choose.choice((16, 24, 32))],
        algorithm=algorithm,
        plaintext_footer=signed,
        column_keys={name: KEYS[choose.choice((16, 24, 32))] for name in names},
        column_key_metadata={name: name.encode() for name in names},
    )
    sink = io.BytesIO()
    parquet.encrypt(plain, sink, config)
    keys: dict[Any, bytes] = {b"": config.footer_key}
    keys |= {name.encode(): key for name, key in config.column_keys.items()}
    return sink.getvalue(), keys, content, algorithm == GCM and not signed


def changed(data: bytes, choose: random.Random, modules: list[Any]) -> bytes:
    """The file with one to three changes."""
    out = bytearray(data)
    for _ in range(choose.randint(1, 3)):
        at = min(int(choose.choice((choose.random(), choose.random() ** 8)) * len(out)), len(out))
        at = choose.choice((at, len(out) - at, choose.choice(modules).start))
        kind = choose.choice(("flip", "length", "cut", "insert", "copy", "end"))
        if not out[at : at + 1]:
            continue
        if kind == "flip":
            out[at] ^= 1 << choose.randrange(8)
        elif kind == "length":
            value = choose.choice((0, 12, 27, 28, 255, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFF))
            out[at : at + 4] = value.to_bytes(4, "little")
        elif kind == "cut":
            del out[at : at + choose.choice((1, 16, 500))]
        elif kind == "insert":
            out[at:at] = choose.randbytes(choose.choice((1, 16, 500)))
        elif kind == "copy":
            one, other = choose.choice(modules), choose.choice(modules)
            out[one.start : one.end] = data[other.start : other.end]
        else:
            del out[at:]
    return bytes(out)


@pytest.mark.cases(12)
def test_every_way_reads_the_same(choose: random.Random, tmp_path: Path) -> None:
    data, keys, content, _ = made(choose)
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    assert parquet.read_table(path, keys).equals(content)
    image = parquet.to_plain(data, keys)
    assert read_plain(image).equals(content)
    assert pq.ParquetFile(io.BytesIO(image)).read().equals(content)
    with parquet.open(path, keys) as file:
        chunks = file.column_chunks().chunks
        assert [bytes(chunk.data) for chunk in chunks] == [
            bytes(image[chunk.offset : chunk.offset + len(chunk.data)]) for chunk in chunks
        ]


@pytest.mark.cases(60)
def test_changes_are_refused_or_change_nothing(choose: random.Random) -> None:
    data, keys, content, authenticated = made(choose)
    damaged = changed(data, choose, modules_of(data, keys))
    for read in (
        lambda: read_plain(parquet.to_plain(damaged, keys)),
        lambda: parquet.read_table(damaged, keys),
    ):
        try:
            found = read()
        except REFUSED:
            continue
        except OSError:  # of pyarrow, which decodes what has no tag
            assert not authenticated
            continue
        assert not authenticated or found.equals(content)


@pytest.mark.cases(100)
def test_modules_are_found_in_a_file_as_in_its_bytes(choose: random.Random, tmp_path: Path) -> None:
    data = bytearray()
    for _ in range(choose.randrange(8)):
        size = choose.choice((12, 28, 60, 505, 2000, choose.randrange(12, 700)))
        data += size.to_bytes(4, "little") + choose.randbytes(size)
    if data and choose.random() < 0.7:
        data = bytearray(changed(bytes(data), choose, [Start(0)]))
    path = tmp_path / "modules"
    path.write_bytes(data)
    chunk = array("Q", (0, len(data), 0, 0, True, choose.random() < 0.5))  # SealedChunk
    outcomes = []
    with path.open("rb") as file:
        for source in (bytes(data), file.fileno()):
            out = bytearray(len(data))
            options = [KEY], array("Q", [0]), False, b"", out, 0, "auto", 0
            outcomes.append(_native.open_chunks(source, chunk, *options))
    assert outcomes[0] == outcomes[1]


class Start:
    """A module of which only the beginning is known."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start

# SPDX-License-Identifier: Apache-2.0
"""age's own test vectors (tests/vectors/SOURCES.md), each by the stream reader and by `open`."""

from __future__ import annotations

import hashlib
import io
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from warpcipher import InvalidTag, formats
from warpcipher.formats import age, layout
from warpcipher.formats.whole import read_whole

pytest.importorskip("cryptography")

FOLDER = Path(__file__).parents[2] / "vectors" / "age"
NAMES = sorted(path.name for path in FOLDER.iterdir())
FIELDS = {
    "expect",
    "payload",
    "file key",
    "identity",
    "passphrase",
    "armored",
    "compressed",
    "comment",
}
FAILURES: dict[str, type[Exception] | tuple[type[Exception], ...]] = {
    "no match": InvalidTag,
    "HMAC failure": InvalidTag,
    "header failure": formats.FormatError,
    "armor failure": formats.FormatError,
    "payload failure": (InvalidTag, formats.FormatError),
}


@dataclass
class Vector:
    """One of the files. identities: their text."""

    expect: str
    payload: str
    data: bytes
    identities: list[str] = field(default_factory=list)
    passphrases: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, name: str) -> Vector:
        head, _, data = (FOLDER / name).read_bytes().partition(b"\n\n")
        pairs = [line.split(": ", 1) for line in head.decode().splitlines()]
        assert {key for key, _ in pairs} <= FIELDS
        values = dict(pairs)
        if values.get("compressed") == "zlib":
            data = zlib.decompress(data)
        return cls(
            values["expect"],
            values.get("payload", ""),
            data,
            [value for key, value in pairs if key == "identity"],
            [value for key, value in pairs if key == "passphrase"],
        )

    @property
    def key(self) -> list[Any]:
        if not self.identities and not self.passphrases:
            return [age.Identity.generate()]
        return [
            *(one for text in self.identities for one in age.identities(text)),
            *(age.Passphrase(text) for text in self.passphrases),
        ]


VECTORS = {name: Vector.read(name) for name in NAMES}


def decrypt_by_stream(vector: Vector) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(vector.data), out, vector.key, format="age")
    return out.getvalue()


def decrypt_by_open(vector: Vector) -> bytes:
    with formats.open(io.BytesIO(vector.data), vector.key, format="age") as file:
        return file.read()


@pytest.mark.parametrize("decrypt", [decrypt_by_stream, decrypt_by_open])
@pytest.mark.parametrize("name", NAMES)
def test_vector(name: str, decrypt) -> None:
    vector = VECTORS[name]
    if vector.expect == "success":
        assert hashlib.sha256(decrypt(vector)).hexdigest() == vector.payload
        return
    with pytest.raises(FAILURES[vector.expect]):
        decrypt(vector)


# The last chunk of these is authentic as one in the middle, or one in the middle as the last. age
# gives it out and fails then; it does not come out here, where the size says which it must be.
KEPT_BACK = {
    "armor_garbage_encoded",
    "stream_no_final_full",
    "stream_no_final_two_chunks_full",
    "stream_trailing_garbage_long",
    "stream_trailing_garbage_short",
    "stream_two_final_chunks",
    "stream_two_final_chunks_full",
    "stream_two_final_chunks_second",
}


@pytest.mark.parametrize(
    "name", [name for name in NAMES if VECTORS[name].expect == "payload failure"]
)
def test_what_is_authentic_comes_out_before_the_failure(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", 1)  # a chunk a piece
    vector = VECTORS[name]
    out = bytearray()
    with pytest.raises((InvalidTag, formats.FormatError)):
        release(vector, out)
    assert (hashlib.sha256(out).hexdigest() == vector.payload) == (name not in KEPT_BACK)


def release(vector: Vector, out: bytearray) -> None:
    """Decrypts chunk after chunk."""
    chosen = formats.get("age")
    inner = chosen.unwrapped(vector.data, io.BytesIO(vector.data))
    data = bytearray(vector.data)
    if inner is not None:
        del data[read_whole(inner, memoryview(data)) :]
    decryptor = chosen.decryptor(vector.key, data, formats.Options())
    rest = memoryview(data)[decryptor.layout.header_size :]
    while True:
        piece, rest = rest[: decryptor.piece], rest[decryptor.piece :]
        text = bytearray(decryptor.capacity)
        count = decryptor.process(piece, memoryview(text), final=not rest)
        out += text[:count]
        if not rest:
            return


def test_each_outcome_is_there() -> None:
    found = {VECTORS[name].expect for name in NAMES}
    assert found == {"success", *FAILURES}

# SPDX-License-Identifier: Apache-2.0
"""The file formats as the tests see them: keys, options, and chunks small enough to have many."""

from __future__ import annotations

import importlib.util
import io
from dataclasses import dataclass, field

from warpcipher import formats
from warpcipher.formats import age
from warpcipher.formats.tink_keyset import StreamingKey


def paint(size: int) -> bytes:
    """Bytes in which a shifted, swapped or repeated block shows: a counter in every 4 bytes."""
    return b"".join(i.to_bytes(4, "little") for i in range((size + 3) // 4))[:size]


def streaming_key(
    key_id: int,
    *,
    segment_size: int,
    mac_hash: str | None = None,
    size: int = 16,
    **changes: object,
) -> StreamingKey:
    """A Tink key with a fixed value and a segment of any size."""
    values: dict[str, object] = {
        "key_id": key_id,
        "status": "ENABLED",
        "output_prefix": "RAW",
        "segment_size": segment_size,
        "derived_key_size": size,
        "hkdf_hash": "sha256",
        "mac_hash": mac_hash,
        "tag_size": 16 if mac_hash is None else 32,
        "value": bytes((key_id + i) % 256 for i in range(size)),
    }
    return StreamingKey(**{**values, **changes})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    """One authenticated format with a key. wrong_key: another key of the same kind."""

    name: str
    format: str
    key: object = field(repr=False)
    wrong_key: object = field(repr=False)
    header: int
    chunk: int
    first_chunk: int
    overhead: int
    context: bytes = b"tests"

    @property
    def options(self) -> formats.Options:
        return formats.Options(context=self.context)

    @property
    def secret(self) -> bytes:
        """The secret that no error may show."""
        if isinstance(self.key, formats.Keyset):
            return self.key.primary.value
        if isinstance(self.key, age.Identity):
            return self.key.secret
        assert isinstance(self.key, bytes)
        return self.key

    def encrypt(self, plain: bytes) -> bytes:
        out = io.BytesIO()
        written = formats.encrypt_stream(
            io.BytesIO(plain), out, self.key, format=self.format, options=self.options
        )
        assert written == len(out.getvalue())
        return out.getvalue()

    def decrypt(self, sealed: bytes, **changes: object) -> bytes:
        out = io.BytesIO()
        self.decrypt_to(out, sealed, **changes)
        return out.getvalue()

    def decrypt_to(self, out: io.BytesIO, sealed: bytes, **changes: object) -> None:
        """Decrypts; changes: another `key` or `options`."""
        arguments = {"key": self.key, "options": self.options, **changes}
        formats.decrypt_stream(io.BytesIO(sealed), out, format=self.format, **arguments)

    def sizes(self) -> list[int]:
        """Plaintext sizes at every edge."""
        edges = {0, 1, 15, 16, 17}
        for chunks in (1, 2, 3, 9):
            end = self.first_chunk + (chunks - 1) * self.chunk
            edges |= {end - 1, end, end + 1}
        return sorted(edges)

    def chunk_starts(self, sealed: bytes) -> list[int]:
        """File offsets of the chunks, and the end of the file."""
        starts = [self.header]
        following = self.header + self.first_chunk + self.overhead
        while following < len(sealed):
            starts.append(following)
            following += self.chunk + self.overhead
        return [*starts, len(sealed)]


def tink_case(name: str, *, segment_size: int, mac_hash: str | None = None, size: int = 16) -> Case:
    key = streaming_key(7, segment_size=segment_size, mac_hash=mac_hash, size=size)
    other = streaming_key(99, segment_size=segment_size, mac_hash=mac_hash, size=size)
    chunk = segment_size - key.tag_size
    return Case(
        name=name,
        format="tink",
        key=formats.Keyset((key,), 7),
        wrong_key=formats.Keyset((other,), 99),
        header=key.header_size,
        chunk=chunk,
        first_chunk=chunk - key.header_size,
        overhead=key.tag_size,
    )


COBBLESTONES = [
    Case(
        name=f"cobblestone-{bits}",
        format=f"cobblestone-{bits}",
        key=bytes(range(bits // 8)),
        wrong_key=bytes(range(1, bits // 8 + 1)),
        header=56,
        chunk=16384,
        first_chunk=16384,
        overhead=16,
    )
    for bits in (128, 256)
]

SMALL_SEGMENTS = [
    tink_case("tink-gcm-128", segment_size=96),
    tink_case("tink-gcm-256", segment_size=131, size=32),
    tink_case("tink-ctr-128", segment_size=128, mac_hash="sha256"),
    tink_case("tink-ctr-256", segment_size=191, mac_hash="sha512", size=32),
]

AGE = Case(
    name="age",
    format="age",
    key=age.Identity(bytes(range(32))),
    wrong_key=age.Identity(bytes(range(1, 33))),
    header=184,
    chunk=1 << 16,
    first_chunk=1 << 16,
    overhead=16,
    context=b"",
)

# Keys for people need this package.
HAS_CRYPTOGRAPHY = importlib.util.find_spec("cryptography") is not None
CASES = [*COBBLESTONES, *SMALL_SEGMENTS, *([AGE] if HAS_CRYPTOGRAPHY else [])]

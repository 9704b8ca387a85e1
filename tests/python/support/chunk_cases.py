# SPDX-License-Identifier: Apache-2.0
"""Files of chunks, made by pyca/cryptography's AESGCM, and the columns that describe them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from warpcipher import formats

GCM = "aes-256-gcm"


@dataclass
class Chunks:
    """A file of chunks of any layout, and the columns that describe it."""

    data: bytearray
    plain: list[bytes]
    keys: list[bytes]
    columns: dict[str, Any] = field(default_factory=dict)

    def expected(self) -> bytes:
        skips = self.columns.get("skips") or [0] * len(self.plain)
        takes = self.columns.get("takes") or [len(text) for text in self.plain]
        return b"".join(
            text[skip : skip + take]
            for text, skip, take in zip(self.plain, skips, takes, strict=True)
        )

    def read(self, source: Any, out: Any, **changes: Any) -> None:
        formats.read_chunks(source, GCM, self.keys, out, **{**self.columns, **changes})


def make_chunks(
    seed: int,
    lengths: list[int],
    *,
    keys: int = 1,
    iv_in_file: bool = False,
    tags_given: bool = False,
    aad: bool = False,
    gaps: bool = False,
    parts: bool = False,
) -> Chunks:
    draw = random.Random(seed)
    made = Chunks(bytearray(draw.randbytes(draw.randrange(80))), [], [])
    made.keys = [draw.randbytes(32) for _ in range(keys)]
    nonces, tags, texts, offsets, key_index = b"", b"", b"", [], []
    ranges: list[tuple[int, int]] = []
    for length in lengths:
        plain, nonce = draw.randbytes(length), draw.randbytes(12)
        text = draw.randbytes(draw.randrange(30)) if aad else b""
        number = draw.randrange(keys)
        sealed = AESGCM(made.keys[number]).encrypt(nonce, plain, text)
        if gaps:
            made.data += draw.randbytes(draw.randrange(50))
        offsets.append(len(made.data))
        made.data += (nonce if iv_in_file else b"") + sealed[:length]
        made.data += b"" if tags_given else sealed[length:]
        made.plain.append(plain)
        key_index.append(number)
        ranges.append((len(texts), len(text)))
        texts, nonces, tags = texts + text, nonces + nonce, tags + sealed[length:]
    made.columns = {"offsets": offsets, "lengths": lengths, "ivs": None if iv_in_file else nonces}
    if keys > 1:
        made.columns["key_index"] = key_index
    if tags_given:
        made.columns["tags"] = tags
    if aad:
        made.columns["aad"] = texts
        made.columns["aad_offsets"] = [start for start, _ in ranges]
        made.columns["aad_lengths"] = [size for _, size in ranges]
    if parts:
        skips = [draw.randrange(length + 1) for length in lengths]
        made.columns["skips"] = skips
        made.columns["takes"] = [
            draw.randrange(length - skip + 1) for length, skip in zip(lengths, skips, strict=True)
        ]
    return made

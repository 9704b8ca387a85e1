# SPDX-License-Identifier: Apache-2.0
"""Encrypted modules: their layout, their AADs, and batches of them (Encryption.md 4.4, 5.1).

    GCM  length u32 LE | nonce 12 | ciphertext | tag 16
    CTR  length u32 LE | nonce 12 | ciphertext           only pages of AES_GCM_CTR_V1

The length counts what follows it. AAD = prefix || file's unique || kind || row group || column
|| page, ordinals as i16 LE; the footer has no ordinals, and only data pages and their headers have
the last.
"""

from __future__ import annotations

import contextlib
import secrets
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import warpcipher as wc

from .. import _native
from .._types import AlgorithmName, Buffer
from ..formats import FormatError
from ..formats.base import wipe

GCM = "AES_GCM_V1"
GCM_CTR = "AES_GCM_CTR_V1"
ALGORITHMS = (GCM, GCM_CTR)
LENGTH, NONCE, TAG = 4, 12, 16
OVERHEAD = LENGTH + NONCE + TAG
CTR_OVERHEAD = LENGTH + NONCE
UNIQUE = 8
"""Bytes of the file's own part of each AAD, as pyarrow, Polars and parquet-java make them. AADs
have no boundary between it and the prefix."""
MOST_ORDINAL = 32767
"""Of a chunk: a header and a page for each data page, and for the dictionary."""

_I16 = struct.Struct("<h").pack
_TWO = struct.Struct("<Bhh").pack
_U32 = struct.Struct("<I").unpack_from


class Kind(IntEnum):
    """Kinds of modules, with the format's numbers."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


Column: TypeAlias = Sequence[int]
"""A memoryview of 64-bit integers, or another sequence: an entry a module."""


def column(data: bytes) -> memoryview:
    """A column that native code gave as bytes."""
    return memoryview(data).cast("Q")


class Aads(NamedTuple):
    """The AADs of some modules, back to back, and their sizes."""

    data: bytes
    sizes: Column


class Place(NamedTuple):
    """Which module: its kind, the row group, the column's ordinal and name, the page."""

    kind: Kind
    row_group: int = -1
    column: int = -1
    name: str = ""
    page: int = -1

    def __str__(self) -> str:
        if self.kind == Kind.FOOTER:
            return "the footer"
        page = f", page {self.page}" if self.page >= 0 else ""
        return f"column {self.name}, row group {self.row_group}{page}, {self.kind}"


class FileCrypto(NamedTuple):
    """Common to all modules of a file. aad: the prefix and the file's unique bytes."""

    algorithm: str
    aad: bytes

    @property
    def page_overhead(self) -> int:
        """Bytes that a page grows by."""
        return CTR_OVERHEAD if self.algorithm == GCM_CTR else OVERHEAD

    def module_aad(self, place: Place) -> bytes:
        """The AAD of a module."""
        if place.kind == Kind.FOOTER:
            return self.aad + b"\0"
        found = self.aad + _TWO(place.kind, place.row_group, place.column)
        has_page = place.kind in (Kind.DATA_PAGE, Kind.DATA_PAGE_HEADER)
        return found + _I16(place.page) if has_page else found

    def page_aads(
        self, row_group: int, column_: int, dictionary: bool, count: int
    ) -> tuple[Aads, Aads]:
        """The AADs of the headers and of the pages of a chunk with `count` pages in all."""
        heads, pages, sizes = _native.page_aads(self.aad, row_group, column_, dictionary, count)
        return Aads(heads, column(sizes)), Aads(pages, column(sizes))


def _empty() -> array[int]:
    return array("Q")


class ModuleBatch:
    """Modules in host memory that are encrypted in as few runs as there are algorithms: one, unless
    a file has keys of several sizes, or pages in CTR."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._groups: dict[str, _Group] = {}

    def add(
        self, key: bytes, modules: Column, plain: Column, lengths: Column, aads: Aads | None
    ) -> None:
        """Adds modules under one key.

        modules: where each begins in the output, at its length. plain: where each plaintext begins
        in the input. lengths: of the plaintexts. aads: None for pages in CTR.
        """
        mode = "ctr" if aads is None else "gcm"
        group = self._groups.setdefault(f"aes-{8 * len(key)}-{mode}", _Group())
        number = group.keys.setdefault(key, len(group.keys))
        group.key_index.extend(array("Q", [number]) * len(modules))
        group.modules.extend(modules)
        group.plain.extend(plain)
        group.lengths.extend(lengths)
        if aads is not None:
            group.aads.append(aads.data)
            group.aad_sizes.extend(aads.sizes)

    def run(self, data: Buffer, out: Buffer) -> None:
        """Encrypts them under fresh nonces. Data and out must not overlap."""
        for algorithm, group in self._groups.items():
            counted = algorithm.endswith("ctr")
            fresh = secrets.token_bytes(NONCE * len(group.modules))
            texts, ivs = _native.write_module_heads(
                out, group.modules, group.lengths, fresh, counted
            )
            wc.run_columns(
                cast("AlgorithmName", algorithm),
                "encrypt",
                list(group.keys),
                data,
                lengths=group.lengths,
                offsets=group.plain,
                key_index=group.key_index if len(group.keys) > 1 else None,
                ivs=ivs,
                out=out,
                out_offsets=column(texts),
                engine=self._engine,
                **({} if counted else _ranges(b"".join(group.aads), group.aad_sizes)),
            ).raise_for_status()


@dataclass(slots=True)
class _Group:
    """The modules of one algorithm."""

    keys: dict[bytes, int] = field(default_factory=dict)
    key_index: array[int] = field(default_factory=_empty)
    modules: array[int] = field(default_factory=_empty)
    plain: array[int] = field(default_factory=_empty)
    lengths: array[int] = field(default_factory=_empty)
    aad_sizes: array[int] = field(default_factory=_empty)
    aads: list[bytes] = field(default_factory=list)


def _ranges(aads: bytes, sizes: Column) -> dict[str, Any]:
    """AADs that lie back to back, as `run_columns` takes them."""
    starts = array("Q", accumulate(sizes, initial=0))[:-1]
    return {"aad": aads, "aad_lengths": sizes, "aad_offsets": starts}


def wipe_any(buffer: Any) -> None:
    """Zeros a buffer in host memory, or an array of a device."""
    if isinstance(buffer, (bytearray, memoryview)):
        wipe(buffer)
        return
    with contextlib.suppress(Exception):  # of a device that failed: the error under way says more
        buffer[...] = 0


def not_authentic(place: Place | str) -> Exception:
    """The error of a module whose tag does not match."""
    error: Exception = wc.InvalidTag(
        f"{place}: failed authentication: wrong key or AAD prefix, or it was damaged, exchanged or "
        "moved"
    )
    return error


def open_modules(
    modules: Sequence[tuple[Buffer, bytes, Place]], crypto: FileCrypto, engine: str = "auto"
) -> list[bytes]:
    """The plaintexts of GCM modules, each (module from its length on, key, place), in as few runs
    as there are sizes of keys."""
    found = [b""] * len(modules)
    for key_size in {len(key) for _, key, _ in modules}:
        numbers = [i for i, (_, key, _) in enumerate(modules) if len(key) == key_size]
        keys: dict[bytes, int] = {}
        data, ivs, aads, index = bytearray(), bytearray(), [], []
        ends = [0]
        for number in numbers:
            module, key, place = modules[number]
            view = memoryview(module).cast("B")
            if len(view) < OVERHEAD or _U32(view)[0] != len(view) - LENGTH:
                raise FormatError(f"{place}: {len(view)} bytes, and its length says otherwise")
            ivs += view[LENGTH : LENGTH + NONCE]
            data += view[LENGTH + NONCE :]
            ends.append(len(data))
            aads.append(crypto.module_aad(place))
            index.append(keys.setdefault(key, len(keys)))
        lengths = [end - start for start, end in pairwise(ends)]
        out = bytearray(len(data))
        done = wc.run_columns(
            cast("AlgorithmName", f"aes-{8 * key_size}-gcm"),
            "decrypt",
            list(keys),
            data,
            lengths=lengths,
            offsets=ends[:-1],
            key_index=index,
            ivs=ivs,
            out=out,
            out_offsets=ends[:-1],
            engine=engine,
            **_ranges(b"".join(aads), array("Q", map(len, aads))),
        )
        for number, status, start, length in zip(numbers, done.status, ends, lengths, strict=False):
            if status != wc.Status.OK:
                wipe(out)
                raise not_authentic(modules[number][2])
            found[number] = bytes(out[start : start + length - TAG])
    return found


def seal_modules(
    texts: Sequence[tuple[bytes, bytes, Place]], crypto: FileCrypto, engine: str = "auto"
) -> list[bytes]:
    """The GCM modules of plaintexts, each (plaintext, key, place), under fresh nonces."""
    batch = ModuleBatch(engine)
    ends = [0]
    start = 0
    for text, key, place in texts:
        aad = crypto.module_aad(place)
        batch.add(key, [ends[-1]], [start], [len(text)], Aads(aad, [len(aad)]))
        start += len(text)
        ends.append(ends[-1] + len(text) + OVERHEAD)
    out = bytearray(ends[-1])
    batch.run(b"".join(text for text, _, _ in texts), out)
    return [bytes(out[start:end]) for start, end in pairwise(ends)]

# SPDX-License-Identifier: Apache-2.0
"""Encrypted modules: their layout, their AADs, and runs over many of them (Encryption.md 4.4, 5.1).

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
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import warpcipher as wc

from .. import _native
from ..formats import FormatError
from ..formats.base import wipe
from ..formats.file_chunks import failure_of, raise_failure

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .._types import AlgorithmName

FOOTER, COLUMN_METADATA, DATA_PAGE, DICTIONARY_PAGE, DATA_HEADER, DICTIONARY_HEADER = range(6)
COLUMN_INDEX, OFFSET_INDEX, BLOOM_HEADER, BLOOM_BITSET = range(6, 10)
NAMES = (
    "footer",
    "column metadata",
    "data page",
    "dictionary page",
    "data page header",
    "dictionary page header",
    "column index",
    "offset index",
    "bloom filter header",
    "bloom filter bitset",
)

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

    kind: int
    row_group: int = -1
    column: int = -1
    name: str = ""
    page: int = -1

    def __str__(self) -> str:
        if self.kind == FOOTER:
            return "the footer"
        page = f", page {self.page}" if self.page >= 0 else ""
        return f"column {self.name}, row group {self.row_group}{page}, {NAMES[self.kind]}"


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
        if place.kind == FOOTER:
            return self.aad + b"\0"
        found = self.aad + _TWO(place.kind, place.row_group, place.column)
        return found + _I16(place.page) if place.kind in (DATA_PAGE, DATA_HEADER) else found

    def page_aads(
        self, row_group: int, column_: int, dictionary: bool, count: int
    ) -> tuple[Aads, Aads]:
        """The AADs of the headers and of the pages of a chunk with `count` pages in all."""
        heads, pages, sizes = _native.page_aads(self.aad, row_group, column_, dictionary, count)
        return Aads(heads, column(sizes)), Aads(pages, column(sizes))


class ModuleBatch:
    """Modules that are decrypted or encrypted in as few runs as there are algorithms: one, unless
    a file has keys of several sizes, or pages in CTR.

    Decryption: `add` takes positions of modules in the input and of plaintexts in the output.
    Encryption: the other way round; lengths and nonces are then written into the output.
    """

    def __init__(self, engine: str, *, encrypt: bool = False) -> None:
        self._engine = engine
        self._encrypt = encrypt
        self._groups: dict[tuple[str, bool], _Group] = {}

    def add(
        self,
        key: bytes,
        modules: Column,
        plain: Column,
        lengths: Column,
        aads: Aads | None,
        places: Callable[[int], Place],
    ) -> None:
        """Adds modules under one key.

        modules: where each begins, at its length. plain: where each plaintext begins. lengths: of
        the plaintexts. aads: None for pages in CTR. places: a function from the number of a module
        in this call to its `Place`, for errors.
        """
        mode = "gcm" if aads is not None else "ctr"
        algorithm = f"aes-{8 * len(key)}-{mode}"
        group = self._groups.setdefault((algorithm, aads is not None), _Group())
        group.add(key, modules, plain, lengths, aads, places)

    def run(self, data: Any, out: Any, nonces: memoryview | None = None) -> None:
        """Runs them. Data and out must not overlap.

        nonces: decryption reads the nonces from here; None: from data, which is then host memory.
        Raises InvalidTag with the place of the first module that is not authentic.
        """
        for (algorithm, authenticated), group in self._groups.items():
            group.run(algorithm, authenticated, self._encrypt, self._engine, data, out, nonces)

    def read(self, descriptor: int, out: Any) -> None:
        """Decrypts modules of a file, in GCM, into memory of a GPU: `add` was given their places
        in the file. Raises as `run`, and OSError."""
        for (algorithm, _), group in self._groups.items():
            group.read(algorithm, self._engine, descriptor, out)


class _Group:
    """The modules of one algorithm."""

    def __init__(self) -> None:
        self._keys: dict[bytes, int] = {}
        self._key_index = array("Q")
        self._modules = array("Q")
        self._plain = array("Q")
        self._lengths = array("Q")
        self._aads: list[bytes] = []
        self._aad_sizes = array("Q")
        self._places: list[tuple[int, Callable[[int], Place]]] = []

    def add(
        self,
        key: bytes,
        modules: Column,
        plain: Column,
        lengths: Column,
        aads: Aads | None,
        places: Callable[[int], Place],
    ) -> None:
        number = self._keys.setdefault(key, len(self._keys))
        self._places.append((len(self._modules), places))
        self._key_index.extend(array("Q", [number]) * len(modules))
        _extend(self._modules, modules)
        _extend(self._plain, plain)
        _extend(self._lengths, lengths)
        if aads is not None:
            self._aads.append(aads.data)
            _extend(self._aad_sizes, aads.sizes)

    def run(
        self,
        algorithm: str,
        authenticated: bool,
        encrypt: bool,
        engine: str,
        data: Any,
        out: Any,
        nonces: memoryview | None,
    ) -> None:
        count = len(self._modules)
        if not count:
            return
        heads: Any = data if nonces is None else nonces
        if encrypt:
            heads = out
            fresh = secrets.token_bytes(NONCE * count)
            _native.write_module_heads(out, self._modules, self._lengths, fresh, not authenticated)
        found = _native.module_texts(
            heads, self._modules, self._lengths, self._aad_sizes, not authenticated
        )
        texts, sealed, starts = map(column, found[:3])
        options: dict[str, Any] = {}
        if authenticated:
            options = {
                "aad": b"".join(self._aads),
                "aad_lengths": self._aad_sizes,
                "aad_offsets": starts,
            }
        many = len(self._keys) > 1
        done = wc.run_columns(
            cast("AlgorithmName", algorithm),
            "encrypt" if encrypt else "decrypt",
            list(self._keys) if many else next(iter(self._keys)),
            data,
            lengths=self._lengths if encrypt else sealed,
            offsets=self._plain if encrypt else texts,
            key_index=self._key_index if many else None,
            ivs=found[3],
            out=out,
            out_offsets=texts if encrypt else self._plain,
            engine=engine,
            **options,
        )
        try:
            done.raise_for_status()
        except wc.InvalidTag:
            wipe_any(out)
            bad = next(i for i, status in enumerate(done.status) if status != wc.Status.OK)
            raise not_authentic(self._place(bad)) from None

    def read(self, algorithm: str, engine: str, descriptor: int, out: Any) -> None:
        if not self._modules:
            return
        many = len(self._keys) > 1
        failure = failure_of(
            descriptor,
            algorithm,
            list(self._keys) if many else next(iter(self._keys)),
            out,
            None,
            key_index=self._key_index if many else None,
            out_offsets=self._plain,
            tag_length=TAG,
            # Each with the nonce before it.
            offsets=array("Q", [module + LENGTH for module in self._modules]),
            lengths=self._lengths,
            aad=b"".join(self._aads),
            aad_offsets=array("Q", accumulate(self._aad_sizes[:-1], initial=0)),
            aad_lengths=self._aad_sizes,
            engine=engine,
        )
        if failure is not None and failure[0] == "tag":
            raise not_authentic(self._place(failure[1]))
        if failure is not None:
            raise_failure(*failure)

    def _place(self, number: int) -> Place:
        first, places = next(entry for entry in reversed(self._places) if entry[0] <= number)
        return places(number - first)


def _extend(to: array[int], values: Column) -> None:
    if isinstance(values, memoryview):
        to.frombytes(values.cast("B"))
    else:
        to.extend(values)


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


def _always(place: Place) -> Callable[[int], Place]:
    return lambda _: place


def open_modules(
    modules: Sequence[tuple[Buffer, bytes, Place]], crypto: FileCrypto, engine: str = "auto"
) -> list[bytes]:
    """The plaintexts of GCM modules, each (module from its length on, key, place), in one batch."""
    data = bytearray()
    batch = ModuleBatch(engine)
    ends = [0]
    for module, key, place in modules:
        view = memoryview(module).cast("B")
        if len(view) < OVERHEAD or _U32(view)[0] != len(view) - LENGTH:
            raise FormatError(f"{place}: {len(view)} bytes, and its length says otherwise")
        size = len(view) - OVERHEAD
        aad = crypto.module_aad(place)
        batch.add(key, [len(data)], [ends[-1]], [size], Aads(aad, [len(aad)]), _always(place))
        data += view
        ends.append(ends[-1] + size)
    out = bytearray(ends[-1])
    batch.run(data, out)
    return [bytes(out[start:end]) for start, end in pairwise(ends)]


def seal_modules(
    texts: Sequence[tuple[bytes, bytes, Place]], crypto: FileCrypto, engine: str = "auto"
) -> list[bytes]:
    """The GCM modules of plaintexts, each (plaintext, key, place), under fresh nonces."""
    batch = ModuleBatch(engine, encrypt=True)
    ends = [0]
    start = 0
    for text, key, place in texts:
        aad = crypto.module_aad(place)
        batch.add(key, [ends[-1]], [start], [len(text)], Aads(aad, [len(aad)]), _always(place))
        start += len(text)
        ends.append(ends[-1] + len(text) + OVERHEAD)
    out = bytearray(ends[-1])
    batch.run(b"".join(text for text, _, _ in texts), out)
    return [bytes(out[start:end]) for start, end in pairwise(ends)]

# SPDX-License-Identifier: Apache-2.0
"""The header of a GGUF file, the format of llama.cpp, read strictly and with bounded memory.

    "GGUF" | version 2 or 3 (4) | tensors (8) | entries (8)
    | entries: key | type (4) | value
    | tensors: name | dimensions (4) | lengths (8 each), the fastest first | type (4) | offset (8)
    | padding to the alignment | data

Integers are little-endian; a text is its length (8) and UTF-8; an array is its type (4), its length
(8) and its values. Offsets count from the beginning of the data. The alignment is 32 bytes unless
the entry `general.alignment` says otherwise.

Tensors of types that array libraries lack are bytes: rows of blocks, whose last dimension counts
bytes. The ids, block lengths and sizes are as in the package gguf.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import NamedTuple

from ..formats import FormatError
from .header import MAX_HEADER_SIZE, MAX_NUMBER, Header, TensorInfo, shown

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_DIMENSIONS = 4
ALIGNMENT, ALIGNMENT_KEY = 32, "general.alignment"
MAX_TEXT = 1 << 16
"""Bytes of a text that is kept: a name, or a value that the metadata show."""
MAX_DEPTH = 4
MAX_COUNT = 1 << 20
"""Of tensors, and of entries: each takes a hundred bytes of memory."""
_PIECE = 1 << 20


class Kind(NamedTuple):
    """A type of GGML. length: elements of a block. size: its bytes. dtype: of safetensors, where
    there is one."""

    name: str
    length: int
    size: int
    dtype: str = ""


KINDS: dict[int, Kind] = {
    0: Kind("F32", 1, 4, "F32"),
    1: Kind("F16", 1, 2, "F16"),
    2: Kind("Q4_0", 32, 18),
    3: Kind("Q4_1", 32, 20),
    6: Kind("Q5_0", 32, 22),
    7: Kind("Q5_1", 32, 24),
    8: Kind("Q8_0", 32, 34),
    9: Kind("Q8_1", 32, 36),
    10: Kind("Q2_K", 256, 84),
    11: Kind("Q3_K", 256, 110),
    12: Kind("Q4_K", 256, 144),
    13: Kind("Q5_K", 256, 176),
    14: Kind("Q6_K", 256, 210),
    15: Kind("Q8_K", 256, 292),
    16: Kind("IQ2_XXS", 256, 66),
    17: Kind("IQ2_XS", 256, 74),
    18: Kind("IQ3_XXS", 256, 98),
    19: Kind("IQ1_S", 256, 50),
    20: Kind("IQ4_NL", 32, 18),
    21: Kind("IQ3_S", 256, 110),
    22: Kind("IQ2_S", 256, 82),
    23: Kind("IQ4_XS", 256, 136),
    24: Kind("I8", 1, 1, "I8"),
    25: Kind("I16", 1, 2, "I16"),
    26: Kind("I32", 1, 4, "I32"),
    27: Kind("I64", 1, 8, "I64"),
    28: Kind("F64", 1, 8, "F64"),
    29: Kind("IQ1_M", 256, 56),
    30: Kind("BF16", 1, 2, "BF16"),
    34: Kind("TQ1_0", 256, 54),
    35: Kind("TQ2_0", 256, 66),
    39: Kind("MXFP4", 32, 17),
    40: Kind("NVFP4", 64, 36),
    41: Kind("Q1_0", 128, 18),
    42: Kind("Q2_0", 64, 18),
}
_BY_NAME = {kind.name: kind for kind in KINDS.values()}

# Types of values, by number: their name and, if of a fixed size, their code in `struct`.
_TEXT, _ARRAY = 8, 9
_VALUES: dict[int, tuple[str, str]] = {
    0: ("uint8", "B"), 1: ("int8", "b"), 2: ("uint16", "H"), 3: ("int16", "h"), 4: ("uint32", "I"),
    5: ("int32", "i"), 6: ("float32", "f"), 7: ("bool", "?"), _TEXT: ("string", ""),
    _ARRAY: ("array", ""), 10: ("uint64", "Q"), 11: ("int64", "q"), 12: ("float64", "d"),
}  # fmt: skip


def logical_shape(info: TensorInfo, name: str) -> tuple[int, ...]:
    """The shape in elements of a tensor of that type, also where the last dimension counts bytes
    of blocks."""
    kind = _BY_NAME[name]
    if kind.dtype:
        return info.shape
    return (*info.shape[:-1], info.shape[-1] // kind.size * kind.length)


def read_header(read: Callable[[int, int], bytes], size: int) -> Header:
    """Reads and checks the header of a GGUF file of `size` bytes.

    The metadata are texts: of a list only its type and length, as tokenizers have long ones.
    read: gives `length` bytes from `offset` on. Raises FormatError, and what `read` raises.
    """
    scanner = _Scanner(read, size)
    version = scanner.number("I")
    if version not in VERSIONS:
        swapped = " (the other byte order)" if version and version % 65536 == 0 else ""
        raise FormatError(f"GGUF version {version}{swapped}: expected 2 or 3, little-endian")
    counts = scanner.number("Q"), scanner.number("Q")
    if max(counts) > MAX_COUNT:
        raise FormatError(f"GGUF: {counts[0]} tensors, {counts[1]} entries: {MAX_COUNT} at most")
    metadata: dict[str, str] = {}
    for _ in range(counts[1]):
        key = scanner.text("a key")
        if key in metadata:
            raise FormatError(f"GGUF: the key {shown(key)} appears twice")
        kind = scanner.number("I")
        if key == ALIGNMENT_KEY and _VALUES.get(kind) != ("uint32", "I"):
            raise FormatError(f"GGUF: {ALIGNMENT_KEY} is a value of type {kind}: expected a uint32")
        metadata[key] = scanner.value(kind)
    placed: dict[str, TensorInfo] = {}
    names: dict[str, str] = {}
    for _ in range(counts[0]):
        name = scanner.text("the name of a tensor")
        if name in placed:
            raise FormatError(f"GGUF: tensor {shown(name)} appears twice")
        placed[name], names[name] = scanner.tensor(name)
    alignment = _alignment(metadata)
    data_start = -(-scanner.place // alignment) * alignment
    # A file without tensors may end before the padding.
    data_size = max(0, size - data_start)
    ordered = dict(sorted(placed.items(), key=lambda entry: entry[1][2:]))
    end = 0
    for name, info in ordered.items():
        if info.start < end or info.start % alignment or info.end > data_size:
            raise FormatError(
                f"GGUF: tensor {shown(name)} has bytes {info.start} to {info.end}: they overlap "
                f"another's, are not aligned to {alignment}, or end after the data, of {data_size}"
            )
        end = info.end
    return Header(data_start, data_size, ordered, metadata, names)


def _alignment(metadata: dict[str, str]) -> int:
    text = metadata.get(ALIGNMENT_KEY, str(ALIGNMENT))
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if found <= 0 or found & (found - 1):
        raise FormatError(f"GGUF: {ALIGNMENT_KEY} is {text[:40]!a}: expected a power of two")
    return found


class _Scanner:
    """Takes one value of the header after the other. place: of the next, in the file."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self._end = min(size, MAX_HEADER_SIZE)
        self._piece = b""
        self._start = 0  # of the piece, in the file
        self.place = len(MAGIC)

    def _take(self, length: int) -> bytes:
        """The next bytes, at most `_PIECE`."""
        begin = self.place - self._start
        if not 0 <= begin <= len(self._piece) - length:
            self._require(length)
            self._start, begin = self.place, 0
            self._piece = self._read(self.place, min(_PIECE, self._end - self.place))
        self.place += length
        return self._piece[begin : begin + length]

    def _require(self, length: int) -> None:
        if length > self._end - self.place:
            raise FormatError(
                f"GGUF: the header has no end in the file's first {self._end} bytes: it is cut or "
                "damaged"
            )

    def _skip(self, length: int) -> None:
        self._require(length)
        self.place += length

    def number(self, code: str) -> int:
        found: int = struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))[0]
        return found

    def text(self, what: str) -> str:
        length = self.number("Q")
        if length > MAX_TEXT:
            raise FormatError(f"GGUF: {what} has {length} bytes: at most {MAX_TEXT} may be")
        try:
            return self._take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError(f"GGUF: {what} is not UTF-8") from None

    def value(self, kind: int, depth: int = 0) -> str:
        """A value as a text; of a list its type and length."""
        name, code = _VALUES.get(kind, ("", ""))
        if not name or depth > MAX_DEPTH:
            raise FormatError(f"GGUF: a value of type {kind}, at depth {depth}: there is none")
        if kind == _TEXT:
            length = self.number("Q")
            if length <= MAX_TEXT:
                return self._take(length).decode("utf-8", "replace")
            self._skip(length)
            return f"a text of {length} bytes"
        if kind != _ARRAY:
            found = struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))[0]
            return f"{found:.9g}" if code == "f" else str(found)
        inner, count = self.number("I"), self.number("Q")
        inner_name, inner_code = _VALUES.get(inner, ("", ""))
        if inner_code:
            self._skip(count * struct.calcsize("<" + inner_code))
        elif inner == _TEXT:  # of a tokenizer, hundreds of thousands
            for _ in range(count):
                self._skip(int.from_bytes(self._take(8), "little"))
        else:
            for _ in range(count):
                self.value(inner, depth + 1)
        return f"{count} of {inner_name}"

    def tensor(self, name: str) -> tuple[TensorInfo, str]:
        """A tensor, and the name of its type."""
        dimensions = self.number("I")
        if dimensions > MAX_DIMENSIONS:
            raise FormatError(
                f"GGUF: tensor {shown(name)} has {dimensions} dimensions, at most "
                f"{MAX_DIMENSIONS} may be"
            )
        lengths = [self.number("Q") for _ in range(dimensions)]
        number, start = self.number("I"), self.number("Q")
        kind = KINDS.get(number)
        if kind is None:
            raise FormatError(f"GGUF: tensor {shown(name)} is of the unknown type {number}")
        first = lengths[0] if lengths else 1
        if first % kind.length:
            raise FormatError(
                f"GGUF: tensor {shown(name)} has rows of {first}: {kind.name} has blocks of "
                f"{kind.length}"
            )
        shape = tuple(reversed(lengths))
        if not kind.dtype:
            shape = (*shape[:-1], first // kind.length * kind.size)
        size = math.prod(lengths[1:]) * (first // kind.length) * kind.size
        if math.prod(length or 1 for length in lengths) * kind.size > MAX_NUMBER:
            raise FormatError(f"GGUF: tensor {shown(name)} has more bytes than a file can have")
        return TensorInfo(kind.dtype or "U8", shape, start, start + size), kind.name

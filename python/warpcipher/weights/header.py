# SPDX-License-Identifier: Apache-2.0
"""The header of a safetensors file, read strictly and with bounded memory.

    +----------------+-----------------------------------------+-----------------------+
    | length 8, LE   | JSON of that length, padded with spaces | data: the tensors     |
    +----------------+-----------------------------------------+-----------------------+

    {"__metadata__": {text: text, ...},
     name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}

The offsets count from the beginning of the data; the tensors cover the data without a gap. A file
comes from outside, so this is not a general reader of JSON: whatever the format does not have is
refused where it stands, before memory is spent on it. The memory that is kept is at most a fixed
multiple of the header, which has at most `MAX_HEADER_SIZE` bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..formats import FormatError


class Dtype(NamedTuple):
    """One dtype.

    bits:  of an element. Elements of fewer than 8 are packed.
    numpy: its name in NumPy, CuPy and JAX; None if they have none. The dtypes of ml_dtypes are in
           `FROM_ML_DTYPES`.
    torch: its name in PyTorch, some of them only in later versions; None if it has none.
    """

    bits: int
    numpy: str | None
    torch: str | None


DTYPES: dict[str, Dtype] = {
    "BOOL": Dtype(8, "bool", "bool"),
    # PyTorch counts pairs: the last dimension of the tensor is half of that in the file.
    "F4": Dtype(4, None, "float4_e2m1fn_x2"),
    "F6_E2M3": Dtype(6, None, None),
    "F6_E3M2": Dtype(6, None, None),
    "U8": Dtype(8, "uint8", "uint8"),
    "I8": Dtype(8, "int8", "int8"),
    "F8_E5M2": Dtype(8, "float8_e5m2", "float8_e5m2"),
    "F8_E4M3": Dtype(8, "float8_e4m3fn", "float8_e4m3fn"),
    "F8_E8M0": Dtype(8, "float8_e8m0fnu", "float8_e8m0fnu"),
    "F8_E4M3FNUZ": Dtype(8, "float8_e4m3fnuz", "float8_e4m3fnuz"),
    "F8_E5M2FNUZ": Dtype(8, "float8_e5m2fnuz", "float8_e5m2fnuz"),
    "I16": Dtype(16, "int16", "int16"),
    "U16": Dtype(16, "uint16", "uint16"),
    "F16": Dtype(16, "float16", "float16"),
    "BF16": Dtype(16, "bfloat16", "bfloat16"),
    "I32": Dtype(32, "int32", "int32"),
    "U32": Dtype(32, "uint32", "uint32"),
    "F32": Dtype(32, "float32", "float32"),
    "C64": Dtype(64, "complex64", "complex64"),
    "F64": Dtype(64, "float64", "float64"),
    "I64": Dtype(64, "int64", "int64"),
    "U64": Dtype(64, "uint64", "uint64"),
}
"""In the order in which safetensors ranks them. Writers put tensors of a later rank first, so that
all tensors of a file are aligned."""

FROM_ML_DTYPES = frozenset(
    name for name in (entry.numpy for entry in DTYPES.values()) if name and "float8" in name
) | {"bfloat16"}
"""Names that NumPy has from the package ml_dtypes, which JAX brings along."""


LENGTH_SIZE = 8
MAX_HEADER_SIZE = 100_000_000
"""Of the JSON, in bytes: the limit of the safetensors library."""
MAX_DIMENSIONS = 64
"""Of a tensor: the limit of NumPy and PyTorch."""
MAX_NUMBER = (1 << 63) - 1
METADATA = "__metadata__"

_scan_string = json.decoder.scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_FIELD = re.compile(
    r'[ \t\n\r]*"(dtype|shape|data_offsets)"[ \t\n\r]*:[ \t\n\r]*'
    r'(?:"([^"\\\x00-\x1f]{0,32})"|\[([0-9, \t\n\r]{0,2048})\])[ \t\n\r]*'
)
"""One field of a tensor: its name, and a short text or a short list of numbers."""
_SHORT = "(?:0|[1-9][0-9]{0,17})"  # such a number is below 2^63
_PLAIN_TENSOR = re.compile(
    r',"([^"\\\x00-\x1f]*)":\{"dtype":'
    rf'("([A-Z0-9_]{{1,32}})","shape":\[((?:{_SHORT}(?:,{_SHORT}){{0,7}})?)\]),'
    rf'"data_offsets":\[({_SHORT}),({_SHORT})\]\}}'
)
"""A whole tensor as writers spell it, with the comma before it: its name, what is the same for all
tensors of one dtype and shape, and in that the dtype and the lengths; begin and end."""


class NoSafetensorsError(FormatError):
    """The file has no header of the format: not even its length is one."""


class TensorInfo(NamedTuple):
    """A tensor of a file.

    dtype: a name in `DTYPES`. shape: as the file has it. start, end: where its bytes lie, counted
    from the beginning of the data.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


class Header(NamedTuple):
    """A header that was checked.

    data_start: where the data begins in the file. data_size: its bytes. tensors: by name, in the
    order of their bytes. metadata: None where the file has none. ggml: of a GGUF file the
    type of each tensor by GGML's name, such as "Q4_K".
    """

    data_start: int
    data_size: int
    tensors: dict[str, TensorInfo]
    metadata: dict[str, str] | None
    ggml: dict[str, str] | None = None


def read_header(read: Callable[[int, int], bytes], size: int) -> Header:
    """Reads and checks the header of a safetensors file of `size` bytes.

    read: gives `length` bytes from `offset` on. Raises FormatError, and the errors of `read`.
    """
    if size < LENGTH_SIZE:
        raise NoSafetensorsError(
            f"not a safetensors file: {size} bytes, and only the header's length has 8"
        )
    length = int.from_bytes(read(0, LENGTH_SIZE), "little")
    if length > min(MAX_HEADER_SIZE, size - LENGTH_SIZE):
        raise NoSafetensorsError(
            f"not a safetensors file: it claims a header of {length} bytes, and the file has "
            f"{size - LENGTH_SIZE} more, of which a header may have {MAX_HEADER_SIZE}"
        )
    data_start = LENGTH_SIZE + length
    tensors, metadata = parse(read(LENGTH_SIZE, length))
    data_size = size - data_start
    return Header(data_start, data_size, _in_order(tensors, data_size), metadata)


def parse(text: bytes) -> tuple[dict[str, TensorInfo], dict[str, str] | None]:
    """The tensors and the metadata in the JSON of a header, each tensor checked by itself.

    Raises FormatError with the place of the fault.
    """
    try:
        # The first byte is "{" in every file of the format, so that readers know the format by it.
        scanner = _Scanner(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FormatError(f"header: byte {error.start} is not UTF-8") from None
    tensors: dict[str, TensorInfo] = {}
    metadata: dict[str, str] | None = None
    if text[:1] != b"{":
        raise FormatError('header: it does not begin with "{"')
    for name in scanner.members():
        if name == METADATA:
            if metadata is not None:
                raise scanner.error(f"{METADATA} appears twice")
            metadata = scanner.texts()
        elif name in tensors:
            raise scanner.error(f"tensor {shown(name)} appears twice")
        else:
            tensors[name] = scanner.tensor(name)
        scanner.take_plain(tensors)
    scanner.expect_end()
    return tensors, metadata


def shown(name: str) -> str:
    """The name of a tensor, fit for an error."""
    return ascii(name if len(name) <= 80 else name[:77] + "...")


def tensor_size(dtype: str, shape: Iterable[int]) -> int:
    """Bytes of a tensor. Raises FormatError for an unknown dtype, half bytes and sizes beyond
    2^63."""
    if dtype not in DTYPES:
        raise FormatError(f"unknown dtype {dtype!a}: there are {', '.join(DTYPES)}")
    lengths = tuple(shape)
    # Array libraries count the bytes of a tensor without elements as if a length of 0 were 1.
    most = math.prod(length or 1 for length in lengths) * DTYPES[dtype].bits
    if most // 8 > MAX_NUMBER:
        raise FormatError(f"{most // 8} bytes are more than a file can have")
    bits = 0 if 0 in lengths else most
    if bits % 8:
        raise FormatError(f"{bits} bits of {dtype} are not a whole number of bytes")
    return bits // 8


def _in_order(tensors: dict[str, TensorInfo], data_size: int) -> dict[str, TensorInfo]:
    """The tensors by their place. Raises FormatError where they overlap, leave a gap, or do not end
    with the data."""
    end = 0
    for info in tensors.values():
        if info.start != end:  # writers put them in order
            tensors = dict(sorted(tensors.items(), key=lambda item: item[1][2:]))
            end = _checked_end(tensors)
            break
        end = info.end
    if end != data_size:
        what = "truncated" if data_size < end else "too long"
        raise FormatError(f"{what}: the tensors have {end} bytes, and the file has {data_size}")
    return tensors


def _checked_end(ordered: dict[str, TensorInfo]) -> int:
    """Where the last of them ends."""
    end = 0
    for name, info in ordered.items():
        if info.start != end:
            what = "overlaps what is before it" if info.start < end else "leaves a gap before it"
            raise FormatError(
                f"header: tensor {shown(name)} begins at byte {info.start}, and {what}: "
                f"that ends at byte {end}"
            )
        end = info.end
    return end


class _Scanner:
    """A place in the text of a header."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._kinds: dict[str, tuple[str, tuple[int, ...], int]] = {}

    def error(self, what: str) -> FormatError:
        return FormatError(f"header: at character {self._at}: {what}")

    def _skip(self) -> str:
        """The next character that is not a space; empty at the end."""
        found = self._text[self._at : self._at + 1]
        if found > " ":
            return found
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, expected: str) -> str:
        """One of the characters in `expected`."""
        found = self._skip()
        if not found or found not in expected:
            what = " or ".join(f'"{character}"' for character in expected)
            raise self.error(f"expected {what}, found {ascii(found) if found else 'the end'}")
        self._at += 1
        return found

    def _string(self) -> str:
        self._take('"')
        try:
            found: tuple[str, int] = _scan_string(self._text, self._at, True)
            found[0].encode("utf-8")
        except json.JSONDecodeError as error:
            raise self.error(f"{error.msg.lower()}, in a text") from None
        except UnicodeEncodeError:
            raise self.error("a text holds half a surrogate pair") from None
        self._at = found[1]
        return found[0]

    def members(self) -> Iterable[str]:
        """The names of an object's members; the caller takes each value before the next."""
        self._take("{")
        if self._skip() == "}":
            self._at += 1
            return
        while True:
            name = self._string()
            self._take(":")
            yield name
            if self._take(",}") == "}":
                return

    def texts(self) -> dict[str, str]:
        """An object of texts."""
        found: dict[str, str] = {}
        for name in self.members():
            if name in found:
                raise self.error(f"{METADATA} has {shown(name)} twice")
            found[name] = self._string()
        return found

    def tensor(self, name: str) -> TensorInfo:
        """The value of a tensor: its three fields, in any order."""
        self._take("{")
        text: str | None = None
        lists: dict[str, tuple[int, ...]] = {}
        for index in range(3):
            match = _FIELD.match(self._text, self._at)
            field = match[1] if match else ""
            is_text = match is not None and match[2] is not None
            if not match or is_text != (field == "dtype") or field in lists or (is_text and text):
                raise self.error(
                    f"tensor {shown(name)}: expected a dtype, a shape and two data_offsets, each "
                    "once: a short text and lists of whole numbers"
                )
            if is_text:
                text = match[2]
            else:
                lists[field] = self._numbers(name, match[3])
            self._at = match.end()
            self._take(",}"[index == 2])
        shape, offsets = lists["shape"], lists["data_offsets"]
        if len(shape) > MAX_DIMENSIONS:
            raise self.error(f"tensor {shown(name)} has {len(shape)} dimensions, at most 64 may be")
        if len(offsets) != 2 or offsets[0] > offsets[1]:
            given = f"data_offsets {list(offsets)[:4]}"
            raise self.error(f"tensor {shown(name)} has {given}: expected its begin and its end")
        try:
            size = tensor_size(str(text), shape)
        except FormatError as error:
            raise self.error(f"tensor {shown(name)}: {error}") from None
        if size != offsets[1] - offsets[0]:
            raise self.error(
                f"tensor {shown(name)} has {offsets[1] - offsets[0]} bytes, and its dtype and "
                f"shape make {size}"
            )
        return TensorInfo(str(text), shape, *offsets)

    def take_plain(self, tensors: dict[str, TensorInfo]) -> None:
        """Takes the tensors that follow a value, up to one that is spelled in another way than
        writers of the format do, or is not right. One pattern for a whole tensor reads a model in
        a fifth of the time."""
        kinds = self._kinds
        while match := _PLAIN_TENSOR.match(self._text, self._at):
            name, kind, dtype, lengths, start, end = match.groups()
            if kind not in kinds:
                shape = tuple(map(int, lengths.split(","))) if lengths else ()
                try:
                    kinds[kind] = dtype, shape, tensor_size(dtype, shape)
                except FormatError:
                    return
            dtype, shape, size = kinds[kind]
            first, last = int(start), int(end)
            if last - first != size or name in tensors or name == METADATA:
                return
            tensors[name] = TensorInfo(dtype, shape, first, last)
            self._at = match.end()

    def _numbers(self, name: str, text: str) -> tuple[int, ...]:
        parts = [part.strip(" \t\n\r") for part in text.split(",")]
        if parts == [""]:
            return ()
        for part in parts:
            if not _NUMBER.fullmatch(part) or int(part) > MAX_NUMBER:
                raise self.error(
                    f"tensor {shown(name)}: {part[:20]!a} is not a whole number below 2^63"
                )
        return tuple(map(int, parts))

    def expect_end(self) -> None:
        """Raises FormatError where more than spaces follows."""
        if self._skip():
            raise self.error("something follows the header's last brace")


def build(
    tensors: Iterable[tuple[str, str, tuple[int, ...]]], metadata: Mapping[str, str] | None
) -> tuple[bytes, dict[str, TensorInfo]]:
    """A header for tensors given as name, dtype and shape, and where each one's bytes go.

    The bytes, with length and padding, are those that the safetensors library writes: the tensors
    by alignment, then by name. Raises FormatError where no header can hold it.
    """
    ranks = {name: rank for rank, name in enumerate(DTYPES)}
    ranked = sorted(tensors, key=lambda entry: (-ranks.get(entry[1], 0), entry[0]))
    placed: dict[str, TensorInfo] = {}
    end = 0
    for name, dtype, shape in ranked:
        if name == METADATA:
            raise FormatError(f"a tensor cannot be called {METADATA}: that is the metadata's place")
        if name in placed:
            raise FormatError(f"tensor {shown(name)} was given twice")
        begin, end = end, end + tensor_size(dtype, shape)
        placed[name] = TensorInfo(dtype, shape, begin, end)
    return encode(placed, metadata), placed


def encode(tensors: Mapping[str, TensorInfo], metadata: Mapping[str, str] | None) -> bytes:
    """Length, JSON and padding of a header. Raises FormatError if it is too long."""
    text = canonical(tensors, metadata)
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    if len(text) > MAX_HEADER_SIZE:
        raise FormatError(f"the header has {len(text)} bytes, at most {MAX_HEADER_SIZE} may be")
    return len(text).to_bytes(LENGTH_SIZE, "little") + text


def canonical(tensors: Mapping[str, TensorInfo], metadata: Mapping[str, str] | None) -> bytes:
    """The JSON of a header as safetensors and cryptotensors write it: no spaces, the metadata by
    name, the tensors in the order given. metadata: None leaves it away."""
    document: dict[str, object] = {}
    if metadata is not None:
        document[METADATA] = dict(sorted(metadata.items()))
    for name, info in tensors.items():
        place = info.start, info.end
        document[name] = {"dtype": info.dtype, "shape": info.shape, "data_offsets": place}
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise FormatError("a name or the metadata holds half a surrogate pair") from None

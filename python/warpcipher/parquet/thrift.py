# SPDX-License-Identifier: Apache-2.0
"""Thrift's compact protocol, read and written so that no field is lost: what a reader does not ask
for is kept as the bytes that it was and goes back unchanged.

A *shape* says what is asked for: {field number: None} for an integer, a bool, a double or binary,
{field number: shape} for a struct or a list of structs. Every other field is skipped and kept.

A struct is a dict of field number -> (type, value), where value is an int, a bool, bytes, a struct,
or (type of the elements, list). A field that is kept has its type negated and its bytes as value.

    field   delta << 4 | type, or type and the number as a varint
    varint  seven bits a byte, least significant first; integers are zigzag
    list    size << 4 | type, or 15 << 4 | type and the size as a varint

Specification: thrift-compact-protocol.md of Apache Thrift.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

from ..formats import FormatError

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)

Struct: TypeAlias = "dict[int, tuple[int, Any]]"
Shape: TypeAlias = "Mapping[int, Shape | None]"

MAX_DEPTH = 48
"""Of structs and containers in each other; a Parquet footer has 7."""
_LONGEST_VARINT = 10
_DOUBLE = struct.Struct("<d")


def read(data: bytes, shape: Shape, what: str, start: int = 0) -> tuple[Struct, int]:
    """The struct at `start`, and where it ends.

    what: names the struct in errors. Raises FormatError where it is cut short, nested too deeply,
    or says of itself what cannot be. Work and memory are linear in the bytes.
    """
    try:
        return _struct(data, start, shape, 0)
    except IndexError:
        raise FormatError(f"{what}: cut short after {len(data) - start} bytes") from None
    except _BadError as error:
        raise FormatError(f"{what}: {error}") from None


def read_whole(data: bytes, shape: Shape, what: str) -> Struct:
    """The struct that `data` is, to its last byte."""
    fields, end = read(data, shape, what)
    if end != len(data):
        raise FormatError(f"{what}: {len(data) - end} bytes follow its end")
    return fields


class _BadError(Exception):
    """What is wrong; `read` puts the name of the struct before it."""


def varint(data: bytes, pos: int) -> tuple[int, int]:
    """An unsigned varint of up to 64 bits, and where it ends."""
    value = data[pos]
    if value < 128:
        return value, pos + 1
    value &= 127
    for shift in range(7, 7 * _LONGEST_VARINT, 7):
        pos += 1
        byte = data[pos]
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, pos + 1
    raise _BadError("an integer of more than 64 bits")


def _struct(data: bytes, pos: int, shape: Shape, depth: int) -> tuple[Struct, int]:
    fields: Struct = {}
    number = 0
    if depth > MAX_DEPTH:
        raise _BadError(f"nested more than {MAX_DEPTH} deep")
    while True:
        head = data[pos]
        pos += 1
        if not head:
            return fields, pos
        kind = head & 15
        if head > 15:
            number += head >> 4
        else:
            number, pos = varint(data, pos)
            number = number >> 1 ^ -(number & 1)
        if number in fields:
            raise _BadError(f"field {number} is there twice")
        if number not in shape:
            start = pos
            pos = _skip(data, pos, kind, depth)
            fields[number] = -kind, data[start:pos]
        elif kind in (I32, I64, I16):
            value, pos = varint(data, pos)
            fields[number] = kind, value >> 1 ^ -(value & 1)
        elif kind == STRUCT:
            inner, pos = _struct(data, pos, shape[number] or {}, depth + 1)
            fields[number] = kind, inner
        elif kind == LIST:
            elements, pos = _list(data, pos, shape[number], depth + 1)
            fields[number] = kind, elements
        else:
            fields[number], pos = _scalar(data, pos, kind, depth)


def _scalar(data: bytes, pos: int, kind: int, depth: int) -> tuple[tuple[int, Any], int]:
    if kind in (TRUE, FALSE):
        return (kind, kind == TRUE), pos
    end = _skip(data, pos, kind, depth)
    if kind == BINARY:
        _, pos = varint(data, pos)
        return (kind, data[pos:end]), end
    if kind == I8:
        value = data[pos]
        return (kind, value - (value >> 7 << 8)), end
    if kind == DOUBLE:
        return (kind, _DOUBLE.unpack(data[pos:end])[0]), end
    return (-kind, data[pos:end]), end


def _list_head(data: bytes, pos: int) -> tuple[int, int, int]:
    """The type of the elements, their number, and where the first begins."""
    head = data[pos]
    pos += 1
    count = head >> 4
    if count == 15:
        count, pos = varint(data, pos)
    # Each element has a byte at least: a number that lies costs nothing.
    if count > len(data) - pos:
        raise _BadError(f"a list of {count} elements in {len(data) - pos} bytes")
    return head & 15, count, pos


def _list(
    data: bytes, pos: int, shape: Shape | None, depth: int
) -> tuple[tuple[int, list[Any]], int]:
    kind, count, pos = _list_head(data, pos)
    items: list[Any] = []
    if kind == STRUCT:
        for _ in range(count):
            inner, pos = _struct(data, pos, shape or {}, depth + 1)
            items.append(inner)
    elif kind in (I16, I32, I64):
        for _ in range(count):
            value, pos = varint(data, pos)
            items.append(value >> 1 ^ -(value & 1))
    elif kind == BINARY:
        for _ in range(count):
            size, pos = _size(data, pos)
            items.append(data[pos : pos + size])
            pos += size
    else:
        raise _BadError(f"a list of elements of type {kind}, expected structs, integers or binary")
    return (kind, items), pos


def _size(data: bytes, pos: int) -> tuple[int, int]:
    size, pos = varint(data, pos)
    if size > len(data) - pos:
        raise _BadError(f"{size} bytes of binary where {len(data) - pos} are left")
    return size, pos


def _skip(data: bytes, pos: int, kind: int, depth: int) -> int:
    """Where a value of that type ends."""
    if kind in (I16, I32, I64):
        last = pos + _LONGEST_VARINT
        while data[pos] > 127:
            pos += 1
            if pos == last:
                raise _BadError("an integer of more than 64 bits")
        return pos + 1
    if kind == BINARY:
        size, pos = _size(data, pos)
        return pos + size
    if kind == STRUCT:
        return _skip_struct(data, pos, depth + 1)
    if kind in (LIST, SET):
        return _skip_list(data, pos, depth + 1)
    if kind in (TRUE, FALSE):
        return pos
    if kind == MAP:
        return _skip_map(data, pos, depth + 1)
    fixed = {I8: 1, DOUBLE: 8, UUID: 16}.get(kind)
    if fixed is None:
        raise _BadError(f"unknown type {kind}")
    if fixed > len(data) - pos:
        raise IndexError
    return pos + fixed


def _skip_struct(data: bytes, pos: int, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise _BadError(f"nested more than {MAX_DEPTH} deep")
    while True:
        head = data[pos]
        pos += 1
        if not head:
            return pos
        if head < 16:
            _, pos = varint(data, pos)
        pos = _skip(data, pos, head & 15, depth)


def _skip_element(data: bytes, pos: int, kind: int, depth: int) -> int:
    # In a container a bool has a byte of its own.
    return _skip(data, pos, I8 if kind in (TRUE, FALSE) else kind, depth)


def _skip_list(data: bytes, pos: int, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise _BadError(f"nested more than {MAX_DEPTH} deep")
    kind, count, pos = _list_head(data, pos)
    for _ in range(count):
        pos = _skip_element(data, pos, kind, depth)
    return pos


def _skip_map(data: bytes, pos: int, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise _BadError(f"nested more than {MAX_DEPTH} deep")
    count, pos = varint(data, pos)
    if not count:
        return pos
    if count > len(data) - pos:
        raise _BadError(f"a map of {count} entries in {len(data) - pos} bytes")
    kinds = data[pos]
    pos += 1
    for _ in range(count):
        pos = _skip_element(data, pos, kinds >> 4, depth)
        pos = _skip_element(data, pos, kinds & 15, depth)
    return pos


def write(fields: Struct) -> bytes:
    """The bytes of a struct, its fields by number."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def encode_varint(value: int, size: int = 0) -> bytes:
    """An unsigned varint, made `size` bytes long by bits that say nothing."""
    out = bytearray()
    while value > 127 or len(out) + 1 < size:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> int:
    """A signed integer as the unsigned one that a varint holds."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number in sorted(fields):
        kind, value = fields[number]
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        delta = number - last
        last = number
        if 0 < delta < 16:
            out.append(delta << 4 | abs(kind))
        else:
            out.append(abs(kind))
            _write_varint(out, zigzag(number))
        if kind < 0:
            out += value
        elif kind in (I32, I64, I16):
            _write_varint(out, zigzag(value))
        elif kind == STRUCT:
            _write_struct(out, value)
        elif kind == BINARY:
            _write_varint(out, len(value))
            out += value
        elif kind == LIST:
            _write_list(out, *value)
        elif kind == I8:
            out.append(value & 255)
        elif kind == DOUBLE:
            out += _DOUBLE.pack(value)
    out.append(0)


def _write_list(out: bytearray, kind: int, items: list[Any]) -> None:
    if len(items) < 15:
        out.append(len(items) << 4 | kind)
    else:
        out.append(15 << 4 | kind)
        _write_varint(out, len(items))
    for item in items:
        if kind == STRUCT:
            _write_struct(out, item)
        elif kind == BINARY:
            _write_varint(out, len(item))
            out += item
        else:
            _write_varint(out, zigzag(item))

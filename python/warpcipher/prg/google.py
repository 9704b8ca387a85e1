# SPDX-License-Identifier: Apache-2.0
"""A key of a point function as a DpfKey of Google's distributed_point_functions, of one hierarchy
level: protocol buffers by hand (dpf/distributed_point_function.proto there).

    DpfKey:          1: seed, a Block   2: correction words, one a level   3: party   5: values
    CorrectionWord:  1: seed, a Block   2, 3: control bits, left and right
    Block:           1: high, 2: low, of 64 bits
    Value:           1 (integers) or 4 (XOR): 1: 64 bits, or 2: a Block
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _protobuf
from .._errors import explained

if TYPE_CHECKING:
    from .dpf import Group

Fields = dict[int, list["int | bytes"]]

VALUE_BITS: dict[Group, int] = {"gf2": 128, "u32": 32, "u64": 64}
"""Of a value: GF(2) has the 128 points of a block in one."""


def encode(record: memoryview, depth: int, group: Group) -> bytes:
    """A record (src/prg/point_keys.hpp)."""
    right_bits = int.from_bytes(record[16 * (depth + 1) :][:8], "little")
    root = bytearray(record[:16])
    party = root[0] & 1
    root[0] = (root[0] & 0xFE) | record[16 * (depth + 1) + 8]
    parts = [_field(1, _block(root))]
    for level in range(depth):
        seed = bytearray(record[16 * (level + 1) :][:16])
        left, right = seed[0] & 1, right_bits >> level & 1
        seed[0] &= 0xFE
        word = _field(1, _block(seed)) + _field(2, left or None) + _field(3, right or None)
        parts.append(_field(2, word))
    parts.append(_field(3, party or None))
    values, size = record[16 * (depth + 2) :], VALUE_BITS[group] // 8
    for at in range(0, 16, size):
        one = values[at : at + size]
        if group == "gf2":
            parts.append(_field(5, _field(4, _field(2, _block(one)))))
        else:
            parts.append(_field(5, _field(1, _field(1, int.from_bytes(one, "little")))))
    return b"".join(parts)


def decode(message: bytes, depth: int, group: Group) -> tuple[int, bytearray]:
    """The party and the record. ValueError: not a key of such a domain."""
    key = _parse(message, {1, 2, 3, 5})
    party = _number(key, 3)
    root = bytearray(_read_block(_message(key, 1)))
    words = [_parse(_bytes(word), {1, 2, 3}) for word in key.get(2, [])]
    if len(words) != depth:
        raise ValueError(f"the key has {len(words)} correction words: expected {depth}")
    if party not in (0, 1):
        raise ValueError("the key is damaged: its party is neither 0 nor 1")
    record = bytearray(16 * (depth + 3))
    record[16 * (depth + 1) + 8] = root[0] & 1
    root[0] = (root[0] & 0xFE) | party
    record[:16] = root
    right_bits = 0
    for level, word in enumerate(words):
        seed = bytearray(_read_block(_message(word, 1)))
        # Bit 0 of a seed would change both control bits.
        right_bits |= (_number(word, 3) ^ seed[0] & 1) << level
        seed[0] ^= _number(word, 2)
        record[16 * (level + 1) : 16 * (level + 2)] = seed
    record[16 * (depth + 1) : 16 * (depth + 1) + 8] = right_bits.to_bytes(8, "little")
    bits = VALUE_BITS[group]
    values = [_read_value(_bytes(value), group) for value in key.get(5, [])]
    if len(values) != 128 // bits or any(value >> bits for value in values):
        raise ValueError(f"the values of the key are not of {group}")
    record[16 * (depth + 2) :] = b"".join(value.to_bytes(bits // 8, "little") for value in values)
    return party, record


def _field(number: int, value: int | bytes | None) -> bytes:
    return b"" if value is None else _protobuf.field(number, value)


def _block(block: bytes | bytearray | memoryview) -> bytes:
    low, high = (int.from_bytes(block[at : at + 8], "little") for at in (0, 8))
    return _field(1, high or None) + _field(2, low or None)


def _parse(message: bytes, known: set[int]) -> Fields:
    fields: Fields = {}
    with explained("the key is damaged"):
        for number, value in _protobuf.fields(message):
            fields.setdefault(number, []).append(value)
    if others := fields.keys() - known:
        raise ValueError(
            f"the key has a field {min(others)}: it is damaged, or of several hierarchy levels"
        )
    return fields


def _number(fields: Fields, name: int) -> int:
    value = fields.get(name, [0])[-1]
    if not isinstance(value, int):
        raise ValueError("the key is damaged: it has bytes in place of a number")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("the key is damaged: it has a number in place of bytes")
    return value


def _message(fields: Fields, name: int) -> bytes:
    if name not in fields:
        raise ValueError("the key is damaged: it lacks a seed or a value")
    return _bytes(fields[name][-1])


def _read_block(message: bytes) -> bytes:
    block = _parse(message, {1, 2})
    return b"".join(_number(block, name).to_bytes(8, "little") for name in (2, 1))


def _read_value(message: bytes, group: Group) -> int:
    value = _parse(_message(_parse(message, {1, 4}), 4 if group == "gf2" else 1), {1, 2})
    if 2 in value:
        return int.from_bytes(_read_block(_message(value, 2)), "little")
    return _number(value, 1)

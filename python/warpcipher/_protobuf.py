# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers by hand: fields of wire types 0, an unsigned varint, and 2, bytes."""

from __future__ import annotations

from collections.abc import Iterator


def varint(value: int) -> bytes:
    """An unsigned integer, its low 7 bits first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    """A field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of a message's fields. Raises ValueError."""
    at = 0

    def number() -> int:
        nonlocal at
        found = 0
        for shift in range(0, 64, 7):
            if at == len(message):
                break
            byte = message[at]
            at += 1
            found |= (byte & 127) << shift
            if byte < 128 and found >> 64 == 0:
                return found
        raise ValueError("a number ends early or is too long")

    while at < len(message):
        tag, value = number(), number()
        if tag & 7 == 0:
            yield tag >> 3, value
        elif tag & 7 == 2 and value <= len(message) - at:
            at += value
            yield tag >> 3, message[at - value : at]
        else:
            raise ValueError("a field ends early or has an unknown type")

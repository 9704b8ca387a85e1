# SPDX-License-Identifier: Apache-2.0
"""Page headers without encryption: the size of the page changes, the header's length does not.

A page shrinks by what encryption added, and a shorter number may be a shorter varint. A header that
keeps its length keeps everything behind it in place, so where a page goes is known before its
header is decrypted. Varints may be longer than they must: bits that say nothing fill them up.
"""

from __future__ import annotations

from collections.abc import Callable

from ..formats import FormatError
from . import metadata as md
from .modules import DICTIONARY_HEADER, Place
from .thrift import I32, Struct, encode_varint, read_whole, write, zigzag

_FIELD_I32 = 0x15  # the next number, type i32
_LONGEST_I32 = 5


def shrink(
    header: memoryview, sealed: int, plain: int, places: Callable[[int], Place], number: int
) -> bytes:
    """The header of a page that was `sealed` bytes long and is `plain` now, as long as it was.

    places, number: which page it is. Raises FormatError where the header speaks of another: of
    another size, or of another kind.
    """
    fast = _shrink_fast(bytes(header), sealed, plain, places, number)
    return fast if fast is not None else _shrink_any(bytes(header), sealed, plain, places(number))


def _shrink_fast(
    head: bytes, sealed: int, plain: int, places: Callable[[int], Place], number: int
) -> bytes | None:
    """For headers as writers make them: type, two sizes, and no CRC."""
    if len(head) < 8 or head[0] != _FIELD_I32 or head[2] != _FIELD_I32:
        return None
    at = 3
    while head[at] > 127 and at < 8:
        at += 1
        if at == len(head):
            return None
    if head[at + 1 : at + 2] != b"\x15":
        return None
    end = at + 2
    value = encode_varint(sealed << 1)
    if head[end : end + len(value)] != value:
        return None
    rest = end + len(value)
    if rest >= len(head) or head[rest] == _FIELD_I32:  # a CRC
        return None
    if (head[1] == md.DICTIONARY_PAGE << 1) != (places(number).kind == DICTIONARY_HEADER):
        return None
    return head[:end] + encode_varint(plain << 1, len(value)) + head[rest:]


def _check(kind: int, size: int, sealed: int, place: Place) -> None:
    if size != sealed:
        raise FormatError(f"{place}: it is for a page of {size} bytes, and the page has {sealed}")
    if (kind == md.DICTIONARY_PAGE) != (place.kind == DICTIONARY_HEADER):
        raise FormatError(f"{place}: it is for a page of type {kind}")


def _shrink_any(header: bytes, sealed: int, plain: int, place: Place) -> bytes:
    """For any header. The CRC, which covers the ciphertext, is left out: what it took is filled up
    in the numbers before it."""
    fields = read_whole(header, md.PAGE_HEADER_SHAPE, str(place))
    kind = md.integer(fields, md.PAGE_TYPE, f"{place}: the type of the page")
    size = md.integer(fields, md.COMPRESSED_PAGE_SIZE, f"{place}: the size of the page")
    _check(kind, size, sealed, place)
    fields.pop(md.CRC, None)
    md.set_integer(fields, md.COMPRESSED_PAGE_SIZE, plain)
    short = write(fields)
    missing = len(header) - len(short)
    return _padded(fields, missing) if missing > 0 else short


def _padded(fields: Struct, missing: int) -> bytes:
    """The header made `missing` bytes longer: by longer varints, then by field numbers in full."""
    head = bytearray()
    last = 0
    for number in (md.PAGE_TYPE, md.UNCOMPRESSED_PAGE_SIZE, md.COMPRESSED_PAGE_SIZE):
        value = zigzag(fields[number][1])
        size = len(encode_varint(value))
        more = min(missing, _LONGEST_I32 - size)
        missing -= more
        if missing and missing <= 3 - last:
            head += bytes([I32]) + encode_varint(zigzag(number))
            missing -= 1
        else:
            head.append(_FIELD_I32)
        last = number
        head += encode_varint(value, size + more)
    rest = {number: field for number, field in fields.items() if number > last}
    if missing:
        raise FormatError(f"a page header cannot be made {missing} bytes longer")
    return bytes(head) + _behind(rest, last)


def _behind(rest: Struct, last: int) -> bytes:
    """Fields as they follow number `last`."""
    # The writer counts from 0: a field at `last` before them, cut off again, counts for it.
    lead = write({last: (I32, 0)})[:-1]
    return write({last: (I32, 0), **rest})[len(lead) :]


def seal_header(header: bytes, what: str, overhead: int) -> tuple[bytes, int, int, int]:
    """A plain page's header for the encrypted page, with the type of the page, its plain size and
    the size that its content will unpack to. The CRC would cover the ciphertext: it is left out."""
    fields = read_whole(header, md.PAGE_HEADER_SHAPE, what)
    kind = md.integer(fields, md.PAGE_TYPE, f"{what}: the type of the page")
    size = md.integer(fields, md.COMPRESSED_PAGE_SIZE, f"{what}: the size of the page")
    unpacked = md.integer(fields, md.UNCOMPRESSED_PAGE_SIZE, f"{what}: the size of the page")
    if size + overhead > 0x7FFFFFFF:
        raise FormatError(f"{what}: a page of {size} bytes has no room for encryption")
    fields.pop(md.CRC, None)
    md.set_integer(fields, md.COMPRESSED_PAGE_SIZE, size + overhead)
    return write(fields), kind, size, unpacked

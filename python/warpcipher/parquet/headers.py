# SPDX-License-Identifier: Apache-2.0
"""Page headers of plain pages, made those of encrypted ones. src/parquet/page_header.hpp does the
reverse."""

from __future__ import annotations

from ..formats import FormatError
from . import metadata as md
from .thrift import read_whole, write


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

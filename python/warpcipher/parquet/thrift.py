# SPDX-License-Identifier: Apache-2.0
"""Thrift's compact protocol, read and written so that no field is lost: what a reader does not ask
for is kept as the bytes that it was and goes back unchanged. The work is native: src/parquet.

A *shape* says what is asked for: {field number: None} for an integer, a bool, a double or binary,
{field number: shape} for a struct or a list of structs. Every other field is skipped and kept.

A struct is a dict of field number -> (type, value), where value is an int, a bool, bytes, a struct,
or (type of the elements, list). A field that is kept has its type negated and its bytes as value.

Specification: thrift-compact-protocol.md of Apache Thrift.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

from .. import _native
from .._errors import explained
from ..formats import FormatError

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)

Struct: TypeAlias = "dict[int, tuple[int, Any]]"
Shape: TypeAlias = "Mapping[int, Shape | None]"


refusing = partial(explained, kind=FormatError)
"""Makes what native code refuses a FormatError, which names `what`."""


def read(data: bytes, shape: Shape, what: str, start: int = 0) -> tuple[Struct, int]:
    """The struct at `start`, and where it ends.

    what: names the struct in errors. Raises FormatError where it is cut short, nested too deeply,
    or says of itself what cannot be. Work and memory are linear in the bytes.
    """
    with refusing(what):
        return _native.read_thrift(data, shape, start)


def first_struct(data: bytes, what: str) -> bytes:
    """The struct that `data` begins with: of a module that is all that counts, since parquet-java
    encrypts the whole buffer that it serialised a struct into."""
    return data[: read(data, {}, what)[1]]


def read_whole(data: bytes, shape: Shape, what: str) -> Struct:
    """The struct that `data` is, to its last byte."""
    fields, end = read(data, shape, what)
    if end != len(data):
        raise FormatError(f"{what}: {len(data) - end} bytes follow its end")
    return fields


def write(fields: Struct) -> bytes:
    """The bytes of a struct, its fields by number."""
    return _native.write_thrift(fields)

# SPDX-License-Identifier: Apache-2.0
"""Memory of an array by the C functions of its library (DLPack 1.3): one made by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import pytest
from warpcipher import _native

NAME = b"dlpack_exchange_api"
HOST, CUDA, ROCM = 1, 2, 10


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


TENSOR_OF = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Tensor))
STREAM_OF = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class Functions(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("unused", ctypes.c_void_p * 3),
        ("tensor_of", TENSOR_OF),
        ("stream_of", STREAM_OF),
    )


def open_tensor(
    shape: Sequence[int] = (2, 3),
    strides: Sequence[int] | None = (3, 1),
    *,
    place: tuple[int, int] = (HOST, 0),
    bits: int = 32,
    lanes: int = 1,
    offset: int = 0,
    data: int | None = 4096,
    major: int = 1,
    fails: bool = False,
    stream_fails: bool = False,
) -> Any:
    """The native module's view of a tensor that a library describes so."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)

    def tensor_of(_: int, out: Any) -> int:
        found = out.contents
        found.data, found.byte_offset = data, offset
        found.device_type, found.device = place
        found.dimensions, found.code, found.bits, found.lanes = len(shape), 2, bits, lanes
        found.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
        if steps is not None:
            found.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
        return -1 if fails else 0

    def stream_of(device_type: int, device: int, out: Any) -> int:
        assert (device_type, device) == place
        out[0] = 77
        return -1 if stream_fails else 0

    functions = Functions(major, 3, None, (None,) * 3, TENSOR_OF(tensor_of), STREAM_OF(stream_of))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
    )
    return _native.span_from_exchange(make(ctypes.addressof(functions), NAME, None), object())


def test_memory_and_stream() -> None:
    span, stream = open_tensor()
    assert (len(span), span.device, stream) == (24, None, 0)
    span, stream = open_tensor(place=(CUDA, 1), bits=16, lanes=2, offset=8)
    assert (len(span), span.device, stream) == (24, 1, 77)


@pytest.mark.parametrize(
    ("shape", "strides", "size"),
    [
        ((), (), 4),
        ((2, 3), None, 24),
        ((0, 3), (1, 1), 0),
        ((2, 1, 3), (3, 99, 1), 24),
    ],
)
def test_contiguous_layouts(shape: tuple[int, ...], strides: Any, size: int) -> None:
    assert len(open_tensor(shape, strides)[0]) == size


@pytest.mark.parametrize(
    "given",
    [
        {"strides": (1, 2)},
        {"strides": (6, 2)},
        {"place": (ROCM, 0)},
        {"bits": 4},
        {"data": None},
        {"major": 2},
        {"fails": True},
        {"place": (CUDA, 0), "stream_fails": True},
    ],
)
def test_what_the_library_itself_must_say(given: dict[str, Any]) -> None:
    assert open_tensor(**given) is None


def test_what_is_no_such_capsule() -> None:
    with pytest.raises(ValueError, match="PyCapsule"):
        _native.span_from_exchange(object(), object())

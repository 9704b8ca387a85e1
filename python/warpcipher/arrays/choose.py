# SPDX-License-Identifier: Apache-2.0
"""Which library an array is of."""

from __future__ import annotations

from typing import Any

from .. import _native
from .buffers import Buffers
from .cupy import CuPy
from .exchange import Exchange
from .jax import Jax
from .library import Library
from .numpy import NumPy
from .torch import Torch

BUFFERS: Library = Buffers()

# In order of asking. CuPy, PyTorch and JAX would do as Exchange too; knowing them gives their
# current stream, their allocator and their views.
LIBRARIES: tuple[Library, ...] = (NumPy(), Torch(), CuPy(), Jax(), Exchange(), BUFFERS)

# The libraries of types that were seen. Only of libraries that know their arrays by type, so it
# stays as short as the list of those types.
_by_type: dict[type, Library] = {bytes: BUFFERS, bytearray: BUFFERS, memoryview: BUFFERS}


def library_of(x: Any, name: str) -> Library:
    """The library of an array or buffer; TypeError when x is neither."""
    found = _by_type.get(type(x))
    if found is not None:
        return found
    for library in LIBRARIES:
        if library.owns(x):
            if library.owns_types:
                _by_type[type(x)] = library
            return library
    raise TypeError(f"{name} is {type(x).__name__}: expected bytes-like or an array")


def is_on_device(x: Any) -> bool:
    """Whether x is an array on a GPU, of a library that is loaded."""
    if x is None or isinstance(x, bytes | bytearray | memoryview | list | tuple | _native.Key):
        return False
    for library in LIBRARIES[:-1]:
        if library.owns(x):
            return library.device(x) is not None
    return False

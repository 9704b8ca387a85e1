# SPDX-License-Identifier: Apache-2.0
"""Which library an array is of; and calls whose data, output or stream is more than bytes: arrays
as views for the native module, and results as arrays of the caller's library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import _native
from .._types import Buffer, StreamLike
from .cupy import CuPy
from .exchange import Exchange
from .jax import Jax
from .library import Library, stream_pointer
from .numpy import Buffers, NumPy
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


def choose_stream(library: Library, x: Any, stream: int | None) -> int:
    """The stream to work on: the one asked for, else the current one of x's library."""
    if stream is not None:
        return stream
    return library.current_stream(x)


def written_part(library: Library, out: Any, view: Any, size: int) -> Any:
    """`out` when the run filled it, else a view of the written part."""
    full = size_of(view)
    return out if size == full else library.head(out, size)


def finished(library: Library, array: Any, size: int) -> Any:
    """The user's array for one that `empty` made, of which `size` bytes were written."""
    whole = library.finish(array)
    return whole if len(whole) == size else library.head(whole, size)


def placed(
    key: _native.Key,
    decrypt: bool,
    padded: bool,
    library: Library,
    data: Any,
    out: Any,
    tag_length: int,
    stream: int,
) -> tuple[Any, Any, Callable[[int], Any] | None]:
    """Views of `data`, which is of that library, and of `out`; and what makes the result, given the
    bytes written: None where both are bytes."""
    source = library.view(data, "data", stream, False)
    if out is not None:
        library = library_of(out, "out")
        target = library.view(out, "out", stream, True)
        return source, target, partial(written_part, library, out, target)
    if library is BUFFERS:
        return source, None, None
    made = library.empty(
        _native.output_size(key, decrypt, padded, size_of(source), tag_length), data, None
    )
    return source, library.view(made, "out", stream, True), partial(finished, library, made)


def crypt(
    key: _native.Key,
    decrypt: bool,
    padded: bool,
    engine: str,
    data: Any,
    out: Any,
    iv: Buffer | None,
    aad: Buffer | None,
    tag_length: int,
    stream: StreamLike,
) -> Any:
    """`Cipher.encrypt` and `Cipher.decrypt` for whatever is not bytes to bytes."""
    library = library_of(data, "data")
    asked = None if stream is None else stream_pointer(stream)
    pointer = choose_stream(library, data, asked)
    # On the library's own stream what it has written is there: nothing to wait for.
    ready = None if asked is None else pointer
    source = library.view(data, "data", ready, False)
    if out is not None:
        out_library = library_of(out, "out")
        target = out_library.view(
            out, "out", ready if out_library is library and library.one_stream else pointer, True
        )
        written = _native.crypt(
            key, decrypt, padded, engine, source, target, iv, aad, tag_length, pointer
        )
        return written_part(out_library, out, target, written)
    if library is BUFFERS:
        return _native.crypt(
            key, decrypt, padded, engine, source, None, iv, aad, tag_length, pointer
        )
    size = _native.output_size(key, decrypt, padded, size_of(source), tag_length)
    result = library.empty(size, data, asked)
    target = library.view(result, "out", pointer, True)
    written = _native.crypt(
        key, decrypt, padded, engine, source, target, iv, aad, tag_length, pointer
    )
    return finished(library, result, written)


def aead_crypt(
    key: _native.Key,
    decrypt: bool,
    engine: str,
    nonce: Buffer,
    data: Any,
    aad: Buffer | None,
    buf: Any,
    tag_length: int,
) -> Any:
    """`AESGCM`'s methods for whatever is not bytes, bytearray or memoryview."""
    if buf is None:
        return crypt(key, decrypt, False, engine, data, None, nonce, aad, tag_length, None)
    library, out_library = library_of(data, "data"), library_of(buf, "buf")
    pointer = choose_stream(library, data, None)
    source = library.view(data, "data", pointer, False)
    target = out_library.view(buf, "buf", pointer, True)
    size = _native.output_size(key, decrypt, False, size_of(source), tag_length)
    if size_of(target) != size:
        raise ValueError(f"buffer must be {size} bytes")
    return _native.crypt(
        key, decrypt, False, engine, source, target, nonce, aad, tag_length, pointer
    )


def device_column(x: Any, name: str, stream: int, item_size: int) -> Any:
    """A column on a GPU as a `Span`: integers of item_size bytes, or (1) anything as bytes."""
    if x is None:
        return None
    if not is_on_device(x):
        raise TypeError(
            f"{name} is {type(x).__name__} and not an array on a GPU, where lengths is: columns "
            "lie together"
        )
    size = getattr(getattr(x, "dtype", None), "itemsize", item_size)
    kind = getattr(getattr(x, "dtype", None), "kind", "i")
    if item_size != 1 and (size != item_size or kind not in "iu"):
        raise TypeError(
            f"{name} is of {x.dtype}: on a GPU expected integers of {8 * item_size} bits"
        )
    return library_of(x, name).view(x, name, stream, False)


def size_of(view: Any) -> int:
    return len(view) if isinstance(view, _native.Span) else memoryview(view).nbytes

# SPDX-License-Identifier: Apache-2.0
"""Arrays: which library one is of, what stream its work goes to, and calls that take or make
arrays. Loads when the first array, `out=` or `stream=` comes along.

Order on a GPU: `view(x, stream)` makes `stream` wait for the work that writes x, where the library
says which stream that is on (None: its current one, so nothing is to be done); `empty` makes an
array that is first used on `stream`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native
from ._array_libraries import BUFFERS, LIBRARIES, Library, wait

if TYPE_CHECKING:
    from ._types import Buffer, StreamLike

__all__ = ["BUFFERS", "wait"]  # of the libraries; batch.py and queue.py ask for them here


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


def stream_pointer(stream: StreamLike) -> int | None:
    """A stream argument as cudaStream_t.

    None:   not said. An int is DLPack's: 1 the legacy default stream, 2 the per-thread one, else a
            cudaStream_t. Objects: `__cuda_stream__` (CUDA stream protocol), `.cuda_stream`
            (PyTorch), `.ptr` (CuPy).
    """
    if stream is None:
        return None
    if isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 < stream < 1 << 64:
            raise ValueError(
                f"stream is {stream}: expected None, 1 (legacy default stream), 2 (per-thread "
                "default stream) or a cudaStream_t; 0 is ambiguous"
            )
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, pointer = protocol() if callable(protocol) else protocol
        if version != 0:
            raise TypeError(f"stream has version {version} of the CUDA stream protocol: expected 0")
        return int(pointer)
    for attribute in ("cuda_stream", "ptr"):
        pointer = getattr(stream, attribute, None)
        if isinstance(pointer, int):
            return pointer
    raise TypeError(f"stream is {type(stream).__name__}: expected None, an int or a CUDA stream")


def choose_stream(library: Library, x: Any, stream: int | None) -> int:
    """The stream to work on: the one asked for, else the current one of x's library."""
    if stream is not None:
        return stream
    return library.current_stream(x)


def written_part(library: Library, out: Any, view: Any, size: int) -> Any:
    """`out` when the run filled it, else a view of what was written."""
    full = size_of(view)
    return out if size == full else library.head(out, size)


def finished(library: Library, array: Any, size: int) -> Any:
    """What the user gets for an array that `empty` made, of which `size` bytes were written."""
    whole = library.finish(array)
    return whole if len(whole) == size else library.head(whole, size)


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
) -> Any:
    """`AESGCM`'s methods for whatever is not bytes, bytearray or memoryview."""
    if buf is None:
        return crypt(key, decrypt, False, engine, data, None, nonce, aad, 16, None)
    library, out_library = library_of(data, "data"), library_of(buf, "buf")
    pointer = choose_stream(library, data, None)
    source = library.view(data, "data", pointer, False)
    target = out_library.view(buf, "buf", pointer, True)
    size = _native.output_size(key, decrypt, False, size_of(source), 16)
    if size_of(target) != size:
        raise ValueError(f"buffer must be {size} bytes")
    return _native.crypt(key, decrypt, False, engine, source, target, nonce, aad, 16, pointer)


def is_on_device(x: Any) -> bool:
    """Whether x is an array on a GPU, of a library that is loaded."""
    if x is None or isinstance(x, bytes | bytearray | memoryview | list | tuple | _native.Key):
        return False
    for library in LIBRARIES[:-1]:
        if library.owns(x):
            return library.device(x) is not None
    return False


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

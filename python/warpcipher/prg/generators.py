# SPDX-License-Identifier: Apache-2.0
"""Children of seeds, and leaves of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .. import _native
from ..arguments import require_engine, require_int, require_text
from ..arrays import choose_stream, finished, library_of, size_of, stream_pointer

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._types import StreamLike

Prg = Literal["aes-128-mmo", "aes-128-keyed", "chacha20", "chacha12", "chacha8", "aes-128-half"]

SEED_SIZE = 16


def expand(
    seeds: Any,
    prg: Prg = "aes-128-mmo",
    children: int = 2,
    *,
    out: Any = None,
    engine: str = "auto",
    stream: StreamLike = None,
) -> Any:
    """The children of seeds of 16 bytes.

    seeds:    an array of NumPy, PyTorch, CuPy or JAX, or bytes-like; of any dtype, taken as bytes.
    prg:      the generator (docs/guides/private-computation.md has each to the byte).
    children: 1 to 4, of 16 bytes each.
    out:      a writable array of `children` times as many bytes, where the seeds are. It may be
              `seeds` if children is 1. None: a new array of the library of `seeds`, of uint8 and
              shape (seeds, children, 16); a bytearray for bytes-like.
    engine:   "auto"; or "cpu", "reference" in host memory, "cuda" on a GPU.
    stream:   a CUDA stream, as everywhere (docs/python.md). A GPU is not waited for.
    ValueError: no whole seeds, another size, an unknown name; nothing is written then.

    >>> from warpcipher import prg
    >>> prg.expand(bytes(16)).hex()
    'd0396d138a9c9cd403754d1f1e6a221b775c9bd851ae5a89ebb7c8595f73a235'
    """
    count = require_int("children", children, 1, 4)

    def call(source: Any, target: Any, pointer: int) -> None:
        how = count, require_engine(engine)
        _native.prg_expand(source, target, require_text("prg", prg), *how, pointer)

    return _run("seeds", seeds, count, out, stream, call)


def tree(
    roots: Any,
    depth: int,
    prg: Prg = "aes-128-mmo",
    *,
    out: Any = None,
    engine: str = "auto",
    stream: StreamLike = None,
) -> Any:
    """The leaves of the binary trees of seeds: 2^depth for each root, from left to right.

    Arguments and errors as for `expand`; depth is 0 to 40. A new array has the shape
    (roots, 2^depth, 16).

    >>> from warpcipher import prg
    >>> prg.tree(bytes(16), 1) == prg.expand(bytes(16))
    True
    """
    levels = require_int("depth", depth, 0, 40)

    def call(source: Any, target: Any, pointer: int) -> None:
        how = levels, require_engine(engine)
        _native.prg_tree(source, target, require_text("prg", prg), *how, pointer)

    return _run("roots", roots, 1 << levels, out, stream, call)


def _run(
    name: str,
    given: Any,
    factor: int,
    out: Any,
    stream: StreamLike,
    call: Callable[[Any, Any, int], None],
) -> Any:
    """call(input, output, stream), whose output is `factor` times as long."""
    library = library_of(given, name)
    asked = None if stream is None else stream_pointer(stream)
    pointer = choose_stream(library, given, asked)
    source = library.view(given, name, None if asked is None else pointer, False)
    if out is not None:
        call(source, library_of(out, "out").view(out, "out", pointer, True), pointer)
        return out
    size = size_of(source)
    if size % SEED_SIZE:  # else memory would be taken before the call refuses
        raise ValueError(f"{name} has {size} bytes: expected a multiple of {SEED_SIZE}")
    made = library.empty(size * factor, given, asked)
    call(source, library.view(made, "out", pointer, True), pointer)
    found = finished(library, made, size * factor)
    return found.reshape(-1, factor, SEED_SIZE) if hasattr(found, "reshape") else found

# SPDX-License-Identifier: Apache-2.0
"""Texts on a GPU, encrypted there and written to a file: host memory holds ciphertext alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _later, _native
from .file_chunks import RegularChunksCall


class WriteChunksCall(NamedTuple):
    """The arguments of one write: bindings/file_write.cpp reads them by these names.

    target:     the descriptor of a file.
    texts:      Spans and buffers: the plaintext, one after another. streams: pairs of a device and
                a stream of it, on which texts are made. device: that encrypts.
    regular:    the chunks, or columns of them.
    tags:       a buffer of tag_length bytes for each chunk; None: after each ciphertext.
    """

    target: int
    algorithm: str
    keys: Any
    texts: Sequence[Any]
    streams: Sequence[tuple[int, int]]
    device: int
    tag_length: int
    regular: RegularChunksCall | None = None
    offsets: Any = None
    lengths: Any = None
    key_index: Any = None
    ivs: Any = None
    iv_length: int = 12
    tags: Any = None
    engine: str = "auto"
    threads: int = 0
    piece_size: int = 0


class Texts(NamedTuple):
    """What `WriteChunksCall` needs to know of its texts."""

    spans: list[Any]
    streams: list[tuple[int, int]]
    device: int
    size: int


def texts_of(parts: Sequence[Any]) -> Texts:
    """Buffers, and contiguous arrays on GPUs, as texts. One of them at least is on a GPU: the first
    such encrypts."""
    arrays = _later.load("arrays")
    spans: list[Any] = []
    streams: dict[tuple[int, int], None] = {}
    size = 0
    for part in parts:
        if isinstance(part, memoryview):
            spans.append(part)
            size += part.nbytes
            continue
        library = arrays.library_of(part, "a tensor")
        device, stream = library.device(part), library.current_stream(part)
        spans.append(library.view(part, "a tensor", stream or None, False))
        streams[device, stream] = None
        size += len(spans[-1])
    return Texts(spans, list(streams), next(iter(streams))[0], size)


def write(call: WriteChunksCall) -> None:
    """Encrypts and writes. Raises ValueError, EngineError, MemoryError, OSError."""
    failure = _native.write_chunks(call)
    if failure is not None:
        position, error = failure
        raise OSError(error, f"{os.strerror(error)}: at byte {position} of the encrypted file")

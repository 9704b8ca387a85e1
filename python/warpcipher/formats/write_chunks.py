# SPDX-License-Identifier: Apache-2.0
"""Texts on a GPU, written to a file: encrypted there, so that host memory holds only ciphertext,
or as they are."""

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
                a stream of it, on which texts are made. device: that encrypts; None: no text is on
                a GPU.
    regular:    the chunks, or columns of them.
    tags:       a buffer of tag_length bytes for each chunk; None: after each ciphertext.
    """

    target: int
    algorithm: str
    keys: Any
    texts: Sequence[Any]
    streams: Sequence[tuple[int, int]]
    device: int | None
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
    """What a writer needs to know of its texts: bindings/file_write.cpp reads it by these names.

    texts, streams, device: as of `WriteChunksCall`. size: bytes of all texts.
    """

    texts: list[Any]
    streams: list[tuple[int, int]]
    device: int | None
    size: int


def texts_of(parts: Sequence[Any]) -> Texts:
    """Buffers, and contiguous arrays on GPUs, as texts. The first GPU that has one is their
    device."""
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
    device = next((device for device, _ in streams), None)
    return Texts(spans, list(streams), device, size)


def write(call: WriteChunksCall) -> None:
    """Encrypts and writes. Raises ValueError, EngineError, MemoryError, OSError."""
    _raise(_native.write_chunks(call), "the encrypted file")


def write_plain(target: int, texts: Texts) -> None:
    """Writes texts to a file from its beginning on, on all cores; those on a GPU by page-locked
    memory, from which one is written while the next is copied to it.

    target: a descriptor that can be written at any place. Raises EngineError, MemoryError, OSError.
    """
    _raise(_native.write_plain(target, texts), "the file")


def _raise(failure: tuple[int, int] | None, file: str) -> None:
    if failure is not None:
        position, error = failure
        raise OSError(error, f"{os.strerror(error)}: at byte {position} of {file}")

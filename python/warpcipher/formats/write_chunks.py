# SPDX-License-Identifier: Apache-2.0
"""Texts on a GPU, written to a file: encrypted there, so that host memory holds only ciphertext,
or as they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _later, _native


class Texts(NamedTuple):
    """Texts to write, one after another.

    texts:   Spans and buffers.
    streams: pairs of a device and a stream of it, on which they are made.
    device:  that encrypts; None: no text is on a GPU.
    size:    bytes of all texts.
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


def write(target: int, algorithm: str, keys: Any, texts: Texts, **columns: Any) -> None:
    """Encrypts texts on their GPU and writes them as chunks: see `_native.write_chunks`. Raises
    ValueError, EngineError, MemoryError, OSError."""
    failure = _native.write_chunks(target, algorithm, keys, *texts[:3], **columns)
    raise_failure(failure, "the encrypted file")


def write_plain(target: int, texts: Texts) -> None:
    """Writes texts to a file from its beginning on, on all cores; those on a GPU by page-locked
    memory, from which one is written while the next is copied to it.

    target: a descriptor that can be written at any place. Raises EngineError, MemoryError, OSError.
    """
    raise_failure(_native.write_plain(target, *texts[:3]), "the file")


def raise_failure(failure: tuple[int, int] | None, file: str) -> None:
    """Raises OSError for what a write of `_native` returned, unless that is None."""
    if failure is not None:
        position, error = failure
        raise OSError(error, f"{os.strerror(error)}: at byte {position} of {file}")

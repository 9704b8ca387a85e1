# SPDX-License-Identifier: Apache-2.0
"""Authenticated chunks of a file, read and decrypted into memory of the host or of a GPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

import warpcipher as wc

from .. import _later, _native
from .._types import Buffer, Data, StreamLike
from ..arguments import PLAIN
from .layout import FormatError


def read_chunks(
    source: int | Buffer,
    algorithm: str,
    keys: Buffer | wc.Key | Sequence[Buffer | wc.Key],
    out: Data,
    *,
    offsets: Buffer | Sequence[int],
    lengths: Buffer | Sequence[int],
    ivs: Buffer | None = None,
    iv_length: int = 12,
    key_index: Buffer | Sequence[int] | None = None,
    tags: Buffer | None = None,
    tag_length: int = 16,
    aad: Buffer | None = None,
    aad_offsets: Buffer | Sequence[int] | None = None,
    aad_lengths: Buffer | Sequence[int] | None = None,
    out_offsets: Buffer | Sequence[int] | None = None,
    skips: Buffer | Sequence[int] | None = None,
    takes: Buffer | Sequence[int] | None = None,
    engine: str = "auto",
    stream: StreamLike = None,
    threads: int = 0,
    piece_size: int = 0,
) -> None:
    """Reads chunks of a file, each an AEAD message, and decrypts them into `out`, on a GPU or in
    host memory: threads read, and ciphertext is decrypted as it comes. On a GPU plaintext
    exists only in its memory.

    source:      a file descriptor that can be read at any place (`file.fileno()`), or the file's
                 bytes.
    algorithm:   of an AEAD, such as "aes-256-gcm".
    keys:        bytes or a `Key` for all chunks, or a sequence of them with key_index.
    out:         a writable buffer or array, apart from source, ivs, tags and aad.
    offsets:     where each chunk begins in the file.
    lengths:     bytes of plaintext of each chunk, and so of ciphertext.
    ivs:         iv_length bytes for each chunk; None: in the file, in front of each ciphertext.
    key_index:   the key of each chunk, from 0.
    tags:        tag_length bytes for each chunk; None: in the file, after each ciphertext.
    aad:         associated data: all of it for every chunk, or, with aad_offsets and aad_lengths,
                 those ranges of it.
    out_offsets: where each output begins in out; None: back to back.
    skips:       with takes: the bytes wanted of each chunk, takes[i] from skips[i] on. None: all of
                 each.
    engine:      "auto" or a name of `warpcipher.engines()`.
    stream:      for an `out` on a GPU: its former uses are on this stream; None: on the current one
                 of its library. The call returns when all is there.
    threads:     that read; 0: as many as the process has cores. More than that are not used.
    piece_size:  bytes that a thread reads at once, or a whole chunk if that is longer; 0: what was
                 measured to be best. A piece is no longer than all chunks together. A read to a GPU
                 takes 512 MiB of page-locked memory at most, so pieces of 256 MiB at most, and
                 fewer threads with longer pieces.

    Returns when every tag was checked. On any exception `out` is zeros wherever the chunks go,
    except on a ValueError, TypeError or BufferError for arguments that cannot be right: then
    nothing is written. InvalidTag names the first chunk whose tag does not match, FormatError one
    that the file ends in, OSError one that cannot be read; MemoryError, EngineError.

    >>> import warpcipher as wc
    >>> from warpcipher import formats
    >>> sealed = wc.aead.AESGCM(bytes(16)).encrypt(bytes(12), b"one chunk", None)
    >>> out = bytearray(9)
    >>> formats.read_chunks(
    ...     sealed, "aes-128-gcm", bytes(16), out, offsets=[0], lengths=[9], ivs=bytes(12)
    ... )
    >>> out
    bytearray(b'one chunk')
    """
    failure = failure_of(
        source,
        algorithm,
        keys,
        out,
        stream,
        offsets=offsets,
        lengths=lengths,
        key_index=key_index,
        ivs=ivs,
        iv_length=iv_length,
        aad=aad,
        aad_offsets=aad_offsets,
        aad_lengths=aad_lengths,
        tags=tags,
        tag_length=tag_length,
        out_offsets=out_offsets,
        skips=skips,
        takes=takes,
        engine=engine,
        threads=threads,
        piece_size=piece_size,
    )
    if failure is not None:
        raise_failure(*failure)


def failure_of(
    source: int | Buffer, algorithm: str, keys: Any, out: Data, stream: StreamLike, **more: Any
) -> tuple[str, int, int, int] | None:
    """`read_chunks`, for callers that can say more of a chunk than its number: returns what
    `raise_failure` takes; None: all was read."""
    view, pointer = viewed(out, stream)
    return _native.read_chunks(source, algorithm, keys, view, stream=pointer, **more)


def viewed(out: Data, stream: StreamLike) -> tuple[Any, int]:
    """An output as `_native` takes it, and its stream."""
    if stream is None and type(out) in PLAIN:
        return out, 0
    arrays = _later.load("arrays")
    library = arrays.library_of(out, "out")
    pointer = arrays.choose_stream(library, out, arrays.stream_pointer(stream))
    return library.view(out, "out", pointer, True), pointer


def read_plain(file: int, position: int, out: Data) -> None:
    """Fills `out`, in host memory or on a GPU, with the bytes of a file that is not encrypted, from
    `position` on, on all cores.

    file: a descriptor that can be read at any place. Raises FormatError where the file ends before
    `out` is full, OSError, MemoryError, EngineError; the content of `out` is then of no use.
    """
    view, stream = viewed(out, None)
    failure = _native.read_plain(file, position, view, stream)
    if failure is None:
        return
    kind, _, position, error = failure
    if kind == "ended":
        raise FormatError(f"the file ended at byte {position} while it was read")
    raise OSError(error, f"{os.strerror(error)}: byte {position} of the file")


def raise_failure(kind: str, chunk: int, position: int, error: int) -> NoReturn:
    """Raises what a failure of `_native.read_chunks` stands for."""
    if kind == "tag":
        raise authentication_failed(chunk)
    if kind == "ended":
        raise FormatError(
            f"the encrypted file ended at byte {position} while it was read, in chunk {chunk}"
        )
    raise OSError(error, f"{os.strerror(error)}: byte {position} of the encrypted file")


def authentication_failed(chunk: int) -> Exception:
    """The error of a chunk whose tag does not match."""
    error: Exception = wc.InvalidTag(
        f"chunk {chunk} failed authentication: the file was damaged, cut, reordered or added to; "
        "or, of formats tink and ags1, the key or context is another one"
    )
    return error

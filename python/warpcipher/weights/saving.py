# SPDX-License-Identifier: Apache-2.0
"""`save_file`: tensors to a safetensors file, plain or encrypted while it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any, BinaryIO

from .. import formats
from .._types import PathLike
from ..formats import Options
from ..formats.registry import take
from ..formats.whole import Parts, write_whole
from ..formats.write_chunks import texts_of, write_plain
from .cryptotensors import write_file
from .cryptotensors_key import CryptotensorsKey
from .entries import Entry, entry_of, parts_on_gpu
from .header import build
from .images import streamed, written
from .shards import MODEL_FORMATS

PLAIN, CRYPTOTENSORS = "safetensors", "cryptotensors"
AT_ONCE = 1 << 20
"""Bytes of a write: an object's is copied."""


def save_file(
    tensors: Mapping[str, Any],
    path: PathLike | BinaryIO,
    key: object = None,
    metadata: Mapping[str, str] | None = None,
    *,
    format: str = "auto",
    context: bytes = b"",
) -> None:
    """Writes tensors to one file, encrypted with `key`.

    tensors: by name: of NumPy, PyTorch, CuPy or JAX, in any mixture; one that is not contiguous is
    copied. Tensors that share memory are stored once each.
    path: it has its name only when it is whole and on the disk; an existing file is replaced then,
    and its permissions stay. Or a binary file object, which is written to when all is encrypted; or
    a URL, which tensors of the host go to as they are encrypted.
    key: what `warpcipher.formats.open` takes, or a `CryptotensorsKey`. None: the file is plain.
    metadata: texts for the header, encrypted with the rest.
    format: "auto" takes it from the key; or the name of a format that authenticates and that a key
    opens by itself: "cobblestone-128", "cobblestone-256", "tink". A `CryptotensorsKey` is only
    for "cryptotensors".
    context: bytes bound to the file and not stored in it.

    The plaintext is, byte for byte, the file that the safetensors library writes; the library of
    cryptotensors reads its files. Tensors on a GPU are encrypted there, so that host memory holds
    only their ciphertext; a file without a key, and Tink's AES-CTR-HMAC, take them through host
    memory. Raises TypeError, ValueError, MemoryError, EngineError, OSError.

    >>> import numpy
    >>> from warpcipher import weights
    >>> weights.save_file({"w": numpy.ones(3, "f4")}, "model.safetensors.cobblestone", bytes(32))
    >>> weights.load_file("model.safetensors.cobblestone", bytes(32), framework="np")["w"].tolist()
    [1.0, 1.0, 1.0]
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors is {type(tensors).__name__}: expected a mapping of names to them")
    entries = {name: entry_of(name, tensor) for name, tensor in tensors.items()}
    texts = checked_metadata(metadata)
    shapes = ((name, entry.dtype, entry.shape) for name, entry in entries.items())
    header, placed = build(shapes, texts)
    if isinstance(key, CryptotensorsKey):
        if format not in ("auto", CRYPTOTENSORS) or context:
            raise ValueError("a CryptotensorsKey goes with format cryptotensors and no context")
        write_file(path, entries, placed, texts, key)
        return
    if format == CRYPTOTENSORS:
        raise ValueError("format cryptotensors takes its keys as a CryptotensorsKey")
    file: Any
    texts_on_host = _texts_of(header, (entries[name] for name in placed))
    if key is None:
        if format not in ("auto", PLAIN) or context:
            raise ValueError("a format or a context was given and no key: the file would be plain")
        on_gpu = parts_on_gpu(entries[name] for name in placed)
        with (streamed if on_gpu is None else written)(path) as file:
            if on_gpu is None:
                for text in texts_on_host:
                    for start in range(0, len(text), AT_ONCE):
                        write_whole(file, text[start : start + AT_ONCE])
            else:
                write_plain(file.fileno(), texts_of([memoryview(header), *on_gpu]))
        return
    options = Options(context=context)
    chosen, key = take(format, key, options)
    if chosen.name not in MODEL_FORMATS:
        raise ValueError(
            f"format is {format!r}, which load_file cannot open: expected one of auto, "
            f"{', '.join(MODEL_FORMATS)}"
        )
    on_gpu = parts_on_gpu(entries[name] for name in placed)
    with (streamed if on_gpu is None else written)(path) as file:
        if on_gpu is not None:
            with chosen.encryptor(key, options) as encryptor:
                if encryptor.write_texts(file, [memoryview(header), *on_gpu]):
                    return
        formats.encrypt_stream(Parts(texts_on_host), file, key, format=chosen.name, options=options)


def save(
    tensors: Mapping[str, Any],
    key: object = None,
    metadata: Mapping[str, str] | None = None,
    *,
    format: str = "auto",
    context: bytes = b"",
) -> bytes:
    """The file that `save_file` writes, as bytes. The arguments are as for `save_file`.

    >>> import numpy
    >>> from warpcipher import weights
    >>> data = weights.save({"w": numpy.ones(3, "f4")}, bytes(32))
    >>> weights.load(data, bytes(32), framework="np")["w"].tolist()
    [1.0, 1.0, 1.0]
    """
    buffer = BytesIO()
    save_file(tensors, buffer, key, metadata, format=format, context=context)
    return buffer.getvalue()


def _texts_of(header: bytes, entries: Iterable[Entry]) -> Iterator[memoryview]:
    """The parts of a file, each made when it is asked for."""
    yield memoryview(header)
    for entry in entries:
        yield entry.data()


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    """A copy. Raises TypeError unless it maps texts to texts."""
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata is {type(metadata).__name__}: expected a mapping of str to str")
    for name, text in metadata.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(
                f"metadata has {type(text).__name__} by {type(name).__name__}: expected str by str"
            )
    return dict(metadata)

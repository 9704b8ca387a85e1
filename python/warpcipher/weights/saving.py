# SPDX-License-Identifier: Apache-2.0
"""`save_file`: tensors to a safetensors file, plain or encrypted while it is written."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from .. import formats
from ..formats import Options
from ..formats.whole import write_whole
from .dtypes import DTYPES
from .header import build, shown

PLAIN = "safetensors"


class Entry:
    """A tensor to save.

    dtype, shape: as the header has them. data: gives its bytes when they are written, so that a
    copy, where one is needed, is there for one tensor at a time.
    """

    def __init__(self, dtype: str, shape: tuple[int, ...], data: Callable[[], memoryview]) -> None:
        self.dtype = dtype
        self.shape = shape
        self.data = data


def save_file(
    tensors: Mapping[str, Any],
    path: str | os.PathLike[str],
    key: object = None,
    metadata: Mapping[str, str] | None = None,
    *,
    format: str = "auto",
    context: bytes = b"",
) -> None:
    """Writes tensors to one file, encrypted with `key`.

    tensors: by name: of NumPy, PyTorch, CuPy or JAX, in any mixture; one that is not contiguous is
    copied. Tensors that share memory are stored once each.
    path: it has its name only when it is whole and on the disk; an existing file is replaced then.
    key: what `warpcipher.formats.open` takes. None: the file is plain.
    metadata: texts for the header, encrypted with the rest.
    format: a name in `warpcipher.formats.FORMATS` that authenticates; "auto" takes it from the key.
    context: bytes bound to the file and not stored in it.

    The plaintext is, byte for byte, the file that the safetensors library writes. A tensor on a GPU
    passes through host memory. Raises TypeError, ValueError, OSError.
    """
    entries = {name: entry_of(name, tensor) for name, tensor in tensors.items()}
    texts = checked_metadata(metadata)
    header, placed = build(
        ((name, entry.dtype, entry.shape) for name, entry in entries.items()), texts
    )
    parts = _Parts(header, (entries[name].data for name in placed))
    if key is None:
        if format not in ("auto", PLAIN) or context:
            raise ValueError("a format or a context was given and no key: the file would be plain")
        with replaced(path) as file:
            while part := parts.take(1 << 20):
                write_whole(file, part)
        return
    chosen = formats.resolve(format, key)
    if not chosen.authenticated:
        raise ValueError(f"format {chosen.name} authenticates nothing: models are not stored in it")
    with replaced(path) as file:
        formats.encrypt_stream(
            parts, file, key, format=chosen.name, options=Options(context=context)
        )


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    """A copy. Raises TypeError for what is not texts by texts."""
    if metadata is None:
        return None
    for name, text in metadata.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(
                f"metadata has {type(text).__name__} by {type(name).__name__}: expected str by str"
            )
    return dict(metadata)


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that gets its name when all of it is written and on the disk; else nothing is left."""
    place = Path(os.fsdecode(path))
    temporary = place.with_name(f".warpcipher-{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123
            yield file
            os.fsync(descriptor)
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class _Parts:
    """Header and tensors as a file that is read once."""

    def __init__(self, header: bytes, tensors: Iterator[Callable[[], memoryview]]) -> None:
        self._part = memoryview(header)
        self._rest = tensors

    def take(self, most: int) -> memoryview:
        """Up to `most` bytes; none at the end."""
        while not self._part:
            following = next(self._rest, None)
            if following is None:
                return self._part
            self._part = following()
        taken, self._part = self._part[:most], self._part[most:]
        return taken

    def readinto(self, buffer: memoryview, /) -> int:
        """As a binary file has it."""
        taken = self.take(len(buffer))
        buffer[: len(taken)] = taken
        return len(taken)


_BY_NUMPY = {entry.numpy: name for name, entry in DTYPES.items() if entry.numpy}
_BY_TORCH = {entry.torch: name for name, entry in DTYPES.items() if entry.torch}


def entry_of(name: object, tensor: Any) -> Entry:
    """A tensor of any of the libraries. Raises TypeError."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a tensor is {type(name).__name__}: expected str")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return _torch_entry(name, tensor)
    dtype = getattr(tensor, "dtype", None)
    known = _BY_NUMPY.get(getattr(dtype, "name", ""))
    if known is None or (not hasattr(tensor, "__array__") and not hasattr(tensor, "get")):
        what = type(tensor).__name__ + (f" of {dtype}" if dtype is not None else "")
        raise TypeError(
            f"tensor {shown(name)} is {what}: expected an array of NumPy, PyTorch, CuPy or JAX, of "
            "a dtype that safetensors has"
        )
    return Entry(known, tuple(tensor.shape), lambda: _array_bytes(tensor))


def _array_bytes(tensor: Any) -> memoryview:
    import numpy

    on_gpu = hasattr(tensor, "__cuda_array_interface__") and hasattr(tensor, "get")
    array: Any = numpy.ascontiguousarray(tensor.get() if on_gpu else tensor)
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.byteswap()
    return memoryview(array.reshape(-1).view(numpy.uint8))


def _torch_entry(name: str, tensor: Any) -> Entry:
    torch = sys.modules["torch"]
    known = _BY_TORCH.get(str(tensor.dtype).removeprefix("torch."))
    if known is None or tensor.layout is not torch.strided or tensor.is_quantized:
        raise TypeError(
            f"tensor {shown(name)} is a torch.Tensor of {tensor.dtype}, {tensor.layout}: expected "
            "a dense one, of a dtype that safetensors has"
        )
    if tensor.is_meta:
        raise TypeError(f"tensor {shown(name)} is on the device meta: it has no values")
    shape = tuple(tensor.shape)
    if DTYPES[known].bits == 4:
        shape = (*shape[:-1], 2 * shape[-1]) if shape else (2,)
    return Entry(known, shape, lambda: _torch_bytes(tensor))


def _torch_bytes(tensor: Any) -> memoryview:
    import ctypes

    torch = sys.modules["torch"]
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous().cpu()
    flat = plain.view(-1).view(torch.uint8) if plain.dim() else plain.reshape(1).view(torch.uint8)
    held = (ctypes.c_ubyte * flat.numel()).from_address(flat.data_ptr())
    held.tensor = flat  # the memory lives as long as the view
    return memoryview(held).cast("B")

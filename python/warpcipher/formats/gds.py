# SPDX-License-Identifier: Apache-2.0
"""Encrypted files read to a GPU by kvikio: where GPUDirect Storage is set up, ciphertext goes from
the disk to the GPU's memory without the host's. Needs the extra `gds`.

Elsewhere kvikio reads through host memory too, and `DecryptedFile.read_device` is faster: take this
only for disks with GPUDirect Storage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _later, _native
from .._types import PathLike
from ..arrays.library import LEGACY_STREAM
from .file_chunks import viewed
from .layout import FormatError

if TYPE_CHECKING:
    from .reader import DecryptedFile, DecryptingReader

PIECE = 32 << 20
"""Bytes of ciphertext that are read at once: the next while one is decrypted."""


def read_device(
    file: DecryptedFile, path: PathLike, offset: int, length: int, device: int = 0
) -> _native.DeviceArray:
    """`length` bytes of plaintext from `offset` on, in new memory of a GPU, as
    `DecryptedFile.read_device` gives them.

    file: the file at `path`, opened by `warpcipher.formats.open`.

    Raises ImportError where kvikio is missing; ValueError for a range that the file does not have,
    and for formats that a GPU does not authenticate (raw, Tink's AES-CTR-HMAC); InvalidTag,
    FormatError, OSError, EngineError; then nothing is handed out.
    """
    pieces = _pieces(file, path, offset, length, device)
    out = _native.DeviceArray(length, device, LEGACY_STREAM)
    done = 0
    for plain, skip, count in pieces:
        out.pack(done, plain, skip, 1, count, count)
        done += count
    return out


def read_into(file: DecryptedFile, path: PathLike, offset: int, length: int, out: Any) -> None:
    """Fills an array on a GPU, of `length` bytes, with plaintext from `offset` on, as
    `read_device` reads it. Raises as that; what `out` holds is then of no use."""
    view, stream = viewed(out, None)
    device = getattr(view, "device", None)
    if device is None:
        raise ValueError("out lies in host memory: kvikio reads to a GPU")
    done = 0
    for plain, skip, count in _pieces(file, path, offset, length, device):
        plain.copy_to(skip, count, view, done, stream)
        done += count


def _kvikio() -> Any:
    says = "reading by GPUDirect Storage needs kvikio ({}): pip install 'warpcipher[gds]'"
    return _later.needed("kvikio", says, ImportError)


Piece = tuple[_native.DeviceArray, int, int]
"""Plaintext on a GPU, and the bytes wanted of it: where they begin, and how many."""


def _pieces(
    file: DecryptedFile, path: PathLike, offset: int, length: int, device: int
) -> Iterator[Piece]:
    """Raises ValueError for a range that the file does not have, before anything is read."""
    kvikio = _kvikio()
    file.raw.require_range(offset, length)

    def pieces() -> Iterator[Piece]:
        if length:
            with kvikio.CuFile(path, "r") as source:
                yield from _read(source, device, file.raw, offset, length)

    return pieces()


def _read(
    source: Any, device: int, reader: DecryptingReader, position: int, length: int
) -> Iterator[Piece]:
    """source: the file, as kvikio has it."""
    layout = reader.layout
    first, skip = layout.locate(position)
    last = layout.locate(position + length - 1)[0]
    step = max(1, PIECE // (layout.chunk + layout.overhead))
    pieces = [(begin, min(begin + step, last + 1)) for begin in range(first, last + 1, step)]
    waiting: deque[tuple[int, _native.DeviceArray, Any]] = deque()
    done = 0
    for number, (begin, end) in enumerate(pieces):
        for piece in pieces[number + len(waiting) : number + 2]:
            start, size = reader.place_of(*piece)
            sealed = _native.DeviceArray(size, device, LEGACY_STREAM)
            sealed.clear(0, size)  # it is there: kvikio knows nothing of the stream it is made on
            waiting.append((start, sealed, source.pread(sealed, size, start)))
        start, sealed, future = waiting.popleft()
        if (count := future.get()) != len(sealed):
            raise FormatError(f"the encrypted file ended at byte {start + count} while it was read")
        plain = reader.open_on_gpu(begin, end, sealed)
        count = min(len(plain) - skip, length - done)
        yield plain, skip, count
        done += count
        skip = 0

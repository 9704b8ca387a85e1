# SPDX-License-Identifier: Apache-2.0
"""What `warpcipher.formats.open` returns."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from .. import _later, _native
from .._uncopied import Uncopied
from ..arguments import PLAIN
from . import reader

if TYPE_CHECKING:
    from .._types import Data, StreamLike


class DecryptedFile(Uncopied, io.BufferedReader):
    """What `warpcipher.formats.open` returns: an ordinary buffered file object over the plaintext,
    whose `readinto` also takes arrays, in host memory or on a GPU.

    raw: a `DecryptingReader`; `raw.size` is the size of the plaintext, `raw.format` the format.
    """

    raw: reader.DecryptingReader

    def __init__(self, raw: reader.DecryptingReader) -> None:
        super().__init__(raw, buffer_size=16 << 10)

    def __repr__(self) -> str:
        name = "" if self.raw.name is None else f"{self.raw.name!r}, "
        closed = ", closed" if self.closed else ""
        return f"<DecryptedFile {name}{self.raw.format}, {self.raw.size} bytes{closed}>"

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes from the current position; all that follow for -1 or None."""
        if size is None or size == -1:
            size = max(0, self.raw.size - self.tell())
        return super().read(size)

    def readinto(self, out: Data, /, *, stream: StreamLike = None) -> int:
        """Fills `out` from the current position; fewer bytes only at the end of the file. Returns
        how many.

        out:    a writable buffer or array. On a GPU plaintext exists in its memory alone:
                ciphertext travels there in overlapped pieces. `raw` files go to host memory only.
        stream: for an array on a GPU: its former uses are on this stream; None: on the current one
                of its library. The call returns when all is there.

        Every tag is checked before the call returns. On an exception `out` is zeros wherever the
        call would have written, and the position stays. Raises as `read_chunks`.
        """
        if type(out) in PLAIN and memoryview(out).nbytes < reader.DIRECT:  # type: ignore[arg-type]
            return super().readinto(out)  # type: ignore[arg-type]
        arrays = _later.load("arrays")
        view = arrays.library_of(out, "out").view(out, "out", None, True)
        if not isinstance(view, _native.Span) and not self.raw.reads_ranges:
            return super().readinto(view)
        position = self.tell()
        size: int = arrays.size_of(view)
        count = max(0, min(size, self.raw.size - position))
        if count == 0:
            return 0
        self.raw.read_range(position, count, out, stream)
        self.seek(position + count)
        return count

    def read_device(
        self, offset: int, length: int, device: int | None = None
    ) -> _native.DeviceArray:
        """`length` bytes of plaintext from `offset` on, in new memory of a GPU. The position of the
        file stays, and several threads may read at a time.

        device: CUDA ordinal; None: the current device.

        The array owns its memory, and wipes it at the end: any library takes it through DLPack or
        the CUDA array interface. ValueError: the file has no such range. EngineError: no GPU.
        Raises as `read_chunks`; then nothing is handed out.
        """
        for name, value in (("offset", offset), ("length", length)):
            if value < 0:
                raise ValueError(f"{name} is {value}: expected 0 or more")
        if offset + length > self.raw.size:
            raise ValueError(
                f"the range [{offset}, +{length}) leaves the file, which has {self.raw.size} bytes"
            )
        array = _native.DeviceArray(
            length, _native.pointer_device(0) if device is None else device, 0
        )
        self.raw.read_range(offset, length, array)
        return array

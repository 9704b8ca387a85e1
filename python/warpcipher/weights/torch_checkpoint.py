# SPDX-License-Identifier: Apache-2.0
"""Encrypted checkpoints of torch.distributed.checkpoint, sharded and resharded as plain ones are.

    from torch.distributed import checkpoint
    from warpcipher.weights.torch_checkpoint import EncryptedReader, EncryptedWriter

    checkpoint.save(state, storage_writer=EncryptedWriter(path, key))
    checkpoint.load(state, storage_reader=EncryptedReader(path, key))

Every file of a checkpoint is encrypted as a whole, its metadata too: they are a pickle, and whoever
can write them could run a program in the process that loads them. PyTorch's
StreamTransformExtension leaves them plain, with the list of the encrypted files, so it is not used.
The tags of a file cover its name: files cannot change places.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import formats
from .._types import PathLike
from ..formats import Options
from ..formats.base import wipe
from ..formats.registry import take
from ..formats.whole import write_whole
from .files import resolved

_filesystem: Any = import_module("torch.distributed.checkpoint.filesystem")


class EncryptedWriter(_filesystem.FileSystemWriter):  # type: ignore[misc]
    """A StorageWriter for `torch.distributed.checkpoint.save`.

    path: a directory. key: what `warpcipher.formats.open` takes, asked for once. context: bytes
    that bind the files together, such as the name of the run and the step: with one context for two
    checkpoints under one key a file of one passes for the same file of the other. options: those of
    PyTorch's FileSystemWriter. Pickled, as `async_save` does for another process, it has the key in
    plain.
    """

    def __init__(
        self, path: PathLike, key: object, *, context: bytes = b"", **options: Any
    ) -> None:
        super().__init__(path, **options)
        self.fs = _EncryptedFiles(key, context)


class EncryptedReader(_filesystem.FileSystemReader):  # type: ignore[misc]
    """A StorageReader for `torch.distributed.checkpoint.load`. The arguments are as for
    `EncryptedWriter`; a rank reads and decrypts the chunks that it needs. Loading raises InvalidTag
    where a file was changed, damaged, or is of another context."""

    def __init__(
        self, path: PathLike, key: object, *, context: bytes = b"", **options: Any
    ) -> None:
        super().__init__(path, **options)
        self.fs = _EncryptedFiles(key, context)

    def read_metadata(self, *arguments: Any, **options: Any) -> Any:
        """The metadata. FileNotFoundError: there are none. Metadata that cannot be read for another
        reason raise it when they are used: PyTorch before 2.13 says of all that is raised here that
        "metadata is None"."""
        try:
            return super().read_metadata(*arguments, **options)
        except FileNotFoundError:
            raise  # PyTorch then looks for metadata of the rank's own
        except Exception as error:
            return _Unreadable(error)


class _Unreadable:
    """Metadata that could not be read, and why."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


class _EncryptedFiles(_filesystem.FileSystem):  # type: ignore[misc]
    """Opens files encrypted."""

    def __init__(self, key: object, context: bytes) -> None:
        super().__init__()
        if key is None:
            raise TypeError("the key is None: expected what warpcipher.formats.open takes")
        self._key = resolved(key)
        self._context = context

    @contextlib.contextmanager
    def create_stream(self, path: PathLike, mode: str) -> Iterator[Any]:
        """A file for reading ("rb") or writing ("wb"); one that is left by an error stays without
        its end, which no reader takes."""
        place = Path(path)
        # PyTorch writes the metadata under another name, and then renames them.
        name = place.name.removesuffix(".tmp")
        context = len(self._context).to_bytes(8, "little") + self._context + name.encode()
        options = Options(context=context)
        if mode == "rb":
            with formats.open(place, self._key, options=options) as file:
                yield file
        elif mode == "wb":
            with open(place, "wb", buffering=0) as raw:  # noqa: PTH123
                writer = _EncryptingFile(raw, self._key, options)
                try:
                    yield writer
                    writer.finish()
                    # PyTorch does so before the end is written.
                    os.fsync(raw.fileno())
                finally:
                    writer.discard()
        else:
            raise ValueError(f"mode is {mode!r}: expected 'rb' or 'wb'")


class _EncryptingFile(io.RawIOBase):
    """A file that encrypts the bytes written to it. It ends with `finish`, not with `close`: a file
    that is closed because of an error must not look whole."""

    def __init__(self, file: io.FileIO, key: object, options: Options) -> None:
        super().__init__()
        chosen, key = take("auto", key, options)
        self._file = file
        self._encryptor = chosen.encryptor(key, options)
        self._held = bytearray(self._encryptor.first_piece)
        self._filled = 0
        self._position = 0
        self._out = bytearray(self._encryptor.capacity)
        write_whole(file, memoryview(self._encryptor.header))

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        size = len(view)
        while view:
            # A full piece is held until more follows, as a format marks its final chunk.
            if self._filled == len(self._held):
                self._encrypt(final=False)
            part = view[: len(self._held) - self._filled]
            self._held[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            view = view[len(part) :]
        self._position += size
        return size

    def _encrypt(self, *, final: bool) -> None:
        with memoryview(self._held) as held, memoryview(self._out) as out:
            count = self._encryptor.process(held[: self._filled], out, final=final)
            write_whole(self._file, out[:count])
        if len(self._held) != self._encryptor.piece:
            wipe(self._held)
            self._held = bytearray(self._encryptor.piece)
        self._filled = 0

    def finish(self) -> None:
        """Writes the held bytes, and the end of the file."""
        self._encrypt(final=True)

    def discard(self) -> None:
        """Wipes the rest of the plaintext, and the keys."""
        wipe(self._held)
        self._encryptor.close()

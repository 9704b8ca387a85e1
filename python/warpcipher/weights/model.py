# SPDX-License-Identifier: Apache-2.0
"""One file of tensors, whatever protects it: its header, and its data by place."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from .._uncopied import Uncopied
from ..formats import FormatError, Options
from ..formats.registry import take
from .cryptotensors import CryptotensorsFile
from .cryptotensors_header import ENCRYPTION
from .cryptotensors_key import CryptotensorsKey
from .frameworks import Framework
from .header import Header, read_header
from .images import FormatImage, Image, PlainImage, read_bytes

UNIT = 64 << 10
"""Of files that are plain or in a format of `formats`: a few chunks, which cost less than a read of
their own."""


class TensorFile(Protocol):
    """header: checked, and authenticated where the file is encrypted. metadata: the user's part of
    the header's. unit: bytes that are read and decrypted together, and so at least."""

    header: Header
    metadata: dict[str, str] | None
    unit: int

    def read(self, framework: Framework, offset: int, block: Any) -> None:
        """Fills a block from byte `offset` of the data on. Raises InvalidTag, FormatError and
        OSError; the content of the block is then not to be used."""

    def close(self) -> None:
        """Wipes keys and lets go of the file. Idempotent."""


class SafetensorsFile(Uncopied):
    """A safetensors file, plain or as a whole inside of an encrypted one."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.unit = UNIT
        try:
            self.header = read_header(partial(read_bytes, image), image.size)
            self.metadata = self.header.metadata
        except BaseException:
            self.close()
            raise

    def read(self, framework: Framework, offset: int, block: Any) -> None:
        self._image.read(self.header.data_start + offset, framework.memory(block))

    def close(self) -> None:
        self._image.close()


def resolved(key: object) -> object:
    """The key itself where a source or a function was given for it: asked once for all files."""
    if key is None or isinstance(key, CryptotensorsKey):
        return key
    return take("auto", key, Options())[1]


def open_file(path: str, key: object, context: bytes, gds: bool = False) -> TensorFile:
    """The file at a path. key: None for one that is not encrypted, which is taken by no other. gds:
    read to a GPU by kvikio.

    Raises InvalidTag, FormatError, ValueError, TypeError and OSError.
    """
    if gds and (key is None or isinstance(key, CryptotensorsKey)):
        raise ValueError("gds reads files in cobblestone and Tink's AES-GCM: no others")
    if isinstance(key, CryptotensorsKey):
        if context:
            raise ValueError("a context was given: a cryptotensors file has none")
        return CryptotensorsFile(path, key)
    if key is not None:
        return SafetensorsFile(FormatImage(path, key, context, gds))
    if context:
        raise ValueError("a context was given and no key: a plain file has none")
    file = SafetensorsFile(PlainImage(path))
    if file.metadata is not None and ENCRYPTION in file.metadata:
        file.close()
        raise FormatError(
            "the file is encrypted in the format cryptotensors: give its keys as a CryptotensorsKey"
        )
    return file

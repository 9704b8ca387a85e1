# SPDX-License-Identifier: Apache-2.0
"""One file of tensors, however it is protected: its header, and its data by place."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, NamedTuple, Protocol

import warpcipher as wc

from .._types import PathLike
from .._uncopied import Uncopied
from ..formats import FormatError, Options
from ..formats.registry import take
from . import gguf
from .cryptotensors import CryptotensorsFile
from .cryptotensors_header import ENCRYPTION, user_metadata
from .cryptotensors_key import CryptotensorsKey
from .frameworks import Framework
from .header import Header, NoSafetensorsError, TensorInfo, read_header
from .images import FormatImage, Image, plain_image, read_bytes

UNIT = 64 << 10
"""Of files that are plain or in a format of `formats`: a few chunks, which cost less than a read of
their own."""

_CRYPTOTENSORS = "encrypted in the format cryptotensors: give its keys as a CryptotensorsKey"
_PLAIN = "The file is not encrypted: with a key such files are refused"


class TensorFile(Protocol):
    """name: of the file, without its folder. header: checked, and authenticated where the file is
    encrypted. metadata: the user's part of the header's. unit: bytes that are read and decrypted
    together, and so at least."""

    name: str
    header: Header
    metadata: dict[str, str] | None
    unit: int

    def read(self, framework: Framework, offset: int, block: Any) -> None:
        """Fills a block from byte `offset` of the data on. Raises InvalidTag, FormatError and
        OSError; the content of the block is then not to be used."""

    def close(self) -> None:
        """Wipes keys and lets go of the file. Idempotent."""


class WholeFile(Uncopied):
    """A safetensors or GGUF file, plain or as a whole inside of an encrypted one."""

    def __init__(self, path: str, image: Image) -> None:
        self.name = os.path.basename(path)  # noqa: PTH119
        self._image = image
        self.unit = UNIT
        try:
            beginning = read_bytes(image, 0, min(len(gguf.MAGIC), image.size))
            # As the length of safetensors' header these bytes would be more than the limit.
            read = gguf.read_header if beginning == gguf.MAGIC else read_header
            self.header = read(partial(read_bytes, image), image.size)
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
        return _signed(path, key)
    if key is not None:
        return _encrypted(path, key, context, gds)
    if context:
        raise ValueError("a context was given and no key: a plain file has none")
    try:
        file = WholeFile(path, plain_image(path))
    except NoSafetensorsError as error:
        raise FormatError(
            f"{error}. No key was given: a file that is encrypted needs one"
        ) from None
    if _is_cryptotensors(file):
        file.close()
        raise FormatError(f"the file is {_CRYPTOTENSORS}")
    return file


def _is_cryptotensors(file: WholeFile) -> bool:
    return file.header.ggml is None and ENCRYPTION in (file.metadata or {})


def _signed(path: str, key: CryptotensorsKey) -> CryptotensorsFile:
    try:
        return CryptotensorsFile(path, key)
    except NoSafetensorsError as error:
        raise FormatError(
            f"{error}. A CryptotensorsKey was given: a file in another format takes a key of that"
        ) from None


def _encrypted(path: str, key: object, context: bytes, gds: bool) -> WholeFile:
    try:
        return WholeFile(path, FormatImage(path, key, context, gds))
    except (wc.InvalidTag, FormatError) as error:
        hint = _hint(path)
        if not hint:
            raise
        raise type(error)(f"{error}. {hint}") from None


def _hint(path: str) -> str:
    """The kind of a file that a key did not open, if its header can be read without one. It is
    only a hint in an error."""
    try:
        file = WholeFile(path, plain_image(path))
    except (NoSafetensorsError, OSError):
        return ""
    except FormatError:  # cut or damaged, and plain all the same
        return _PLAIN
    file.close()
    return f"The file is {_CRYPTOTENSORS}" if _is_cryptotensors(file) else _PLAIN


class ModelInfo(NamedTuple):
    """A file of tensors.

    protection: "none", "format" (the file is encrypted as a whole) or "cryptotensors".
    authentic: whether the header was authenticated with a key. tensors: by name, in the order of
    their bytes. metadata: the user's part. ggml: of a GGUF file the type of each tensor
    by GGML's name, such as "Q4_K"; None of a safetensors file.
    """

    protection: str
    authentic: bool
    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    ggml: dict[str, str] | None = None


def describe(path: PathLike, key: object = None, *, context: bytes = b"") -> ModelInfo:
    """The tensors of one file: plain, encrypted with `key`, or of cryptotensors, whose header can
    be read without a key too.

    Raises FormatError where the file is not a model, and the errors of opening it.
    """
    place = os.fsdecode(path)
    if key is None:
        plain = WholeFile(place, plain_image(place))
        plain.close()
        protection = "cryptotensors" if _is_cryptotensors(plain) else "none"
        header, metadata = plain.header, user_metadata(plain.metadata or {})
        return ModelInfo(protection, False, header.tensors, metadata, header.ggml)
    file = open_file(place, resolved(key), context)
    file.close()
    protection = "cryptotensors" if isinstance(key, CryptotensorsKey) else "format"
    header = file.header
    return ModelInfo(protection, True, header.tensors, dict(file.metadata or {}), header.ggml)


def is_cryptotensors(path: PathLike) -> bool:
    """Whether a file says of itself that it is one of cryptotensors. Raises OSError."""
    try:
        return describe(path).protection == "cryptotensors"
    except FormatError:
        return False

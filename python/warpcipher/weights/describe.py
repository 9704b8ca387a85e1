# SPDX-License-Identifier: Apache-2.0
"""What a file of tensors holds, without reading the tensors and without an array library."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..formats import FormatError
from .cryptotensors_header import ENCRYPTION, user_metadata
from .cryptotensors_key import CryptotensorsKey
from .header import TensorInfo
from .images import PlainImage
from .model import SafetensorsFile, open_file, resolved


class ModelInfo(NamedTuple):
    """A file of tensors.

    protection: "none", "format" (the file is encrypted as a whole) or "cryptotensors".
    authentic: whether the header was authenticated with a key. tensors: by name, in the order of
    their bytes. metadata: the user's part.
    """

    protection: str
    authentic: bool
    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]


def describe(
    path: str | os.PathLike[str], key: object = None, *, context: bytes = b""
) -> ModelInfo:
    """The tensors of one file: plain, encrypted with `key`, or of cryptotensors, whose header can
    be read without a key too.

    Raises FormatError where the file is no model, and what opening it raises.
    """
    place = os.fsdecode(path)
    if key is None:
        plain = SafetensorsFile(place, PlainImage(place))
        plain.close()
        metadata = plain.metadata or {}
        protection = "cryptotensors" if ENCRYPTION in metadata else "none"
        return ModelInfo(protection, False, plain.header.tensors, user_metadata(metadata))
    file = open_file(place, resolved(key), context)
    file.close()
    protection = "cryptotensors" if isinstance(key, CryptotensorsKey) else "format"
    return ModelInfo(protection, True, file.header.tensors, dict(file.metadata or {}))


def is_cryptotensors(path: str | os.PathLike[str]) -> bool:
    """Whether a file says of itself that it is one of cryptotensors. Raises OSError."""
    try:
        return describe(path).protection == "cryptotensors"
    except FormatError:
        return False

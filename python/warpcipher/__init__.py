# SPDX-License-Identifier: Apache-2.0
"""Symmetric cryptography for data on GPUs, on its way there, or in many messages; the same on
a CPU.

    import warpcipher as wc

    wc.Cipher("aes-256-ctr", key).encrypt(data, iv=iv)     # any of wc.algorithms()
    wc.aead.AESGCM(key).encrypt(nonce, data, aad)          # as pyca/cryptography's class

`Batch` and `run_columns` take many messages at once; `formats` reads and writes encrypted files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import aead
from ._errors import EngineError, InvalidTag
from ._native import DeviceArray, Key
from ._native import version as __version__
from .batch import Batch, Columns, Handle, run_columns
from .cipher import Cipher
from .engines import AlgorithmInfo, EngineInfo, algorithms, engines

if TYPE_CHECKING:
    from . import formats

__all__ = [
    "AlgorithmInfo",
    "Batch",
    "Cipher",
    "Columns",
    "DeviceArray",
    "EngineError",
    "EngineInfo",
    "Handle",
    "InvalidTag",
    "Key",
    "__version__",
    "aead",
    "algorithms",
    "engines",
    "formats",
    "run_columns",
]


def __getattr__(name: str) -> object:
    # Loaded when first used: most programs need no file format.
    if name == "formats":
        import importlib

        return importlib.import_module(".formats", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

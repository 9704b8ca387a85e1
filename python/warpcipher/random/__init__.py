# SPDX-License-Identifier: Apache-2.0
"""Random numbers that nobody can predict: arrays of PyTorch, CuPy, JAX and NumPy on a GPU or the
host, by ChaCha20 or AES-256 in counter mode. docs/guides/random.md has the promises.

    from warpcipher.random import Generator

    Generator().uniform((1000, 3))                   # seeded by the operating system
    Generator(key, stream=7).normal_(tensor)         # a function of the key, the stream, the place
    Generator().discrete_gaussian(1000, sigma=10)    # exact: for differential privacy
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _later
from .generator import Generator

if TYPE_CHECKING:
    from .bit_generator import BitGenerator

__all__ = ["BitGenerator", "Generator"]


def __getattr__(name: str) -> object:
    if name == "BitGenerator":  # it needs NumPy
        return _later.load("random.bit_generator").BitGenerator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

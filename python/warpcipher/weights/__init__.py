# SPDX-License-Identifier: Apache-2.0
"""Encrypted models, in the shape that users know from safetensors.

    from warpcipher import weights

    weights.save_file(tensors, "model.safetensors.cobblestone", key=key)
    tensors = weights.load_file("model.safetensors.cobblestone", key=key, device="cuda:0")
    with weights.safe_open("model.safetensors.cobblestone", "pt", key=key) as model:
        part = model.get_slice("lm_head.weight")[rank * rows : (rank + 1) * rows]

`warpcipher encrypt model.safetensors` writes such a file; docs/weights.md has the rest.
"""

from __future__ import annotations

from .cryptotensors import rewrap
from .cryptotensors_key import CryptotensorsKey
from .ed25519 import public_key_of as public_key
from .files import ModelInfo, describe, is_cryptotensors
from .header import TensorInfo
from .model import Model, TensorSlice, load, load_file, safe_open
from .modules import load_model, save_model
from .saving import save, save_file

__all__ = [
    "CryptotensorsKey", "Model", "ModelInfo", "TensorInfo", "TensorSlice", "describe",
    "is_cryptotensors", "load", "load_file", "load_model", "public_key", "rewrap", "safe_open",
    "save", "save_file", "save_model",
]  # fmt: skip

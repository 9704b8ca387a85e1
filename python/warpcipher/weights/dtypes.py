# SPDX-License-Identifier: Apache-2.0
"""The dtypes of safetensors: how many bits an element has, and what the array libraries call it."""

from __future__ import annotations

from typing import NamedTuple


class Dtype(NamedTuple):
    """One dtype.

    bits:  of an element. Elements of fewer than 8 are packed.
    numpy: its name in NumPy, CuPy and JAX; None where they have none. Those of ml_dtypes are in
           `FROM_ML_DTYPES`.
    torch: its name in PyTorch, some of them only in later versions; None where it has none.
    """

    bits: int
    numpy: str | None
    torch: str | None


DTYPES: dict[str, Dtype] = {
    "BOOL": Dtype(8, "bool", "bool"),
    # PyTorch counts pairs: the last dimension of the tensor is half of that in the file.
    "F4": Dtype(4, None, "float4_e2m1fn_x2"),
    "F6_E2M3": Dtype(6, None, None),
    "F6_E3M2": Dtype(6, None, None),
    "U8": Dtype(8, "uint8", "uint8"),
    "I8": Dtype(8, "int8", "int8"),
    "F8_E5M2": Dtype(8, "float8_e5m2", "float8_e5m2"),
    "F8_E4M3": Dtype(8, "float8_e4m3fn", "float8_e4m3fn"),
    "F8_E8M0": Dtype(8, "float8_e8m0fnu", "float8_e8m0fnu"),
    "F8_E4M3FNUZ": Dtype(8, "float8_e4m3fnuz", "float8_e4m3fnuz"),
    "F8_E5M2FNUZ": Dtype(8, "float8_e5m2fnuz", "float8_e5m2fnuz"),
    "I16": Dtype(16, "int16", "int16"),
    "U16": Dtype(16, "uint16", "uint16"),
    "F16": Dtype(16, "float16", "float16"),
    "BF16": Dtype(16, "bfloat16", "bfloat16"),
    "I32": Dtype(32, "int32", "int32"),
    "U32": Dtype(32, "uint32", "uint32"),
    "F32": Dtype(32, "float32", "float32"),
    "C64": Dtype(64, "complex64", "complex64"),
    "F64": Dtype(64, "float64", "float64"),
    "I64": Dtype(64, "int64", "int64"),
    "U64": Dtype(64, "uint64", "uint64"),
}
"""In the order in which safetensors ranks them. Writers put tensors of a later rank first, so that
all tensors of a file are aligned."""

FROM_ML_DTYPES = frozenset(
    name for name in (entry.numpy for entry in DTYPES.values()) if name and "float8" in name
) | {"bfloat16"}
"""Names that NumPy has from the package ml_dtypes, which JAX brings along."""

# SPDX-License-Identifier: Apache-2.0
"""What `warpcipher info` says of files of tensors."""

from __future__ import annotations

import math
import os
import stat
from typing import TYPE_CHECKING, Any

import click

from .errors import counted, shown

if TYPE_CHECKING:
    from warpcipher.weights import ModelInfo

SHOWN = 20
"""Tensors that are listed for people; --json lists all."""
_PROTECTION = {
    "none": "safetensors, not encrypted",
    "format": "safetensors",
    "cryptotensors": "cryptotensors: safetensors with a key for each tensor, signed",
}


def is_cryptotensors(path: str) -> bool:
    """Whether a regular file says of itself that it is one of cryptotensors. Raises OSError."""
    from warpcipher import weights

    return stat.S_ISREG(os.stat(path).st_mode) and weights.is_cryptotensors(path)  # noqa: PTH116


def describe(path: str, key: object, context: bytes) -> dict[str, Any] | None:
    """The model in a file, for JSON; None where it holds none.

    Raises FormatError where its name says that it does.
    """
    from warpcipher import weights
    from warpcipher.formats import FormatError

    try:
        found = weights.describe(path, key, context=context)
    except FormatError:
        if key is not None and ".safetensors" in path:
            raise
        return None
    return _entry(found)


def _entry(found: ModelInfo) -> dict[str, Any]:
    tensors = [
        {
            "name": name,
            "dtype": info.dtype,
            "shape": list(info.shape),
            "offset": info.start,
            "size": info.size,
        }
        for name, info in found.tensors.items()
    ]
    return {
        "protection": found.protection,
        "authentic": found.authentic,
        "metadata": found.metadata,
        "parameters": sum(math.prod(info.shape) for info in found.tensors.values()),
        "tensors": tensors,
    }


def show(entry: dict[str, Any]) -> None:
    """The same for people."""
    click.echo(f"  holds {_PROTECTION[entry['protection']]}")
    if entry["protection"] == "cryptotensors":
        checked = "is that of the key" if entry["authentic"] else "not checked: no key was given"
        click.echo(f"    signature  {checked}; its policy is not evaluated")
    for name, text in entry["metadata"].items():
        click.echo(f"    metadata   {shown(name)}: {shown(text[:200])}")
    tensors = entry["tensors"]
    total = f"{counted(len(tensors), 'tensor')}, {counted(entry['parameters'], 'parameter')}"
    click.echo(f"    tensors    {total}")
    for tensor in tensors[:SHOWN]:
        shape = "x".join(map(str, tensor["shape"])) or "scalar"
        size = counted(tensor["size"], "byte")
        click.echo(f"      {shown(tensor['name'])}  {tensor['dtype']} {shape}, {size}")
    if len(tensors) > SHOWN:
        click.echo(f"      and {len(tensors) - SHOWN} more: --json lists them all")

# SPDX-License-Identifier: Apache-2.0
"""The list of file formats, and the choice of one by name or by what the key is."""

from __future__ import annotations

from .base import Format
from .cobblestone import Cobblestone
from .raw import Raw
from .tink import Tink
from .tink_keyset import Keyset

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Cobblestone(128),
        Cobblestone(256),
        Tink(),
        Raw(),
    )
}


def get(name: str) -> Format:
    """The format of that name. Raises ValueError with the names there are."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"unknown format {name!r}; there are {', '.join(FORMATS)}") from None


def resolve(name: str, key: object) -> Format:
    """The format of that name; for "auto" the one the key belongs to.

    A Keyset, or text that begins as JSON does, is Tink's; 16 or 32 bytes are cobblestone-128's or
    -256's. `raw` is never chosen: it authenticates nothing. Raises ValueError.
    """
    if name != "auto":
        return get(name)
    if isinstance(key, (bytes, bytearray, memoryview)) and len(key) in (16, 32):
        return get(f"cobblestone-{8 * len(key)}")
    if isinstance(key, Keyset) or (isinstance(key, str) and key.lstrip()[:1] == "{"):
        return get("tink")
    if isinstance(key, (bytes, bytearray)) and bytes(key[:64]).lstrip()[:1] == b"{":
        return get("tink")
    given = (
        f"{len(key)} bytes"
        if isinstance(key, (bytes, bytearray, memoryview))
        else type(key).__name__
    )
    raise ValueError(
        f"no format goes with this key ({given}): 16 or 32 bytes are cobblestone's, a JSON keyset "
        "is tink's; name the format otherwise"
    )

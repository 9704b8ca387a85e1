# SPDX-License-Identifier: Apache-2.0
"""Key files: raw bytes, hex digits, or a Tink keyset in JSON. Errors name files and sizes alone."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Union

from .errors import counted, shown, usage, warn

if TYPE_CHECKING:
    from warpcipher.formats import Keyset

Key = Union[bytearray, "Keyset"]

LONGEST = 1 << 20
HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")
FEWEST_HEX_DIGITS = 14
"""Of a DES key without its parity bits."""
BASE64_DIGITS = (22, 32, 43, 86)
"""Of keys of 16, 24, 32 and 64 bytes, without padding."""


def read_key(
    path: str, format_name: str, algorithm: str | None, *, named: str | None = None
) -> Key:
    """The key in a file, for a format ("auto": what the key is for). named: what an error calls the
    algorithm.

    Raises CliError where it cannot be one, OSError where it cannot be read. Warns where others may
    read it.
    """
    data = _read(path)
    if format_name == "tink":
        return _keyset(path, data)
    sizes = key_sizes(format_name, algorithm)
    text = data.strip()
    is_hex = bool(text) and HEX_DIGITS.issuperset(text)
    if is_hex and len(text) in {2 * size for size in sizes}:
        return bytearray.fromhex(text.decode("ascii"))
    if len(data) in sizes and not (is_hex and len(data) >= 16):
        return data
    if format_name == "auto" and text[:1] == b"{":
        return _keyset(path, data)
    expected = " or ".join(map(str, sizes))
    given = counted(len(text), "hex digit") if is_hex else counted(len(data), "byte")
    what = {"auto": "a key", "raw": f"a key of {named or algorithm}"}.get(
        format_name, f"a {format_name} key"
    )
    keyset = ", or a Tink keyset in JSON" if format_name == "auto" else ""
    raise usage(
        f"{shown(path)} holds {given}: {what} is {expected} bytes, or twice as many hex digits"
        f"{keyset}"
    )


def parse_hex(option: str, text: str) -> bytes:
    """The bytes of an option in hex digits. The error does not repeat them: they may be a key."""
    digits = text.encode("ascii", "replace")
    if len(digits) % 2 or not HEX_DIGITS.issuperset(digits):
        raise usage(
            f"{option} takes an even number of hex digits, got {counted(len(text), 'character')}"
        )
    return bytes.fromhex(text)


def read_context(text: str | None, digits: str | None) -> bytes:
    """What --context or --context-hex says; empty without either."""
    if text is not None and digits is not None:
        raise usage("--context and --context-hex are the same option: give one")
    if digits is not None:
        return parse_hex("--context-hex", digits)
    return os.fsencode(text or "")


def key_sizes(format_name: str, algorithm: str | None) -> tuple[int, ...]:
    """The sizes in bytes that a key of the format (raw: of the algorithm) may have."""
    if format_name == "raw":
        from warpcipher import algorithms

        for entry in algorithms():
            if entry.name == algorithm:
                return (entry.key_size,)
        raise usage(
            f"unknown algorithm {algorithm!r}: `warpcipher info --algorithms` lists them"
            if algorithm
            else "format raw needs --algorithm NAME: `warpcipher info --algorithms` lists them"
        )
    from warpcipher.formats import FORMATS

    sizes = {
        name: int(getattr(entry, "key_size", 0))
        for name, entry in FORMATS.items()
        if format_name in ("auto", name)
    }
    return tuple(sorted(size for size in sizes.values() if size))


def _read(path: str) -> bytearray:
    if path in ("", "-"):
        raise usage("--key names a file: for the output of a program it is --key <(command)")
    # By its name, not by a descriptor, whose number an error would tell in place of the name.
    try:
        opened = open(path, "rb", buffering=0)  # noqa: PTH123, SIM115 - closed below
    except OSError as error:
        if not _may_be_key(path):
            raise
        raise usage(
            f"--key names a file: what was given, {counted(len(path), 'character')} not repeated "
            f"here, may be a key itself ({error.strerror})"
        ) from None
    with opened as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
            mode = stat.S_IMODE(status.st_mode)
            warn(f"key file {shown(path)} is open to others (mode {mode:04o}): chmod 600 it")
        data = bytearray()
        while part := file.read(LONGEST + 1 - len(data)):
            data += part
    if len(data) > LONGEST:
        raise usage(f"{shown(path)} holds more than {LONGEST} bytes: that is no key file")
    return data


def _may_be_key(text: str) -> bool:
    """Whether the text that was given as a name looks like the key: a keyset, hex, or base64."""
    if "{" in text:
        return True
    digits = re.sub(r"^0[xX]|[\s:_-]", "", text.rpartition("/")[2])
    if len(digits) >= FEWEST_HEX_DIGITS and HEX_DIGITS.issuperset(os.fsencode(digits)):
        return True
    bare = text.rstrip("=")
    return bool(re.fullmatch(r"[A-Za-z0-9+/_-]+", bare)) and (
        len(bare) in BASE64_DIGITS or len(text) > len(bare)
    )


def _keyset(path: str, data: bytearray) -> Keyset:
    from warpcipher.formats import FormatError, Keyset

    try:
        return Keyset.from_json(data)
    except FormatError as error:
        raise usage(f"{shown(path)}: {error}") from None

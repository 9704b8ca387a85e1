# SPDX-License-Identifier: Apache-2.0
"""Arguments of callers, checked before anything is made of them. Errors name kinds, never values
that may be part of a key."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..arguments import view_bytes


def kind(value: object) -> str:
    return type(value).__name__


def require_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {kind(value)}: expected a str")
    return value


def require_bytes(name: str, value: object) -> bytes:
    return bytes(view_bytes(name, value))


def require_items(name: str, value: Iterable[object], expected: str) -> list[object]:
    """The items of an iterable that is not text. expected: for the error."""
    if not isinstance(value, str):
        try:
            items = iter(value)
        except TypeError:
            pass
        else:
            return list(items)
    raise TypeError(f"{name} is {kind(value)}: expected {expected}")


def require_seconds(name: str, value: object) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {kind(value)}: expected a number of seconds")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} is {value}: expected a number of seconds, 0 or more")
    return value

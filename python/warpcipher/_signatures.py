# SPDX-License-Identifier: Apache-2.0
"""Signatures of native classes and functions, which `inspect.signature` cannot find by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspect import Signature


class Like:
    """A class attribute `__signature__`: that of a function. `inspect` is imported when asked."""

    def __init__(self, model: Callable[..., object]) -> None:
        self._model = model

    def __get__(self, _instance: object, _owner: type | None = None) -> Signature:
        import inspect

        return inspect.signature(self._model)


def key(algorithm: str, key: object) -> None:
    """Of `Key`."""


def aead(key: object, *, engine: str = "auto") -> None:
    """Of the AEAD classes."""

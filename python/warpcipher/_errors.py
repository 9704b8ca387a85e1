# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package, by their public names. The native module makes them: a package
that is imported again catches errors of the first one, and the other way round."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ._native import EngineError, InvalidTag


def _join_cryptography() -> None:
    """Where `cryptography` is loaded, InvalidTag becomes a subclass of its exception: clauses of
    programs that came from there still catch it. Nothing is imported for that."""
    theirs = getattr(sys.modules.get("cryptography.exceptions"), "InvalidTag", None)
    if isinstance(theirs, type) and theirs not in InvalidTag.__mro__:
        InvalidTag.__bases__ = (theirs,)


def _new(cls: type[BaseException], /, *arguments: Any) -> BaseException:
    _join_cryptography()
    return BaseException.__new__(cls, *arguments)


_join_cryptography()
InvalidTag.__new__ = _new  # type: ignore[assignment, method-assign]

for _error in (EngineError, InvalidTag):
    _error.__module__ = "warpcipher"


@contextlib.contextmanager
def explained(what: str = "", kind: Callable[[str], Exception] = ValueError) -> Iterator[None]:
    """Makes a ValueError one of another kind. what: put before its text."""
    try:
        yield
    except ValueError as error:
        raise kind(f"{what}: {error}" if what else str(error)) from None


def counted(count: int, noun: str) -> str:
    """1 block, 2 blocks."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


__all__ = ["EngineError", "InvalidTag", "counted", "explained"]

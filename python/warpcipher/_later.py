# SPDX-License-Identifier: Apache-2.0
"""Imports when they are first needed: of the package's own modules, and of other packages.

The interpreter locks each module while a thread imports it, so no thread forks meanwhile
(`_not_at_fork`). Such an import of an own module must not register handlers of forks.
concurrent.futures.thread and logging, which it imports, do register some, so they are imported
first. The command forks in no thread, and starts 10 ms earlier without them."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import warpcipher_command

if not warpcipher_command.is_running():
    import concurrent.futures.thread  # noqa: F401

# After those: a fork takes the lock of what was registered last first.
from ._not_at_fork import NOT_AT_FORK

_loaded: dict[str, ModuleType] = {}


class Module:
    """A module of another package, which is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found


def needed(name: str, says: str, kind: type[Exception] = ValueError) -> Any:
    """A module of another package. says: the error where it cannot be imported; {}: why."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise kind(says.replace("{}", str(error))) from None


def load(name: str) -> ModuleType:
    """The module of that name in this package."""
    module = _loaded.get(name)
    if module is None:
        full_name = f"{__package__}.{name}"
        with NOT_AT_FORK:
            __import__(full_name)
            module = _loaded[name] = sys.modules[full_name]
    return module

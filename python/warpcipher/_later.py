# SPDX-License-Identifier: Apache-2.0
"""Imports of the package's own modules when they are first needed.

The interpreter locks each module while a thread imports it, and in the child of a fork by another
thread that lock stays locked: whoever needs the module there waits for ever. So a fork waits until
no thread is in an import from here.

While it waits, such an import must not register handlers of forks: those for the end of the fork
would run without those for its beginning. concurrent.futures.thread and logging, which it imports,
do register some, so they are imported first."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import os
import sys
from _thread import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_lock = RLock()
_loaded: dict[str, ModuleType] = {}

os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def load(name: str) -> ModuleType:
    """The module of that name in this package."""
    module = _loaded.get(name)
    if module is None:
        full_name = f"{__package__}.{name}"
        with _lock:
            __import__(full_name)
            module = _loaded[name] = sys.modules[full_name]
    return module

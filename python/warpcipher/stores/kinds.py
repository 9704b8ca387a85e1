# SPDX-License-Identifier: Apache-2.0
"""Which class takes a URL."""

from __future__ import annotations

import threading

from .other import OtherStore
from .store import Store

_stores: dict[str, Store] = {}
_lock = threading.Lock()


def store_of(url: str) -> tuple[Store, str]:
    """The store of a URL, made once, and the path in it. Raises ValueError."""
    scheme, mark, path = url.partition("://")
    if not mark or not scheme:
        raise ValueError(f"{url} is no URL: expected scheme://bucket/name")
    with _lock:
        store = _stores.get(scheme)
        if store is None:
            store = _stores[scheme] = OtherStore(scheme)
    return store, path

# SPDX-License-Identifier: Apache-2.0
"""Which class takes a URL."""

from __future__ import annotations

import os
import threading

from .cloud import CloudStore
from .other import OtherStore
from .s3 import S3Store
from .store import Store, shown

_KINDS: dict[str, type[Store]] = {
    "s3": S3Store,
    "gs": CloudStore,
    "az": CloudStore,
    "abfs": CloudStore,
    "abfss": CloudStore,
}
"""All others are for fsspec."""

_SETTINGS = (b"AWS_", b"AZURE_", b"GOOGLE_", b"FSSPEC_")
"""Prefixes of environment variables that stores read when they are opened."""

_stores: dict[tuple[str, str, int], Store] = {}
_lock = threading.Lock()


def store_of(url: str) -> tuple[Store, str]:
    """The store of a URL, opened once with the settings of the environment, and the path in it.
    Raises ValueError."""
    scheme, mark, path = url.partition("://")
    if not mark or not scheme:
        raise ValueError(f"{url}: expected scheme://bucket/name")
    kind = _KINDS.get(scheme, OtherStore)
    bucket, _, rest = path.partition("/")
    if kind is not OtherStore:
        path = rest
        if not bucket or (scheme in ("s3", "gs") and "@" in bucket):
            raise ValueError(f"{shown(url)}: expected {scheme}://bucket/name")
    # Past os.environ, which decodes all of it: that took half of the time of short objects.
    given: dict[bytes, bytes] = getattr(os.environ, "_data")  # noqa: B009
    settings = sorted(entry for entry in given.items() if entry[0].startswith(_SETTINGS))
    entry = scheme, bucket, hash(tuple(settings))
    with _lock:
        store = _stores.get(entry)
        if store is None:
            store = _stores[entry] = kind(scheme, bucket)
    return store, path

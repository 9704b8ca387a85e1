# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of `warpcipher bench`."""

from __future__ import annotations

import sys
from functools import partial

import cli_support
import warpcipher as wc

ENGINES = {entry.name: entry for entry in wc.engines()}
ALGORITHMS = {entry.name: entry for entry in wc.algorithms()}
QUICK = ("bench", "--quick", "--engine", "cpu")

SMALL_CACHE = 1 << 20
"""Bytes. A run overwrites twice the cache before each time that it takes: where the processor says
that a core has some hundred MiB, that is most of a test's time."""

_PROGRAM = (
    f"from warpcipher_measure import machine; machine._cache_bytes = lambda: {SMALL_CACHE}; "
    "from warpcipher.cli import main; main()"
)
run = partial(cli_support.run, command=(sys.executable, "-c", _PROGRAM))
run_json = partial(cli_support.run_json, command=(sys.executable, "-c", _PROGRAM))

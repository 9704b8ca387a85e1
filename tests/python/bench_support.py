# SPDX-License-Identifier: Apache-2.0
"""What the tests of `warpcipher bench` share."""

from __future__ import annotations

import warpcipher as wc

ENGINES = {entry.name: entry for entry in wc.engines()}
ALGORITHMS = {entry.name: entry for entry in wc.algorithms()}
QUICK = ("bench", "--quick", "--engine", "cpu")

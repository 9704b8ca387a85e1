# SPDX-License-Identifier: Apache-2.0
"""What papers published: one file a paper in data/, each value with its place in the paper."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def load(name: str) -> Any:
    """The document data/NAME.json."""
    return json.loads((resources.files(__package__) / "data" / f"{name}.json").read_text("utf-8"))

# SPDX-License-Identifier: Apache-2.0
"""Values that papers published (published.json): each with its place in the paper, in the paper's
units. `load` gives them in GB/s, as all rates of the lab are."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

GB_PER_S = {"mbps": 1 / 8e3, "gbps": 1 / 8}
"""Ends of names whose values are rates in bits a second."""


@cache
def load(name: str) -> Any:
    """A paper's values. Those named "gbps" or "..._mbps" there are "gb_per_s" and
    "..._gb_per_s" here, in GB/s."""
    text = (resources.files(__package__) / "published.json").read_text("utf-8")
    return _converted(json.loads(text)[name], 1)


def _converted(value: Any, factor: float) -> Any:
    if isinstance(value, list):
        return [_converted(entry, factor) for entry in value]
    if not isinstance(value, dict):
        return value if factor == 1 or isinstance(value, str) else value * factor
    found = {}
    for key, entry in value.items():
        unit = key.rpartition("_")[2]
        its, name = GB_PER_S.get(unit, factor), key.removesuffix(unit) + "gb_per_s"
        found[name if unit in GB_PER_S else key] = _converted(entry, its)
    return found

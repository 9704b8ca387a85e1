# SPDX-License-Identifier: Apache-2.0
"""What papers published (published.json): each value with its place in the paper, in the paper's
units. What is read from there is in GB/s, as all rates of the lab are."""

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
    if isinstance(value, dict):
        return dict(_named(key, entry, factor) for key, entry in value.items())
    if isinstance(value, list):
        return [_converted(entry, factor) for entry in value]
    return value if factor == 1 or isinstance(value, str) else value * factor


def _named(key: str, value: Any, factor: float) -> tuple[str, Any]:
    unit = key.rpartition("_")[2]
    if unit not in GB_PER_S:
        return key, _converted(value, factor)
    return key.removesuffix(unit) + "gb_per_s", _converted(value, GB_PER_S[unit])

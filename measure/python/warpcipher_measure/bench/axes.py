# SPDX-License-Identifier: Apache-2.0
"""Axes that people read at once: decades written 0.1, 1, 10; and figures beside marks."""

from __future__ import annotations

import importlib
import math
from typing import Any

FEW = 100
"""Times the low end of a logarithmic axis: up to there decades alone would be few labels."""


def label_decades(axis: Any) -> None:
    """Writes the decades of a logarithmic axis (`axes.xaxis` or `axes.yaxis`) as numbers, and where
    there are few of them twice and five times each."""
    ticker: Any = importlib.import_module("matplotlib.ticker")

    def between(value: float, _place: int) -> str:
        low, high = axis.get_view_interval()
        digit = round(value / 10 ** math.floor(math.log10(value)))
        return shown_decade(value) if high < low * FEW and digit in (2, 5) else ""

    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _place: shown_decade(value)))
    axis.set_minor_formatter(ticker.FuncFormatter(between))


def shown_decade(value: float) -> str:
    """A power of ten, or a multiple, without an exponent: 0.001, 0.1, 1, 20, 1,000."""
    return f"{value:,.{max(0, -math.floor(math.log10(value) + 1e-6))}f}"


def shown_figure(value: float) -> str:
    """A figure beside a bar or a mark: whole from 100 on, else with three digits, never with an
    exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"

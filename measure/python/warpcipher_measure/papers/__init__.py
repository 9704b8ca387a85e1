# SPDX-License-Identifier: Apache-2.0
"""The list of papers: one module each."""

from __future__ import annotations

from ..session import Paper
from . import billava2022, harrison2008, iwai2012, quirem2013, yang2007

PAPERS: dict[str, Paper] = {
    entry.name: entry
    for entry in (
        yang2007.PAPER,
        harrison2008.PAPER,
        iwai2012.PAPER,
        quirem2013.PAPER,
        billava2022.PAPER,
    )
}

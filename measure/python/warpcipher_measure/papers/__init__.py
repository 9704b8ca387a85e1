# SPDX-License-Identifier: Apache-2.0
"""The list of papers: one module each."""

from __future__ import annotations

from ..session import Paper
from . import billava2022, harrison2008, iwai2012, quirem2013, yang2007

_MODULES = (yang2007, harrison2008, iwai2012, quirem2013, billava2022)
PAPERS: dict[str, Paper] = {module.NAME: module.PAPER for module in _MODULES}

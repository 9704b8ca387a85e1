# SPDX-License-Identifier: Apache-2.0
"""Papers on symmetric cryptography on GPUs, rerun: what `warpcipher lab` runs.

from warpcipher_measure import lab

report = lab.run("billava2022", lab.Settings(quick=True))
print(lab.markdown(report))

Kernels here follow the papers: most take a time that depends on keys and data. They are for
measuring, never for secrets, and nothing else in the package uses them.
"""

from __future__ import annotations

from .papers import PAPERS
from .report import markdown
from .results import Conclusion, LeftOut, Measurement, Plot, Point, Series, Table
from .results import PaperReport as Report
from .runner import find_paper
from .runner import run_paper as run
from .session import Paper, Parameter, Session, Variant, variants
from .settings import LabSettings as Settings

__all__ = [
    "PAPERS",
    "Conclusion",
    "LeftOut",
    "Measurement",
    "Paper",
    "Parameter",
    "Plot",
    "Point",
    "Report",
    "Series",
    "Session",
    "Settings",
    "Table",
    "Variant",
    "find_paper",
    "markdown",
    "run",
    "variants",
]

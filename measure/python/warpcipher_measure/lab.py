# SPDX-License-Identifier: Apache-2.0
"""Papers on symmetric cryptography on GPUs, rerun: what `warpcipher lab` runs.

from warpcipher_measure import lab

report = lab.run("billava2022", lab.Settings(quick=True))
print(lab.markdown(report))

Kernels here follow the papers: most take a time that depends on keys and data. They are for
measuring, never for secrets, and nothing else in the package uses them.
"""

from .papers import PAPERS
from .report import markdown
from .results import PaperReport as Report
from .results import Plot, Series, Table
from .runner import find_paper
from .runner import run_paper as run
from .session import Session, variants
from .settings import LabSettings as Settings

# fmt: off
__all__ = [
    "PAPERS", "Plot", "Report", "Series", "Session", "Settings", "Table", "find_paper", "markdown",
    "run", "variants",
]

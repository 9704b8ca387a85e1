# SPDX-License-Identifier: Apache-2.0
"""Every paper of the lab on a GPU, small: nothing is left out, and every conclusion is reached."""

from __future__ import annotations

import pytest
from warpcipher_measure import lab


@pytest.mark.parametrize("name", lab.PAPERS)
def test_paper(name: str) -> None:
    report = lab.run(name, lab.Settings(quick=True, repetitions=1))
    measured = {entry.variant for entry in report.measurements}
    for variant in lab.variants(name).values():
        assert variant.absent or variant.name in measured
    for entry in report.conclusions:
        assert entry.holds is not None or "not measured" in entry.here
    assert report.tables
    assert report.plots


def test_timeline() -> None:
    report = lab.run("timeline", lab.Settings(quick=True, repetitions=1))
    assert not report.skipped
    (plot,) = report.plots
    here = [series for series in plot.series if not series.published]
    assert len(here) == 1 + len(lab.PAPERS) - 1  # quirem2013 has no AES-128
    assert all(y > 0 for series in plot.series for y in series.y)

# SPDX-License-Identifier: Apache-2.0
"""Every paper of the lab from beginning to end on a stand-in GPU: nothing is left out, every
conclusion is reached, and a kernel that is wrong ends the run."""

from __future__ import annotations

import json
from dataclasses import dataclass

import lab_stand_in
import pytest
import warpcipher as wc
from lab_stand_in import Asked, Oracle

pytest.importorskip("warpcipher._lab", reason="built without the lab")

from warpcipher import lab
from warpcipher.lab.papers import billava2022, iwai2012


def _encrypt(asked: Asked) -> bytes:
    """ECB, or CTR where there is an IV."""
    mode = "ctr" if asked.iv else "ecb"
    cipher = wc.Cipher(f"aes-{8 * len(asked.key)}-{mode}", asked.key, engine="cpu")
    return cipher.encrypt(asked.text, iv=asked.iv or None)


@dataclass(frozen=True)
class Case:
    """oracle: does what the kernels do. values: small."""

    oracle: Oracle
    values: dict[str, int]


CASES = {
    "iwai2012": Case(_encrypt, {"size": 14}),
    "billava2022": Case(_encrypt, {"largest": 10, "naive_ms": 5}),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The reference engine is slow."""
    for paper in (billava2022, iwai2012):
        monkeypatch.setattr(paper, "CHECK_SIZES", (16, 1040))
    return monkeypatch


def test_there_is_a_case_for_every_paper() -> None:
    assert set(CASES) == set(lab.PAPERS)


@pytest.mark.parametrize("name", CASES)
def test_paper(name: str, small: pytest.MonkeyPatch) -> None:
    lab_stand_in.put(small, {name: CASES[name].oracle})
    report = lab.run(name, lab.Settings(quick=True, repetitions=1, values=CASES[name].values))
    measured = {entry.variant for entry in report.measurements}
    for variant in lab.variants(name).values():
        assert variant.absent or variant.name in measured
    assert report.conclusions
    for entry in report.conclusions:
        assert entry.holds is not None
    assert report.tables
    assert report.plots
    text = lab.markdown(report)
    assert lab_stand_in.GPU.name in text
    for table in report.tables:
        for row in table.rows:
            assert len(row) == len(table.header)
    json.dumps(report.as_dict(), allow_nan=False)


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_kernel_ends_the_run(name: str, small: pytest.MonkeyPatch) -> None:
    def wrong(asked: Asked) -> bytes:
        done = CASES[name].oracle(asked)
        return done[:-1] + bytes([done[-1] ^ 1]) if done else done

    lab_stand_in.put(small, {name: wrong})
    with pytest.raises(wc.EngineError, match=f"of {name} is wrong"):
        lab.run(name, lab.Settings(quick=True, repetitions=1, values=CASES[name].values))

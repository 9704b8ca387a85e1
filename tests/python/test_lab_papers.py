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
from warpcipher.lab.papers import billava2022, iwai2012, quirem2013


def _encrypt(asked: Asked) -> bytes:
    """ECB, or CTR where there is an IV."""
    mode = "ctr" if asked.iv else "ecb"
    cipher = wc.Cipher(f"aes-{8 * len(asked.key)}-{mode}", asked.key, engine="cpu")
    return cipher.encrypt(asked.text, iv=asked.iv or None)


def _decrypt(asked: Asked) -> bytes:
    """CBC of a text with its IV in front."""
    return wc.Cipher("aes-256-cbc", asked.key, engine="cpu").decrypt(
        asked.text[16:], iv=asked.text[:16]
    )


@dataclass(frozen=True)
class Case:
    """oracle: does what the kernels do. values: small."""

    oracle: Oracle
    values: dict[str, int]


CASES = {
    "iwai2012": Case(_encrypt, {"size": 14}),
    "quirem2013": Case(_decrypt, {"largest": 21, "cpu_ms": 1}),
    "billava2022": Case(_encrypt, {"largest": 10, "naive_ms": 5}),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The reference engine is slow."""
    for paper in (billava2022, iwai2012, quirem2013):
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
        return bytes([done[0] ^ 1]) + done[1:] if done else done

    lab_stand_in.put(small, {name: wrong})
    with pytest.raises(wc.EngineError, match=f"of {name} is wrong"):
        lab.run(name, lab.Settings(quick=True, repetitions=1, values=CASES[name].values))


@pytest.mark.parametrize(
    ("text", "covered", "expected"),
    [(1, 1024, (1, 1)), (1025, 1024, (1, 2)), (4096, 1024, (2, 2)), (8 << 20, 1024, (90, 92))],
)
def test_the_grid_of_quirem_is_large_enough(
    text: int, covered: int, expected: tuple[int, int]
) -> None:
    width, height = quirem2013.grid(text, covered)
    assert (width, height) == expected
    assert height - width <= 2
    assert quirem2013.allocation(text, covered) == width * height * covered + 16 >= text + 16

# SPDX-License-Identifier: Apache-2.0
"""Key search: a rate that falls far below what it was is noticed, and nothing else is. The clock is
the test's own."""

from __future__ import annotations

import random

from warpcipher.cli.search import PaceWarning
from warpcipher.keysearch import Progress
from warpcipher.keysearch.pace import PATIENCE, UNKNOWN, Lately, Pace

RANGE = 1 << 30


def steady(pace: Pace, first: float, gap: float, reports: int, tested: int = RANGE) -> float:
    """Reports from `first` on; returns when the last one came. None of them may look slow."""
    now = first
    for _ in range(reports):
        pace.note(now, tested)
        assert not pace.lately(now).slow
        now += gap
    return now - gap


def test_steady_search_is_never_slow() -> None:
    for gap in (0.01, 0.5, 1.0, 7.0, 100.0):
        pace = Pace(0.0)
        last = steady(pace, gap, gap, 2000)
        assert abs(pace.lately(last).rate * gap / RANGE - 1) < 0.25
        assert not pace.lately(last + 3 * gap).slow


def test_uneven_ranges_are_not_slow() -> None:
    source = random.Random(3)
    pace = Pace(0.0)
    now = 0.0
    for _ in range(2000):
        now += source.uniform(0.2, 3.0)
        pace.note(now, RANGE)
        assert not pace.lately(now).slow


def test_search_that_stops_is_slow() -> None:
    for gap in (0.1, 1.0, 10.0):
        pace = Pace(0.0)
        last = steady(pace, gap, gap, 300)
        assert pace.lately(last + 40 * max(gap, 1.0)).slow
        assert pace.lately(last + 1e6).rate < 0.01 * pace.lately(last).best


def test_search_that_crawls_is_slow_until_it_recovers() -> None:
    pace = Pace(0.0)
    now = steady(pace, 1.0, 1.0, 60)
    for _ in range(20):
        now += 1.0
        pace.note(now, RANGE // 1000)
    assert pace.lately(now).slow
    for _ in range(20):
        now += 1.0
        pace.note(now, RANGE)
    assert not pace.lately(now).slow


def test_search_that_loses_a_part_of_its_devices_is_not_slow() -> None:
    pace = Pace(0.0)
    last = steady(pace, 0.1, 0.1, 300)
    steady(pace, last + 0.2, 0.2, 300)


def test_search_that_never_starts_is_slow() -> None:
    pace = Pace(5.0)
    assert not pace.lately(5.0 + PATIENCE - 1).slow
    assert pace.lately(5.0 + PATIENCE + 1).slow
    assert pace.lately(5.0 + PATIENCE + 1).rate == 0
    pace.note(5.0 + PATIENCE + 2, RANGE)
    assert not pace.lately(5.0 + PATIENCE + 3).slow


def test_warning_comes_once_until_the_search_recovers() -> None:
    fast, slow = Lately(1e9, 1e9, False), Lately(2.5e4, 1e9, True)
    told: list[str] = []
    warning = PaceWarning()
    for lately in (UNKNOWN, fast, slow, slow, fast, slow, slow):
        warning.look(Progress(1, 2, 1, 70.0, 0, 0, lately), told.append)
    text = "warpcipher: warning: the rate has fallen to 2.5e+04 keys/s, it was 1e+09: see whether"
    assert [line[: len(text)] for line in told] == [text, text]
    PaceWarning().look(Progress(0, 2, 0, 70.4, 0, 0, Lately(0.0, 0.0, True)), told.append)
    assert "no key was tested in 70 seconds" in told[-1]

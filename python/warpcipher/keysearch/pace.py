# SPDX-License-Identifier: Apache-2.0
"""How far a search has come, how long it would take, and whether it is as fast as it was.

Ranges are about a second of work, so reports come steadily. Where they get rare or stop, something
is wrong with a device, or it works for others: a search of days should say so.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

WINDOW = 10.0  # seconds, at least, that count as lately
WINDOW_REPORTS = 8  # and this many: on a slow device they are far apart
FALLEN = 4.0  # times slower than the best is slow
PATIENCE = 60.0  # seconds without any report from the start


@dataclass(frozen=True)
class Lately:
    """rate: keys a second of late; 0 before there were enough reports.

    best: the highest that was seen; slow: whether `rate` is far below it, or nothing has come.
    """

    rate: float
    best: float
    slow: bool


UNKNOWN = Lately(0.0, 0.0, False)


class Pace:
    """Takes every progress report; can be queried at any time. All times come from one monotonic
    clock."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._reports: deque[tuple[float, int]] = deque()  # the late ones, when they came
        self._before = began  # when the one before these came
        self._tested = 0  # in these
        self._best = 0.0

    def note(self, now: float, tested: int) -> None:
        """A range with that many keys was tested."""
        self._reports.append((now, tested))
        self._tested += tested
        while len(self._reports) > WINDOW_REPORTS and self._reports[0][0] < now - WINDOW:
            self._before, gone = self._reports.popleft()
            self._tested -= gone
        self._best = max(self._best, self._rate(now))

    def lately(self, now: float) -> Lately:
        rate = self._rate(now)
        if self._best > 0:
            return Lately(rate, self._best, rate * FALLEN < self._best)
        if not self._reports and now - self._began > PATIENCE:
            return Lately(0.0, 0.0, True)
        return UNKNOWN

    def _rate(self, now: float) -> float:
        seconds = now - self._before
        if len(self._reports) < WINDOW_REPORTS or seconds < WINDOW:
            return 0.0
        return self._tested / seconds


@dataclass(frozen=True)
class Progress:
    """How far a search has come.

    done:    keys of the range tested, in earlier sessions too; total: all of the range.
    tested:  keys tested in this session; seconds: since it began to test, self-tests apart.
    lately:  the rate of the last seconds, and whether it has fallen far below its former value.
    """

    done: int
    total: int
    tested: int
    seconds: float
    keys_found: int
    false_positives: int
    lately: Lately = UNKNOWN

    @property
    def fraction(self) -> float:
        """The part of the range that is tested, 0 to 1."""
        return self.done / self.total

    @property
    def rate(self) -> float:
        """Keys a second of the session, 0 before the first report."""
        return self.tested / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds until the whole range is tested; None before the first report."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


@dataclass(frozen=True)
class Estimate:
    """The work of a search: `keys` are those that no earlier session has tested, `rate` is in
    keys a second of all devices, measured."""

    keys: int
    rate: float

    @property
    def seconds(self) -> float:
        """For all of them; on average a key is found after half of it."""
        return self.keys / self.rate

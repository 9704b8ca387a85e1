# SPDX-License-Identifier: Apache-2.0
"""What a search tells of itself: how far it has come, and how long it would take."""

from __future__ import annotations

from dataclasses import dataclass

from .pace import UNKNOWN, Lately


@dataclass(frozen=True)
class Progress:
    """How far a search has come.

    done:    keys of the range tested, in earlier sessions too; total: all of the range.
    tested:  keys tested in this session; seconds: since it began to test, self-tests apart.
    lately:  the rate of the last seconds, and whether it has fallen far below what it was.
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
    """What a search would take: `keys` are those that no earlier session has tested, `rate` is in
    keys a second of all devices, measured."""

    keys: int
    rate: float

    @property
    def seconds(self) -> float:
        """For all of them; on average a key is found after half of it."""
        return self.keys / self.rate

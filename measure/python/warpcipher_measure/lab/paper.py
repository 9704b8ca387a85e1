# SPDX-License-Identifier: Apache-2.0
"""What a paper is: its name, where it appeared, what can be set, how it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..bench.results import Machine
from .results import Point
from .session import Session
from .settings import Settings


@dataclass(frozen=True)
class Parameter:
    """Something of a paper that can be set. quick: the default of a quick run."""

    name: str
    default: int
    quick: int
    least: int
    most: int
    text: str


@dataclass(frozen=True)
class Paper:
    """One paper.

    run:      measures with a session, and gives it tables, plots and conclusions.
    timeline: measures the paper's AES-128 kernels for `warpcipher lab timeline`.
    """

    name: str
    title: str
    citation: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Session], None]
    timeline: Callable[[Session], list[Point]]

    def session(
        self,
        settings: Settings,
        machine: Machine,
        observe: Callable[[object], object] = lambda _: None,
    ) -> Session:
        """A run of this paper. ValueError: a setting that it does not take."""
        return Session(self.name, self.values(settings), settings, machine, observe)

    def values(self, settings: Settings) -> dict[str, int]:
        """Every parameter's value. ValueError: unknown, or outside of its limits."""
        known = {entry.name: entry for entry in self.parameters}
        for name, value in settings.values.items():
            if name not in known:
                raise ValueError(
                    f"no parameter {name!r} of {self.name}: there are {', '.join(known) or 'none'}"
                )
            entry = known[name]
            if not entry.least <= value <= entry.most:
                raise ValueError(
                    f"{name} is {value}: {self.name} takes {entry.least} to {entry.most}"
                )
        defaults = {
            name: entry.quick if settings.quick else entry.default for name, entry in known.items()
        }
        return {**defaults, **settings.values}

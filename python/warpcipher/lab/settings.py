# SPDX-License-Identifier: Apache-2.0
"""What a run is told, and what a paper is: its name, where it appeared, what can be set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Point
    from .session import Session


@dataclass(frozen=True)
class Settings:
    """One run.

    quick:       small sizes and few repetitions: to try the command, not to quote.
    device:      the GPU's number.
    repetitions: timed repetitions of each figure; None: 7, or 3 when quick.
    values:      of the paper's parameters, by name.
    """

    quick: bool = False
    device: int = 0
    repetitions: int | None = None
    values: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.repetitions is not None and self.repetitions < 1:
            raise ValueError(f"repetitions is {self.repetitions}: expected 1 or more")
        if self.device < 0:
            raise ValueError(f"device is {self.device}: GPUs are numbered from 0")


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

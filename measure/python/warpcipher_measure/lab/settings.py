# SPDX-License-Identifier: Apache-2.0
"""What a run is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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

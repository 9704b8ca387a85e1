# SPDX-License-Identifier: Apache-2.0
"""What `engine="auto"` decides by, and the measurement of it.

Choices never change a result. Rates are kept in `$XDG_CACHE_HOME/warpcipher`
(`~/.cache/warpcipher`) for this library, processor, GPUs and driver; a rule of thumb holds until
something is measured.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from . import _native


@dataclass(frozen=True)
class Rates:
    """Bytes a second of data in host memory, by which `auto` decides.

    cpu:      by the CPU.
    pageable: through a GPU, from ordinary memory; pinned: from page-locked memory.
    both_pageable, both_pinned: by CPU and GPU at once, each a share; 0 where that gains nothing.
    """

    algorithm: str
    direction: str
    cpu: float
    pageable: float
    pinned: float
    both_pageable: float
    both_pinned: float


@dataclass(frozen=True)
class Tuning:
    """What holds now.

    origin:  where it is from, for people.
    warning: why the cache was not taken; empty when all is well.
    rates:   empty when nothing was measured: then `auto` keeps AES on the CPU, and takes a GPU for
             4 MiB and more of DES.
    """

    origin: str
    warning: str
    rates: tuple[Rates, ...]


def current() -> Tuning:
    """What holds now. A cache that is damaged is ignored with a RuntimeWarning."""
    entry = _native.tuning()
    if entry["warning"]:
        warnings.warn(entry["warning"], RuntimeWarning, stacklevel=2)
    return Tuning(
        entry["origin"],
        entry["warning"],
        tuple(Rates(**rates) for rates in entry["rates"]),
    )


def measure(
    observe: Callable[[str, float], object] = lambda _text, _done: None,
    *,
    quick: bool = False,
    keep: bool = True,
) -> str:
    """Measures for a few minutes, and uses what was found from now on.

    observe: gets each finding, and how much of the whole is done, from 0 to 1.
    quick:   short and rough, to try it; never kept.
    keep:    in the cache, for later processes.

    Returns the path of the cache file, or "" when nothing was kept. EngineError: engine `cuda` or
    `cpu` cannot run here, or the cache cannot be written.
    """
    _native.tune(observe, quick)
    return _native.save_tuning() if keep and not quick else ""


def forget() -> bool:
    """Removes what is kept for this machine; the rule of thumb holds again. False when there was
    nothing."""
    return _native.forget_tuning()

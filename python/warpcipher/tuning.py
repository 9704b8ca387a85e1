# SPDX-License-Identifier: Apache-2.0
"""Which kernels a GPU runs, what `engine="auto"` decides by, and the measurement of both.

Choices never change a result. What was measured is kept in `$XDG_CACHE_HOME/warpcipher`
(`~/.cache/warpcipher`) for this library, processor, GPUs and driver; shipped defaults and a rule of
thumb hold until then.
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
class Policy:
    """A choice between ways to compute the same.

    device:          the GPU's number; None: of the pipeline that brings host data to GPUs.
    values:          that can run here, the shipped default first; `value` is in use.
    reason:          why that one, with the figure behind a default.
    rate:            bytes a second with it, and rate_of_default; 0 where nothing was measured.
    """

    device: int | None
    name: str
    value: str
    values: tuple[str, ...]
    reason: str
    rate: float
    rate_of_default: float


@dataclass(frozen=True)
class Tuning:
    """What holds now.

    origin:  where it is from, for people.
    warning: why the cache was not taken; empty when all is well.
    policies: of the GPUs that host data are dealt to; empty where there is none.
    rates:   empty when nothing was measured: then `auto` keeps AES on the CPU, and takes a GPU for
             4 MiB and more of DES.
    """

    origin: str
    warning: str
    policies: tuple[Policy, ...]
    rates: tuple[Rates, ...]


def current() -> Tuning:
    """What holds now. A cache that is damaged is ignored with a RuntimeWarning."""
    entry = _native.tuning()
    if entry["warning"]:
        warnings.warn(entry["warning"], RuntimeWarning, stacklevel=2)
    return Tuning(
        entry["origin"],
        entry["warning"],
        tuple(Policy(**policy) for policy in entry["policies"]),
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
    """Removes what is kept for this machine; defaults and the rule of thumb hold again. False when
    there was nothing."""
    return _native.forget_tuning()

# SPDX-License-Identifier: Apache-2.0
"""Which kernels a GPU runs and which code the CPU, and by which rates `engine="auto"` decides.

Choices never change a result. The cache in `$XDG_CACHE_HOME/warpcipher` (`~/.cache/warpcipher`)
keeps the measured rates, for this library, processor, GPUs and driver. Without a measurement,
shipped defaults and a rule of thumb hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import _native
from ._types import AlgorithmName
from .arguments import is_decrypt, require_int, require_text

GPUS = {
    "t4": (7, 5, 40, 65536),
    "a100": (8, 0, 108, 166912),
    "l4": (8, 9, 58, 101376),
    "l40s": (8, 9, 142, 101376),
    "h100": (9, 0, 132, 232448),
    "h200": (9, 0, 132, 232448),
    "b200": (10, 0, 148, 232448),
}
"""GPUs that `explain` knows where they are not here: compute capability, multiprocessors, bytes of
shared memory that a block may ask for."""


_MOST = (1 << 63) - 1


@dataclass(frozen=True)
class Rates:
    """Rates of one algorithm on data in host memory, by which `auto` decides. Bytes a second.

    algorithm:     a name of `warpcipher.algorithms()`.
    direction:     "encrypt" or "decrypt".
    cpu:           of the CPU.
    pageable:      through a GPU, from ordinary memory.
    pinned:        through a GPU, from page-locked memory.
    both_pageable: by CPU and GPU at once, from ordinary memory; 0 where that gains nothing.
    both_pinned:   by CPU and GPU at once, from page-locked memory; 0 where that gains nothing.
    """

    algorithm: AlgorithmName
    direction: str
    cpu: float
    pageable: float
    pinned: float
    both_pageable: float
    both_pinned: float


@dataclass(frozen=True)
class Policy:
    """A choice between kernels, or other parameters, that give the same result.

    device:          the GPU's number; None: a policy of host transfers, which belong to no one GPU.
    name:            of the policy.
    value:           in use.
    values:          that can run here, the shipped default first.
    reason:          why `value` is in use; for a default, the figure that decided it.
    rate:            bytes a second with `value`; 0 where nothing was measured.
    rate_of_default: bytes a second with the default; 0 where nothing was measured.
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
    """The policies and rates in use.

    origin:   where they come from, for people.
    warning:  why the cache was not used; empty when all is well.
    policies: of the GPUs that host data are dealt to; empty without a GPU.
    rates:    empty when nothing was measured. Then `auto` takes the CPU for AES, and a GPU for
              4 MiB and more of DES.
    """

    origin: str
    warning: str
    policies: tuple[Policy, ...]
    rates: tuple[Rates, ...]


@dataclass(frozen=True)
class Candidate:
    """A kernel that could take a batch.

    name:        of the kernel.
    description: its work.
    chosen:      whether it takes the batch.
    reason:      why it is chosen, or why not.
    """

    name: str
    description: str
    chosen: bool
    reason: str


@dataclass(frozen=True)
class Decision:
    """One choice between kernels.

    subject:    the question: "tables", "text", "ghash" ...
    chosen:     the name of the candidate that is chosen.
    candidates: in the order of preference.
    """

    subject: str
    chosen: str
    candidates: tuple[Candidate, ...]


def explain(
    algorithm: AlgorithmName,
    *,
    direction: str = "encrypt",
    messages: int = 1,
    size: int = 1 << 20,
    keys: int = 1,
    device: int | str = 0,
    engine: str = "cuda",
) -> tuple[Decision, ...]:
    """The kernels that a GPU runs for a batch, and why the other candidates are refused.

    The batch is in device memory, as columns, at addresses that are multiples of 16, and without
    additional data. Nothing is run. Of engine "cpu": its own code or libcrypto, by a fixed rule.

    algorithm: a name of `warpcipher.algorithms()`.
    direction: "encrypt" or "decrypt".
    messages:  1 to 4,294,967,294.
    size:      of each message, in bytes.
    keys:      that the messages are dealt to, 1 to `messages`.
    device:    the GPU's number; or a name of `GPUS`, for a GPU that is not here and was not tuned.
    engine:    "cuda" or "cpu".

    ValueError: an unknown algorithm, direction or engine, numbers that no batch has, or a variable
    of the environment that forces a kernel has a value that is none of those expected. TypeError: a
    number is not an int. EngineError: engine `cuda` cannot run here, or the GPU cannot run what the
    environment forces.
    """
    require_text("algorithm", algorithm)
    if engine not in ("cuda", "cpu"):
        raise ValueError(f"engine is {engine!r}: expected 'cuda' or 'cpu'")
    if engine == "cpu":
        known = algorithm, is_decrypt(direction), require_int("size", size, 0, _MOST)
        subject, candidates = _native.explain_cpu(*known)
        return (_decision(subject, candidates),)
    made_up = None
    if isinstance(device, str):
        if (made_up := GPUS.get(device.lower())) is None:
            raise ValueError(f"device is {device!r}: expected a number, or {', '.join(GPUS)}")
        device = 0
    found = _native.explain(
        algorithm,
        is_decrypt(direction),
        require_int("messages", messages, 0, _MOST),
        require_int("size", size, 0, _MOST),
        require_int("keys", keys, 0, _MOST),
        require_int("device", device, 0, (1 << 31) - 1),
        made_up,
    )
    return tuple(_decision(subject, candidates) for subject, candidates in found)


def _decision(subject: str, candidates: Iterable[tuple[str, str, bool, str]]) -> Decision:
    found = tuple(Candidate(*candidate) for candidate in candidates)
    chosen = next(candidate.name for candidate in found if candidate.chosen)
    return Decision(subject, chosen, found)


def current() -> Tuning:
    """The policies and rates in use now. RuntimeWarning: the cache is damaged, and is ignored."""
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
    """Measures for a few minutes, and uses the results from now on.

    observe: is called with each result as text, and the part of the work that is done, 0 to 1.
    quick:   short and rough, to try it; never kept.
    keep:    write the results to the cache, for later processes.

    Returns the path of the cache file, or "" when nothing was kept.

    EngineError: engine `cuda` or `cpu` cannot run here, or the cache cannot be written.
    """
    _native.tune(observe, quick)
    return _native.save_tuning() if keep and not quick else ""


def forget() -> bool:
    """Removes the cache of this machine; defaults and the rule of thumb hold again.

    Returns whether there was one.
    """
    return _native.forget_tuning()

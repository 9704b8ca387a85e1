# SPDX-License-Identifier: Apache-2.0
"""Table 1 of Quirem 2013: the profile of its kernels, by the counters of today's GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from .. import profiler

NAME = "quirem2013"
KERNELS = "decrypt_"
INSTRUCTIONS = "smsp__inst_executed.sum"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"
EFFICIENCY = {
    kind: f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{operation}.pct"
    for kind, operation in (("load", "ld"), ("store", "st"))
}
SHARED_CONFLICTS = [
    f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{operation}.sum"
    for operation in ("ld", "st")
]
# A request goes through the cache in as many wavefronts as its lines make necessary: the first is
# no replay.
WAVEFRONTS, REQUESTS = (
    {space: f"l1tex__t_{what}_pipe_lsu_mem_{space}_op_ld.sum" for space in ("global", "local")}
    for what in ("output_wavefronts", "requests")
)
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
METRICS = (
    INSTRUCTIONS,
    THREAD_INSTRUCTIONS,
    *EFFICIENCY.values(),
    *SHARED_CONFLICTS,
    *WAVEFRONTS.values(),
    *REQUESTS.values(),
    OCCUPANCY,
)


def counters(
    device: int, forms: Mapping[str, tuple[Mapping[str, int], int]]
) -> dict[str, dict[str, float]] | str:
    """Properties of Table 1 as shares, of each form; or why there are none. forms: the parameters
    of each, and the bytes that it takes, with the IV."""
    launches = [
        profiler.Launch(NAME, name, 32, parameters, size, size - 16, device)
        for name, (parameters, size) in forms.items()
    ]
    try:
        found = profiler.profile(launches, KERNELS, METRICS)
    except profiler.UnavailableError as error:
        return str(error)
    return {name: _properties(metrics) for name, metrics in zip(forms, found, strict=True)}


def _properties(metrics: Mapping[str, float]) -> dict[str, float]:
    instructions = metrics[INSTRUCTIONS]

    def replays(space: str) -> float:
        return max(0.0, metrics[WAVEFRONTS[space]] - metrics[REQUESTS[space]]) / instructions

    return {
        "global load efficiency": metrics[EFFICIENCY["load"]] / 100,
        "global store efficiency": metrics[EFFICIENCY["store"]] / 100,
        "branch divergence overhead": 1 - metrics[THREAD_INSTRUCTIONS] / (32 * instructions),
        "shared memory replay overhead": sum(metrics[name] for name in SHARED_CONFLICTS)
        / instructions,
        "global memory replay overhead": replays("global"),
        "local cache replay overhead": replays("local"),
        "achieved occupancy": metrics[OCCUPANCY] / 100,
    }

# SPDX-License-Identifier: Apache-2.0
"""Quirem, Lee 2013: AES-256 CBC decryption, warp-synchronous against a thread a block."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Final

import warpcipher as wc

from .. import profiler, published
from ..report import shown_time
from ..results import Cell, Conclusion, Plot, Point, Series, Spread, shown
from ..session import CHECKED, Paper, Parameter, RoundTrip, Session
from ..settings import shown_size

NAME = "quirem2013"
ALGORITHM: Final = "aes-256-cbc"
CHECK_SIZES = (16, 4112, 65536)
CPU = "cpu"
BYTES = {"warp-shared": 4, "warp-shuffle": 4, "thread": 16}
"""Of the text, a thread."""

TABLE2 = 64 << 20


def grid(text: int, covered: int) -> tuple[int, int]:
    """Section II: width and height of the grid for `text` bytes, of which a block of threads
    decrypts `covered`. A root, as wide as high, and then higher until it is large enough."""
    needed = -(-text // covered)
    width = max(1, math.isqrt(needed))
    return width, max(width, -(-needed // width))


def allocation(text: int, covered: int) -> int:
    """Section II: bytes to allocate, with the 16 in front of the text."""
    width, height = grid(text, covered)
    return width * height * covered + 16


def run(session: Session) -> None:
    sizes = [1 << n for n in range(21, session.values["largest"] + 1, 3 if session.quick else 1)]
    if TABLE2 not in sizes and sizes[-1] > TABLE2:
        sizes = sorted([*sizes, TABLE2])
    cpu = _cpu(session, sizes)
    forms = [name for name in BYTES if session.can_run(name)]
    if not forms:
        session.not_measured(CLAIMS)
        session.plots.append(_plot("time", "seconds", {"cpu, one thread": cpu}))
        return
    for name in forms:
        _check(session, name)
    kernel: dict[str, dict[int, Spread]] = {name: {} for name in forms}
    total: dict[str, dict[int, Spread]] = {name: {} for name in forms}
    copies: dict[int, tuple[float, float]] = {}
    _times(session, sizes, kernel, total, copies)
    _profile(session, forms)
    _tables(session, sizes, cpu, kernel, total, copies)
    _judge(session, sizes[-1], cpu, kernel, total, copies)


def _job_parameters(session: Session, name: str, size: int) -> dict[str, int]:
    return {"threads": session.values["threads"], "text": size} if name != CPU else {}


def _allocated(session: Session, name: str, size: int) -> int:
    """Bytes that a form takes for a text: IV, text, and what the grid covers after it."""
    return size + 16 if name == CPU else allocation(size, session.values["threads"] * BYTES[name])


def _check(session: Session, name: str) -> None:
    """A form against the reference engine."""
    for size in CHECK_SIZES:
        key, iv, text = os.urandom(32), os.urandom(16), os.urandom(size)
        expected = wc.Cipher(ALGORITHM, key, engine="reference").decrypt(text, iv=iv)
        length = _allocated(session, name, size)
        job = session.job(name, key, b"", **_job_parameters(session, name, size))
        got = session.result(name, job, (iv + text).ljust(length, b"\0"), length - 16)
        if got[:size] != expected:
            raise wc.EngineError(
                f"variant {name!r} of {NAME} is wrong for {size} bytes: its result differs from "
                f"that of {CHECKED}"
            )


def _cpu(session: Session, sizes: list[int]) -> dict[int, float]:
    """Seconds; for texts that would take more than `cpu_ms` in proportion to the last measured."""
    _check(session, CPU)
    limit = session.values["cpu_ms"] / 1e3
    job = session.job(CPU, os.urandom(32))
    found: dict[int, float] = {}
    for size in (min(sizes) >> 3, *sizes):
        if found and found[max(found)] * size / max(found) > limit:
            session.skip(
                f"cpu, {shown_size(size)} and more",
                f"longer than cpu_ms ({limit * 1e3:g}): in proportion to {shown_size(max(found))}",
            )
            break
        source, target = session.memory(CPU, size + 16), session.memory(CPU, size)
        seconds = session.time(
            lambda: session.run(job, source, size + 16, target, size),  # noqa: B023
            on_device=False,
        )
        session.add(CPU, size, seconds, CHECKED, residence="host", algorithm=ALGORITHM)
        found[size] = seconds.median
    last = max(found)
    return {size: found.get(size, found[last] * size / last) for size in sizes}


def _times(
    session: Session,
    sizes: list[int],
    kernel: dict[str, dict[int, Spread]],
    total: dict[str, dict[int, Spread]],
    copies: dict[int, tuple[float, float]],
) -> None:
    """The kernels alone, the copies alone, and both one after the other."""
    most = max(_allocated(session, name, size) for name in kernel for size in sizes)
    trip = RoundTrip(session, most)
    key = os.urandom(32)
    stream = session.need_stream()
    for size in sizes:
        inward = session.time(lambda: trip.to_device(size + 16), on_device=True)  # noqa: B023
        outward = session.time(lambda: trip.to_host(size), on_device=True)  # noqa: B023
        copies[size] = inward.median, outward.median
        for name in kernel:
            length = _allocated(session, name, size)
            parameters = _job_parameters(session, name, size)
            job = session.job(name, key, b"", **parameters)

            def call(job: object = job, length: int = length) -> None:
                session.run(job, trip.source, length, trip.target, length - 16)  # type: ignore[arg-type]

            def whole(size: int = size) -> None:
                trip.to_device(size + 16)
                call()
                trip.to_host(size)
                stream.wait()

            seconds = session.time(call, on_device=True)
            _add(session, name, size, seconds, "device", parameters)
            kernel[name][size] = seconds
            seconds = session.time(whole, on_device=False)
            _add(session, name, size, seconds, "pinned", parameters)
            total[name][size] = seconds


def _add(
    session: Session,
    name: str,
    size: int,
    seconds: Spread,
    residence: str,
    parameters: dict[str, int],
) -> None:
    shown: dict[str, int | str] = {"algorithm": ALGORITHM, **parameters}
    session.add(name, size, seconds, CHECKED, residence=residence, unit="bytes", **shown)


def _facts(session: Session, name: str) -> dict[str, int]:
    job = session.job(name, bytes(32), b"", **_job_parameters(session, name, TABLE2))
    return dict(job.facts())


def _profile(session: Session, forms: list[str]) -> None:
    """Table 1: what the runtime says, and counters, where a profiler is installed."""
    known = published.load(NAME)["table1"]
    facts = {name: _facts(session, name) for name in forms}
    counted = counters(
        session.device,
        {
            name: (_job_parameters(session, name, TABLE2), _allocated(session, name, TABLE2))
            for name in forms
        },
    )
    if isinstance(counted, str):
        session.skip("the counters of Table 1", counted)
        counted = {name: {} for name in forms}
    told: dict[str, dict[str, float]] = {
        name: {
            "registers a thread": entry["registers_a_thread"],
            **counted[name],
            ALLOWED: entry["threads_a_multiprocessor"] / entry["most_threads_a_multiprocessor"],
            "shared bytes a block": entry["shared_bytes_a_block"],
            "local bytes a thread": entry["local_bytes_a_thread"],
        }
        for name, entry in facts.items()
    }
    rows = []
    for what in dict.fromkeys((*known, *told["thread"])):
        if what == "source":
            continue
        there = (known.get(what, {}).get(form) for form in ("warp", "thread"))
        rows.append((what, *map(_cell, there), *(_cell(told[name].get(what)) for name in forms)))
    session.table(
        "Profile of the kernels",
        "Table 1; replays are counted for each instruction that a warp executes. In the "
        "efficiency of loads here are those from the tables, which lie in global memory",
        ("property", "warp, published", "thread, published", *forms),
        tuple(rows),
    )
    warp, thread = told["warp-shared"], told["thread"]
    occupancy = "achieved occupancy" if "achieved occupancy" in warp else ALLOWED
    session.conclusions += [
        Conclusion(
            CLAIMS[0],
            f"{warp['registers a thread']} against {thread['registers a thread']}",
            warp["registers a thread"] < thread["registers a thread"],
        ),
        Conclusion(
            CLAIMS[1],
            f"{occupancy}: {warp[occupancy]:.1%} against {thread[occupancy]:.1%}",
            warp[occupancy] > thread[occupancy],
        ),
    ]


ALLOWED = "occupancy that the runtime allows"


def _cell(value: float | None) -> Cell:
    """Shares are floating point, numbers are not."""
    return f"{value:.1%}" if isinstance(value, float) else value


def _tables(
    session: Session,
    sizes: list[int],
    cpu: dict[int, float],
    kernel: dict[str, dict[int, Spread]],
    total: dict[str, dict[int, Spread]],
    copies: dict[int, tuple[float, float]],
) -> None:
    threads = session.values["threads"]
    rows: list[tuple[Cell, ...]] = []
    for size in sizes:
        extra = allocation(size, threads * BYTES["thread"]) - 16 - size
        rows.append(
            (
                shown_size(size),
                shown_time(cpu[size]),
                *(shown_time(kernel[name][size].median) for name in kernel),
                *(shown_time(total[name][size].median) for name in total),
                *map(shown_time, copies[size]),
                cpu[size] / sum(copies[size]),
                f"{extra / size:.2%}",
            )
        )
    session.table(
        f"Decryption of AES-256 CBC, {threads} threads a block",
        "section IV: messages of 2 MiB to 1 GiB, and its bound on the speed-up, "
        "T_CPU / (T_H2D + T_D2H); padding: what the grid of one thread a block adds",
        (
            "message",
            "one CPU thread",
            *(f"{name}, kernel" for name in kernel),
            *(f"{name}, total" for name in total),
            "to the GPU",
            "from it",
            "bound",
            "padding",
        ),
        tuple(rows),
    )
    lines: dict[str, Mapping[int, float]] = {"one CPU thread": cpu}
    for label, found in (("kernel", kernel), ("total", total)):
        lines |= {
            f"{name}, {label}": {size: spread.median for size, spread in found[name].items()}
            for name in found
        }
    session.plots.append(_plot("time", "seconds", lines))
    if TABLE2 not in cpu:
        return
    values = dict(published.load(NAME)["table2_seconds"])
    source = values.pop("source")
    base = values["Xeon X5650, one thread"]
    gpu = session.machine.gpu
    device = gpu.name if gpu is not None else ""
    session.table(
        "Decryption of 64 MiB and speed-up over one CPU thread",
        source + ". The paper's GPUs and the totals here: with both transfers",
        ("device", "time", "speed-up"),
        (
            *(
                (f"{name} (published)", shown_time(value), base / value)
                for name, value in values.items()
            ),
            (f"{session.machine.cpu.model}, one thread", shown_time(cpu[TABLE2]), 1.0),
            *(
                (
                    f"{device}, {name}",
                    shown_time(total[name][TABLE2].median),
                    cpu[TABLE2] / total[name][TABLE2].median,
                )
                for name in total
            ),
        ),
    )


def _plot(name: str, y_label: str, lines: Mapping[str, Mapping[int, float]]) -> Plot:
    return Plot(
        name,
        "AES-256 CBC decryption: time over message size",
        "bytes",
        y_label,
        tuple(Series(label, tuple(line), tuple(line.values())) for label, line in lines.items()),
        log_x=True,
        log_y=True,
    )


CLAIMS = (
    "the warp-synchronous form needs fewer registers (14 against 20)",
    "so more of its threads run at once (85% against 75.8% of what a multiprocessor holds)",
    "both forms have roughly the same performance",
    "transfers, not the kernel, take most of the time",
    "up to 6 times as fast as one CPU thread, transfers included",
)


def _judge(
    session: Session,
    size: int,
    cpu: dict[int, float],
    kernel: dict[str, dict[int, Spread]],
    total: dict[str, dict[int, Spread]],
    copies: dict[int, tuple[float, float]],
) -> None:
    warp, thread = kernel["warp-shared"][size].median, kernel["thread"][size].median
    shuffle = kernel["warp-shuffle"][size].median
    best = {n: cpu[n] / min(total[name][n].median for name in total) for n in cpu}
    share = sum(copies[size]) / (sum(copies[size]) + min(warp, thread, shuffle))
    verdicts = (
        (
            f"{shown_size(size)}: a thread a block is {shown(warp / thread)} times as fast as four "
            f"through shared memory, {shown(shuffle / thread)} times as four with shuffles",
            abs(warp / thread - 1) < 0.25,
        ),
        (f"{share:.0%} of the time of {shown_size(size)}", share > 0.5),
        (
            f"up to {shown(max(best.values()))} times",
            max(best.values()) >= published.load(NAME)["largest_speed_up"]["value"],
        ),
    )
    session.conclusions += [
        Conclusion(said, here, holds)
        for said, (here, holds) in zip(CLAIMS[2:], verdicts, strict=True)
    ]


def timeline(_session: Session) -> list[Point]:
    """The paper has only AES-256."""
    return []


# --- Table 1: the profile of the kernels, by the counters of today's GPUs -------------------------

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


PAPER = Paper(
    name=NAME,
    title="AES Decryption Using Warp-Synchronous Programming",
    citation="S. Quirem, B. K. Lee, University of Texas at San Antonio, 2013",
    parameters=(
        Parameter("threads", 256, 256, 32, 1024, "threads a block, a multiple of 32"),
        Parameter("largest", 30, 30, 21, 32, "the largest message is 2 to the power of this"),
        Parameter("cpu_ms", 500, 100, 1, 1_000_000, "the CPU stops at messages that take longer"),
    ),
    run=run,
    timeline=timeline,
)

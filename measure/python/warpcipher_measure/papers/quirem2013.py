# SPDX-License-Identifier: Apache-2.0
"""Quirem, Lee 2013: AES-256 CBC decryption, warp-synchronous against a thread a block."""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Any, Final

import warpcipher as wc

from .. import _native, published
from ..report import shown_time
from ..results import Measurement, shown
from ..session import Paper, Parameter, RoundTrip, Session, in_proportion
from ..settings import shown_size

NAME = "quirem2013"
ALGORITHM: Final = "aes-256-cbc"
CHECK_SIZES = (16, 4112, 65536)
CPU, CPU_LINE = "cpu", "one CPU thread"
BYTES = {"warp-shared": 4, "warp-shuffle": 4, "thread": 16}
"""Of the text, a thread."""
TABLE2 = 64 << 20
CLAIMS = (
    "the warp-synchronous form needs fewer registers (14 against 20)",
    "so more of its threads run at once (85% against 75.8% of what a multiprocessor holds)",
    "both forms have roughly the same performance",
    "transfers, not the kernel, take most of the time",
    "up to 6 times as fast as one CPU thread, transfers included",
)

Lines = dict[str, dict[int, float]]
"""Seconds by size: of the CPU, and of each form only the kernel and with both copies."""


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
    largest = session.values["largest"]
    sizes = [1 << n for n in range(21, largest + 1, 3 if session.quick else 1)]
    if TABLE2 not in sizes and sizes[-1] > TABLE2:
        sizes = sorted([*sizes, TABLE2])
    _check(session, CPU)
    measured = session.up_to(
        "cpu_ms", "cpu, bytes", [sizes[0] >> 3, *sizes], partial(_cpu, session)
    )
    lines: Lines = {CPU_LINE: {size: in_proportion(measured, size) for size in sizes}}
    if session.all_can_run(BYTES):
        for name in BYTES:
            _check(session, name)
        copies = _measure(session, sizes, lines)
        _tables(session, lines, copies)
        _judge(session, lines, copies)
    else:
        session.not_measured(CLAIMS)
    title = "AES-256 CBC decryption: time over message size"
    session.lines("time", title, ("bytes", "seconds"), lines)


def _job(session: Session, name: str, size: int, key: bytes) -> tuple[_native.Job, int]:
    """A form for a text, and the bytes that it takes: IV, text, and what the grid covers after."""
    if name == CPU:
        return session.job(name, key), size + 16
    threads = session.values["threads"]
    job = session.job(name, key, threads=threads, text=size)
    return job, allocation(size, threads * BYTES[name])


def _check(session: Session, name: str) -> None:
    """A form against the reference engine."""
    for size in CHECK_SIZES:
        key, iv, text = os.urandom(32), os.urandom(16), os.urandom(size)
        expected = wc.Cipher(ALGORITHM, key, engine="reference").decrypt(text, iv=iv)
        job, length = _job(session, name, size, key)
        got = session.result(name, job, (iv + text).ljust(length, b"\0"), length - 16)
        if got[:size] != expected:
            raise session.wrong(name, f" for {size} bytes")


def _cpu(session: Session, size: int) -> Measurement:
    job, length = _job(session, CPU, size, os.urandom(32))
    source, target = session.buffers(CPU, length)
    call = partial(session.run, job, source, length, target, size)
    return session.measure(CPU, call, size, algorithm=ALGORITHM)


def _measure(session: Session, sizes: list[int], lines: Lines) -> dict[int, tuple[float, float]]:
    """Only the kernels, and with both copies, into `lines`. Returns seconds of each copy."""
    jobs = {
        (name, size): _job(session, name, size, os.urandom(32)) for name in BYTES for size in sizes
    }
    trip = RoundTrip(session, max(length for _, length in jobs.values()))
    lines |= {f"{name}, {part}": {} for part in ("kernel", "total") for name in BYTES}
    copies = {}
    for size in sizes:
        ways = partial(trip.to_device, size + 16), partial(trip.to_host, size)
        inward, outward = (session.time(way, on_device=True).median for way in ways)
        copies[size] = inward, outward
        for name in BYTES:
            job, length = jobs[name, size]
            for part, call, residence in (
                ("kernel", partial(trip.run, job, length, length - 16), ""),
                ("total", partial(trip.whole, job, size, 16, length - 16), "pinned"),
            ):
                how: Any = {"residence": residence, "algorithm": ALGORITHM}
                found = session.measure(name, call, size, **how)
                lines[f"{name}, {part}"][size] = found.seconds.median
    return copies


def _tables(session: Session, lines: Lines, copies: dict[int, tuple[float, float]]) -> None:
    threads, cpu = session.values["threads"], lines[CPU_LINE]
    session.table(
        f"Decryption of AES-256 CBC, {threads} threads a block",
        "section IV: messages of 2 MiB to 1 GiB, and its bound on the speed-up, "
        "T_CPU / (T_H2D + T_D2H); padding: what the grid of one thread a block adds",
        ("message", *lines, "to the GPU", "from it", "bound", "padding"),
        tuple(
            (
                shown_size(size),
                *(shown_time(line[size]) for line in lines.values()),
                *map(shown_time, copies[size]),
                cpu[size] / sum(copies[size]),
                f"{(allocation(size, threads * BYTES['thread']) - 16 - size) / size:.2%}",
            )
            for size in cpu
        ),
    )
    if TABLE2 not in cpu:
        return
    known = published.load(NAME)["table2_seconds"]
    times = {f"{name} (published)": known[name] for name in known if name != "source"}
    times["one thread here"] = cpu[TABLE2]
    times |= {f"{name} here": lines[f"{name}, total"][TABLE2] for name in BYTES}
    rows = ((device, shown_time(seconds)) for device, seconds in times.items())
    source = f"{known['source']}. The paper's GPUs and the totals here: with both transfers"
    session.table("Decryption of 64 MiB", source, ("device", "time"), rows)


def _judge(session: Session, lines: Lines, copies: dict[int, tuple[float, float]]) -> None:
    facts = {name: dict(_job(session, name, TABLE2, bytes(32))[0].facts()) for name in BYTES}
    registers = {name: entry["registers_a_thread"] for name, entry in facts.items()}
    occupancy = {
        name: entry["threads_a_multiprocessor"] / entry["most_threads_a_multiprocessor"]
        for name, entry in facts.items()
    }
    cpu, size = lines[CPU_LINE], max(lines[CPU_LINE])
    warp, shuffle, thread = (lines[f"{name}, kernel"][size] for name in BYTES)
    best = max(cpu[n] / min(lines[f"{name}, total"][n] for name in BYTES) for n in cpu)
    share = sum(copies[size]) / (sum(copies[size]) + min(warp, thread, shuffle))
    of_warps, of_blocks = (f"{occupancy[name]:.1%}" for name in ("warp-shared", "thread"))
    forms = (
        f"{shown_size(size)}: a thread a block is {shown(warp / thread)} times as fast as four "
        f"through shared memory, {shown(shuffle / thread)} times as four with shuffles"
    )
    fewer = registers["warp-shared"] < registers["thread"]
    more = occupancy["warp-shared"] > occupancy["thread"]
    claimed = published.load(NAME)["largest_speed_up"]["value"]
    verdicts = (
        (f"{registers['warp-shared']} against {registers['thread']}", fewer),
        (f"the runtime allows {of_warps} against {of_blocks}", more),
        (forms, abs(warp / thread - 1) < 0.25),
        (f"{share:.0%} of the time of {shown_size(size)}", share > 0.5),
        (f"up to {shown(best)} times", best >= claimed),
    )
    session.judge(CLAIMS, verdicts)


TITLE = "AES Decryption Using Warp-Synchronous Programming"
CITATION = "S. Quirem, B. K. Lee, University of Texas at San Antonio, 2013"
PARAMETERS = (
    Parameter("threads", 256, 256, 32, 1024, "threads a block, a multiple of 32"),
    Parameter("largest", 30, 30, 21, 32, "the largest message is 2 to the power of this"),
    Parameter("cpu_ms", 500, 100, 1, 1_000_000, "the CPU stops at messages that take longer"),
)
PAPER = Paper(NAME, TITLE, CITATION, PARAMETERS, run, algorithm=ALGORITHM, direction="decrypt")

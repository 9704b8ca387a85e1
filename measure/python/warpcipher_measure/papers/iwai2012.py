# SPDX-License-Identifier: Apache-2.0
"""Iwai, Nishikawa, Kurokawa 2012: AES by T-box in every granularity and memory."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Final

import warpcipher as wc

from .. import _native, published
from ..results import Cell, Point, Series, shown
from ..session import Paper, Parameter, RoundTrip, Session
from ..settings import shown_size

NAME = "iwai2012"
ALGORITHM: Final = "aes-128-ecb"
CPU = "cpu"
BEST = "16-shared-shared-registers"  # the paper's III
PARTS = (1, 2, 4, 8, 16)
GRANULARITIES = (16, 8, 4, 1)
CLAIMS = (
    "16 bytes a thread is the fastest granularity, 8 and 4 about 30% slower",
    "T-boxes belong in shared memory, not in constant memory (4.3 against 0.63 GB/s)",
    "four T-boxes beat one that is rotated, at every granularity (III over IV: 1.63 times)",
    "text in registers beats text in shared memory (by 15% to 35%)",
    "16 bytes a thread: SoA is faster than AoS",
    "8 and 4 bytes a thread: AoS is faster than SoA",
    "it hardly matters whether round keys lie in shared or constant memory (2% at 16 B/thread)",
    "threads that loop over blocks beat one block a thread (section 5.3.2)",
    "29 times as fast as one CPU core by T-boxes",
    "overlap in four parts is best and hides 65% of the transfer time",
)

Rates = dict[str, float]


def run(session: Session) -> None:
    size = 1 << session.values["size"]
    cpu = session.measure_cipher(CPU, min(size, 1 << 22)).gigabytes
    kernels = _kernels(session)
    if not session.all_can_run(kernels):
        session.not_measured(CLAIMS)
        return
    setting = published.load(NAME)["setting"]
    scaled = setting["blocks"] // setting["multiprocessors"] * session.multiprocessors
    threads = session.values["threads"]
    grids = {"60 blocks": setting["blocks"], f"{scaled} blocks": scaled, "no loop": 0}
    rates = {
        grid: session.rates(kernels, size, threads=threads, blocks=blocks)
        for grid, blocks in grids.items()
    }
    _report(session, size, rates)
    _judge(session, rates[f"{scaled} blocks"], rates["no loop"], cpu)
    _overlap(session, size, scaled)


def _kernels(session: Session) -> list[str]:
    return [name for name in session.variants if name != CPU]


def _best(rates: Rates, granularity: int) -> float:
    return max(rate for name, rate in rates.items() if name.startswith(f"{granularity}-"))


def _report(session: Session, size: int, rates: dict[str, Rates]) -> None:
    """Tables 5 and 6, and Figure 9."""
    values = published.load(NAME)
    known = {**values["table5"]["gb_per_s"], **values["table6"]["gb_per_s"]}
    session.table(
        f"GB/s, {shown_size(size)}, {session.values['threads']} threads a block",
        "Tables 5 and 6, and section 6.3.2 for one T-box",
        ("bytes-T-box-keys-text", "column", "published", *(f"here, {grid}" for grid in rates)),
        (
            (name, variant.description, known.get(name), *(row[name] for row in rates.values()))
            for name, variant in session.variants.items()
            if name != CPU
        ),
    )

    def best_of(label: str, row: Rates, *, is_published: bool = False) -> Series:
        line = {f"{size} B/thread": _best(row, size) for size in GRANULARITIES}
        return Series.of(label, line, is_published)

    series = [best_of("published, GTX 285", known, is_published=True)]
    series += [best_of(grid, row) for grid, row in rates.items()]
    title, labels = "Best throughput of each granularity (Figure 9)", ("granularity", "GB/s")
    session.bars("figure9", title, labels, *series, log_y=True)


def _judge(session: Session, rates: Rates, no_loop: Rates, cpu: float) -> None:
    """In the setting scaled to this GPU, where as many threads share a multiprocessor as then."""

    def ratio(first: str, second: str) -> float:
        return rates[first] / rates[second]

    def listed(values: list[float]) -> str:
        return ", ".join(map(shown, values))

    best = {size: _best(rates, size) for size in GRANULARITIES}
    boxes = ratio("16-shared-constant-registers", "16-constant-constant-registers")
    fours = [
        ratio(BEST, f"{BEST}-one"),
        *(ratio(f"{n}-shared-constant-aos", f"{n}-shared-constant-aos-one") for n in (8, 4)),
    ]
    registers = [ratio(BEST, f"16-shared-shared-{text}") for text in ("soa", "aos")]
    soa = ratio("16-shared-shared-soa", "16-shared-shared-aos")
    aos = [ratio(f"{n}-shared-constant-aos", f"{n}-shared-constant-soa") for n in (8, 4)]
    keys = ratio(BEST, "16-shared-constant-registers")
    looped = [best[size] / _best(no_loop, size) for size in GRANULARITIES]
    up = max(*rates.values(), *no_loop.values()) / cpu
    granularities = ", ".join(f"{size} B/thread: {shown(rate)}" for size, rate in best.items())
    loops = f"the best of 16, 8, 4 and 1 B/thread with the loop: {listed(looped)} times as fast"
    verdicts = (
        (f"{granularities} GB/s", best[16] == max(best.values())),
        (f"{shown(boxes)} times as fast in shared memory", boxes > 1),
        (f"16, 8 and 4 B/thread: {listed(fours)} times as fast", min(fours) > 1),
        (f"{listed(registers)} times as fast as SoA and AoS", min(registers) > 1),
        (f"{shown(soa)} times as fast", soa > 1),
        (f"{listed(aos)} times as fast", min(aos) > 1),
        (f"shared over constant: {shown(keys)}", abs(keys - 1) < 0.05),
        (loops, min(looped) > 1),
        (f"{shown(up)} times", up >= published.load(NAME)["best_over_cpu"]["value"]),
    )
    session.judge(CLAIMS[:-1], verdicts)


def _overlap(session: Session, size: int, blocks: int) -> None:
    """Section 6.4: without transfers, with them, and overlapped in parts."""
    values = published.load(NAME)
    key = os.urandom(16)
    job = session.job(BEST, key, threads=session.values["threads"], blocks=blocks)
    trip = RoundTrip(session, size)
    streams = [_native.WorkStream(session.settings.device) for _ in range(max(PARTS))]
    named: Any = {"algorithm": ALGORITHM}
    kernel = session.measure(BEST, partial(trip.run, job, size, size), size, **named)
    whole = partial(trip.whole, job, size)
    serial = session.measure(BEST, whole, size, residence="pinned", **named)
    session.wait()
    expected = wc.Cipher(ALGORITHM, key, engine="cpu").encrypt(trip.host_source.view(0, size))
    transfer = serial.seconds.median - kernel.seconds.median
    rows: list[tuple[Cell, ...]] = [
        ("kernel alone", values["table5"]["gb_per_s"][BEST], kernel.gigabytes, None, None),
        ("one after another", values["with_transfer"]["gb_per_s"], serial.gigabytes, None, 0.0),
    ]
    hidden: dict[int, float] = {}
    for parts in PARTS:
        trip.host_target.view(0, size)[:] = bytes(size)
        call = partial(trip.overlapped, job, size, streams[:parts], 16)
        how: Any = {"residence": "pinned", **named, "parts": parts}
        found = session.measure(BEST, call, size, "the cpu engine", **how)
        if bytes(trip.host_target.view(0, size)) != expected:
            raise session.wrong(BEST, f" in {parts} parts")
        hidden[parts] = (serial.seconds.median - found.seconds.median) / transfer
        known = values["overlapped"] if parts == values["overlapped"]["parts"] else {}
        rate, share = known.get("gb_per_s"), known.get("hidden")
        rows.append((f"overlapped, {parts} parts", rate, found.gigabytes, share, hidden[parts]))
    title = f"Transfers and their overlap, {BEST}, {shown_size(size)}, GB/s"
    source = "section 6.4; hidden: the share of the transfer time that overlap saves"
    header = ("form", "published", "here", "hidden, published", "hidden, here")
    session.table(title, source, header, rows)
    most = max(hidden, key=lambda parts: hidden[parts])
    session.conclude(
        CLAIMS[-1],
        f"{most} parts are best and hide {hidden[most]:.0%}; four hide {hidden[4]:.0%}. Both "
        "directions at once can hide more than half of the transfers, the kernel all of itself",
        hidden[4] >= values["overlapped"]["hidden"] - 0.05,
    )


def timeline(session: Session) -> list[Point]:
    size, threads = 1 << session.values["size"], session.values["threads"]
    blocks = 2 * session.multiprocessors
    return session.points(_kernels(session), size, threads=threads, blocks=blocks)


TITLE = "Acceleration of AES encryption on CUDA GPU"
CITATION = "K. Iwai, N. Nishikawa, T. Kurokawa, Int. J. of Networking and Computing 2(1), 2012"
PARAMETERS = (
    Parameter("threads", 512, 512, 32, 1024, "threads a block, a multiple of 32"),
    Parameter("size", 28, 28, 14, 32, "the text is 2 to the power of this, bytes"),
)
CHECKED = (16, 4112, (5 << 20) + 16)  # the last makes threads of every grid turn twice
PAPER = Paper(NAME, TITLE, CITATION, PARAMETERS, run, timeline, ALGORITHM, check_sizes=CHECKED)

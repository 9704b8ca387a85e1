# SPDX-License-Identifier: Apache-2.0
"""Iwai, Nishikawa, Kurokawa 2012: AES by T-box in every granularity and memory."""

from __future__ import annotations

import os
from typing import Final

import warpcipher as wc

from .. import _native, published
from ..results import Measurement, Point, Series, shown
from ..session import CHECKED, Paper, Parameter, RoundTrip, Session
from ..settings import shown_size

NAME = "iwai2012"
ALGORITHM: Final = "aes-128-ecb"
CHECK_SIZES = (16, 4112, (5 << 20) + 16)  # the last makes threads of every grid turn twice
CPU = "cpu"
BEST = "16-shared-shared-registers"  # the paper's III
PARTS = (1, 2, 4, 8, 16)
GRANULARITIES = (16, 8, 4, 1)


def run(session: Session) -> None:
    cpu = _one_thread(session)
    gpu = session.machine.gpu
    kernels = [name for name in session.variants if name != CPU and session.can_run(name)]
    if not kernels or gpu is None:
        session.not_measured((*_CLAIMS, _TRANSFER_CLAIM))
        return
    setting = published.load(NAME)["setting"]
    scaled = setting["blocks"] // setting["multiprocessors"] * gpu.multiprocessors
    grids = {"60 blocks": setting["blocks"], f"{scaled} blocks": scaled, "no loop": 0}
    size = 1 << session.values["size"]
    buffers = session.memory(BEST, size), session.memory(BEST, size)
    found = {
        grid: {name: _measure(session, name, size, blocks, buffers) for name in kernels}
        for grid, blocks in grids.items()
    }
    rates = {grid: {name: row[name].gigabytes for name in row} for grid, row in found.items()}
    _tables(session, size, rates)
    _figure9(session, rates)
    _judge(session, rates[f"{scaled} blocks"], rates["no loop"], cpu)
    del buffers
    _overlap(session, size, scaled)


def _measure(
    session: Session, name: str, size: int, blocks: int, buffers: tuple[object, object]
) -> Measurement:
    return session.measure_cipher(
        name,
        ALGORITHM,
        size,
        CHECK_SIZES,
        buffers,  # type: ignore[arg-type]
        threads=session.values["threads"],
        blocks=blocks,
    )


def _one_thread(session: Session) -> float:
    """GB/s of the T-box code on one core."""
    size = 1 << min(session.values["size"], 22)
    buffers = session.memory(CPU, size), session.memory(CPU, size)
    found = session.measure_cipher(CPU, ALGORITHM, size, CHECK_SIZES, buffers)
    one = published.load(NAME)["one_thread"]
    session.table(
        f"One CPU thread, GB/s, {shown_size(size)}",
        one["source"],
        ("form", "published", "here"),
        (("T-boxes, C", one["gb_per_s"], found.gigabytes),),
    )
    return found.gigabytes


def _tables(session: Session, size: int, rates: dict[str, dict[str, float]]) -> None:
    values = published.load(NAME)
    known = {**values["table5"]["gb_per_s"], **values["table6"]["gb_per_s"]}
    names = list(next(iter(rates.values())))
    threads = session.values["threads"]
    for title, source, chosen in (
        ("16 bytes a thread", "Table 5", [n for n in names if n in values["table5"]["gb_per_s"]]),
        (
            "8, 4 and 1 byte a thread",
            "Table 6, and section 6.3.2 for one T-box",
            [name for name in names if name not in values["table5"]["gb_per_s"]],
        ),
    ):
        session.table(
            f"GB/s, {title}, {shown_size(size)}, {threads} threads a block",
            source,
            (
                "bytes-T-box-keys-text",
                "column",
                "published",
                *(f"here, {grid}" for grid in rates),
            ),
            tuple(
                (
                    name,
                    session.variants[name].description,
                    known.get(name),
                    *(row[name] for row in rates.values()),
                )
                for name in chosen
            ),
        )


def _granularity(name: str) -> int:
    return int(name.partition("-")[0])


def _best(rates: dict[str, float], granularity: int) -> float:
    return max(rate for name, rate in rates.items() if _granularity(name) == granularity)


def _figure9(session: Session, rates: dict[str, dict[str, float]]) -> None:
    values = published.load(NAME)
    known = {**values["table5"]["gb_per_s"], **values["table6"]["gb_per_s"]}
    names = tuple(f"{size} B/thread" for size in GRANULARITIES)
    session.plot(
        "figure9",
        "Best throughput of each granularity (Figure 9)",
        "granularity",
        "GB/s",
        (
            Series(
                "published, GTX 285",
                names,
                tuple(_best(known, size) for size in GRANULARITIES),
                published=True,
            ),
            *(
                Series(grid, names, tuple(_best(row, size) for size in GRANULARITIES))
                for grid, row in rates.items()
            ),
        ),
        kind="bars",
        log_y=True,
    )


_CLAIMS = (
    "16 bytes a thread is the fastest granularity, 8 and 4 about 30% slower",
    "T-boxes belong in shared memory, not in constant memory (4.3 against 0.63 GB/s)",
    "four T-boxes beat one that is rotated, at every granularity (III over IV: 1.63 times)",
    "text in registers beats text in shared memory (by 15% to 35%)",
    "16 bytes a thread: SoA is faster than AoS",
    "8 and 4 bytes a thread: AoS is faster than SoA",
    "it hardly matters whether round keys lie in shared or constant memory (2% at 16 B/thread)",
    "threads that loop over blocks beat one block a thread (section 5.3.2)",
    "29 times as fast as one CPU core by T-boxes",
)
_TRANSFER_CLAIM = "overlap in four parts is best and hides 65% of the transfer time"


def _judge(
    session: Session, rates: dict[str, float], no_loop: dict[str, float], cpu: float
) -> None:
    """In the setting scaled to this GPU, where as many threads share a multiprocessor as then."""

    def ratio(first: str, second: str) -> float:
        return rates[first] / rates[second]

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
    top = max(*rates.values(), *no_loop.values())
    verdicts = (
        (
            ", ".join(f"{size} B/thread: {shown(best[size])}" for size in GRANULARITIES) + " GB/s",
            best[16] == max(best.values()),
        ),
        (f"{shown(boxes)} times as fast in shared memory", boxes > 1),
        (
            "16, 8 and 4 B/thread: " + ", ".join(map(shown, fours)) + " times as fast",
            min(fours) > 1,
        ),
        (
            f"{shown(registers[0])} times as fast as SoA, {shown(registers[1])} times as AoS",
            min(registers) > 1,
        ),
        (f"{shown(soa)} times as fast", soa > 1),
        (f"{shown(aos[0])} and {shown(aos[1])} times as fast", min(aos) > 1),
        (f"shared over constant: {shown(keys)}", abs(keys - 1) < 0.05),
        (
            "the best of 16, 8, 4 and 1 B/thread with the loop: "
            + ", ".join(map(shown, looped))
            + " times as fast",
            min(looped) > 1,
        ),
        (f"{shown(top / cpu)} times", top / cpu >= published.load(NAME)["best_over_cpu"]["value"]),
    )
    session.judge(_CLAIMS, verdicts)


def _overlap(session: Session, size: int, blocks: int) -> None:
    """Section 6.4: without transfers, with them, and overlapped in parts."""
    values = published.load(NAME)
    key = os.urandom(16)
    job = session.job(BEST, key, threads=session.values["threads"], blocks=blocks)
    trip = RoundTrip(session, size)
    streams = [_native.WorkStream(session.device) for _ in range(max(PARTS))]
    kernel = session.time(
        lambda: session.run(job, trip.source, size, trip.target, size), on_device=True
    )
    session.add(BEST, size, kernel, CHECKED, residence="device", algorithm=ALGORITHM)
    serial = session.time(lambda: trip.one_after_another(job, size), on_device=False)
    session.wait()
    session.add(BEST, size, serial, CHECKED, residence="pinned", algorithm=ALGORITHM)
    expected = wc.Cipher(ALGORITHM, key, engine="cpu").encrypt(trip.host_source.view(0, size))
    transfer = serial.median - kernel.median
    rows: list[tuple[str, float | None, float, float | None, float | None]] = [
        (
            "kernel alone",
            values["table5"]["gb_per_s"][BEST],
            size / kernel.median / 1e9,
            None,
            None,
        ),
        (
            "with transfers, one after another",
            values["with_transfer"]["gb_per_s"],
            size / serial.median / 1e9,
            None,
            0.0,
        ),
    ]
    hidden: dict[int, float] = {}
    for parts in PARTS:
        trip.host_target.view(0, size)[:] = bytes(size)
        chosen = streams[:parts]
        seconds = session.time(lambda: trip.overlapped(job, size, chosen, 16), on_device=False)  # noqa: B023
        if bytes(trip.host_target.view(0, size)) != expected:
            raise wc.EngineError(f"{BEST} of {NAME} is wrong in {parts} parts")
        found = session.add(
            BEST,
            size,
            seconds,
            "the cpu engine",
            residence="pinned",
            algorithm=ALGORITHM,
            parts=parts,
        )
        hidden[parts] = (serial.median - seconds.median) / transfer
        known = values["overlapped"] if parts == values["overlapped"]["parts"] else {}
        rows.append(
            (
                f"overlapped, {parts} parts",
                known.get("gb_per_s"),
                found.gigabytes,
                known.get("hidden"),
                hidden[parts],
            )
        )
    session.table(
        f"Transfers and their overlap, {BEST}, {shown_size(size)}, GB/s",
        "section 6.4; hidden: the share of the transfer time that overlap saves",
        ("form", "published", "here", "hidden, published", "hidden, here"),
        tuple(rows),
    )
    most = max(hidden, key=lambda parts: hidden[parts])
    session.conclude(
        _TRANSFER_CLAIM,
        f"{most} parts are best and hide {hidden[most]:.0%}; four hide {hidden[4]:.0%}. Both "
        "directions at once can hide more than half of the transfers, the kernel all of itself",
        hidden[4] >= values["overlapped"]["hidden"] - 0.05,
    )


def timeline(session: Session) -> list[Point]:
    gpu = session.machine.gpu
    size = 1 << session.values["size"]
    names = [name for name in session.variants if name != CPU and session.can_run(name)]
    if not names or gpu is None:
        return []
    buffers = session.memory(BEST, size), session.memory(BEST, size)
    return [
        session.point(name, _measure(session, name, size, 2 * gpu.multiprocessors, buffers))
        for name in names
    ]


PAPER = Paper(
    name=NAME,
    title="Acceleration of AES encryption on CUDA GPU",
    citation="K. Iwai, N. Nishikawa, T. Kurokawa, Int. J. of Networking and Computing 2(1), 2012",
    parameters=(
        Parameter("threads", 512, 512, 32, 1024, "threads a block, a multiple of 32"),
        Parameter("size", 28, 28, 14, 32, "the text is 2 to the power of this, bytes"),
    ),
    run=run,
    timeline=timeline,
)

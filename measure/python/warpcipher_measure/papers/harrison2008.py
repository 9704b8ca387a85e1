# SPDX-License-Identifier: Apache-2.0
"""Harrison, Waldron 2008: reads from on-chip memories, CTR with its tables in each, payloads."""

from __future__ import annotations

import os
from functools import partial, reduce
from operator import xor

from .. import published
from ..report import shown_time
from ..results import Measurement, Point, Series, shown
from ..session import Paper, Parameter, RoundTrip, Session
from ..settings import shown_size
from . import harrison2008_payloads as payloads

NAME = "harrison2008"
ALGORITHM = "aes-128-ctr"
CPU = "ctr-cpu"
BEST = payloads.HARD_CODED
THREADS = 256  # a block, as in the paper
PATTERNS = {"read-constant-coherent": 0, "coherent": 1, "random": 2}
PLACES = ("shared", "constant", "texture")
STRIDES = (1, 8, 32, 128, 512)
CLAIMS = (
    "constant memory is the fastest for coherent reads",
    "shared memory is the fastest for random reads, by a large margin",
    "four T-boxes in shared memory are the fastest; the rotations of one cost more than they save",
    "transfers take more than half of the rate (1.93 to 0.86 GB/s)",
    "4 times as fast as one CPU thread with transfers, 10 times without",
    "from 128 blocks a thread on, strided reads drop dramatically",
)


def run(session: Session) -> None:
    cpu = session.measure_cipher(CPU, 1 << min(session.values["size"], 22)).gigabytes
    payloads.serialisation(session, [payloads.Message(512)] * 1024)
    if not session.all_can_run(session.variants):
        session.not_measured(CLAIMS)
        return
    _reads(session)
    _ctr(session, cpu)
    _strided(session)
    payloads.run(session)


# --- Table 1 --------------------------------------------------------------------------------------


def _reads(session: Session) -> None:
    known = published.load(NAME)["table1_seconds"]
    threads = 8 * THREADS * session.multiprocessors
    reads = -(-session.values["reads"] * 1_000_000 // threads)
    found: dict[str, float] = {}
    for name in (name for name in session.variants if name in known):
        _check_reads(session, name)
        call = session.writer(name, session.job(name, b"", reads=reads), 4 * threads)
        timed = session.measure(name, call, reads * threads, "the CPU's reads", unit="reads")
        found[name] = known["reads"] / timed.rate.median
    kinds = ("coherent", "random")
    header = ("memory", *(f"{kind}, {where}" for kind in kinds for where in ("published", "here")))
    rows = [
        (
            place,
            *(shown_time(it[f"read-{place}-{kind}"]) for kind in kinds for it in (known, found)),
        )
        for place in PLACES
    ]
    what = f"Measured over {reads * threads:.4g} reads of 4 KiB by {threads} threads"
    title = "5 billion reads of 32 bits from on-chip memory"
    session.table(title, f"{known['source']}. {what}", header, rows)
    for claim, kind, expected in zip(CLAIMS, kinds, ("constant", "shared"), strict=False):
        times = {place: found[f"read-{place}-{kind}"] for place in PLACES}
        here = ", ".join(f"{place} {shown_time(time)}" for place, time in times.items())
        session.conclude(claim, here, min(times, key=times.__getitem__) == expected)


def _check_reads(session: Session, name: str) -> None:
    """Against the CPU's, which are kept as a figure too."""
    pattern = PATTERNS.get(name, PATTERNS[name.rpartition("-")[2]])
    threads, reads = 2 * THREADS, 99
    size = 4 * threads
    job = session.job("read-cpu", b"", reads=reads, pattern=pattern)
    call, checked = session.writer("read-cpu", job, size), "those of the kernels"
    session.measure("read-cpu", call, reads * threads, checked, unit="reads", pattern=pattern)
    expected = session.result("read-cpu", job, b"", size)
    session.expect(name, session.job(name, b"", reads=reads), b"", expected)


# --- Table 2 and Figure 1 -------------------------------------------------------------------------


def _ctr(session: Session, cpu: float) -> None:
    known = published.load(NAME)["table2_gb_per_s"]
    names = [name for name in session.variants if name in known]
    size = 1 << session.values["size"]
    trip = RoundTrip(session, size)
    alone = {name: session.measure_cipher(name, size, trip.buffers).gigabytes for name in names}
    total = {name: _with_transfers(session, trip, name, size).gigabytes for name in names}
    header = ("tables", "published", "here, with transfers", "here, kernel alone")
    rows = tuple((name, known[name], total[name], alone[name]) for name in names)
    session.table(f"AES-128 CTR, GB/s, {shown_size(size)}", known["source"], header, rows)
    _figure1(session, trip, cpu)
    fastest = max(alone, key=alone.__getitem__)
    best, whole = alone[BEST], total[BEST]
    ratio = shown(alone["ctr-single-shared"] / best)
    rotation = f"one T-box in shared memory is {ratio} times as fast as four"
    verdicts = (
        (f"{fastest} is: {shown(alone[fastest])} GB/s alone; {rotation}", fastest == BEST),
        (f"{whole / best:.0%} of {shown(best)} GB/s", whole < best * 0.5),
        (
            f"{shown(whole / cpu)} times with transfers, {shown(best / cpu)} without, "
            f"over one CPU thread with T-boxes at {shown(cpu)} GB/s",
            whole / cpu >= 4 and best / cpu >= 10,
        ),
    )
    session.judge(CLAIMS[2:5], verdicts)


def _with_transfers(session: Session, trip: RoundTrip, name: str, size: int) -> Measurement:
    call = partial(trip.whole, session.job(name, os.urandom(16), os.urandom(16)), size)
    return session.measure(name, call, size, residence="pinned", algorithm=ALGORITHM)


def _figure1(session: Session, trip: RoundTrip, cpu: float) -> None:
    values = published.load(NAME)
    sizes = [1 << n for n in range(10, session.values["size"] + 1, 3 if session.quick else 1)]
    alone = {size: session.measure_cipher(BEST, size, trip.buffers).gigabytes for size in sizes}
    total = {size: _with_transfers(session, trip, BEST, size).gigabytes for size in sizes}
    figure, one = values["figure1_gb_per_s"], values["cpu_gb_per_s"]["value"]
    known = {f"maximum, {way} transfers": figure[f"{way}_transfers"] for way in ("without", "with")}
    levels = [
        Series.level(f"published {what}", sizes, rate, published=True)
        for what, rate in (known | {"one CPU thread": one}).items()
    ]
    here = Series.level("one CPU thread", sizes, cpu, published=False)
    lines = {"kernel alone": alone, "with transfers": total}
    title = "AES-128 CTR over size (Figure 1)"
    session.lines("figure1", title, ("bytes", "GB/s"), lines, here, *levels)


# --- Figure 6 -------------------------------------------------------------------------------------


def _strided(session: Session) -> None:
    name, largest = "strided-reads", 1 << session.values["size"]
    source = session.memory(name, largest)
    lines: dict[str, dict[int, float]] = {}
    for blocks in STRIDES:
        job = session.job(name, b"", blocks=blocks)
        _check_strided(session, blocks)
        line = lines[f"{blocks} block{'s' * (blocks > 1)} a thread"] = {}
        threads = 4 * THREADS
        while (size := 16 * blocks * threads) <= largest:
            target = session.memory(name, 4 * threads)
            call = partial(session.run, job, source, size, target, 4 * threads)
            checked = "the same in Python"
            found = session.measure(name, call, size, checked, blocks=blocks, threads=threads)
            line[threads] = found.gigabytes
            threads *= 4 if session.quick else 2
    title = "Sequential reads, each thread from where the one before ends (Figure 6)"
    session.lines("figure6", title, ("threads", "GB/s"), lines)
    rates = (max(line.values(), default=0.0) for line in lines.values())
    best = dict(zip(STRIDES, rates, strict=True))
    here = ", ".join(f"{blocks}: {shown(rate)} GB/s" for blocks, rate in best.items())
    session.conclude(CLAIMS[5], here, max(best[128], best[512]) < best[1] / 2)


def _check_strided(session: Session, blocks: int) -> None:
    text = os.urandom(16 * blocks * THREADS)
    words = memoryview(text).cast("I")
    expected = b"".join(
        reduce(xor, words[4 * blocks * i : 4 * blocks * (i + 1)]).to_bytes(4, "little")
        for i in range(THREADS)
    )
    job = session.job("strided-reads", b"", blocks=blocks)
    session.expect("strided-reads", job, text, expected, f" for {blocks} blocks")


def timeline(session: Session) -> list[Point]:
    names = [name for name in published.load(NAME)["table2_gb_per_s"] if name.startswith("ctr-")]
    return session.points(names, 1 << session.values["size"])


TITLE = "Practical Symmetric Key Cryptography on Modern Graphics Hardware"
CITATION = "O. Harrison, J. Waldron, 17th USENIX Security Symposium, 2008"
PARAMETERS = (
    Parameter("size", 28, 28, 14, 32, "the largest text of CTR is 2 to the power of this"),
    Parameter("payload", 28, 26, 18, 32, "the largest payload is 2 to the power of this"),
    Parameter("reads", 5000, 5000, 1, 100_000, "reads of Table 1, in millions"),
)
PAPER = Paper(NAME, TITLE, CITATION, PARAMETERS, run, timeline, ALGORITHM)

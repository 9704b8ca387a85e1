# SPDX-License-Identifier: Apache-2.0
"""Harrison, Waldron 2008: reads from on-chip memories, CTR with its tables in each, payloads."""

from __future__ import annotations

import os
from functools import reduce
from operator import xor

import warpcipher as wc

from .. import published
from ..report import shown_time
from ..results import Conclusion, Measurement, Point, Series, shown
from ..session import CHECKED, Paper, Parameter, RoundTrip, Session
from ..settings import shown_size
from . import harrison2008_payloads as payloads

NAME = "harrison2008"
ALGORITHM = "aes-128-ctr"
CHECK_SIZES = (16, 4112, 65536)
CPU = "ctr-cpu"
BEST = payloads.HARD_CODED
THREADS = 256  # a block, as in the paper
PATTERNS = {"read-constant-coherent": 0, "coherent": 1, "random": 2}
STRIDES = (1, 8, 32, 128, 512)


def run(session: Session) -> None:
    cpu = _one_thread(session)
    payloads_cpu(session)
    if not session.can_run(BEST) or session.machine.gpu is None:
        for name in session.variants:
            session.can_run(name)
        session.not_measured(CLAIMS)
        return
    _reads(session, session.machine.gpu.multiprocessors)
    _ctr(session, cpu)
    _strided(session)
    _payloads(session)


def _one_thread(session: Session) -> float:
    size = 1 << min(session.values["size"], 22)
    buffers = session.memory(CPU, size), session.memory(CPU, size)
    return session.measure_cipher(CPU, ALGORITHM, size, CHECK_SIZES, buffers).gigabytes


def payloads_cpu(session: Session) -> None:
    """Section 6.1: what a payload costs the CPU before the GPU sees it."""
    rows = []
    for keys in (1, 1024):
        messages = [payloads.Message(512, key=i % keys) for i in range(1024)]
        seconds = payloads.serialisation(session, messages, keys, keys=keys)
        size = payloads.streams_size(len(messages), keys)
        rows.append((len(messages), keys, size, seconds))
    session.table(
        "Serialisation on one CPU thread",
        "section 6.1; the paper has no figures of it",
        ("messages", "keys", "bytes of streams", "time"),
        tuple(rows),
    )


def _payloads(session: Session) -> None:
    mixed = 16 * sum(message.blocks for message in payloads.mixed_payloads(7)[0])
    runner = payloads.Runner(session, max(1 << session.values["payload"], mixed))
    payloads.judge45(session, payloads.figures4and5(session, runner))
    payloads.overhead(session, runner)
    payloads.padding(session, runner)
    payloads.figure7(session, runner)


# --- Table 1 --------------------------------------------------------------------------------------


def _reads(session: Session, multiprocessors: int) -> None:
    known = published.load(NAME)["table1_seconds"]
    names = [name for name in session.variants if name in known]
    threads = 8 * THREADS * multiprocessors
    reads = -(-session.values["reads"] * 1_000_000 // threads)
    found: dict[str, float] = {}
    for name in names:
        _check_reads(session, name)
        job = session.job(name, b"", reads=reads)
        target = session.memory(name, 4 * threads)
        seconds = session.time(
            lambda: session.run(job, target, 0, target, 4 * threads),  # noqa: B023
            on_device=True,
        )
        session.add(
            name, reads * threads, seconds, "the CPU's reads", residence="device", unit="reads"
        )
        found[name] = seconds.median * known["reads"] / (reads * threads)
    session.table(
        "5 billion reads of 32 bits from on-chip memory",
        f"{known['source']}. Measured over {reads * threads:.4g} reads of 4 KiB by {threads} "
        "threads",
        (
            "memory",
            "coherent, published",
            "coherent, here",
            "random, published",
            "random, here",
        ),
        tuple(
            (
                place,
                *(
                    shown_time(times[f"read-{place}-{pattern}"])
                    for pattern in ("coherent", "random")
                    for times in (known, found)
                ),
            )
            for place in ("shared", "constant", "texture")
        ),
    )
    coherent = {name: time for name, time in found.items() if name.endswith("coherent")}
    chance = {name: time for name, time in found.items() if name.endswith("random")}
    session.conclusions += [
        Conclusion(
            CLAIMS[0],
            ", ".join(
                f"{name.split('-')[1]} {shown_time(time)}" for name, time in coherent.items()
            ),
            min(coherent, key=coherent.__getitem__) == "read-constant-coherent",
        ),
        Conclusion(
            CLAIMS[1],
            ", ".join(f"{name.split('-')[1]} {shown_time(time)}" for name, time in chance.items()),
            min(chance, key=chance.__getitem__) == "read-shared-random",
        ),
    ]


def _check_reads(session: Session, name: str) -> None:
    """Against the CPU's, which are kept as a figure too."""
    pattern = PATTERNS.get(name, PATTERNS[name.rpartition("-")[2]])
    threads, reads = 2 * THREADS, 99
    size = 4 * threads
    job = session.job("read-cpu", b"", reads=reads, pattern=pattern)
    target = session.memory("read-cpu", size)
    seconds = session.time(lambda: session.run(job, target, 0, target, size), on_device=False)
    session.add(
        "read-cpu",
        reads * threads,
        seconds,
        "those of the kernels",
        residence="host",
        unit="reads",
        pattern=pattern,
    )
    if session.result(name, session.job(name, b"", reads=reads), b"", size) != session.read(
        target, size
    ):
        raise wc.EngineError(f"variant {name!r} of {NAME} is wrong")


# --- Table 2 and Figure 1 -------------------------------------------------------------------------


def _ctr(session: Session, cpu: float) -> None:
    known = published.load(NAME)["table2_gb_per_s"]
    names = [name for name in session.variants if name in known]
    size = 1 << session.values["size"]
    trip = RoundTrip(session, size)
    alone: dict[str, float] = {}
    total: dict[str, float] = {}
    for name in names:
        alone[name] = session.measure_cipher(
            name, ALGORITHM, size, CHECK_SIZES, (trip.source, trip.target)
        ).gigabytes
        total[name] = _with_transfers(session, trip, name, size).gigabytes
    session.table(
        f"AES-128 CTR, GB/s, {shown_size(size)}",
        known["source"],
        ("tables", "published", "here, with transfers", "here, kernel alone"),
        tuple((name, known[name], total[name], alone[name]) for name in names),
    )
    _figure1(session, trip, cpu)
    rotation = alone[BEST] / alone["ctr-single-shared"]
    session.conclusions += [
        Conclusion(
            CLAIMS[2],
            f"{max(alone, key=alone.__getitem__)} is: {shown(max(alone.values()))} GB/s alone; "
            f"one T-box in shared memory is {shown(1 / rotation)} times as fast as four",
            max(alone, key=alone.__getitem__) == BEST,
        ),
        Conclusion(
            CLAIMS[3],
            f"{total[BEST] / alone[BEST]:.0%} of {shown(alone[BEST])} GB/s",
            total[BEST] < alone[BEST] * 0.5,
        ),
        Conclusion(
            CLAIMS[4],
            f"{shown(total[BEST] / cpu)} times with transfers, {shown(alone[BEST] / cpu)} without, "
            f"over one CPU thread with T-boxes at {shown(cpu)} GB/s",
            total[BEST] / cpu >= 4 and alone[BEST] / cpu >= 10,
        ),
    ]


def _with_transfers(session: Session, trip: RoundTrip, name: str, size: int) -> Measurement:
    job = session.job(name, os.urandom(16), os.urandom(16))
    seconds = session.time(lambda: trip.one_after_another(job, size), on_device=False)
    return session.add(name, size, seconds, CHECKED, residence="pinned", algorithm=ALGORITHM)


def _figure1(session: Session, trip: RoundTrip, cpu: float) -> None:
    exponents = range(10, session.values["size"] + 1, 3 if session.quick else 1)
    sizes = [1 << n for n in exponents]
    alone = [
        session.measure_cipher(
            BEST, ALGORITHM, size, CHECK_SIZES, (trip.source, trip.target)
        ).gigabytes
        for size in sizes
    ]
    total = [_with_transfers(session, trip, BEST, size).gigabytes for size in sizes]
    known = published.load(NAME)["figure1_gb_per_s"]
    cpu_then = published.load(NAME)["cpu_gb_per_s"]["value"]
    ends = (float(sizes[0]), float(sizes[-1]))
    session.plot(
        "figure1",
        "AES-128 CTR over size (Figure 1)",
        "bytes",
        "GB/s",
        (
            Series("kernel alone", tuple(sizes), tuple(alone)),
            Series("with transfers", tuple(sizes), tuple(total)),
            Series("one CPU thread", ends, (cpu, cpu)),
            *(
                Series(
                    f"published maximum, {label.replace('_', ' ')}",
                    ends,
                    (known[label], known[label]),
                    published=True,
                )
                for label in ("without_transfers", "with_transfers")
            ),
            Series(
                "published, one CPU thread",
                ends,
                (cpu_then, cpu_then),
                published=True,
            ),
        ),
        log_x=True,
        log_y=True,
    )


# --- Figure 6 -------------------------------------------------------------------------------------


def _strided(session: Session) -> None:
    name = "strided-reads"
    largest = 1 << session.values["size"]
    source = session.memory(name, largest)
    lines: dict[int, dict[int, float]] = {}
    for blocks in STRIDES:
        _check_strided(session, blocks)
        job = session.job(name, b"", blocks=blocks)
        lines[blocks] = {}
        most = largest // (blocks * 16)
        step = 4 if session.quick else 2
        for threads in (4 * THREADS * step**i for i in range(32)):
            if threads > most:
                break
            size = threads * blocks * 16
            target = session.memory(name, 4 * threads)
            seconds = session.time(
                lambda: session.run(job, source, size, target, size // blocks // 4),  # noqa: B023
                on_device=True,
            )
            session.add(
                name,
                size,
                seconds,
                "the same in Python",
                residence="device",
                blocks=blocks,
                threads=threads,
            )
            lines[blocks][threads] = size / seconds.median / 1e9
    session.plot(
        "figure6",
        "Sequential reads, each thread from where the one before ends (Figure 6)",
        "threads",
        "GB/s",
        tuple(
            Series(
                f"{blocks} block{'s' * (blocks > 1)} a thread",
                tuple(line),
                tuple(line.values()),
            )
            for blocks, line in lines.items()
        ),
        log_x=True,
        log_y=True,
    )
    best = {blocks: max(line.values(), default=0.0) for blocks, line in lines.items()}
    session.table(
        "Strided sequential reads, GB/s at the best number of threads",
        "Figure 6",
        ("blocks a thread", "GB/s"),
        tuple(best.items()),
    )
    session.conclude(
        CLAIMS[5],
        ", ".join(f"{blocks}: {shown(rate)} GB/s" for blocks, rate in best.items()),
        max(best[128], best[512]) < best[1] / 2,
    )


def _check_strided(session: Session, blocks: int) -> None:
    text = os.urandom(16 * blocks * THREADS)
    words = memoryview(text).cast("I")
    expected = b"".join(
        reduce(xor, words[4 * blocks * i : 4 * blocks * (i + 1)]).to_bytes(4, "little")
        for i in range(THREADS)
    )
    job = session.job("strided-reads", b"", blocks=blocks)
    if session.result("strided-reads", job, text, 4 * THREADS) != expected:
        raise wc.EngineError(f"variant 'strided-reads' of {NAME} is wrong for {blocks} blocks")


CLAIMS = (
    "constant memory is the fastest for coherent reads",
    "shared memory is the fastest for random reads, by a large margin",
    "four T-boxes in shared memory are the fastest; the rotations of one cost more than they save",
    "transfers take more than half of the rate (1.93 to 0.86 GB/s)",
    "4 times as fast as one CPU thread with transfers, 10 times without",
    "from 128 blocks a thread on, strided reads drop dramatically",
)


def timeline(session: Session) -> list[Point]:
    size = 1 << session.values["size"]
    names = [name for name in published.load(NAME)["table2_gb_per_s"] if name.startswith("ctr-")]
    if not session.can_run(BEST):
        return []
    buffers = session.memory(BEST, size), session.memory(BEST, size)
    return [
        session.point(name, session.measure_cipher(name, ALGORITHM, size, CHECK_SIZES, buffers))
        for name in names
    ]


PAPER = Paper(
    name=NAME,
    title="Practical Symmetric Key Cryptography on Modern Graphics Hardware",
    citation="O. Harrison, J. Waldron, 17th USENIX Security Symposium, 2008",
    parameters=(
        Parameter("size", 28, 28, 14, 32, "the largest text of CTR is 2 to the power of this"),
        Parameter("payload", 28, 26, 18, 32, "the largest payload is 2 to the power of this"),
        Parameter("reads", 5000, 5000, 1, 100_000, "reads of Table 1, in millions"),
    ),
    run=run,
    timeline=timeline,
)

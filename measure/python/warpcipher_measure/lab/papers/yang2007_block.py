# SPDX-License-Identifier: Apache-2.0
"""Section 6 of Yang 2007: AES-128 decryption by blocks, with integers and without."""

from __future__ import annotations

import warpcipher as wc

from ...bench.settings import shown_size
from .. import published
from ..results import Conclusion, Point, Table, shown
from ..session import Session

NAME = "yang2007"
ALGORITHM = "aes-128-ecb"
CHECK_SIZES = (16, 4112, 65536)
INTEGER, CPU = "block-integer", "block-cpu"
FLOATS = ("block-alu", "block-256", "block-16", "block-hybrid")
XORS = ("xor-alu", "xor-256", "xor-16", "xor-hybrid")
THREADS = 256  # a block

CLAIMS = (
    "of the XORs in floating point arithmetic is the fastest, the table of 256 x 256 the slowest",
    "integers make AES by blocks 3.5 times as fast as floating point alone",
    "with integers a GPU is about twice as fast as a CPU, without them half as fast",
)


def one_thread(session: Session) -> float:
    """GB/s of T-tables on one core."""
    size = 1 << min(session.values["size"], 22)
    buffers = session.memory(CPU, size), session.memory(CPU, size)
    return session.measure_cipher(
        CPU, ALGORITHM, size, CHECK_SIZES, buffers, direction="decrypt"
    ).gigabytes


def run(session: Session, cpu: float) -> None:
    gpu = session.machine.gpu
    ready = [session.can_run(name) for name in (INTEGER, *FLOATS, *XORS)]
    if not all(ready) or gpu is None:
        session.conclusions += [Conclusion(said, "not measured: no GPU", None) for said in CLAIMS]
        return
    xors = {name: _xors(session, name, gpu.multiprocessors) for name in XORS}
    size = 1 << session.values["size"]
    rates = _blocks(session, size)
    values = published.load(NAME)
    known = values["table3_xors_a_second"]
    session.tables.append(
        Table(
            "XOR of bytes in floating point, 10^9 a second",
            known["source"],
            ("form", "published", "here"),
            tuple((name, known[name] / 1e9, xors[name] / 1e9) for name in XORS),
        )
    )
    blocks = values["block_gb_per_s"]
    session.tables.append(
        Table(
            f"AES-128 ECB decryption by blocks, {shown_size(size)}, GB/s",
            blocks["source"],
            ("form", "published", "here"),
            (
                (INTEGER, blocks[INTEGER], rates[INTEGER]),
                *((name, blocks.get(name), rates[name]) for name in FLOATS),
                ("one CPU thread", blocks[CPU], cpu),
            ),
        )
    )
    best = max(FLOATS, key=lambda name: rates[name])
    ratio = rates[INTEGER] / rates[best]
    verdicts = (
        (
            ", ".join(f"{name} {shown(rate / 1e9)}" for name, rate in xors.items()) + " G/s",
            max(xors, key=xors.__getitem__) == "xor-alu"
            and min(xors, key=xors.__getitem__) == "xor-256",
        ),
        (f"{shown(ratio)} times as fast as the best of those, {best}", ratio >= 3),
        (
            f"{shown(rates[INTEGER] / cpu)} and {shown(rates[best] / cpu)} times as fast as one "
            "CPU thread with T-tables",
            rates[INTEGER] / cpu >= 2 and rates[best] < cpu,
        ),
    )
    session.conclusions += [
        Conclusion(said, here, holds) for said, (here, holds) in zip(CLAIMS, verdicts, strict=True)
    ]


def _blocks(session: Session, size: int) -> dict[str, float]:
    buffers = session.memory(INTEGER, size), session.memory(INTEGER, size)
    return {
        name: session.measure_cipher(
            name, ALGORITHM, size, CHECK_SIZES, buffers, direction="decrypt"
        ).gigabytes
        for name in (INTEGER, *FLOATS)
    }


def _xors(session: Session, name: str, multiprocessors: int) -> float:
    """XORs a second."""
    few, check = 2 * THREADS, 9
    expected = bytearray(4 * few)
    for thread in range(few):
        a, b = thread % 256, thread // 256
        for i in range(check):
            a ^= (b + 37 * i) % 256
        expected[4 * thread] = a
    if session.result(name, session.job(name, b"", xors=check), b"", 4 * few) != expected:
        raise wc.EngineError(f"variant {name!r} of {NAME} is wrong")
    threads, count = 8 * THREADS * multiprocessors, 1024
    job = session.job(name, b"", xors=count)
    target = session.memory(name, 4 * threads)
    seconds = session.time(lambda: session.run(job, target, 0, target, 4 * threads), on_device=True)
    return session.add(
        name, threads * count, seconds, "the same in Python", residence="device", unit="XORs"
    ).rate.median


def timeline(session: Session) -> list[Point]:
    if not session.can_run(INTEGER):
        return []
    size = 1 << session.values["size"]
    buffers = session.memory(INTEGER, size), session.memory(INTEGER, size)
    return [
        session.point(
            name,
            session.measure_cipher(
                name, ALGORITHM, size, CHECK_SIZES, buffers, direction="decrypt"
            ),
        )
        for name in (INTEGER, *FLOATS)
    ]

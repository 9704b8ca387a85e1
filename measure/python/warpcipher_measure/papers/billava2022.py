# SPDX-License-Identifier: Apache-2.0
"""Macha Billava 2022: AES with a byte a thread, against naive code of one CPU thread."""

from __future__ import annotations

import os

import warpcipher as wc

from .. import published
from ..report import shown_time
from ..results import Cell, Conclusion, Measurement, Point, Series, Spread, shown
from ..session import Paper, Parameter, Session
from ..settings import shown_size

NAME = "billava2022"
CHECK_SIZES = (16, 4112, 65536)
NAIVE_CHECK_SIZES = (16, 4112)
MODES = ("aes-128-ecb", "aes-128-ctr", "aes-256-ecb", "aes-256-ctr")
THREADS = (32, 64, 128, 256, 512, 1024)

# FIPS 197, appendices A.1 and A.3: a key, and the last round key that it expands to.
KNOWN_EXPANSIONS = (
    ("2b7e151628aed2a6abf7158809cf4f3c", "d014f9a8c9ee2589e13f0cc8b6630ca6"),
    (
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "fe4890d1e6188d0b046df344706c631e",
    ),
)


def run(session: Session) -> None:
    naive = _naive(session)
    sizes = _sizes(session)
    kernel: dict[int, Measurement] = {}
    total: dict[int, Measurement] = {}
    if session.can_run("kernel"):
        _kernel_over_sizes(session, sizes, kernel, total)
        _modes(session, sizes[-1])
        _threads(session, sizes[-1])
    _times(session, sizes, naive, kernel, total)
    _key_expansion(session)


def _sizes(session: Session) -> list[int]:
    largest = session.values["largest"]
    return [1 << n for n in range(5, largest + 1, 5 if session.quick else 1)]


def _naive(session: Session) -> dict[int, Measurement]:
    """Sizes up to where a call would take more than `naive_ms`, judged by the size before."""
    found: dict[int, Measurement] = {}
    limit = session.values["naive_ms"] / 1e3
    for size in _sizes(session):
        if found:
            last = max(found)
            expected = found[last].seconds.median * size / last
            if expected > limit:
                session.skip(
                    f"naive, {shown_size(size)} and more",
                    f"would take about {expected:.2g} s a call: naive_ms is {limit * 1e3:g}",
                )
                break
        buffers = session.memory("naive", size), session.memory("naive", size)
        found[size] = session.measure_cipher(
            "naive", "aes-128-ecb", size, NAIVE_CHECK_SIZES, buffers
        )
    return found


def _kernel_over_sizes(
    session: Session,
    sizes: list[int],
    kernel: dict[int, Measurement],
    total: dict[int, Measurement],
) -> None:
    threads = session.values["threads"]
    device = session.memory("kernel", sizes[-1]), session.memory("kernel", sizes[-1])
    host = session.memory("naive", sizes[-1]), session.memory("naive", sizes[-1])
    stream = session.stream
    assert stream is not None  # noqa: S101 - can_run said so
    job = session.job("kernel", os.urandom(16), threads=threads)
    for size in sizes:
        kernel[size] = session.measure_cipher(
            "kernel", "aes-128-ecb", size, CHECK_SIZES, device, threads=threads
        )

        def call(size: int = size) -> None:
            stream.copy(device[0].pointer, host[0].pointer, size)
            session.run(job, device[0], size, device[1], size)
            stream.copy(host[1].pointer, device[1].pointer, size)

        total[size] = session.add(
            "kernel",
            size,
            session.time(call, on_device=False),
            kernel[size].checked,
            residence="pageable",
            algorithm="aes-128-ecb",
            threads=threads,
        )


def _modes(session: Session, size: int) -> None:
    buffers = session.memory("kernel", size), session.memory("kernel", size)
    threads = session.values["threads"]
    rows = []
    for algorithm in MODES:
        found = session.measure_cipher(
            "kernel", algorithm, size, CHECK_SIZES, buffers, threads=threads
        )
        rows.append((algorithm, found.gigabytes))
    session.table(
        f"Modes and key sizes, {shown_size(size)}, {threads} threads a block",
        "sections 4 and 6: the paper has no figures of CTR, and left AES-256 as future work",
        ("algorithm", "GB/s"),
        tuple(rows),
    )


def _threads(session: Session, size: int) -> None:
    buffers = session.memory("kernel", size), session.memory("kernel", size)
    rates = {
        threads: session.measure_cipher(
            "kernel", "aes-128-ecb", size, CHECK_SIZES, buffers, threads=threads
        ).gigabytes
        for threads in THREADS
    }
    best = max(rates, key=lambda threads: rates[threads])
    session.table(
        f"Threads a block, AES-128 ECB, {shown_size(size)}",
        "section 3.3: 512 fixed",
        ("threads a block", "GB/s"),
        tuple(rates.items()),
    )
    session.conclude(
        f"{published.load(NAME)['best_threads']['value']} threads a block are the fastest",
        f"{best} are: {shown(rates[best])} GB/s against {shown(rates[512])}",
        best == 512,
    )


def _times(
    session: Session,
    sizes: list[int],
    naive: dict[int, Measurement],
    kernel: dict[int, Measurement],
    total: dict[int, Measurement],
) -> None:
    """The paper's two plots, and their figures."""
    last = max(naive)
    scaled = {  # where the naive code was not run: in proportion to the largest that was
        size: naive[last].seconds.median * size / last for size in sizes if size > last
    }
    cpu = {**{size: entry.seconds.median for size, entry in naive.items()}, **scaled}
    rows: list[tuple[Cell, ...]] = []
    for size in sizes:
        gpu = kernel.get(size)
        whole = total.get(size)
        rows.append(
            (
                shown_size(size),
                naive[size].seconds if size in naive else f"{shown_time(cpu[size])} (scaled)",
                gpu.seconds if gpu else None,
                whole.seconds if whole else None,
                cpu[size] / gpu.seconds.median if gpu else None,
                cpu[size] / whole.seconds.median if whole else None,
            )
        )
    session.table(
        "Time, and speed-up over the naive code, AES-128 ECB",
        f"section 4, both plots; (scaled): in proportion to {shown_size(last)}",
        ("text", "naive", "kernel", "with transfers", "speed-up", "with transfers"),
        tuple(rows),
    )
    lines = [("naive", {size: entry.seconds.median for size, entry in naive.items()})]
    if kernel:
        lines.append(("kernel", {size: kernel[size].seconds.median for size in sizes}))
        lines.append(("with transfers", {size: total[size].seconds.median for size in sizes}))
    session.plot(
        "time",
        "AES-128 ECB: time over size",
        "bytes",
        "seconds",
        tuple(Series(label, tuple(line), tuple(line.values())) for label, line in lines),
        log_x=True,
        log_y=True,
    )
    claim = published.load(NAME)["largest_speed_up"]["value"]
    said = f"the kernel is up to {claim:g} times as fast as the naive code"
    if not kernel:
        session.conclude(said, "not measured: no GPU", None)
        return
    ups = {
        "kernel": {size: cpu[size] / kernel[size].seconds.median for size in sizes},
        "with transfers": {size: cpu[size] / total[size].seconds.median for size in sizes},
    }
    session.plot(
        "speed-up",
        "AES-128 ECB: speed-up over the naive code",
        "bytes",
        "times as fast",
        (
            *(Series(label, tuple(line), tuple(line.values())) for label, line in ups.items()),
            Series(
                "published, largest",
                (float(sizes[0]), float(sizes[-1])),
                (claim, claim),
                published=True,
            ),
        ),
        log_x=True,
        log_y=True,
    )
    best = {label: max(line.values()) for label, line in ups.items()}
    session.conclude(
        said,
        f"up to {shown(best['kernel'])} times, {shown(best['with transfers'])} with transfers",
        best["kernel"] >= claim,
    )


def _key_expansion(session: Session) -> None:
    times: dict[str, Spread] = {}
    for variant in ("key-plain", "key-openmp"):
        if not session.can_run(variant):
            continue
        checked = _check_expansion(session, variant)
        job = session.job(variant, os.urandom(16))
        target = session.memory(variant, 176)
        seconds = session.time(lambda: session.run(job, target, 0, target, 176), on_device=False)  # noqa: B023
        session.add(variant, 176, seconds, checked, residence="host", algorithm="aes-128")
        times[variant] = seconds
    values = published.load(NAME)
    session.table(
        "Key expansion of AES-128",
        values["key_plain_seconds"]["source"],
        ("form", "published", "measured"),
        tuple(
            (
                variant,
                shown_time(values[f"{variant.replace('-', '_')}_seconds"]["value"]),
                times[variant],
            )
            for variant in times
        ),
    )
    said = "key expansion is slower with OpenMP than without"
    if len(times) < 2:
        session.conclude(said, "not measured: no OpenMP", None)
        return
    ratio = times["key-openmp"].median / times["key-plain"].median
    session.conclusions.append(
        Conclusion(said, f"with OpenMP it takes {shown(ratio)} times as long", ratio > 1)
    )


def _check_expansion(session: Session, variant: str) -> str:
    for key, expected in KNOWN_EXPANSIONS:
        size = 176 if len(key) == 32 else 240
        got = session.result(variant, session.job(variant, bytes.fromhex(key)), b"", size)
        if got[:16].hex() != key[:32] or got[-16:].hex() != expected:
            raise wc.EngineError(f"variant {variant!r} of {NAME} is wrong for a key of FIPS 197")
    return "FIPS 197, appendix A"


def timeline(session: Session) -> list[Point]:
    size = 1 << session.values["largest"]
    if not session.can_run("kernel") or session.machine.gpu is None:
        return []
    buffers = session.memory("kernel", size), session.memory("kernel", size)
    threads = session.values["threads"]
    found = session.measure_cipher(
        "kernel", "aes-128-ecb", size, CHECK_SIZES, buffers, threads=threads
    )
    return [session.point("a byte a thread", found)]


PAPER = Paper(
    name=NAME,
    title="AES Acceleration with GPU",
    citation="R. Macha Billava, final project of ME759, University of Wisconsin-Madison, 2022",
    parameters=(
        Parameter("threads", 512, 512, 32, 1024, "threads a block, a multiple of 32"),
        Parameter("largest", 30, 20, 10, 33, "the largest text is 2 to the power of this, bytes"),
        Parameter("naive_ms", 500, 50, 1, 1_000_000, "the naive code stops at calls longer"),
    ),
    run=run,
    timeline=timeline,
)

# SPDX-License-Identifier: Apache-2.0
"""Macha Billava 2022: AES with a byte a thread, against naive code of one CPU thread."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from .. import published
from ..report import shown_time
from ..results import Measurement, Point, Series, Spread, shown
from ..session import Paper, Parameter, RoundTrip, Session, in_proportion
from ..settings import shown_size

NAME = "billava2022"
ALGORITHM = "aes-128-ecb"
NAIVE_CHECK_SIZES = (16, 4112)
MODES = ("aes-128-ctr", "aes-256-ecb", "aes-256-ctr")
THREADS = (32, 64, 128, 256, 512, 1024)

# FIPS 197, appendices A.1 and A.3: a key, and the last round key that it expands to.
KNOWN_EXPANSIONS = (
    ("2b7e151628aed2a6abf7158809cf4f3c", "d014f9a8c9ee2589e13f0cc8b6630ca6"),
    (
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "fe4890d1e6188d0b046df344706c631e",
    ),
)


Lines = dict[str, dict[int, Measurement]]


def run(session: Session) -> None:
    largest = session.values["largest"]
    sizes = [1 << n for n in range(5, largest + 1, 5 if session.quick else 1)]
    measure = partial(session.measure_cipher, "naive", check_sizes=NAIVE_CHECK_SIZES)
    lines = {"naive": session.up_to("naive_ms", "naive, bytes", sizes, measure)}
    if session.can_run("kernel"):
        _kernel(session, sizes, lines)
        _settings(session, sizes[-1])
    _times(session, sizes, lines)
    _key_expansion(session)


def _kernel(session: Session, sizes: list[int], lines: Lines) -> None:
    """Only the kernel, and with the transfers of pageable memory, as the paper has them."""
    named: Any = {"algorithm": ALGORITHM, "threads": session.values["threads"]}
    trip = RoundTrip(session, sizes[-1], pinned=False)
    job = session.job("kernel", os.urandom(16), threads=session.values["threads"])
    alone = lines["kernel"] = {}
    total = lines["with transfers"] = {}
    for size in sizes:
        alone[size] = session.measure_cipher(
            "kernel", size, trip.buffers, threads=session.values["threads"]
        )
        call = partial(trip.whole, job, size)
        total[size] = session.measure("kernel", call, size, residence="pageable", **named)


def _settings(session: Session, size: int) -> None:
    buffers = session.buffers("kernel", size)
    settings = [(ALGORITHM, threads) for threads in THREADS]
    settings += [(algorithm, session.values["threads"]) for algorithm in MODES]
    measure = partial(session.measure_cipher, "kernel", size, buffers)
    rates = {
        (algorithm, threads): measure(algorithm=algorithm, threads=threads).gigabytes
        for algorithm, threads in settings
    }
    session.table(
        f"Threads a block, modes and key sizes, {shown_size(size)}",
        "section 3.3: 512 threads fixed; sections 4 and 6: the paper has no figures of CTR, and "
        "left AES-256 as future work",
        ("algorithm", "threads a block", "GB/s"),
        ((*setting, rate) for setting, rate in rates.items()),
    )
    best = max(THREADS, key=lambda threads: rates[ALGORITHM, threads])
    known = published.load(NAME)["best_threads"]["value"]
    here, there = (shown(rates[ALGORITHM, threads]) for threads in (best, known))
    said = f"{known} threads a block are the fastest"
    session.conclude(said, f"{best} are: {here} GB/s against {there}", best == known)


def _times(session: Session, sizes: list[int], lines: Lines) -> None:
    """The paper's two plots, and their figures."""
    naive, *found = lines.values()
    cpu = {size: in_proportion(naive, size) for size in sizes}
    times = {
        label: {size: entry.seconds.median for size, entry in line.items()}
        for label, line in lines.items()
    }
    ups = {it: {n: cpu[n] / times[it][n] for n in sizes} for it in times if it != "naive"}
    session.table(
        "Time, and speed-up over the naive code, AES-128 ECB",
        f"section 4, both plots; (scaled): in proportion to {shown_size(max(naive))}",
        ("text", *lines, *(f"speed-up, {label}" for label in ups)),
        tuple(
            (
                shown_size(size),
                naive[size].seconds if size in naive else f"{shown_time(cpu[size])} (scaled)",
                *(line[size].seconds for line in found),
                *(line[size] for line in ups.values()),
            )
            for size in sizes
        ),
    )
    session.lines("time", "AES-128 ECB: time over size", ("bytes", "seconds"), times)
    claim = published.load(NAME)["largest_speed_up"]["value"]
    said = f"the kernel is up to {claim:g} times as fast as the naive code"
    if not found:
        session.not_measured((said,))
        return
    level = Series.level("published, largest", sizes, claim, published=True)
    title = "AES-128 ECB: speed-up over the naive code"
    session.lines("speed-up", title, ("bytes", "times as fast"), ups, level)
    best, with_transfers = (max(line.values()) for line in ups.values())
    here = f"up to {shown(best)} times, {shown(with_transfers)} with transfers"
    session.conclude(said, here, best >= claim)


def _key_expansion(session: Session) -> None:
    values = published.load(NAME)
    times: dict[str, Spread] = {}
    for variant in ("key-plain", "key-openmp"):
        if not session.can_run(variant):
            continue
        for key, last in KNOWN_EXPANSIONS:
            raw = bytes.fromhex(key)
            got = session.result(variant, session.job(variant, raw), b"", 16 * (len(raw) // 4 + 7))
            if got[:16] != raw[:16] or got[-16:].hex() != last:
                raise session.wrong(variant, " for a key of FIPS 197")
        call = session.writer(variant, session.job(variant, os.urandom(16)), 176)
        checked = "FIPS 197, appendix A"
        times[variant] = session.measure(variant, call, 176, checked, algorithm="aes-128").seconds
    known = (shown_time(values[f"{it.replace('-', '_')}_seconds"]["value"]) for it in times)
    rows = zip(times, known, times.values(), strict=True)
    source, header = values["key_plain_seconds"]["source"], ("form", "published", "measured")
    session.table("Key expansion of AES-128", source, header, rows)
    said = "key expansion is slower with OpenMP than without"
    if len(times) < 2:
        session.conclude(said, "not measured: no OpenMP", None)
        return
    ratio = times["key-openmp"].median / times["key-plain"].median
    session.conclude(said, f"with OpenMP it takes {shown(ratio)} times as long", ratio > 1)


def timeline(session: Session) -> list[Point]:
    size, threads = 1 << session.values["largest"], session.values["threads"]
    return session.points(["kernel"], size, threads=threads)


TITLE = "AES Acceleration with GPU"
CITATION = "R. Macha Billava, final project of ME759, University of Wisconsin-Madison, 2022"
PARAMETERS = (
    Parameter("threads", 512, 512, 32, 1024, "threads a block, a multiple of 32"),
    Parameter("largest", 30, 20, 10, 33, "the largest text is 2 to the power of this, bytes"),
    Parameter("naive_ms", 500, 50, 1, 1_000_000, "the naive code stops at calls longer"),
)
PAPER = Paper(NAME, TITLE, CITATION, PARAMETERS, run, timeline, ALGORITHM)

# SPDX-License-Identifier: Apache-2.0
"""Yang, Goodman 2007: bitsliced key search for DES and AES-128, and AES by blocks."""

from __future__ import annotations

import os
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from .. import published
from ..results import Cell, Measurement, Point, Series, shown
from ..session import Paper, Parameter, Session
from ..settings import shown_size

if TYPE_CHECKING:
    from warpcipher._types import AlgorithmName

    from .. import _native

NAME = "yang2007"
DES, AES, IN_ADVANCE = "des", "aes", "aes-in-advance"
ITERATION_AT, THREAD_AT = 5, 21  # in a key's number (lab/yang2007_search.hpp)
BLOCK = 128  # threads
MATCH = struct.Struct("=II")  # of a thread: iteration, keys

# Three-input logic of one word, counted from the algorithm: 32 keys.
DES_SBOXES = (25, 24, 25, 17, 24, 24, 24, 23)
AES_SBOX = 65
_MIX_COLUMNS = 16 * (8 + 8 + 3)
_ROUND_KEY = 4 * AES_SBOX + 8 + 128
OPERATIONS = {
    # 16 rounds of S-boxes, key before and sum after; check; the iteration's increment.
    DES: 16 * (sum(DES_SBOXES) + 48 + 32) + 64 + 2 * 16,
    AES: 10 * (16 * AES_SBOX + _ROUND_KEY + 128) + 9 * _MIX_COLUMNS + 2 * 128,
    IN_ADVANCE: 10 * (16 * AES_SBOX + 128) + 9 * _MIX_COLUMNS + 2 * 128,
}
CPUS = {DES: "des-cpu", AES: "aes-cpu"}
CLAIMS = (
    "DES reaches 83% and AES 81% of the peak rate",
    "few iterations are enough: 87% of the rate with 32 (DES), 85% with 8 (AES)",
    "key schedules made in advance make AES 23% faster",
    "up to 60 (DES) and 16 times (AES) as fast as a CPU",
)


Lines = dict[str, dict[int, float]]
"""Keys a second over iterations."""


def key_of(variant: str, number: int) -> bytes:
    """The key that has a number; parity bits of DES are 0."""
    if variant.startswith(DES):
        return bytes((number >> 7 * i & 127) << 1 for i in range(8))
    return number.to_bytes(16, "little")


def _block_size(variant: str) -> int:
    return 8 if variant.startswith(DES) else 16


def check(session: Session, variant: str, threads: int) -> None:
    """A key that the reference engine enciphered with is found where it is, and no other."""
    size, iterations = _block_size(variant), 3
    thread, iteration, place = threads // 2, 2, 19
    upper = int.from_bytes(os.urandom(8), "little") << 41
    upper &= (1 << (56 if size == 8 else 128)) - 1
    number = upper | thread << THREAD_AT | place
    plaintext = text = os.urandom(size)
    if variant == IN_ADVANCE:  # the iteration is in the plaintext, not in the key
        text = bytes([text[0] ^ iteration]) + text[1:]
    else:
        number |= iteration << ITERATION_AT
    algorithm: AlgorithmName = "des-ecb" if size == 8 else "aes-128-ecb"
    cipher = wc.Cipher(algorithm, key_of(variant, number), engine="reference")
    job = _job(session, variant, threads, iterations, upper, plaintext + cipher.encrypt(text))
    expected = bytearray(MATCH.size * threads)
    MATCH.pack_into(expected, MATCH.size * thread, iteration, 1 << place)
    session.expect(variant, job, b"", bytes(expected), ": it missed a key")


def _job(
    session: Session, variant: str, threads: int, iterations: int, upper: int, texts: bytes
) -> _native.Job:
    parameters = {"threads": threads} if variant == IN_ADVANCE else {}
    return session.job(variant, key_of(variant, upper), texts, iterations=iterations, **parameters)


def _measure(session: Session, variant: str, threads: int, iterations: int) -> Measurement:
    job = _job(session, variant, threads, iterations, 0, os.urandom(2 * _block_size(variant)))
    call, keys = session.writer(variant, job, MATCH.size * threads), 32 * threads * iterations
    parameters: Any = {"threads": threads, "iterations": iterations}
    return session.measure(variant, call, keys, unit="keys", **parameters)


def run(session: Session) -> None:
    _search(session)
    _blocks(session)


def _search(session: Session) -> None:
    cpu: dict[str, float] = {}
    for cipher, name in CPUS.items():
        check(session, name, 2)
        cpu[cipher] = _measure(session, name, 1, 1 << 8).rate.median
    if not session.all_can_run(OPERATIONS):
        session.not_measured(CLAIMS)
        return
    values = published.load(NAME)
    logic, clock = session.need_stream().pipe_rate("logic", 1 << 16)
    lines: Lines = {}
    shares: dict[str, float] = {}
    rows: list[tuple[Cell, ...]] = []
    for name, operations in OPERATIONS.items():
        check(session, name, BLOCK)
        lines[name] = _line(session, name)
        paper = _measure(session, name, _paper_threads(name), 1 << session.values["iterations"])
        # The paper's formula: processors x instructions a second x keys a word / instructions.
        peak = session.multiprocessors * logic * clock * 32 / operations
        rate = lines[name][max(lines[name])]
        shares[name] = rate / peak
        known = values.get(name, {})
        rates = (paper.rate.median / 1e9, rate / 1e9, peak / 1e9)
        then = known.get("keys_a_second", 0) / 1e9 or None
        rows.append((name, then, *rates, known.get("share"), shares[name]))
    measured = f"{logic:.4g} operations a clock each as measured, {clock / 1e9:.4g} GHz"
    header = ("search", "published", "here, the paper's threads", "here, threads for this GPU")
    session.table(
        "Key search, 10^9 keys a second",
        f"sections 4 and 5. PeakRate by the paper's formula: {session.multiprocessors} "
        f"multiprocessors, {measured}",
        (*header, "PeakRate", "share, published", "share, here"),
        rows,
    )
    for figure, title, names in (
        ("figure4", "Bitsliced DES key search (Figure 4)", (DES,)),
        ("figure9", "Bitsliced AES-128 key search (Figure 9)", (AES, IN_ADVANCE)),
    ):
        ends, known = list(lines[names[0]]), values[names[0]]["keys_a_second"]
        levels = (
            Series.level("one CPU thread", ends, cpu[names[0]], published=False),
            Series.level("published maximum", ends, known, published=True),
        )
        drawn = {name: lines[name] for name in names}
        session.lines(figure, title, ("iterations", "keys a second"), drawn, *levels)
    _judge(session, lines, cpu, shares)


def _line(session: Session, name: str) -> dict[int, float]:
    """Keys a second over iterations."""
    threads = _threads(session, name)
    what = f"{name} with {threads} threads, iterations"
    counts = (1 << n for n in range(session.values["iterations"] + 1))
    found = session.up_to("search_ms", what, counts, partial(_measure, session, name, threads))
    return {iterations: entry.rate.median for iterations, entry in found.items()}


def _paper_threads(variant: str) -> int:
    """2^12 with 64 keys of DES, or 32 of AES: here a thread has 32."""
    return 1 << (13 if variant == DES else 12)


def _threads(session: Session, variant: str) -> int:
    """Four times as many as the GPU holds at once."""
    job = _job(session, variant, BLOCK, 1, 0, bytes(2 * _block_size(variant)))
    resident = dict(job.facts())["blocks_a_multiprocessor"]
    return min(4 * max(1, resident) * session.multiprocessors * BLOCK, 1 << 20)


def _judge(session: Session, lines: Lines, cpu: dict[str, float], shares: dict[str, float]) -> None:
    values = published.load(NAME)
    few = values["few_iterations"]
    top = {name: max(line.values()) for name, line in lines.items()}
    early = {name: lines[name][min(few[name], max(lines[name]))] / top[name] for name in CPUS}
    gain = top[IN_ADVANCE] / top[AES] - 1
    ups = {name: top[name] / cpu[name] for name in CPUS}
    few_enough = all(early[name] >= few[f"{name}_share"] for name in CPUS)
    as_fast = all(ups[name] >= values["cpu"][f"{name}_speed_up"] for name in CPUS)
    times = f"{shown(ups[DES])} and {shown(ups[AES])}"
    verdicts = (
        (f"{shares[DES]:.0%} and {shares[AES]:.0%}", min(shares[DES], shares[AES]) > 0.75),
        (f"{early[DES]:.0%} and {early[AES]:.0%}", few_enough),
        (f"{abs(gain):.0%} {'faster' if gain > 0 else 'slower'}", gain > 0),
        (f"{times} times as fast as the same on one CPU thread", as_fast),
    )
    session.judge(CLAIMS, verdicts)


# --- section 6: AES-128 decryption by blocks, with integers and without ---------------------------

INTEGER, BLOCK_CPU = "block-integer", "block-cpu"
FLOATS = ("block-alu", "block-256", "block-16", "block-hybrid")
XORS = ("xor-alu", "xor-256", "xor-16", "xor-hybrid")
BLOCK_THREADS = 256  # a block

BLOCK_CLAIMS = (
    "of the XORs in floating point arithmetic is the fastest, the table of 256 x 256 the slowest",
    "integers make AES by blocks 3.5 times as fast as only floating point",
    "with integers a GPU is about twice as fast as a CPU, without them half as fast",
)


def _blocks(session: Session) -> None:
    size = 1 << session.values["size"]
    cpu = session.measure_cipher(BLOCK_CPU, min(size, 1 << 22)).gigabytes
    if not session.all_can_run((INTEGER, *FLOATS, *XORS)):
        session.not_measured(BLOCK_CLAIMS)
        return
    values = published.load(NAME)
    xors = {name: _xors(session, name) for name in XORS}
    rates = {**session.rates((INTEGER, *FLOATS), size), BLOCK_CPU: cpu}
    known, blocks = values["table3_xors_a_second"], values["block_gb_per_s"]
    header = ("form", "published", "here")
    rows = tuple((name, known[name] / 1e9, rate / 1e9) for name, rate in xors.items())
    title = "XOR of bytes in floating point, 10^9 a second"
    session.table(title, known["source"], header, rows)
    rows = tuple((name, blocks.get(name), rate) for name, rate in rates.items())
    title = f"AES-128 ECB decryption by blocks, {shown_size(size)}, GB/s"
    session.table(title, blocks["source"], header, rows)
    best = max(FLOATS, key=rates.__getitem__)
    ratio, ups = rates[INTEGER] / rates[best], [rates[name] / cpu for name in (INTEGER, best)]
    order = sorted(xors, key=xors.__getitem__)
    rates_of = ", ".join(f"{name} {shown(rate / 1e9)}" for name, rate in xors.items())
    times = " and ".join(map(shown, ups))
    verdicts = (
        (f"{rates_of} G/s", (order[-1], order[0]) == ("xor-alu", "xor-256")),
        (f"{shown(ratio)} times as fast as the best of those, {best}", ratio >= 3),
        (f"{times} times as fast as one CPU thread with T-tables", ups[0] >= 2 and ups[1] < 1),
    )
    session.judge(BLOCK_CLAIMS, verdicts)


def _xors(session: Session, name: str) -> float:
    """XORs a second."""
    few, turns = 2 * BLOCK_THREADS, 9
    expected = bytearray(4 * few)
    for thread in range(few):
        a, b = thread % 256, thread // 256
        for i in range(turns):
            a ^= (b + 37 * i) % 256
        expected[4 * thread] = a
    session.expect(name, session.job(name, b"", xors=turns), b"", bytes(expected))
    threads, count = 8 * BLOCK_THREADS * session.multiprocessors, 1024
    call = session.writer(name, session.job(name, b"", xors=count), 4 * threads)
    xors = session.measure(name, call, threads * count, "the same in Python", unit="XORs")
    return xors.rate.median


def timeline(session: Session) -> list[Point]:
    """A key tested counts as a block enciphered, as in the paper."""
    if not session.all_can_run((AES, IN_ADVANCE)):
        return []
    found = []
    for name in (AES, IN_ADVANCE):
        check(session, name, BLOCK)
        entry = _measure(session, name, _threads(session, name), 1 << 6)
        found.append(session.point(name, entry, entry.rate.median * 16 / 1e9))
    return found + session.points((INTEGER, *FLOATS), 1 << session.values["size"])


TITLE = "Symmetric Key Cryptography on Modern Graphics Hardware"
CITATION = "J. Yang, J. Goodman, ASIACRYPT 2007"
ITERATIONS = "up to 2 to the power of this; 16 makes the paper's jobs"
PARAMETERS = (
    Parameter("iterations", 16, 8, 5, 16, ITERATIONS),
    Parameter("search_ms", 250, 50, 1, 1_000_000, "figures over iterations stop at longer calls"),
    Parameter("size", 28, 26, 14, 32, "the text of AES by blocks is 2 to the power of this"),
)
PAPER = Paper(NAME, TITLE, CITATION, PARAMETERS, run, timeline, "aes-128-ecb", "decrypt")

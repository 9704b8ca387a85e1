# SPDX-License-Identifier: Apache-2.0
"""Yang, Goodman 2007: bitsliced key search for DES and AES-128, and AES by blocks."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import warpcipher as wc

from .. import published
from ..results import Cell, Measurement, Plot, Point, Series, shown
from ..session import CHECKED, Paper, Parameter, Session
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


def key_of(variant: str, number: int) -> bytes:
    """The key that has a number; parity bits of DES are 0."""
    if variant.startswith(DES):
        return bytes((number >> 7 * i & 127) << 1 for i in range(8))
    return number.to_bytes(16, "little")


def _block_size(variant: str) -> int:
    return 8 if variant.startswith(DES) else 16


def check(session: Session, variant: str, threads: int) -> str:
    """A key that the reference engine enciphered with is found where it is, and no other."""
    size, iterations = _block_size(variant), 3
    thread, iteration, place = threads // 2, 2, 19
    upper = int.from_bytes(os.urandom(8), "little") << 41
    upper &= (1 << (56 if size == 8 else 128)) - 1
    number = upper | thread << THREAD_AT | place
    plaintext = os.urandom(size)
    text = plaintext
    if variant == IN_ADVANCE:  # the iteration is in the plaintext, not in the key
        text = bytes([text[0] ^ iteration]) + text[1:]
    else:
        number |= iteration << ITERATION_AT
    algorithm: AlgorithmName = "des-ecb" if size == 8 else "aes-128-ecb"
    cipher = wc.Cipher(algorithm, key_of(variant, number), engine="reference")
    job = _job(session, variant, threads, iterations, upper, plaintext + cipher.encrypt(text))
    got = session.result(variant, job, b"", MATCH.size * threads)
    expected = bytearray(MATCH.size * threads)
    MATCH.pack_into(expected, MATCH.size * thread, iteration, 1 << place)
    if got != bytes(expected):
        raise wc.EngineError(f"variant {variant!r} of {NAME} is wrong: it missed a key")
    return CHECKED


def _job(
    session: Session, variant: str, threads: int, iterations: int, upper: int, texts: bytes
) -> _native.Job:
    parameters = {"threads": threads} if variant == IN_ADVANCE else {}
    return session.job(variant, key_of(variant, upper), texts, iterations=iterations, **parameters)


def _measure(
    session: Session, variant: str, threads: int, iterations: int, checked: str
) -> Measurement:
    job = _job(session, variant, threads, iterations, 0, os.urandom(2 * _block_size(variant)))
    target = session.memory(variant, MATCH.size * threads)
    on_gpu = session.variants[variant].needs_gpu
    seconds = session.time(
        lambda: session.run(job, target, 0, target, MATCH.size * threads),
        on_device=on_gpu,
    )
    return session.add(
        variant,
        32 * threads * iterations,
        seconds,
        checked,
        residence="device" if on_gpu else "host",
        unit="keys",
        threads=threads,
        iterations=iterations,
    )


def run(session: Session) -> None:
    _search(session)
    _run_blocks(session, _one_thread(session))


def _search(session: Session) -> None:
    cpu = {
        cipher: _measure(session, name, 1, 1 << 8, check(session, name, 2)).rate.median
        for cipher, name in CPUS.items()
    }
    _counts(session)
    gpu = session.machine.gpu
    kernels = [name for name in OPERATIONS if session.can_run(name)]
    if len(kernels) < len(OPERATIONS) or gpu is None:
        session.not_measured(CLAIMS)
        return
    logic, clock = session.need_stream().pipe_rate("logic", 1 << 16)
    rates: dict[str, dict[int, float]] = {}
    rows: list[tuple[Cell, ...]] = []
    for name in kernels:
        checked = check(session, name, BLOCK)
        threads = _threads(session, name, gpu.multiprocessors)
        line = _line(session, name, threads, checked)
        rates[name] = line
        most = max(line)
        job = 1 << session.values["iterations"]
        paper = _measure(session, name, _paper_threads(name), job, checked).rate.median
        # The paper's formula: processors x instructions a second x keys a word / instructions.
        peak = gpu.multiprocessors * logic * clock * 32 / OPERATIONS[name]
        known = published.load(NAME).get(name, {})
        rows.append(
            (
                name,
                known.get("keys_a_second", 0) / 1e9 or None,
                paper / 1e9,
                line[most] / 1e9,
                peak / 1e9,
                known.get("share"),
                line[most] / peak,
            )
        )
    session.table(
        "Key search, 10^9 keys a second",
        f"sections 4 and 5. PeakRate by the paper's formula: {gpu.multiprocessors} "
        f"multiprocessors, {logic:.4g} operations a clock each as measured, "
        f"{clock / 1e9:.4g} GHz",
        (
            "search",
            "published",
            "here, the paper's threads",
            "here, threads for this GPU",
            "PeakRate",
            "share, published",
            "share, here",
        ),
        tuple(rows),
    )
    for figure, title, names in (
        ("figure4", "Bitsliced DES key search (Figure 4)", (DES,)),
        ("figure9", "Bitsliced AES-128 key search (Figure 9)", (AES, IN_ADVANCE)),
    ):
        session.plots.append(_plot(figure, title, names, rates, cpu))
    _judge(session, rates, cpu, [row[-1] for row in rows])


def _line(session: Session, name: str, threads: int, checked: str) -> dict[int, float]:
    """Keys a second over iterations, up to where a call would take more than `search_ms`."""
    limit = session.values["search_ms"] / 1e3
    found: dict[int, float] = {}
    for n in range(session.values["iterations"] + 1):
        iterations = 1 << n
        if found:
            expected = 32 * threads * iterations / found[max(found)]
            if expected > limit:
                session.skip(
                    f"{name} with {threads} threads, {iterations} iterations and more",
                    f"would take about {expected:.2g} s a call: search_ms is {limit * 1e3:g}",
                )
                break
        found[iterations] = _measure(session, name, threads, iterations, checked).rate.median
    return found


def _paper_threads(variant: str) -> int:
    """2^12 with 64 keys of DES, or 32 of AES: here a thread has 32."""
    return 1 << (13 if variant == DES else 12)


def _threads(session: Session, variant: str, multiprocessors: int) -> int:
    """Four times as many as the GPU holds at once."""
    job = _job(session, variant, BLOCK, 1, 0, bytes(2 * _block_size(variant)))
    resident = dict(job.facts())["blocks_a_multiprocessor"]
    return min(4 * max(1, resident) * multiprocessors * BLOCK, 1 << 20)


def _plot(
    name: str,
    title: str,
    variants: tuple[str, ...],
    rates: dict[str, dict[int, float]],
    cpu: dict[str, float],
) -> Plot:
    values = published.load(NAME)
    ends = (float(min(rates[variants[0]])), float(max(rates[variants[0]])))
    known, host = values[variants[0]]["keys_a_second"], cpu[variants[0]]
    return Plot(
        name,
        title,
        "iterations",
        "keys a second",
        (
            *(
                Series(variant, tuple(rates[variant]), tuple(rates[variant].values()))
                for variant in variants
            ),
            Series("one CPU thread", ends, (host, host)),
            Series("published maximum", ends, (known, known), published=True),
        ),
        log_x=True,
        log_y=True,
    )


def _counts(session: Session) -> None:
    values = published.load(NAME)
    boxes = values["des_sboxes"]
    rows: list[tuple[Cell, ...]] = [
        (f"DES S-box {i + 1}", count, None, DES_SBOXES[i])
        for i, count in enumerate(boxes["instructions"])
    ]
    rows += [
        (f"DES S-boxes {pair}", None, f"{odd} and {even}", sum(DES_SBOXES[int(pair[0]) - 1 :: 4]))
        for pair, (odd, even) in boxes["pairs"].items()
    ]
    odd, even = map(sum, zip(*boxes["pairs"].values(), strict=True))
    rows += [
        (
            "DES, all eight",
            sum(boxes["instructions"]),
            f"{odd} and {even}",
            sum(DES_SBOXES),
        ),
        ("AES S-box", values["aes_sbox"]["instructions"], None, AES_SBOX),
        ("AES round key", values["aes_round_key"]["instructions"], None, _ROUND_KEY),
        *(
            (
                f"{name}, an iteration",
                values[name]["instructions"],
                None,
                OPERATIONS[name],
            )
            for name in (DES, AES)
        ),
        ("aes-in-advance, an iteration", None, None, OPERATIONS[IN_ADVANCE]),
    ]
    session.table(
        "Instructions of S-boxes and of an iteration",
        f"{boxes['source']}; Figures 3, 7 and 8. An instruction of the paper covers 64 keys of "
        "DES, or four columns of 32 keys of AES; one here covers 32 keys. Ours have three "
        "inputs, the paper's two; counted from the algorithm",
        ("what", "published", "published, in pairs", "here"),
        tuple(rows),
    )


CLAIMS = (
    "DES reaches 83% and AES 81% of the peak rate",
    "few iterations are enough: 87% of the rate with 32 (DES), 85% with 8 (AES)",
    "key schedules made in advance make AES 23% faster",
    "up to 60 (DES) and 16 times (AES) as fast as a CPU",
)


def _judge(
    session: Session, rates: dict[str, dict[int, float]], cpu: dict[str, float], shares: list[Cell]
) -> None:
    values = published.load(NAME)
    few = values["few_iterations"]
    top = {name: max(line.values()) for name, line in rates.items()}
    early = {name: rates[name][min(few[name], max(rates[name]))] / top[name] for name in (DES, AES)}
    gain = top[IN_ADVANCE] / top[AES] - 1
    ups = {name: top[name] / cpu[name] for name in (DES, AES)}
    des_share, aes_share = (share for share in shares[:2] if isinstance(share, float))
    verdicts = (
        (
            f"{des_share:.0%} and {aes_share:.0%}",
            min(des_share, aes_share) > 0.75,
        ),
        (
            f"{early[DES]:.0%} and {early[AES]:.0%}",
            early[DES] >= few["des_share"] and early[AES] >= few["aes_share"],
        ),
        (f"{abs(gain):.0%} {'faster' if gain > 0 else 'slower'}", gain > 0),
        (
            f"{shown(ups[DES])} and {shown(ups[AES])} times as fast as the same on one CPU thread",
            ups[DES] >= values["cpu"]["des_speed_up"] and ups[AES] >= values["cpu"]["aes_speed_up"],
        ),
    )
    session.judge(CLAIMS, verdicts)


def timeline(session: Session) -> list[Point]:
    """A key tested counts as a block enciphered, as in the paper."""
    gpu = session.machine.gpu
    if gpu is None or not session.can_run(AES):
        return []
    found = []
    for name in (AES, IN_ADVANCE):
        threads = _threads(session, name, gpu.multiprocessors)
        entry = _measure(session, name, threads, 1 << 6, check(session, name, BLOCK))
        found.append(session.point(name, entry, entry.rate.median * 16 / 1e9))
    return found + _blocks_timeline(session)


# --- section 6: AES-128 decryption by blocks, with integers and without ---------------------------

ALGORITHM = "aes-128-ecb"
CHECK_SIZES = (16, 4112, 65536)
INTEGER, BLOCK_CPU = "block-integer", "block-cpu"
FLOATS = ("block-alu", "block-256", "block-16", "block-hybrid")
XORS = ("xor-alu", "xor-256", "xor-16", "xor-hybrid")
BLOCK_THREADS = 256  # a block

BLOCK_CLAIMS = (
    "of the XORs in floating point arithmetic is the fastest, the table of 256 x 256 the slowest",
    "integers make AES by blocks 3.5 times as fast as only floating point",
    "with integers a GPU is about twice as fast as a BLOCK_CPU, without them half as fast",
)


def _one_thread(session: Session) -> float:
    """GB/s of T-tables on one core."""
    size = 1 << min(session.values["size"], 22)
    buffers = session.memory(BLOCK_CPU, size), session.memory(BLOCK_CPU, size)
    return session.measure_cipher(
        BLOCK_CPU, ALGORITHM, size, CHECK_SIZES, buffers, direction="decrypt"
    ).gigabytes


def _run_blocks(session: Session, cpu: float) -> None:
    gpu = session.machine.gpu
    ready = [session.can_run(name) for name in (INTEGER, *FLOATS, *XORS)]
    if not all(ready) or gpu is None:
        session.not_measured(BLOCK_CLAIMS)
        return
    xors = {name: _xors(session, name, gpu.multiprocessors) for name in XORS}
    size = 1 << session.values["size"]
    rates = _blocks(session, size)
    values = published.load(NAME)
    known = values["table3_xors_a_second"]
    session.table(
        "XOR of bytes in floating point, 10^9 a second",
        known["source"],
        ("form", "published", "here"),
        tuple((name, known[name] / 1e9, xors[name] / 1e9) for name in XORS),
    )
    blocks = values["block_gb_per_s"]
    session.table(
        f"AES-128 ECB decryption by blocks, {shown_size(size)}, GB/s",
        blocks["source"],
        ("form", "published", "here"),
        (
            (INTEGER, blocks[INTEGER], rates[INTEGER]),
            *((name, blocks.get(name), rates[name]) for name in FLOATS),
            ("one BLOCK_CPU thread", blocks[BLOCK_CPU], cpu),
        ),
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
            "BLOCK_CPU thread with T-tables",
            rates[INTEGER] / cpu >= 2 and rates[best] < cpu,
        ),
    )
    session.judge(BLOCK_CLAIMS, verdicts)


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
    few, check = 2 * BLOCK_THREADS, 9
    expected = bytearray(4 * few)
    for thread in range(few):
        a, b = thread % 256, thread // 256
        for i in range(check):
            a ^= (b + 37 * i) % 256
        expected[4 * thread] = a
    if session.result(name, session.job(name, b"", xors=check), b"", 4 * few) != expected:
        raise wc.EngineError(f"variant {name!r} of {NAME} is wrong")
    threads, count = 8 * BLOCK_THREADS * multiprocessors, 1024
    job = session.job(name, b"", xors=count)
    target = session.memory(name, 4 * threads)
    seconds = session.time(lambda: session.run(job, target, 0, target, 4 * threads), on_device=True)
    return session.add(
        name, threads * count, seconds, "the same in Python", residence="device", unit="XORs"
    ).rate.median


def _blocks_timeline(session: Session) -> list[Point]:
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


PAPER = Paper(
    name=NAME,
    title="Symmetric Key Cryptography on Modern Graphics Hardware",
    citation="J. Yang, J. Goodman, ASIACRYPT 2007",
    parameters=(
        Parameter(
            "iterations", 16, 8, 5, 16, "up to 2 to the power of this; 16 makes the paper's jobs"
        ),
        Parameter(
            "search_ms", 250, 50, 1, 1_000_000, "figures over iterations stop at longer calls"
        ),
        Parameter("size", 28, 26, 14, 32, "the text of AES by blocks is 2 to the power of this"),
    ),
    run=run,
    timeline=timeline,
)

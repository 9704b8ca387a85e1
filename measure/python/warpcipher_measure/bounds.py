# SPDX-License-Identifier: Apache-2.0
"""Bounds: rates of a GPU's memory and of the link to it, measured on the spot, that no engine can
exceed. And comparisons, which an engine may exceed: plain copies in host memory and of files, and
what a kernel of one kind needs of the pipes."""

from __future__ import annotations

import ctypes
import functools
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import warpcipher as wc

from . import _native, timing
from .cases import Case, works_on_gpu
from .machine import cores
from .memory import CACHES_SPANNED, DeviceMemory, HostMemory, Memory, fill
from .results import Bound, Spread
from .settings import Effective

GIGA = 1e9
PIPE_OPERATIONS = 1 << 18
"""Of each thread; two to four milliseconds on a Hopper GPU."""
CLOCK_OPERATIONS = 1 << 16
WARM_UP_LAUNCHES = 50, 250
"""At least and at most; two milliseconds each."""
DEVICE_COPY = 1 << 30
LINK_COPY = FILE_COPY = 256 << 20
HOST_COPY = 64 << 20
"""Bytes, if they fit: a quick run measures the same bounds as a long one."""
HOST_PIECE = 1 << 20
FILE_PIECE = 4 << 20


class CipherWork(NamedTuple):
    """The cost of one block for a kernel lane, counted from the algorithm: of AES a kernel that
    uses only tables, of DES a bitsliced one. Hybrid kernels of AES compute some blocks without
    tables, so they need fewer lookups for each block.

    shared_loads: lookups in tables in shared memory; 0 where the kernels have none.
    logic:        three-input logic operations and byte permutes, which share a pipe.
    """

    shared_loads: float
    logic: float


# AES by lane tables: 16 lookups a round, each with a permute for its address; each of the 4 columns
# of a round joins 4 words and a round key in two operations. DES bitsliced, 32 blocks a lane: in
# each of 16 rounds 186 operations for the S-boxes, 48 for the key.
_ROUNDS = {"aes-128": 10, "aes-192": 12, "aes-256": 14}
_PASSES = {"des": 1, "des-ede2": 3, "des-ede3": 3}
CIPHERS = {
    **{name: CipherWork(16 * rounds, (16 + 8) * rounds) for name, rounds in _ROUNDS.items()},
    **{name: CipherWork(0, passes * 16 * (186 + 48) / 32) for name, passes in _PASSES.items()},
}
COUNTER_SHARED_LOADS = 27
"""In a tile of 256 counters one byte changes: round 1 costs one lookup and round 2 four, not 16."""
COUNTER_MODES = ("ctr", "gcm")
CHACHA = ("chacha20", "chacha20-poly1305", "xchacha20-poly1305")
CHACHA_LOGIC = 640
"""Ten double rounds of a block of 64 bytes: 320 exclusive ors and 320 rotations. The additions can
be multiplications by one, which other units do."""
COUNTED = ("tables", "logic")
"""Bounds that follow from `CipherWork`. A kernel that needs less work exceeds these."""
COPIED = ("memmove", "file")
"""Plain copies by the processor. Other stores, caches that keep a part of the text, or a read
beside a write are faster in places: an engine may exceed these, too."""
COMPARED = (*COUNTED, *COPIED)


def work_of(algorithm: wc.AlgorithmInfo, direction: str) -> CipherWork | None:
    """The work of a block, for directions that run in parallel; None for the others, where waiting
    for the block before is what limits. GHASH and tweaks are not counted."""
    if not getattr(algorithm, f"parallel_{direction}"):
        return None
    if algorithm.name in CHACHA:
        return CipherWork(0, CHACHA_LOGIC)
    cipher, _, mode = algorithm.name.removesuffix("-siv").rpartition("-")
    loads, logic = CIPHERS[cipher]
    if mode in COUNTER_MODES and loads:
        loads -= COUNTER_SHARED_LOADS
    blocks = algorithm.block_size if mode == "cfb8" else 1  # a block for each byte
    return CipherWork(blocks * loads, blocks * logic)


def of_device(settings: Effective, stream: _native.WorkStream) -> list[Bound]:
    """Bounds inside a GPU: memory, shared memory, logic, and the start of a kernel."""
    warm_up(stream)
    count = settings.repetitions
    size = _device_copy_bytes(DEVICE_COPY, stream.device)
    source, target = DeviceMemory(size, stream), DeviceMemory(size, stream)
    fill(source, stream)
    clock = timing.device_clock(stream)
    copied = _repeat(_copy(stream, target, source), count, clock)
    launched = _repeat(stream.launch_nothing, 10 * count, wait=stream.wait)
    shared, logic = (
        Spread.of([stream.pipe_rate(pipe, PIPE_OPERATIONS)[0] for _ in range(count)])
        for pipe in ("shared_load", "logic")
    )
    each = "a clock and multiprocessor"
    loads = "a kernel of loads from shared memory, each lane from its own bank"
    logics = "a kernel of three-input logic operations on 32-bit registers"
    copies = f"copies of {size} bytes of random data within the GPU's memory"
    empty = "a kernel that does nothing, started and waited for"
    return [
        Bound("dram", copied.rate(2 * size / GIGA), "GB/s read and written", copies),
        Bound("shared", shared, f"loads of 32 bits {each}", loads),
        Bound("logic", logic, f"operations {each}", logics),
        Bound("launch", launched.times(1e6), "microseconds", empty),
    ]


def of_link(settings: Effective, stream: _native.WorkStream) -> list[Bound]:
    """Copies between page-locked host memory and a GPU: one way each, and both at once."""
    size = _device_copy_bytes(LINK_COPY, stream.device)
    host, back = HostMemory(size, pinned=True), HostMemory(size, pinned=True)
    device, other = DeviceMemory(size, stream), DeviceMemory(size, stream)
    fill(host, None)
    fill(other, stream)
    second = _native.WorkStream(stream.device)
    inward, outward = _copy(stream, device, host), _copy(stream, back, other)
    outward_beside = _copy(second, back, other)

    def both() -> None:
        inward()
        outward_beside()
        stream.wait()
        second.wait()

    clock, count = timing.device_clock(stream), settings.repetitions
    what = f"copies of {size} bytes, page-locked host memory"
    return [
        Bound(name, taken.rate(size / GIGA), unit, f"{what} {how}")
        for name, taken, unit, how in (
            ("to_device", _repeat(inward, count, clock), "GB/s", "to the GPU"),
            ("to_host", _repeat(outward, count, clock), "GB/s", "from the GPU"),
            ("both_ways", _repeat(both, count), "GB/s each way", "both ways at once"),
        )
    ]


def of_host(settings: Effective, cache_bytes: int) -> Bound:
    """Copies in host memory by all cores, of the same size in every run: what is read and what is
    written together span the caches as often as the texts of the rows do.

    cache_bytes: of the largest cache that one core reaches."""
    size, count = max(HOST_COPY, CACHES_SPANNED * cache_bytes // 2), cores()
    source, target = HostMemory(size), HostMemory(size)
    fill(source, None)
    part = -(-size // count)

    def copy(index: int, step: int) -> None:
        for start in range(index * part, min(index * part + part, size), step):
            length = min(step, index * part + part - start, size - start)
            ctypes.memmove(target.pointer + start, source.pointer + start, length)

    # memmove stores past the cache from some length on, which is not faster everywhere.
    with ThreadPoolExecutor(count) as pool:

        def copy_all(step: int) -> None:
            list(pool.map(copy, range(count), [step] * count))

        steps = part, min(part, HOST_PIECE)
        ways = {step: functools.partial(copy_all, step) for step in steps}
        taken = {step: _repeat(way, settings.repetitions) for step, way in ways.items()}
    step = min(taken, key=lambda step: taken[step].median)
    what = f"copies of {size} bytes of random data in pieces of {step}, {count} threads, pageable"
    rate = taken[step].rate(2 * size / GIGA)
    return Bound("memmove", rate, "GB/s read and written", f"{what} host memory")


def of_files(settings: Effective) -> Bound:
    """A file copied to another in the folder of the run, by reads and writes."""
    size = min(FILE_COPY, shutil.disk_usage(settings.folder).free // 4)
    memory = HostMemory(max(size, 1))
    fill(memory, None)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        source, target = Path(folder, "source"), Path(folder, "target")
        source.write_bytes(memory.view(0, size))

        def copy() -> None:
            with source.open("rb") as reader, target.open("wb") as writer:
                shutil.copyfileobj(reader, writer, FILE_PIECE)

        taken = _repeat(copy, settings.repetitions)
    what = f"a file of {size} bytes, in the page cache, read and written to another, not flushed"
    return Bound("file", taken.rate(size / GIGA), "GB/s", what)


def warm_up(stream: _native.WorkStream) -> None:
    """Keeps the GPU busy until its clock has risen from idle and stands still."""
    clock = 0.0
    for count in range(WARM_UP_LAUNCHES[1]):
        before, (_, clock) = clock, stream.pipe_rate("logic", PIPE_OPERATIONS)
        if count >= WARM_UP_LAUNCHES[0] and abs(clock - before) < 0.002 * clock:
            break


def clock_now(stream: _native.WorkStream) -> float:
    """The clock of the multiprocessors in Hz: their own count over a short kernel."""
    return stream.pipe_rate("logic", CLOCK_OPERATIONS)[1]


def percentages(
    rate: float, case: Case, bounds: dict[str, Bound], clocks_a_second: float
) -> dict[str, float]:
    """A rate, in GB/s of text, in percent of each bound and comparison that applies.

    clocks_a_second: of all multiprocessors together; 0 on the host.

    `COMPARED` are not bounds: `tables` and `logic` are what kernels that do the work of `work_of`
    can reach, and hybrid kernels exceed `tables`; `memmove` and `file` are plain copies.
    """
    known = {name: bound.rate.median for name, bound in bounds.items()}
    on_gpu = works_on_gpu(case.engine, case.residence)
    allowed: dict[str, float] = {}
    if case.residence == "device":
        allowed["dram"] = known["dram"] / 2
    elif case.residence == "file":
        allowed["file"] = known["file"]
    elif not on_gpu:
        allowed["memmove"] = known["memmove"] / 2
    if on_gpu and case.residence != "device":
        allowed["link"] = min(known["to_device"], known["to_host"])
    work = work_of(case.algorithm, case.direction) if on_gpu else None
    if work is not None:
        text_a_second = case.algorithm.block_size * clocks_a_second / GIGA
        if work.shared_loads:
            allowed["tables"] = text_a_second * known["shared"] / work.shared_loads
        allowed["logic"] = text_a_second * known["logic"] / work.logic
    return {name: 100 * rate / most for name, most in allowed.items()}


def limit_of(percent: dict[str, float]) -> str:
    """The tightest bound: the highest of `percentages`. A bound that is exceeded is not a limit,
    so `COMPARED` are left out above 100%; "" where nothing is left."""
    bounds = {name: it for name, it in percent.items() if name not in COMPARED or it <= 100}
    return max(bounds, key=bounds.__getitem__, default="")


def _device_copy_bytes(wanted: int, device: int) -> int:
    free: int = _native.device_facts(device)["free_bytes"]
    return max(1 << 20, min(wanted, free // 8))


def _copy(stream: _native.WorkStream, target: Memory, source: Memory) -> Callable[[], None]:
    return functools.partial(stream.copy, target.pointer, source.pointer, source.size)


def _repeat(
    action: Callable[[], object],
    repetitions: int,
    clock: timing.Clock = timing.host_clock,
    wait: Callable[[], object] = lambda: None,
) -> Spread:
    """Seconds of an action; the first, which warms up, does not count."""
    work = timing.Work(lambda _: action(), wait=wait)
    return Spread.of([clock(work, 0, 1) for _ in range(repetitions + 1)][1:])

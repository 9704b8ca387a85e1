# SPDX-License-Identifier: Apache-2.0
"""Every algorithm on data in GPU memory, through the public API: GB/s of text, from CUDA events.

Each call reads `--mib` of random data and writes as much. Buffers are far larger than the L2, so nothing is served from it. Needs
PyTorch for memory and events. The bounds are those of 32 shared-memory loads a clock and multiprocessor (docs/performance.md).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from common import Row, gpu_state, parser, report

import warpcipher

LOADS_PER_BLOCK = {"aes-128": 160, "aes-192": 192, "aes-256": 224}


def main() -> None:
    arguments = parser(__doc__)
    arguments.set_defaults(repetitions=10)
    arguments.add_argument("--mib", type=int, default=4096)
    arguments.add_argument("--only", nargs="*", help="algorithm names; all that run in parallel otherwise")
    options = arguments.parse_args()
    size = options.mib << 20
    source = torch.randint(0, 256, (size,), dtype=torch.uint8, device="cuda")
    target = torch.empty(size + 16, dtype=torch.uint8, device="cuda")
    rows = [Row("device to device copy", "GB/s", rates(lambda: target[:size].copy_(source), size, options.repetitions))]
    for algorithm in warpcipher.algorithms():
        if options.only and algorithm.name not in options.only:
            continue
        for direction in ("encrypt", "decrypt"):
            if getattr(algorithm, f"parallel_{direction}"):
                rows.append(measure(algorithm, direction, source, target, options.repetitions))
    report(rows, options, size=f"{options.mib} MiB in, as much out", residence="device", clocks_after=gpu_state())


def measure(algorithm, direction: str, source, target, repetitions: int) -> Row:  # type: ignore[no-untyped-def]
    cipher = warpcipher.Cipher(algorithm.name, os.urandom(algorithm.key_size))
    extra = {}
    if algorithm.iv_size:
        extra["iv"] = os.urandom(algorithm.iv_size)
    text, name = source, algorithm.name
    if name.endswith("xts"):
        return measure_sectors(algorithm, direction, source, target, repetitions)
    if name.endswith("gcm") and direction == "decrypt":
        text = cipher.encrypt(source, **extra)
        target = target[: len(source)]
    elif not name.endswith("gcm"):
        target = target[: len(source)]
    run = getattr(cipher, direction)
    values = rates(lambda: run(text, out=target, **extra), len(source), repetitions)
    return Row(f"{name} {direction}", "GB/s", values, share_of_bound(name, values))


def measure_sectors(algorithm, direction: str, source, target, repetitions: int, sector: int = 4096) -> Row:  # type: ignore[no-untyped-def]
    """XTS as disks use it: sectors of 4 KiB, each a message with its number as IV."""
    import array

    count = len(source) // sector
    lengths = array.array("Q", [sector]) * count
    ivs = b"".join(number.to_bytes(16, "little") for number in range(count))
    key = os.urandom(algorithm.key_size)
    values = rates(
        lambda: warpcipher.run_columns(
            algorithm.name, direction, key, source, lengths=lengths, ivs=ivs, out=target[: len(source)]
        ),
        len(source),
        min(3, repetitions),
    )
    return Row(f"{algorithm.name} {direction}, {sector} B sectors", "GB/s", values, share_of_bound(algorithm.name, values))


def share_of_bound(name: str, values: list[float]) -> str:
    loads = next((n for cipher, n in LOADS_PER_BLOCK.items() if name.startswith(cipher)), None)
    if loads is None:
        return ""
    properties = torch.cuda.get_device_properties(0)
    clock_ghz = float(gpu_state().get("clocks.sm", "0").split()[0]) / 1000
    bound = properties.multi_processor_count * clock_ghz * 32 / loads * 16
    return f"{100 * max(values) / bound:.0f}% of {bound:.0f} GB/s" if bound else ""


def rates(action: Callable[[], object], size: int, repetitions: int) -> list[float]:
    """GB/s of `size` bytes for each of `repetitions` calls after two that are not counted."""
    for _ in range(2):
        action()
    values = []
    for _ in range(repetitions):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        action()
        end.record()
        end.synchronize()
        values.append(size / start.elapsed_time(end) / 1e6)
    return values


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The machine that was measured: the CPU as Linux describes it, the GPU, clocks and driver."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import warpcipher as wc
from warpcipher.arguments import parse_size

from . import _native
from .results import Cpu, Gpu, Machine
from .settings import AUTO

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_ASSUMED_CACHE = 32 << 20

GPU_STATE = (
    *("driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.draw", "power.limit"),
    *("temperature.gpu", "clocks_event_reasons.active"),
)
"""Fields of nvidia-smi."""


def look(device: int) -> Machine:
    """This machine. ValueError: there are GPUs, but none of that number."""
    engines = {entry.name: entry for entry in wc.engines()}
    cuda = engines["cuda"]
    gpu, reason = None, cuda.reason
    if cuda.usable:
        facts, reason = _native.device_facts(device), ""
        gpu = Gpu(**facts, state_before=gpu_state(facts["bus_id"]))
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    libcrypto = "; ".join(engines["cpu"].devices) or engines["cpu"].reason
    cpu = Cpu(_cpu_model(), cores(), _cache_bytes(), size, cpu_clock_mhz(), libcrypto)
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Machine(system, platform.python_version(), cpu, gpu, reason)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def gpu_state(bus_id: str) -> dict[str, str]:
    """GPU_STATE of the GPU at a PCI address; empty where nvidia-smi is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    arguments = [f"--query-gpu={','.join(GPU_STATE)}", f"--id={bus_id}", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [value.strip() for value in done.stdout.strip().split(",")]
    return dict(zip(GPU_STATE, values, strict=True)) if len(values) == len(GPU_STATE) else {}


def available_memory() -> int:
    """Bytes of host memory that can be taken without swapping; 0 where Linux does not say."""
    found = _fields("/proc/meminfo", "MemAvailable")
    return int(found[0].split()[0]) * 1024 if found else 0


def cpu_clock_mhz() -> float | None:
    """The mean clock of all cores now, as Linux gives it; None where it does not."""
    clocks = [float(value) for value in _fields("/proc/cpuinfo", "cpu MHz")]
    return sum(clocks) / len(clocks) if clocks else None


def _cpu_model() -> str:
    named = _fields("/proc/cpuinfo", "model name")
    return named[0] if named else platform.processor() or platform.machine()


def _cache_bytes() -> int:
    """The largest cache of the first core; _ASSUMED_CACHE where the system does not say."""
    sizes = []
    for path in _CACHES.glob("index*/size"):
        try:  # the kernel writes 512K, 32768K, and some 32M, all binary
            text = path.read_text().strip()
            sizes.append(parse_size(f"{text}iB" if text[-1].isalpha() else text))
        except (OSError, ValueError, IndexError):
            continue
    return max(sizes, default=_ASSUMED_CACHE)


def _fields(path: str, name: str) -> list[str]:
    """Values of the lines "NAME: VALUE"; none without such a file."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return []
    return [line.partition(":")[2].strip() for line in lines if line.startswith(name)]


def device_of(machine: Machine, engine: str) -> tuple[str, str]:
    """The device of an engine, and its driver or library."""
    processor = f"{machine.cpu.model}, {machine.cpu.cores} cores"
    if machine.gpu is None or engine not in ("cuda", AUTO):
        return processor, machine.cpu.libcrypto
    version = machine.gpu.state_before.get("driver_version")
    cuda = f"CUDA {machine.gpu.driver_cuda}"
    driver = cuda if version is None else f"{version} ({cuda})"
    if engine == AUTO:
        return f"{machine.gpu.name} and {processor}", f"{driver}, {machine.cpu.libcrypto}"
    return machine.gpu.name, driver

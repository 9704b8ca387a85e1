# SPDX-License-Identifier: Apache-2.0
"""The AES kernels for sm_90 in the extension, as nvcc made them: names by mode with their recorded
counts, resources, and code. test_kernel_code.py counts; test_kernel_secrets.py follows secrets."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import warpcipher as wc
from warpcipher import _native

ARCHITECTURE = "sm_90"


@dataclass(frozen=True)
class Loop:
    """A hot loop: 128 blocks a turn."""

    loads: int  # from shared memory; exact
    permutes: int
    logic: int
    total: int


# Modes (mangled; <true> decrypts) of the kernels for AES-128: unrolled, keys as kernel parameters,
# tables of 128 KiB. A block takes 16 loads a round, but 4 for two rounds of CTR. Those for AES-256
# are the same sources with four rounds more.
RECORDED = {
    "EcbModeILb0EE": Loop(640, 688, 321, 1680),
    "EcbModeILb1EE": Loop(640, 736, 353, 1760),
    "CbcDecryption": Loop(640, 736, 370, 1823),
    "CfbDecryption": Loop(640, 688, 322, 1724),
    "CounterMode": Loop(528, 576, 276, 1450),
    # Of its loop about 1800 are run: of four ways to join words, one is taken. Not measured.
    "UnalignedCounterMode": Loop(528, 576, 276, 2109),
    "XtsModeILb0EE": Loop(640, 688, 352, 1771),
    "XtsModeILb1EE": Loop(640, 736, 400, 1867),
}
# Modes of the kernels of two kinds of warps; operations in a round of logic, of four blocks and of
# eight.
HYBRID_TEXT = {
    "EcbModeILb0EE": 336,
    "EcbModeILb1EE": 386,
    "CbcDecryption": 386,
    "CfbDecryption": 336,
    "XtsModeILb0EE": 336,
    "XtsModeILb1EE": 386,
    "XtsRowsILb0EE": 336,
    "XtsRowsILb1EE": 386,
}
# Big-endian counters, and those of GCM-SIV.
COUNTER_MODES = ("CounterMode", "LittleEndianCounterMode")
# Counter mode of one message, and only its key stream.
LONG_MODES = ("CounterMode", "KeyStreamMode")
# Whether the kernel is for texts at multiples of 16; the other takes texts at any address.
PLACES = (True, False)
KERNEL = re.compile(
    r"parallel_kernelINS\w*?\d(?P<mode>[A-Z][A-Za-z]+(?:ILb[01]EE)?)E"
    r"NS\w*?9Tables128ELi(?P<rounds>1[04])E"
)


@cache
def cuobjdump() -> str:
    """The disassembler: of the toolkit, or of the PyPI package."""
    places = [Path(sysconfig.get_path("purelib")) / "nvidia/cu13/bin", Path("/usr/local/cuda/bin")]
    for place in (None, *places):
        if found := shutil.which("cuobjdump", path=place and str(place)):
            return found
    pytest.skip("no cuobjdump: neither on PATH, nor in /usr/local/cuda, nor nvidia-cuda-cuobjdump")


def printed(*command: str) -> str:
    """The output of a program. One that fails is a failed test: nothing was checked."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{' '.join(command)}: exit code {run.returncode}: {run.stderr}"
    return run.stdout


@cache
def architectures() -> frozenset[str]:
    """The architectures that the extension has code for: those of this machine in a local build."""
    (reason,) = [engine.reason for engine in wc.engines() if engine.name == "cuda"]
    if reason.startswith("built without CUDA"):
        pytest.skip(reason)
    listing = printed(cuobjdump(), "--list-elf", str(_native.__file__))
    found = frozenset(re.findall(r"\.(sm_\w+)\.cubin", listing))
    assert found, listing
    return found


def dump(*options: str, architecture: str = ARCHITECTURE) -> str:
    """cuobjdump's output for the extension, whose kernels are the same in every build."""
    if architecture not in architectures():
        pytest.skip(f"built for {', '.join(sorted(architectures()))}, not for {architecture}")
    text = printed(cuobjdump(), "-arch", architecture, *options, str(_native.__file__))
    assert "Function" in text
    return text


@cache
def resources(architecture: str = ARCHITECTURE) -> dict[str, dict[str, int]]:
    """Registers, stack and so on of each kernel, by its mangled name."""
    usage = dump("-res-usage", architecture=architecture)
    found = re.findall(r"Function (\S+):\s+(REG:[^\n]*)", usage)
    return {
        name: {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", usage)}
        for name, usage in found
    }


def unrolled(rounds: int) -> dict[str, str]:
    """Names of the unrolled kernels, by mode: of one message, or where there is none of one key."""
    matches = {name: KERNEL.search(name) for name in resources()}
    return {
        m["mode"]: name
        for name, m in matches.items()
        if m
        and int(m["rounds"]) == rounds
        and ("SingleSource" in name or m["mode"].startswith("Xts"))
    }


@cache
def listings() -> dict[str, str]:
    """The code of each unrolled kernel for AES-128, by its mangled name."""
    text = dump("-sass", "-fun", ",".join(unrolled(10).values()))
    return {part.split(None, 1)[0]: part for part in text.split("Function : ")[1:]}


@cache
def hybrid_kernel(mode: str, aligned: bool) -> tuple[str, str]:
    """The kernel of long messages by two kinds of warps, for keys of any length, and its code;
    or that of random bytes (LONG_MODES); for texts of PLACES."""
    kernels = [kernel for kernel in resources("sm_90a") if "hybrid_counter_kernel" in kernel]
    assert len(kernels) == len(LONG_MODES) * len(PLACES)
    (name,) = [kernel for kernel in kernels if f"{len(mode)}{mode}ELb{aligned:d}E" in kernel]
    return name, dump("-sass", "-fun", name, architecture="sm_90a")


@cache
def hybrid_text_kernels() -> dict[str, tuple[str, str]]:
    """The kernels of two kinds of warps for other modes: name and code by mode."""
    kernels = [kernel for kernel in resources("sm_90a") if "hybrid_text_kernel" in kernel]
    text = dump("-sass", "-fun", ",".join(kernels), architecture="sm_90a")
    codes = {part.split(None, 1)[0]: part for part in text.split("Function : ")[1:]}
    found = {}
    for name in kernels:
        (mode,) = [mode for mode in HYBRID_TEXT if f"{mode}E" in name]
        found[mode] = name, codes[name]
    return found


@cache
def hybrid_batch_kernel(key: str, mode: str, aligned: bool) -> tuple[str, str]:
    """The kernel of two kinds of warps for batches in counter mode, and its code: of one key for
    all, or of a key each; of counters of either end (COUNTER_MODES); for texts of PLACES."""
    kernels = [kernel for kernel in resources("sm_90a") if "hybrid_batch_kernel" in kernel]
    of_mode = f"{len(mode)}{mode}ELb{aligned:d}E"
    (name,) = [kernel for kernel in kernels if key in kernel and of_mode in kernel]
    return name, dump("-sass", "-fun", name, architecture="sm_90a")


@cache
def hybrid_packed_kernel() -> tuple[str, str]:
    """The kernel of two kinds of warps for short messages, and its code."""
    (name,) = [kernel for kernel in resources("sm_90a") if "hybrid_packed_kernel" in kernel]
    return name, dump("-sass", "-fun", name, architecture="sm_90a")

# SPDX-License-Identifier: Apache-2.0
"""What nvcc made of the AES kernels for sm_90, held against the code that was measured.

A change of the sources or of the compiler that spills registers or adds work to a hot loop shows
here, without a GPU. Where it is meant, and measured (docs/performance.md), the new counts are
recorded below.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sass import parse
from secret_flow import Flow
from warpcipher import _native

ARCHITECTURE = "sm_90"
MOST_REGISTERS = 64  # of a thread, where 1024 fill a multiprocessor


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
    "XtsModeILb0EE": Loop(640, 688, 352, 1771),
    "XtsModeILb1EE": Loop(640, 736, 400, 1867),
}
# Bytes of a thread's stack: the number of its tile, kept outside the hot loop.
SPILLED = {"XtsModeILb1EE": 8}
# Of sectors: where their text goes. No parameter has it, so it is kept while logic is at work.
HYBRID_SPILLED = {"CbcDecryption": 8, "XtsRowsILb0EE": 8, "XtsRowsILb1EE": 8}
# Where the parameters of a kernel begin among its constants, and in them the round keys
# (SingleSource and OneKeySource in lane_table/source.hpp, UnitSource in hybrid_source.hpp,
# RowSource and RowPlanning in hybrid_rows_launch.hpp).
PARAMETERS = 0x210
ROUND_KEYS = {
    "SingleSource": 92,
    "OneKeySource": 36,
    "UnitSource": 20,
    "RowSource": 140,
    "RowPlanning": 188,
}
SCHEDULE_LEN = 240
# What follows the schedule in a CounterSource and a TextSource (lane_table/hybrid_source.hpp): up
# to four bytes of nothing, and masks for each round.
SLICED_COUNTER_LEN = 4 + 11 * 128
SLICED_TEXT_LEN = 4 + 13 * 128
# Modes of the kernels of two kinds of warps; of four blocks and eight of logic a round has so many
# operations.
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
MARGIN = 1.02  # for what another release of nvcc makes of the same work
KERNEL = re.compile(
    r"parallel_kernelINS\w*?\d(?P<mode>[A-Z][A-Za-z]+(?:ILb[01]EE)?)E"
    r"NS\w*?9Tables128ELi(?P<rounds>1[04])E"
)
INSTRUCTION = re.compile(
    r"\s+/\*(?P<at>[0-9a-f]{4,6})\*/\s+(?:@!?U?P\w+\s+)?(?P<name>[A-Z][A-Z0-9_]*)(?P<rest>[^;]*);"
)


@cache
def cuobjdump() -> str:
    """The disassembler: of the toolkit, or of the PyPI package."""
    places = [Path(sysconfig.get_path("purelib")) / "nvidia/cu13/bin", Path("/usr/local/cuda/bin")]
    for place in (None, *places):
        if found := shutil.which("cuobjdump", path=place and str(place)):
            return found
    pytest.skip("no cuobjdump: neither on PATH, nor in /usr/local/cuda, nor nvidia-cuda-cuobjdump")


def dump(*options: str, architecture: str = ARCHITECTURE) -> str:
    """What cuobjdump prints of the extension, whose kernels are those of every build."""
    command = [cuobjdump(), "-arch", architecture, *options, str(_native.__file__)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0 or "Function" not in run.stdout:
        pytest.skip(f"no {architecture} code in the extension: {run.stderr.strip()[:200]}")
    return run.stdout


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


def hot_loop(code: str) -> Counter[str]:
    """Instructions in the innermost loop that has four blocks' loads from shared memory."""
    lines = [(int(m["at"], 16), m["name"], m["rest"]) for m in INSTRUCTION.finditer(code)]
    loops = []
    for at, name, rest in lines:
        target = re.search(r"0x([0-9a-f]+)", rest) if name == "BRA" else None
        if target is not None and int(target[1], 16) < at:
            loops.append(Counter(n for where, n, _ in lines if int(target[1], 16) <= where <= at))
    return min((loop for loop in loops if loop["LDS"] >= 4 * 128), key=Counter.total)


@cache
def listings() -> dict[str, str]:
    """The code of each unrolled kernel for AES-128, by its mangled name."""
    text = dump("-sass", "-fun", ",".join(unrolled(10).values()))
    return {part.split(None, 1)[0]: part for part in text.split("Function : ")[1:]}


@cache
def hot_loops() -> dict[str, Counter[str]]:
    """The hot loop of each unrolled kernel, by its mangled name."""
    return {name: hot_loop(code) for name, code in listings().items()}


@pytest.mark.parametrize("rounds", [10, 14])
def test_all_unrolled_kernels_are_recorded(rounds: int) -> None:
    assert set(unrolled(rounds)) == set(RECORDED)


def test_no_kernel_takes_more_registers_than_a_full_block_has() -> None:
    kernels = {
        name: use
        for name, use in resources().items()
        if re.search("parallel_kernel|packed_counter_kernel", name)
    }
    assert kernels
    assert {name: use["REG"] for name, use in kernels.items() if use["REG"] > MOST_REGISTERS} == {}


def test_hashing_of_messages_by_rows_leaves_room_for_its_block() -> None:
    (use,) = [use for name, use in resources().items() if "hash_messages_by_matrix" in name]
    assert use["REG"] <= 2 * MOST_REGISTERS  # 512 threads
    assert use["STACK"] == 0


@pytest.mark.parametrize("rounds", [10, 14])
def test_no_unrolled_kernel_spills_registers(rounds: int) -> None:
    stacks = {mode: resources()[name]["STACK"] for mode, name in unrolled(rounds).items()}
    assert {mode: n for mode, n in stacks.items() if n > SPILLED.get(mode, 0)} == {}


def test_serial_kernels_keep_round_keys_in_registers() -> None:
    """And nowhere else: a copy in local memory would stay behind."""
    serial = {name: use for name, use in resources().items() if "serial_aes_kernel" in name}
    # Three lengths of keys, two forms of tables, and AES-128 with fewer warps, for few messages.
    assert len(serial) == 7
    assert {name: use["STACK"] for name, use in serial.items() if use["STACK"] != 0} == {}


@pytest.mark.parametrize("mode", RECORDED)
def test_hot_loop(mode: str) -> None:
    counts = hot_loops()[unrolled(10)[mode]]
    recorded = RECORDED[mode]
    assert counts["LDS"] == recorded.loads
    assert counts["PRMT"] <= MARGIN * recorded.permutes
    assert counts["LOP3"] <= MARGIN * recorded.logic
    assert counts.total() <= MARGIN * recorded.total


def test_ghash_by_warpgroups() -> None:
    """384 threads keep 64 counts and 64 words of text each in registers, and nothing elsewhere."""
    kernels = resources("sm_90a")
    (name,) = [kernel for kernel in kernels if "hash_chunks_by_warpgroup" in kernel]
    assert kernels[name]["REG"] <= 168
    assert kernels[name]["STACK"] == 0
    code = Counter(i.base for i in parse(dump("-sass", "-fun", name, architecture="sm_90a")))
    assert code["BGMMA"] == 16 + 1  # of the steps of a segment, and between segments


@cache
def hybrid_kernel() -> tuple[str, str]:
    """The kernel of long messages by two kinds of warps, for keys of any length, and its code."""
    (name,) = [kernel for kernel in resources("sm_90a") if "hybrid_counter_kernel" in kernel]
    return name, dump("-sass", "-fun", name, architecture="sm_90a")


def loops_of(code: str) -> list[Counter[str]]:
    """The instructions of each loop."""
    lines = [(int(m["at"], 16), m["name"], m["rest"]) for m in INSTRUCTION.finditer(code)]
    loops = []
    for at, base, rest in lines:
        target = re.search(r"0x([0-9a-f]+)", rest) if base == "BRA" else None
        if target is not None and int(target[1], 16) < at:
            loops.append(Counter(n for where, n, _ in lines if int(target[1], 16) <= where <= at))
    return loops


def check_hybrid(
    code: str, operations: int, key_loads: int = 0, mask_loads: int = 0, moves: int = 0
) -> None:
    """A round of logic is a loop, and so are two of lane tables: unrolled they do not fit."""
    loops = loops_of(code)
    tables = min((loop for loop in loops if loop["LDS"] >= 128), key=Counter.total)
    assert (tables["LDS"], tables["IDP"]) == (128 + key_loads, 128)
    assert tables.total() <= MARGIN * 340
    logic = min((loop for loop in loops if loop["LOP3"] >= 300), key=Counter.total)
    assert (logic["LDS"], logic["LDL"]) == (mask_loads, 0)
    assert logic["LOP3"] <= MARGIN * operations
    assert logic.total() <= MARGIN * (operations + 46 + moves)


def test_hybrid_warps() -> None:
    name, code = hybrid_kernel()
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] == 0
    check_hybrid(code, 336)


def keys_of(source: str, behind: int = 0) -> range:
    """Where the round keys are that are parameters, and so many bytes made of them behind."""
    begin = PARAMETERS + ROUND_KEYS[source]
    return range(begin, begin + SCHEDULE_LEN + behind)


def follow(code: str, keys: range, **how: Any) -> Flow:
    """No secret reaches an address, a branch or a bank, and all lookups were followed."""
    instructions = parse(code)
    flow = Flow(instructions, keys, **how).run()
    assert flow.findings == set()
    assert len(flow.secret_lookups) == sum(i.base == "LDS" for i in instructions)
    return flow


def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_hybrid_warps() -> None:
    follow(hybrid_kernel()[1], keys_of("SingleSource", SLICED_COUNTER_LEN), one_message=True)


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


def test_all_kernels_of_two_kinds_of_warps_are_recorded() -> None:
    assert set(hybrid_text_kernels()) == set(HYBRID_TEXT)


@pytest.mark.parametrize("mode", HYBRID_TEXT)
def test_hybrid_warps_of_text(mode: str) -> None:
    name, code = hybrid_text_kernels()[mode]
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] <= HYBRID_SPILLED.get(mode, 0)
    check_hybrid(code, HYBRID_TEXT[mode])


@cache
def hybrid_batch_kernel(key: str) -> tuple[str, str]:
    """The kernel of two kinds of warps for batches in counter mode, and its code: of one key for
    all, or of a key each."""
    kernels = resources("sm_90a")
    (name,) = [kernel for kernel in kernels if "hybrid_batch_kernel" in kernel and key in kernel]
    return name, dump("-sass", "-fun", name, architecture="sm_90a")


@pytest.mark.parametrize(("key", "key_loads", "mask_loads"), [("OnlyKey", 0, 0), ("WarpKey", 2, 8)])
def test_hybrid_warps_of_batches(key: str, key_loads: int, mask_loads: int) -> None:
    """A key each is read from shared memory: two rounds of it for tables, a round of masks."""
    name, code = hybrid_batch_kernel(key)
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] == 0
    check_hybrid(code, 336, key_loads, mask_loads)


def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_hybrid_batches() -> None:
    keys = keys_of("OneKeySource", SLICED_COUNTER_LEN)
    of_one = follow(hybrid_batch_kernel("OnlyKey")[1], keys, views=PARAMETERS)
    of_each = Flow(parse(hybrid_batch_kernel("WarpKey")[1]), range(0), views=PARAMETERS).run()
    assert of_each.findings == set()
    # With a key each, it is read from shared memory beside them.
    assert len(of_each.secret_lookups) == len(of_one.secret_lookups)


@cache
def hybrid_packed_kernel() -> tuple[str, str]:
    """The kernel of two kinds of warps for short messages, and its code."""
    (name,) = [kernel for kernel in resources("sm_90a") if "hybrid_packed_kernel" in kernel]
    return name, dump("-sass", "-fun", name, architecture="sm_90a")


def test_hybrid_warps_of_packed_messages() -> None:
    """Two words of a tile are kept outside the hot loops. Those of logic have moves: the S-box of
    the last round is that of the others."""
    name, code = hybrid_packed_kernel()
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] <= 8
    check_hybrid(code, 336, moves=20)


def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_packed_messages() -> None:
    follow(hybrid_packed_kernel()[1], keys_of("OneKeySource", SLICED_COUNTER_LEN), views=PARAMETERS)


@cache
def packed_kernels() -> dict[str, str]:
    """Those of short messages by tables alone: names by tables, rounds and source of keys."""
    found = {}
    for name in resources():
        match = re.search(r"packed_counter_kernelINS1_\d+(Tables\d+)ELi(\d+)ENS1_\d+(\w+?)E", name)
        if match:
            found[" ".join(match.groups())] = name
    return found


PACKED = (
    "Tables128 10 OneKeySource",
    "Tables128 14 OneKeySource",
    "Tables128 10 RawKeySource",
    "Tables128 0 BatchSource",
    "Tables64 0 BatchSource",
)


def test_all_kernels_of_packed_tables_are_followed() -> None:
    assert set(packed_kernels()) == set(PACKED)


@pytest.mark.parametrize("kernel", PACKED)
def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_packed_tables(kernel: str) -> None:
    keys = keys_of("OneKeySource") if "OneKeySource" in kernel else range(0)
    follow(dump("-sass", "-fun", packed_kernels()[kernel]), keys, views=PARAMETERS)


def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_tweaks_of_sectors() -> None:
    (name,) = [kernel for kernel in resources("sm_90a") if "plan_rows_kernel" in kernel]
    follow(dump("-sass", "-fun", name, architecture="sm_90a"), keys_of("RowPlanning"))


@pytest.mark.parametrize("mode", HYBRID_TEXT)
def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_hybrid_text(mode: str) -> None:
    units = mode.startswith("XtsMode")
    source = (
        "UnitSource" if units else "RowSource" if mode.startswith("XtsRows") else "SingleSource"
    )
    keys = keys_of(source, SLICED_TEXT_LEN)
    follow(hybrid_text_kernels()[mode][1], keys, one_message=not units, secret_start=units)


@pytest.mark.parametrize("mode", RECORDED)
def test_no_secret_reaches_an_address_a_branch_or_a_bank(mode: str) -> None:
    """Constant time as far as the code tells: secret_flow.py says what is looked for."""
    name = unrolled(10)[mode]
    source = next(source for source in ROUND_KEYS if source in name)
    flow = follow(
        listings()[name],
        keys_of(source),
        one_message=source == "SingleSource",
        secret_start=mode.startswith("Xts"),
    )
    assert flow.keys_seen == 44  # found where they are


def test_leaks_are_found() -> None:
    """The control: a classic table, a branch and an address that tell the byte they depend on."""
    flow = Flow(
        parse(
            """
            /*0000*/  LDG.E.128 R4, desc[UR4][R2.64] ;
            /*0010*/  PRMT R8, R4, 0x5504, R0 ;
            /*0020*/  LDS R8, [R8] ;
            /*0030*/  SHF.L.U32 R9, R4, 0x2, RZ ;
            /*0040*/  LOP3.LUT R9, R9, 0x3fc, RZ, 0xc0, !PT ;
            /*0050*/  LDS R9, [R9] ;
            /*0060*/  ISETP.NE.AND P0, PT, R9, RZ, PT ;
            /*0070*/  @P0 BRA 0x90 ;
            /*0080*/  LDG.E R2, desc[UR4][R8.64] ;
            /*0090*/  LOP3.LUT R9, R4, c[0x0][0x300], RZ, 0x3c, !PT ;
            /*00a0*/  LDC R10, c[0x0][0x300] ;
            /*00b0*/  @!P0 STG.E [R2.64], R10 ;
            /*00c0*/  EXIT ;
            """
        ),
        range(0x300, 0x304),
        one_message=True,
    ).run()
    assert sorted(int(finding[:6], 16) for finding in flow.findings) == [0x50, 0x70, 0x80, 0xB0]
    assert flow.secret_lookups == {0x20, 0x50}


def test_leaks_of_batches_are_found() -> None:
    """The control: what comes from a view is public, what its pointers lead to is not, though the
    load overwrites its address; a comparison matters where the other condition lets it."""
    flow = Flow(
        parse(
            """
            /*0000*/  LDC.64 R2, c[0x0][0x210] ;
            /*0010*/  IMAD.WIDE.U32 R2, R9, 0x50, R2 ;
            /*0020*/  LDG.E.128 R4, desc[UR4][R2.64] ;
            /*0030*/  LDG.E.U8 R8, desc[UR4][R2.64+0x3f] ;
            /*0040*/  ISETP.NE.AND P0, PT, R8, RZ, PT ;
            /*0050*/  @P0 BRA 0x70 ;
            /*0060*/  LDG.E R10, desc[UR4][R6.64] ;
            /*0070*/  LDG.E.128 R4, desc[UR4][R4.64] ;
            /*0080*/  IMAD.MOV.U32 R11, RZ, RZ, R7 ;
            /*0090*/  PLOP3.LUT P2, PT, PT, PT, P0, 0x80, 0x0 ;
            /*00a0*/  @P2 LDG.E R11, desc[UR4][R2.64+0x40] ;
            /*00b0*/  ISETP.NE.OR P1, PT, R11, RZ, !P0 ;
            /*00c0*/  @P1 BRA 0xe0 ;
            /*00d0*/  NOP ;
            /*00e0*/  IMAD.MOV.U32 R11, RZ, RZ, R7 ;
            /*00f0*/  PLOP3.LUT P2, PT, PT, PT, P0, 0x80, 0x0 ;
            /*0100*/  @P2 LDG.E R11, desc[UR4][R2.64+0x40] ;
            /*0110*/  ISETP.NE.OR P1, PT, R11, RZ, P0 ;
            /*0120*/  @P1 BRA 0x140 ;
            /*0130*/  LDG.E R12, desc[UR4][R6.64] ;
            /*0140*/  EXIT ;
            """
        ),
        range(0),
        views=0x210,
    ).run()
    assert sorted(int(finding[:7], 16) for finding in flow.findings) == [0x120, 0x130]

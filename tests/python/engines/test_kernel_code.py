# SPDX-License-Identifier: Apache-2.0
"""The code of nvcc for the AES kernels on sm_90, held against the code that was measured.

A change of the sources or of the compiler that spills registers or adds work to a hot loop shows
here, without a GPU. Where it is meant, and measured (docs/performance.md), the new counts are
recorded in kernel_code.py.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from kernel_code import (
    COUNTER_MODES,
    HYBRID_TEXT,
    LONG_MODES,
    PLACES,
    RECORDED,
    dump,
    hybrid_batch_kernel,
    hybrid_kernel,
    hybrid_packed_kernel,
    hybrid_text_kernels,
    listings,
    printed,
    resources,
    unrolled,
)
from sass import parse

INSTRUCTION = re.compile(
    r"\s+/\*(?P<at>[0-9a-f]{4,6})\*/\s+(?:@!?U?P\w+\s+)?(?P<name>[A-Z][A-Z0-9_]*)(?P<rest>[^;]*);"
)
MOST_REGISTERS = 64  # of a thread, where 1024 fill a multiprocessor
MARGIN = 1.02  # for what another release of nvcc makes of the same work
# Bytes of a thread's stack: the number of its tile, kept outside the hot loop.
SPILLED = {"XtsModeILb1EE": 8}
# Of sectors: where their text goes. No parameter has it, so it is kept while logic is at work.
HYBRID_SPILLED = {"CbcDecryption": 8, "XtsRowsILb0EE": 8, "XtsRowsILb1EE": 8}

# Of counter mode for texts at any address: what is kept, once a tile, while words are joined.
SPILLED_UNALIGNED = 48


def test_a_disassembler_that_fails_is_no_reason_to_skip() -> None:
    with pytest.raises(AssertionError, match=r"exit code 3: broken"):
        printed("sh", "-c", "echo broken >&2; exit 3")


def loops_of(code: str) -> list[Counter[str]]:
    """The instructions of each loop."""
    lines = [(int(m["at"], 16), m["name"], m["rest"]) for m in INSTRUCTION.finditer(code)]
    loops = []
    for at, base, rest in lines:
        target = re.search(r"0x([0-9a-f]+)", rest) if base == "BRA" else None
        if target is not None and int(target[1], 16) < at:
            loops.append(Counter(n for where, n, _ in lines if int(target[1], 16) <= where <= at))
    return loops


def hot_loop(code: str) -> Counter[str]:
    """Instructions in the innermost loop that has four blocks' loads from shared memory."""
    return min((loop for loop in loops_of(code) if loop["LDS"] >= 4 * 128), key=Counter.total)


@cache
def hot_loops() -> dict[str, Counter[str]]:
    """The hot loop of each unrolled kernel, by its mangled name."""
    return {name: hot_loop(code) for name, code in listings().items()}


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
    """Of texts at multiples of 16, and at any address."""
    uses = [use for name, use in resources().items() if "hash_messages_by_matrix" in name]
    assert len(uses) == 2
    for use in uses:
        assert use["REG"] <= 2 * MOST_REGISTERS  # 512 threads
        assert use["STACK"] == 0


@pytest.mark.parametrize("rounds", [10, 14])
def test_no_unrolled_kernel_spills_registers(rounds: int) -> None:
    stacks = {mode: resources()[name]["STACK"] for mode, name in unrolled(rounds).items()}
    assert {mode: n for mode, n in stacks.items() if n > SPILLED.get(mode, 0)} == {}


def test_serial_kernels_keep_round_keys_in_registers() -> None:
    """And nowhere else: a copy in local memory would stay."""
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


@pytest.mark.parametrize("aligned", PLACES)
def test_ghash_by_warpgroups(aligned: bool) -> None:
    """384 threads keep 64 counts and 64 words of text each in registers; kernels of texts at any
    address spill a few words."""
    kernels = resources("sm_90a")
    found = [kernel for kernel in kernels if "hash_chunks_by_warpgroup" in kernel]
    assert len(found) == len(PLACES)
    (name,) = [kernel for kernel in found if f"ELb{aligned:d}E" in kernel]
    assert kernels[name]["REG"] <= 168
    assert kernels[name]["STACK"] <= (0 if aligned else 24)
    code = Counter(i.base for i in parse(dump("-sass", "-fun", name, architecture="sm_90a")))
    assert code["BGMMA"] == 16 + 1  # of the steps of a segment, and between segments


@pytest.mark.parametrize("aligned", PLACES)
@pytest.mark.parametrize("mode", LONG_MODES)
def test_hybrid_warps(mode: str, aligned: bool) -> None:
    name, code = hybrid_kernel(mode, aligned)
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] <= (0 if aligned else SPILLED_UNALIGNED)
    check_hybrid(code, 336)


def test_all_kernels_of_two_kinds_of_warps_are_recorded() -> None:
    assert set(hybrid_text_kernels()) == set(HYBRID_TEXT)


@pytest.mark.parametrize("mode", HYBRID_TEXT)
def test_hybrid_warps_of_text(mode: str) -> None:
    name, code = hybrid_text_kernels()[mode]
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] <= HYBRID_SPILLED.get(mode, 0)
    check_hybrid(code, HYBRID_TEXT[mode])


@pytest.mark.parametrize("aligned", PLACES)
@pytest.mark.parametrize("mode", COUNTER_MODES)
@pytest.mark.parametrize(("key", "key_loads", "mask_loads"), [("OnlyKey", 0, 0), ("WarpKey", 2, 8)])
def test_hybrid_warps_of_batches(
    key: str, key_loads: int, mask_loads: int, mode: str, aligned: bool
) -> None:
    """A key each is read from shared memory: two rounds of it for tables, a round of masks."""
    name, code = hybrid_batch_kernel(key, mode, aligned)
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] <= (0 if aligned else SPILLED_UNALIGNED)
    check_hybrid(code, 336, key_loads, mask_loads)


def test_hybrid_warps_of_packed_messages() -> None:
    """Two words of a tile are kept outside the hot loops. Those of logic have moves: the S-box of
    the last round is the same as of the others."""
    name, code = hybrid_packed_kernel()
    assert resources("sm_90a")[name]["REG"] <= MOST_REGISTERS
    assert resources("sm_90a")[name]["STACK"] <= 8
    check_hybrid(code, 336, moves=20)

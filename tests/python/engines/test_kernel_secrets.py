# SPDX-License-Identifier: Apache-2.0
"""No secret reaches an address, a branch or a bank in the kernels of AES and ChaCha20:
secret_flow.py says what is looked for. Controls prove that leaks are found."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

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
    resources,
    unrolled,
)
from sass import parse
from secret_flow import Flow

# Where the parameters of a kernel begin among its constants, and in them the round keys
# (SingleSource and OneKeySource in aes/source.hpp, UnitSource in hybrid_source.hpp,
# RowSource and RowPlanning in hybrid_rows_launch.hpp).
PARAMETERS = 0x210
ROUND_KEYS = {
    "SingleSource": 92,
    "OneKeySource": 36,
    "UnitSource": 20,
    "RowSource": 140,
    "RowPlanning": 212,
}
SCHEDULE_LEN = 240
# The fields after the schedule in a CounterSource and a TextSource (aes/hybrid_source.hpp): up
# to four bytes of nothing, and masks for each round.
SLICED_COUNTER_LEN = 4 + 11 * 128
SLICED_TEXT_LEN = 4 + 13 * 128


def keys_of(source: str, behind: int = 0) -> range:
    """Where the round keys are that are parameters, and that many bytes made of them after."""
    begin = PARAMETERS + ROUND_KEYS[source]
    return range(begin, begin + SCHEDULE_LEN + behind)


def follow(code: str, keys: range, **how: Any) -> Flow:
    """No secret reaches an address, a branch or a bank, and all lookups were followed."""
    instructions = parse(code)
    flow = Flow(instructions, keys, **how).run()
    assert flow.findings == set()
    assert len(flow.secret_lookups) == sum(i.base == "LDS" for i in instructions)
    return flow


@cache
def packed_kernels() -> dict[str, str]:
    """Kernels of short messages only by tables, and of ends of messages: names by tables, rounds,
    source of keys, end of counters, and which arrays of messages it is given."""
    found = {}
    for name in resources():
        match = re.search(
            r"packed_counter_kernelINS1_\d+(Tables\d+)ELi(\d+)ENS1_\d+(\w+?)"
            r"ENS1_\d+(Big|Little)EndianCounterELb([01])E",
            name,
        )
        if match:
            *parts, has_ends = match.groups()
            found[" ".join([*parts, "ends" if has_ends == "1" else "whole"])] = name
    return found


PACKED = (
    "Tables128 10 OneKeySource Big whole",
    "Tables128 14 OneKeySource Big whole",
    "Tables128 10 RawKeySource Big whole",
    "Tables128 0 BatchSource Big whole",
    "Tables64 0 BatchSource Big whole",
    "Tables128 10 RawKeySource Little whole",
    "Tables128 0 BatchSource Little whole",
    "Tables64 0 BatchSource Little whole",
    "Tables128 10 OneKeySource Big ends",
    "Tables128 14 OneKeySource Big ends",
    "Tables128 0 BatchSource Big ends",
    "Tables64 0 BatchSource Big ends",
)


@pytest.mark.parametrize("kernel", ["expand", "pass", "path"])
def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_seeds_and_nodes(kernel: str) -> None:
    """Of trees the nodes that wait in shared memory lie at public places: two loads."""
    kernels = [k for k in resources() if re.search(rf"3prg4cuda.*{kernel}_kernel", k)]
    assert len(kernels) == {"expand": 33, "pass": 16, "path": 8}[kernel]
    for name in kernels:
        assert resources()[name]["STACK"] == 0  # seeds would stay behind there
        instructions = parse(dump("-sass", "-fun", name))
        flow = Flow(instructions, range(0), one_message=True).run()
        assert flow.findings == set()
        loads = sum(i.base == "LDS" for i in instructions)
        assert len(flow.secret_lookups) == loads - (2 if kernel == "pass" else 0)


@pytest.mark.parametrize(("kernel", "count"), [("sum", 7), ("product", 4)])
def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_answers(
    kernel: str, count: int
) -> None:
    kernels = [k for k in resources() if re.search(rf"3prg4cuda.*{kernel}_kernel", k)]
    assert len(kernels) == count
    for name in kernels:
        assert resources()[name]["STACK"] == 0
        flow = Flow(parse(dump("-sass", "-fun", name)), range(0), one_message=True).run()
        assert flow.findings == set()
        assert flow.secret_lookups == set()


@pytest.mark.parametrize("aligned", PLACES)
@pytest.mark.parametrize("mode", LONG_MODES)
def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_hybrid_warps(
    mode: str, aligned: bool
) -> None:
    code = hybrid_kernel(mode, aligned)[1]
    follow(code, keys_of("SingleSource", SLICED_COUNTER_LEN), one_message=True)


@pytest.mark.parametrize("aligned", PLACES)
@pytest.mark.parametrize("mode", COUNTER_MODES)
def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_hybrid_batches(
    mode: str, aligned: bool
) -> None:
    keys = keys_of("OneKeySource", SLICED_COUNTER_LEN)
    of_one = follow(hybrid_batch_kernel("OnlyKey", mode, aligned)[1], keys, views=PARAMETERS)
    code = hybrid_batch_kernel("WarpKey", mode, aligned)[1]
    of_each = Flow(parse(code), range(0), views=PARAMETERS).run()
    assert of_each.findings == set()
    # With a key each, it is read from shared memory beside them.
    assert len(of_each.secret_lookups) == len(of_one.secret_lookups)


def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_packed_messages() -> None:
    follow(hybrid_packed_kernel()[1], keys_of("OneKeySource", SLICED_COUNTER_LEN), views=PARAMETERS)


def test_all_kernels_of_packed_tables_are_followed() -> None:
    assert set(packed_kernels()) == set(PACKED)


@pytest.mark.parametrize("kernel", PACKED)
def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_packed_tables(kernel: str) -> None:
    keys = keys_of("OneKeySource") if "OneKeySource" in kernel else range(0)
    follow(dump("-sass", "-fun", packed_kernels()[kernel]), keys, views=PARAMETERS)


def test_no_secret_reaches_an_address_a_branch_or_a_bank_of_keys_and_tags_of_gcm_siv() -> None:
    """By key bytes, and by round keys with tables of either size."""
    kernels = [k for k in resources() if re.search("(derive_siv_keys|finish_siv_tags)_kernel", k)]
    assert len(kernels) == 6
    for kernel in kernels:
        assert resources()[kernel]["STACK"] == 0  # derived keys would stay behind there
        follow(dump("-sass", "-fun", kernel), range(0))


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
    """Constant time as far as the code shows: secret_flow.py says what is looked for."""
    name = unrolled(10)[mode]
    source = next(source for source in ROUND_KEYS if source in name)
    flow = follow(
        listings()[name],
        keys_of(source),
        one_message=source == "SingleSource",
        secret_start=mode.startswith("Xts"),
    )
    assert flow.keys_seen == 44  # found where they are


# Of text, of text and hash in one pass, of tags after it, of keys and powers of r, and of all that
# short messages need; by the parameters of templates.
CHACHA = (
    "run_tiles",
    "run_packed",
    "run_chunks_kernel",
    "finish_kernel",
    "prepare_kernel",
    "make_factors_kernel",
    "run_messages_kernel",
)


@cache
def chacha_kernels() -> dict[str, str]:
    """Names by kernel and template parameter."""
    found, parameter = {}, r"(?:L(?:[bj]|NS\d_4PassE)\d+E)"
    for name in resources():
        match = re.search(rf"6chacha.*?\d({'|'.join(CHACHA)})(?:I({parameter}+)E)?", name)
        if match:
            found[" ".join(filter(None, match.groups()))] = name
    return found


def test_all_kernels_of_chacha20_are_followed() -> None:
    assert {name.split()[0] for name in chacha_kernels()} == set(CHACHA)
    assert len(chacha_kernels()) == len([name for name in resources() if "6chacha" in name])


@pytest.mark.parametrize("kernel", CHACHA)
def test_no_secret_reaches_an_address_or_a_branch_of_chacha20(kernel: str) -> None:
    """Whatever 16 bytes are loaded are secret here: keys of messages, r and text. The control: an
    address made of what the kernel stores last is found. (Where it decrypts, the kernel of short
    messages stores zeros after that, in place of what was forged.)"""
    for name in (name for short, name in chacha_kernels().items() if short.split()[0] == kernel):
        code = parse(dump("-sass", "-fun", name))
        how: dict[str, Any] = {"views": PARAMETERS, "one_message": True}
        assert Flow(code, range(0), **how).run().findings == set()
        found = 0
        for last in [k for k, instruction in enumerate(code) if instruction.base == "STG"][::-1]:
            leak = list(code)
            stored = code[last].operands[-1]
            leak[last] = replace(code[last], operands=(f"desc[UR4][{stored}.64]", stored))
            found = len(Flow(leak, range(0), **how).run().findings)
            if found or "run_messages" not in name:
                break
        assert found == 1


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


def test_what_guards_write_is_followed() -> None:
    """Values that both guards of a predicate wrote count, and earlier values do not: 0x40
    and 0x90 are right, 0x60 is a leak. So it is where a branch decides: 0xd0 is right, and 0x110,
    where the predicate has changed in between, is not."""
    flow = Flow(
        parse(
            """
            /*0000*/  LDG.E.128 R4, desc[UR4][R2.64] ;
            /*0010*/  ISETP.NE.AND P0, PT, R20, RZ, PT ;
            /*0020*/  @P0 IMAD.MOV.U32 R4, RZ, RZ, RZ ;
            /*0030*/  @!P0 IMAD.MOV.U32 R4, RZ, RZ, 0x40 ;
            /*0040*/  LDG.E R8, desc[UR4][R4] ;
            /*0050*/  @!P0 IMAD.MOV.U32 R4, RZ, RZ, R6 ;
            /*0060*/  LDG.E R8, desc[UR4][R4] ;
            /*0070*/  @P0 IMAD.MOV.U32 R5, RZ, RZ, RZ ;
            /*0080*/  @!P0 BRA 0xa0 ;
            /*0090*/  LDG.E R8, desc[UR4][R5] ;
            /*00a0*/  @!P0 IMAD.MOV.U32 R7, RZ, RZ, RZ ;
            /*00b0*/  @!P0 BRA 0xd0 ;
            /*00c0*/  EXIT ;
            /*00d0*/  LDG.E R8, desc[UR4][R7] ;
            /*00e0*/  @P0 IMAD.MOV.U32 R6, RZ, RZ, RZ ;
            /*00f0*/  ISETP.NE.AND P0, PT, R21, RZ, PT ;
            /*0100*/  @!P0 IMAD.MOV.U32 R6, RZ, RZ, RZ ;
            /*0110*/  LDG.E R8, desc[UR4][R6] ;
            /*0120*/  EXIT ;
            """
        ),
        range(0),
        one_message=True,
    ).run()
    assert sorted(int(finding[:6], 16) for finding in flow.findings) == [0x60, 0x110]

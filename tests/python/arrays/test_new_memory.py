# SPDX-License-Identifier: Apache-2.0
"""The memory of long results: the kernel is asked for large pages, which take fewer page faults."""

from __future__ import annotations

import ctypes
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from warpcipher.aead import AESGCM

LENGTH = 8 << 20
TEXT = bytes(LENGTH)
KEY, NONCE = bytes(range(16)), bytes(12)

pytestmark = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="this kernel has no huge pages"
)


def flags_at(address: int) -> list[str]:
    """VmFlags of the mapping that holds an address (proc_pid_smaps(5))."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        place = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if place:
            inside = int(place[1], 16) <= address < int(place[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError(f"nothing lies at {address:#x}")


def address_of(result: bytes | bytearray) -> int:
    if isinstance(result, bytes):
        return id(result) + bytes.__basicsize__ - 1
    return ctypes.addressof(ctypes.c_char.from_buffer(result))


def of_a_batch() -> bytes:
    batch = wc.Batch()
    handle = batch.add("aes-128-ctr", "encrypt", KEY, TEXT, iv=bytes(16))
    batch.run()
    made: bytes = handle.result()
    return made


def of_columns() -> bytearray:
    lengths = array("Q", [LENGTH])
    columns = wc.run_columns("aes-128-ctr", "encrypt", KEY, TEXT, lengths=lengths, ivs=bytes(16))
    out: bytearray = columns.out
    return out


@pytest.mark.parametrize(
    "make",
    [
        lambda: wc.Cipher("aes-128-ctr", KEY).encrypt(TEXT, iv=bytes(16)),
        lambda: AESGCM(KEY).encrypt(NONCE, TEXT, None),
        of_a_batch,
        of_columns,
    ],
    ids=["cipher", "aesgcm", "batch", "columns"],
)
def test_long_results_ask_for_huge_pages(make: Callable[[], Any]) -> None:
    result = make()
    assert len(result) >= LENGTH
    assert "hg" in flags_at(address_of(result) + LENGTH // 2)

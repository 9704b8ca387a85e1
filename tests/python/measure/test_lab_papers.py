# SPDX-License-Identifier: Apache-2.0
"""Every paper of the lab from beginning to end on a stand-in GPU: nothing is left out, every
conclusion is reached, and a kernel that is wrong ends the run."""

from __future__ import annotations

import ctypes
import json
import re
import struct
from dataclasses import dataclass, replace
from functools import reduce
from operator import xor
from pathlib import Path

import lab_stand_in
import pytest
import warpcipher as wc
from lab_stand_in import Asked, Oracle
from warpcipher_measure import _native, lab, published, timeline
from warpcipher_measure.papers import harrison2008_payloads, quirem2013, yang2007


def _encrypt(asked: Asked) -> bytes:
    """ECB, or CTR with an IV."""
    mode = "ctr" if asked.iv else "ecb"
    cipher = wc.Cipher(f"aes-{8 * len(asked.key)}-{mode}", asked.key, engine="cpu")
    return cipher.encrypt(asked.text, iv=asked.iv or None)


def _decrypt(asked: Asked) -> bytes:
    """CBC of a text with its IV in front."""
    return wc.Cipher("aes-256-cbc", asked.key, engine="cpu").decrypt(
        asked.text[16:], iv=asked.text[:16]
    )


def _harrison(asked: Asked) -> bytes:
    if asked.variant.startswith("ctr-"):
        return _encrypt(asked)
    if asked.variant.startswith("read-"):
        return _reads(asked)
    if asked.variant == "strided-reads":
        length = 16 * asked.parameters["blocks"]
        parts = (asked.text[i : i + length] for i in range(0, len(asked.text), length))
        words = (struct.unpack(f"<{length // 4}I", part) for part in parts)
        return b"".join(reduce(xor, some).to_bytes(4, "little") for some in words)
    done, start = [], 0
    for i in range(0, len(asked.iv), 32):
        blocks, serial, number, padding = struct.unpack_from("=4I", asked.iv, i)
        cipher = wc.Cipher(
            "aes-128-cbc" if serial else "aes-128-ctr",
            asked.key[16 * number : 16 * number + 16],
            engine="cpu",
        )
        end = start + 16 * blocks - padding
        text = asked.text[start:end] + bytes([padding]) * padding
        end += padding % 16
        done.append(cipher.encrypt(text, iv=asked.iv[i + 16 : i + 32]))
        start = end
    return b"".join(done)


def _reads(asked: Asked) -> bytes:
    """The result of the CPU's reads."""
    pattern = 2 if asked.variant.endswith("random") else 0 if "constant" in asked.variant else 1
    parameters = {**asked.parameters, "pattern": pattern}
    job = _native.Job("harrison2008", "read-cpu", b"", b"", parameters, 0)
    out = (ctypes.c_ubyte * asked.out_size)()
    job.run(0, 0, ctypes.addressof(out), asked.out_size, 0)
    return bytes(out)


def _yang(asked: Asked) -> bytes:
    """A search of a few iterations by the CPU; of more, where nothing is to be found, none."""
    if asked.variant.startswith("block-"):
        return wc.Cipher("aes-128-ecb", asked.key, engine="cpu").decrypt(asked.text)
    if asked.variant.startswith("xor-"):
        return _xors(asked)
    if asked.parameters["iterations"] != 3:
        return bytes(asked.out_size)
    if asked.variant != yang2007.IN_ADVANCE:
        name = yang2007.CPUS[asked.variant]
        job = _native.Job("yang2007", name, asked.key, asked.iv, {"iterations": 3}, 0)
        out = (ctypes.c_ubyte * asked.out_size)()
        job.run(0, 0, ctypes.addressof(out), asked.out_size, 0)
        return bytes(out)
    found = bytearray(asked.out_size)
    fixed = int.from_bytes(asked.key, "little") >> 41 << 41
    texts = b"".join(bytes([asked.iv[0] ^ i]) + asked.iv[1:16] for i in range(3))
    for thread in range(asked.out_size // 8):
        for place in range(32):
            key = yang2007.key_of("aes", fixed | thread << yang2007.THREAD_AT | place)
            done = wc.Cipher("aes-128-ecb", key, engine="cpu").encrypt(texts)
            for i in range(3):
                if done[16 * i : 16 * i + 16] == asked.iv[16:]:
                    yang2007.MATCH.pack_into(found, 8 * thread, i, 1 << place)
    return bytes(found)


def _xors(asked: Asked) -> bytes:
    """Few of them; of many, which nobody looks at, none."""
    done = bytearray(asked.out_size)
    if asked.parameters["xors"] < 100:
        for thread in range(asked.out_size // 4):
            terms = ((thread // 256 + 37 * i) % 256 for i in range(asked.parameters["xors"]))
            done[4 * thread] = reduce(xor, terms, thread % 256)
    return bytes(done)


@dataclass(frozen=True)
class Case:
    """oracle: does what the kernels do. values: small."""

    oracle: Oracle
    values: dict[str, int]


CASES = {
    "yang2007": Case(_yang, {"iterations": 5, "size": 14, "search_ms": 1000}),
    "harrison2008": Case(_harrison, {"size": 14, "payload": 18, "reads": 1}),
    "iwai2012": Case(_encrypt, {"size": 14}),
    "quirem2013": Case(_decrypt, {"largest": 21, "cpu_ms": 1}),
    "billava2022": Case(_encrypt, {"largest": 10, "naive_ms": 5}),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The reference engine is slow."""
    for name, paper in lab.PAPERS.items():
        monkeypatch.setitem(lab.PAPERS, name, replace(paper, check_sizes=(16, 1040)))
    monkeypatch.setattr(quirem2013, "CHECK_SIZES", (16, 1040))
    monkeypatch.setattr(harrison2008_payloads, "ENGINE", "cpu")
    monkeypatch.setattr(harrison2008_payloads, "MOST_MESSAGES", 64)
    for name, value in (("SERIAL_COUNT", 32), ("LARGE_COUNT", 16), ("SMALL_COUNT", 16)):
        monkeypatch.setattr(harrison2008_payloads, name, value)
    return monkeypatch


def test_there_is_a_case_for_every_paper() -> None:
    assert set(CASES) == set(lab.PAPERS)


@pytest.mark.parametrize("name", CASES)
def test_paper(name: str, small: pytest.MonkeyPatch) -> None:
    lab_stand_in.put(small, {name: CASES[name].oracle})
    report = lab.run(name, lab.Settings(quick=True, repetitions=1, values=CASES[name].values))
    measured = {entry.variant for entry in report.measurements}
    for variant in lab.variants(name).values():
        assert variant.absent or variant.name in measured
    assert report.conclusions
    for entry in report.conclusions:
        assert entry.holds is not None
    assert report.tables
    assert report.plots
    text = lab.markdown(report)
    assert lab_stand_in.GPU.name in text
    for table in report.tables:
        for row in table.rows:
            assert len(row) == len(table.header)
    json.dumps(report.as_dict(), allow_nan=False)


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_kernel_ends_the_run(name: str, small: pytest.MonkeyPatch) -> None:
    def wrong(asked: Asked) -> bytes:
        done = CASES[name].oracle(asked)
        return bytes([done[0] ^ 1]) + done[1:] if done else done

    lab_stand_in.put(small, {name: wrong})
    with pytest.raises(wc.EngineError, match=f"of {name} is wrong"):
        lab.run(name, lab.Settings(quick=True, repetitions=1, values=CASES[name].values))


@pytest.mark.parametrize(
    ("text", "covered", "expected"),
    [(1, 1024, (1, 1)), (1025, 1024, (1, 2)), (4096, 1024, (2, 2)), (8 << 20, 1024, (90, 92))],
)
def test_the_grid_of_quirem_is_large_enough(
    text: int, covered: int, expected: tuple[int, int]
) -> None:
    width, height = quirem2013.grid(text, covered)
    assert (width, height) == expected
    assert height - width <= 2
    assert quirem2013.allocation(text, covered) == width * height * covered + 16 >= text + 16


def test_timeline(small: pytest.MonkeyPatch) -> None:
    lab_stand_in.put(small, {name: case.oracle for name, case in CASES.items()})
    small.setattr(timeline, "ENGINE", "cpu")
    small.setattr(timeline, "SIZE", 1 << 14)
    for name, case in CASES.items():
        paper = lab.PAPERS[name]
        parameters = (
            replace(entry, quick=case.values.get(entry.name, entry.quick))
            for entry in paper.parameters
        )
        small.setitem(lab.PAPERS, name, replace(paper, parameters=tuple(parameters)))
    report = lab.run("timeline", lab.Settings(quick=True, repetitions=1))
    (plot,) = report.plots
    here = [series.label for series in plot.series if not series.published]
    measured = ["yang2007", "harrison2008", "iwai2012", "billava2022", "warpcipher"]
    assert [label.partition(", here: up to ")[0] for label in here] == measured
    assert len(plot.series) == len(here) + len(published.load("timeline")["points"])
    (table,) = report.tables
    assert table.rows[0][3] == min(row[3] for row in table.rows) == 0.00153 / 8
    assert len(table.rows) == sum(len(series.x) for series in plot.series)
    assert lab_stand_in.GPU.name in lab.markdown(report)
    with pytest.raises(ValueError, match="no parameter 'x' of timeline"):
        lab.run("timeline", lab.Settings(values={"x": 1}))


def test_the_operations_of_yang_are_those_of_the_circuits() -> None:
    text = (Path(__file__).parents[3] / "src" / "cipher" / "circuits.hpp").read_text()
    aes, *_ = text.partition("aes_inverse_sbox")
    assert aes.count("= lut3<") == yang2007.AES_SBOX
    des = re.split(r"struct DesSbox<\d>", text)[1:]
    assert tuple(one.count(", 0x") for one in des) == yang2007.DES_SBOXES


def test_the_payloads_of_harrison_are_orders_of_the_same_messages() -> None:
    orders = harrison2008_payloads.mixed_payloads(1)
    messages = [sorted((m.serial, m.blocks) for m in order) for order in orders]
    assert messages == [messages[0]] * 7
    assert [(m.serial, m.blocks) for m in orders[5]] != [(m.serial, m.blocks) for m in orders[6]]
    groups = [_groups_with_serial(order) for order in orders]
    assert max(map(len, groups[5].values())) == 32
    assert list(groups[5]) == list(groups[6]) == list(range(32))
    assert len(groups[4]) == 32
    assert {len(found) for found in (*groups[0].values(), *groups[1].values())} == {1}
    # By the striped mapping a block of threads has the groups whose numbers differ by 2048.
    assert {group % 2048 for group in groups[2]} == {0, 1, 2, 3}


def _groups_with_serial(order: list[harrison2008_payloads.Message]) -> dict[int, list[int]]:
    """The serial messages of each group of 32 logical threads that has any."""
    found: dict[int, list[int]] = {}
    thread = 0
    for index, message in enumerate(order):
        if message.serial:
            found.setdefault(thread // 32, []).append(index)
        thread += 1 if message.serial else message.blocks
    assert thread == 2048 * 256
    return found

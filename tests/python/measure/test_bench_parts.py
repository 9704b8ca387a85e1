# SPDX-License-Identifier: Apache-2.0
"""The parts of `warpcipher bench`: sizes, cases, memory, timing. test_bench.py has the whole."""

from __future__ import annotations

import re
from array import array

import pytest
import warpcipher as wc
from warpcipher.arguments import parse_size
from warpcipher_measure import bench, bounds, cases, memory, settings, timing
from warpcipher_measure.runner import expected_seconds

ENGINES = {entry.name: entry for entry in wc.engines()}
ALGORITHMS = {entry.name: entry for entry in wc.algorithms()}


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16", 16),
        ("16B", 16),
        ("64KiB", 65536),
        ("64 kib", 65536),
        ("1.5KiB", 1536),
        ("1MB", 10**6),
        ("8GiB", 8 << 30),
    ],
)
def test_size(text: str, size: int) -> None:
    assert settings.parse_sizes(text) == (size,)


def test_range_of_sizes() -> None:
    assert settings.parse_sizes("16..1KiB") == (16, 64, 256, 1024)
    assert settings.parse_sizes("16..100") == (16, 64, 100)
    assert settings.parse_sizes("16..16") == (16,)


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1x", "1.0001KiB", "1..", "2..1", "1 2"])
def test_bad_size(text: str) -> None:
    with pytest.raises(ValueError, match="size is"):
        settings.parse_sizes(text)


@pytest.mark.parametrize("size", [1, 16, 1023, 1024, 3 << 20, 8 << 30])
def test_shown_size_reads_back(size: int) -> None:
    assert parse_size(settings.shown_size(size)) == size


# --- cases ----------------------------------------------------------------------------------------


def test_default_algorithms_exist() -> None:
    assert set(bench.ALGORITHMS) <= set(ALGORITHMS)
    assert len(set(bench.ALGORITHMS)) == len(bench.ALGORITHMS)


@pytest.mark.parametrize("direction", bench.DIRECTIONS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_work_is_known_for_each_algorithm(name: str, direction: str) -> None:
    work = bounds.work_of(ALGORITHMS[name], direction)
    parallel = getattr(ALGORITHMS[name], f"parallel_{direction}")
    assert (work is not None) == parallel
    assert work is None or work.logic > 0


def test_work_is_that_of_the_standards() -> None:
    """FIPS 197: 16 S-box lookups a round. The shared counter and DES as docs/bench.md has them."""

    def work(name: str) -> bounds.CipherWork:
        found = bounds.work_of(ALGORITHMS[name], "decrypt")
        assert found is not None
        return found

    assert work("aes-128-ecb").shared_loads == 160
    assert work("aes-256-xts").shared_loads == 224
    assert work("aes-128-ctr").shared_loads == work("aes-128-gcm").shared_loads == 133
    assert work("aes-128-gcm-siv") == work("aes-128-gcm")
    assert work("des-ede3-cbc") == bounds.CipherWork(0, 3 * 16 * 234 / 32)


def test_what_a_kernel_exceeds_did_not_limit_it() -> None:
    """Hybrid kernels exceed the bound of tables; kernels with only tables are limited by it."""
    rates = {"dram": 4000.0, "shared": 32.0, "logic": 64.0}
    known = {
        name: bounds.Bound(name, bounds.Spread(rate, rate, rate, 1), "", "")
        for name, rate in rates.items()
    }
    (engine,) = [engine for engine in wc.engines() if engine.name == "cuda"]

    def of(rate: float) -> dict[str, float]:
        case = cases.Case(ALGORITHMS["aes-128-ecb"], "encrypt", 1, 1, "device", engine)
        return bounds.percentages(rate, case, known, 132 * 1.98e9)

    tables = 16 / (160 / 32) * 132 * 1.98  # by hand, of 16 lookups a round
    assert of(tables)["tables"] == pytest.approx(100)
    assert "shared" not in of(tables)
    assert bounds.limit_of(of(0.99 * tables)) == "tables"
    assert bounds.limit_of(of(1.1 * tables)) == "logic"
    assert bounds.limit_of(of(1.4 * tables)) == "dram"


@pytest.mark.parametrize(("residence", "name"), [("pageable", "memmove"), ("file", "file")])
def test_a_plain_copy_is_no_bound(residence: str, name: str) -> None:
    """Encryption reached 212% of it, and the plots called it a bound."""
    known = {
        of: bounds.Bound(of, bounds.Spread(rate, rate, rate, 1), "", "")
        for of, rate in (("memmove", 20.0), ("file", 10.0))
    }
    cpu = next(engine for engine in wc.engines() if engine.name == "cpu")
    case = cases.Case(ALGORITHMS["aes-128-ecb"], "encrypt", 1, 1, residence, cpu)
    for rate, limit in ((9.0, name), (21.2, "")):
        found = bounds.percentages(rate, case, known, 0)
        assert found == {name: pytest.approx(10 * rate)}
        assert bounds.limit_of(found) == limit


def test_text_is_cut_where_one_message_cannot_fill_an_engine() -> None:
    def message(name: str, direction: str, asked: int | None = None) -> int:
        return cases.message_size(ALGORITHMS[name], direction, 1 << 20, asked)

    assert message("aes-128-ctr", "encrypt") == 1 << 20
    assert message("aes-128-cbc", "decrypt") == 1 << 20
    assert message("aes-128-cbc", "encrypt") == 4096
    assert message("aes-128-xts", "encrypt") == 4096
    assert message("aes-128-ctr", "encrypt", 100) == 100
    assert message("aes-128-ctr", "encrypt", 1 << 30) == 1 << 20


def test_lengths_of_messages() -> None:
    case = cases.Case(
        ALGORITHMS["aes-128-gcm"], "encrypt", 100, 48, "pageable", ENGINES["reference"]
    )
    assert case.lengths == [48, 48, 4]
    assert case.sealed_size == 148


@pytest.mark.parametrize("size", [1, 16, 255, 256, 257, 1 << 20, 1 << 28])
def test_slots_span_caches_or_are_many(size: int) -> None:
    cache = 32 << 20
    capacity = memory.capacity_of(size, cache)
    count = memory.slots_of(size, cache)
    assert count * memory.stride_of(size) == capacity >= size
    assert count == memory.MOST_SLOTS or 2 * capacity >= memory.CACHES_SPANNED * cache


def test_slots_do_not_overlap() -> None:
    made = [memory.HostMemory(1 << 16) for _ in range(2)]
    slots = memory.Slots(made[0], made[1], 300, 1 << 14)
    assert slots.count > 2
    for slot in range(slots.count):
        slots.text(slot, 300)[:] = bytes([slot % 251]) * 300
        slots.result(slot, 300)[:] = bytes([250 - slot % 251]) * 300
    for slot in range(slots.count):
        assert bytes(slots.text(slot, 300)) == bytes([slot % 251]) * 300
        assert bytes(slots.result(slot, 300)) == bytes([250 - slot % 251]) * 300


def test_filling_is_random() -> None:
    first, second = (memory.HostMemory(1 << 16) for _ in range(2))
    for made in (first, second):
        memory.fill(made, None)
    assert bytes(first.view(0, 1 << 16)) != bytes(second.view(0, 1 << 16))
    assert len(set(array("Q", bytes(first.view(0, 1 << 16))))) == 1 << 13


# --- timing: with a clock of the tests' own -------------------------------------------------------


def test_slots_are_not_used_twice_in_a_repetition() -> None:
    """Where they do not span the caches: the second use would find its text there."""
    events: list[int | str] = []
    work = timing.Work(events.append, 10, lambda: None, lambda: events.append("evict"))

    def clock(work: timing.Work, first: int, calls: int) -> float:
        events.append("start")
        taken = timing.host_clock(work, first, calls)
        events.append("stop")
        return taken

    found = timing.measure(work, clock, 4, 1.0, 100.0)
    assert found.seconds.count == found.latency.count == 4
    text = " ".join(map(str, events))
    timed = re.findall(r"evict (\d) start ((?:\d )+)stop (\d)", text)
    assert len(timed) == 4
    for before, slots, alone in timed:
        used = [int(before), *map(int, slots.split()), int(alone)]
        assert found.calls == len(used) - 2 == 8
        assert len(set(used)) == len(used)


def test_a_slow_row_makes_three_repetitions() -> None:
    work = timing.Work(lambda _: None, 1, lambda: None, None)
    assert timing.measure(work, lambda *_: 1.0, 50, 0.0, 0.0).seconds.count == 3
    assert timing.measure(work, lambda *_: 1.0, 2, 0.0, 0.0).seconds.count == 2
    assert timing.measure(work, lambda *_: 1.0, 50, 0.0, 1000.0).seconds.count == 50
    once = timing.measure(work, lambda *_: 1.0, 50, 0.0, 0.0, least_repetitions=1)
    assert once.seconds.count == 1


def test_calls_are_made_no_more_often_than_needed() -> None:
    calls: list[int] = []
    work = timing.Work(calls.append, 1, lambda: None, None)
    # One that makes what is made once, and one that tells how many are worth timing: of the host's
    # clock it is the first repetition.
    assert timing.measure(work, timing.host_clock, 3, 0.0, 1000.0).seconds.count == 3
    assert len(calls) == 1 + 3
    calls.clear()
    found = timing.measure(work, lambda work, *_: work.call(0) or 1.0, 3, 0.0, 9.0, latency=False)
    assert len(calls) == 1 + 1 + 3
    assert found.latency == found.seconds
    calls.clear()
    timing.measure(work, lambda work, *_: work.call(0) or 1.0, 3, 0.0, 9.0)
    assert len(calls) == 1 + 1 + 2 * 3
    calls.clear()  # the first is too long already
    timing.measure(work, timing.host_clock, 3, 1.0, 0.0, least_repetitions=2)
    assert len(calls) == 1 + 2


def test_spread_of_rates() -> None:
    rate = bench.Spread.of([2.0, 1.0, 4.0]).rate(8.0)
    assert (rate.median, rate.least, rate.most, rate.count) == (4.0, 2.0, 8.0, 3)


def test_sizes_that_would_take_long_are_judged_by_two() -> None:
    assert expected_seconds([], 1 << 30) == 0
    assert expected_seconds([(16, 1.0)], 1 << 30) == 0
    assert expected_seconds([(16, 1.0), (116, 2.0)], 216) == pytest.approx(3.0)
    assert expected_seconds([(16, 2.0), (116, 1.0)], 216) == 1.0
